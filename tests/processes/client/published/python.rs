//! The Python that FastMCP is installed in.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Says where it is.
const VARIABLE: &str = "MCP_TASKS_FASTMCP_PYTHON";

/// The interpreter: what the environment names, or the one in `fastmcp` in the target directory. `None`, with a loud word,
/// if there is neither.
///
/// # Panics
/// In CI, where nothing may be skipped.
pub(super) fn python() -> Option<PathBuf> {
    static PYTHON: LazyLock<Option<PathBuf>> = LazyLock::new(find);
    PYTHON.clone()
}

fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Some(named.into());
    }
    // With a target triple, its directory is between.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).ancestors().skip(1).take(2);
    let found = target
        .map(|directory| directory.join("fastmcp/bin/python"))
        .find(|candidate| candidate.exists());
    if found.is_none() {
        let word = format!(
            "SKIPPED: FastMCP is not installed; run `python3 -m venv target/fastmcp && target/fastmcp/bin/pip install \
             -r tests/fixtures/fastmcp/requirements.txt`, or name a Python that has it in {VARIABLE}, to run this test"
        );
        assert!(std::env::var_os("CI").is_none(), "{word}");
        // Not through the macro, whose words are shown for tests that fail.
        let _ = writeln!(std::io::stderr(), "{word}");
    }
    found
}

/// A program of the fixture.
pub(super) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/fastmcp")
        .join(name)
}
