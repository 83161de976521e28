//! The command line, as people and scripts use it: in a pseudo-terminal whose screen is looked at, and as a child whose
//! output is read, against our own server in a process of its own and against servers that a test scripts.

mod content;
mod exits;
mod harness;
mod hostile;
mod scripts;
mod task_file;
mod terminal;
