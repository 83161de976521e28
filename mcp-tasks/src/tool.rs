//! What a tool is: what the attributes register, what an argument, a result, a form, a caller and a state are.

pub(crate) mod argument;
pub(crate) mod caller;
pub(crate) mod descriptor;
pub(crate) mod error;
pub(crate) mod form;
pub(crate) mod output;
pub(crate) mod registry;
pub(crate) mod schema;
pub(crate) mod state;
