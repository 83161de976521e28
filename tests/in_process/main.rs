//! Servers in this process, with rmcp's own client over an in-memory transport, a clock that stands still until nothing
//! else is left to do, and a store that does what a test's script says.

mod carriers;
mod harness;
mod kit;
mod runtime;
