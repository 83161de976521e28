//! The tests of the core that need more than one of its files, one binary for all.

mod core {
    mod body;
    mod cursor_random;
    mod cursor_rules;
    mod records;
    mod stores;
    mod transition;
}
