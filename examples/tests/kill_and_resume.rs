//! The fifth example tells its story to the end.

use std::path::PathBuf;
use std::process::Command;

/// The example's program, beside the directory of this one: `cargo test` builds both.
fn program() -> PathBuf {
    let mut path = std::env::current_exe().expect("this program is a file");
    path.pop();
    path.pop();
    path.push("examples/05_kill_and_resume");
    path.set_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        path.is_file(),
        "build the examples first: cargo build -p mcp-tasks-examples --examples"
    );
    path
}

fn told(arguments: &[&str]) {
    let output = Command::new(program()).args(arguments).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut rest = &*said;
    for words in [
        "searches",
        "\"input_required\": \"Delete 3 backups?\"",
        "kill -9",
        "\"input_required\": \"Delete 3 backups?\"",
        "\"completed\": \"process ",
        " deleted the 3 backups",
    ] {
        let at = rest
            .find(words)
            .unwrap_or_else(|| panic!("{words:?} is missing in {said}"));
        rest = &rest[at + words.len()..];
    }
    assert_eq!(
        said.matches("searches").count(),
        1,
        "the search is not repeated: {said}"
    );
}

#[test]
fn a_task_outlives_its_server_on_a_file_of_the_programs() {
    told(&[]);
}

#[test]
fn a_task_outlives_its_server_on_a_store_that_is_named() {
    let file = std::env::temp_dir().join(format!("mcp-tasks-story-{}.db", std::process::id()));
    told(&[&format!("sqlite:{}", file.display())]);
    assert!(file.is_file(), "the tasks were there");
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", file.display()));
    }
}
