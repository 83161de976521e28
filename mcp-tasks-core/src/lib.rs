//! core

pub mod duration;
#[cfg(feature = "store")]
pub mod form;
#[cfg(feature = "store")]
pub mod ledger;
#[cfg(feature = "store")]
mod number;
pub mod placeholder;
