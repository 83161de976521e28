//! The client, against our own server in all its forms, against the servers of others, and against servers that do what
//! they should not.
//!
//! Where time matters, server and client are in one process and time is tokio's, which stands still until nothing else is
//! left to do. Over HTTP time is real, and nothing hangs on how much of it goes by.

mod answers;
mod crash;
mod harness;
mod hostile;
mod http;
mod lifecycle;
mod listening;
mod memory;
mod odd;
mod pace;
mod processes;
mod published;
mod raw;
