//! What the test binaries share.
