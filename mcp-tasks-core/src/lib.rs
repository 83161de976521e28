//! core

pub mod duration;
pub mod placeholder;
