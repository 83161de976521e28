//! What carries a tool's questions: the rounds of a call (2026-07-28), a task, or a session (2025-11-25). The same tools
//! must come to the same end on all three. Server and client are in one process, the client is rmcp's own, and time is
//! tokio's, which stands still until nothing else is left to do.

mod answers;
mod defer;
mod forms;
mod gates;
mod grace;
mod harness;
mod live;
mod replay;
mod rounds;
mod tools;
