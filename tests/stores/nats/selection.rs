//! selection
