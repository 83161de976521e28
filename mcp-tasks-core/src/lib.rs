//! core

pub mod duration;
