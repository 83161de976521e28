//! From outside: servers, clients and the command line in processes of their own, and what they say to each other.

mod cli;
mod client;
mod harness;
mod protocol;
