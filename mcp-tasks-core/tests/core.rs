//! The tests of the core that need more than one of its files, one binary for all.

mod core {
    mod answers;
    mod body;
    mod broken_stores;
    mod cursor_bodies;
    mod cursor_random;
    mod cursor_rules;
    mod golden;
    mod records;
    mod stores;
    mod transition;
}
