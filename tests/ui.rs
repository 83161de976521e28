//! What the attributes accept, and what they say when they do not.
//!
//! `TRYBUILD=overwrite cargo test -p mcp-tasks-tests --test ui` writes the expected messages anew; read the difference.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The compiler the expected messages were written with: its own words are in them.
const PINNED: &str = "rustc 1.95.";

#[test]
fn messages_of_refused_code() {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc runs");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.starts_with(PINNED) {
        let skipped = format!("SKIPPED: the compile-fail messages are those of {PINNED}x and this is {version}");
        assert!(
            env::var_os("CI").is_none(),
            "{skipped}; in CI nothing is skipped: pin the compiler or write them anew"
        );
        eprintln!("{skipped}");
        return;
    }
    let cases = trybuild::TestCases::new();
    cases.compile_fail("ui/*/*.rs");
}

/// A crate with no dependency but a renamed `mcp-tasks`, under `no_implicit_prelude` and with every lint that an author of
/// tools may deny.
#[test]
fn a_bare_and_strict_crate_compiles() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = package.parent().expect("the package is in a workspace");
    // Outside the workspace, because inside it would be a member.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("tmp is in the target directory");
    let copy = target.join("tmp").join("bare");
    fs::create_dir_all(copy.join("src")).expect("the target directory is writable");
    fs::copy(package.join("ui/bare.rs"), copy.join("src/lib.rs")).expect("the fixture is there");
    fs::copy(workspace.join("Cargo.lock"), copy.join("Cargo.lock")).expect("the lock file is there");
    let facade: PathBuf = workspace.join("mcp-tasks");
    let manifest = format!(
        "[package]\nname = \"bare\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\nrenamed = {{ package = \"mcp-tasks\", path = {facade:?} }}\n"
    );
    fs::write(copy.join("Cargo.toml"), manifest).expect("the target directory is writable");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for command in ["check", "clippy"] {
        let output = Command::new(&cargo)
            .args([command, "--offline", "--quiet"])
            .current_dir(&copy)
            .env("CARGO_TARGET_DIR", target)
            .output()
            .expect("cargo runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cargo {command}:\n{errors}");
    }
}
