//! The memory store, beside the others. Its contract suite runs in its own crate.

use crate::alone::{TwoNodes, on_a_database_of_its_own};

on_a_database_of_its_own! { alone, async {
    TwoNodes::in_memory()
} }
