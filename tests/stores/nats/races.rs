//! races
