//! Longer explanations. There is no code here.
//!
//! * [`replay`]: what runs again, and what a function must do for it
//! * [`errors`]: what a client gets when something goes wrong
//! * [`configuration`]: sources, keys, placeholders
//! * [`stores`]: keeping tasks in a database of your own
//! * [`http`]: serving over HTTP, and who may do what
#![cfg_attr(
    feature = "client",
    doc = "* [`client`]: calling tools, and seeing their tasks through"
)]

#[doc = include_str!("guide/replay.md")]
pub mod replay {}

#[doc = include_str!("guide/errors.md")]
pub mod errors {}

#[doc = include_str!("guide/configuration.md")]
pub mod configuration {}

#[doc = include_str!("guide/stores.md")]
///
/// ```
#[doc = include_str!("guide/directory_store.rs")]
/// ```
pub mod stores {}

#[cfg(feature = "http")]
#[doc = include_str!("guide/http.md")]
pub mod http {}

#[cfg(feature = "client")]
#[doc = include_str!("guide/client.md")]
pub mod client {}
