//! What carries a tool's questions: the rounds of a call (2026-07-28), a task, or a session (2025-11-25). The same tools
//! must come to the same end on all three.

mod answers;
mod defer;
mod forms;
mod gates;
mod grace;
mod lab;
mod live;
mod replay;
mod rounds;
mod tools;
