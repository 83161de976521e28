//! The program `mcp-tasks`. The library beside it has the whole of it.

fn main() -> std::process::ExitCode {
    mcp_tasks_cli::main()
}
