//! The command line of mcp-tasks.

fn main() -> std::process::ExitCode {
    mcp_tasks::cli::main()
}
