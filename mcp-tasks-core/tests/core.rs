//! The tests of the core that need more than one of its files, one binary for all.

mod core {
    mod abandoned;
    mod answers;
    mod body;
    mod broken_stores;
    mod cas;
    mod cas_backend;
    mod cas_turns;
    mod cursor_bodies;
    mod cursor_limits;
    mod cursor_random;
    mod cursor_rules;
    mod differential;
    mod golden;
    mod idle;
    mod records;
    mod stores;
    mod transition;
}
