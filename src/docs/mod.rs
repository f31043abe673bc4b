//! How it is built, and what is in the file.

#[doc = include_str!("architecture.md")]
pub mod architecture {}
#[doc = include_str!("format.md")]
pub mod format {}
#[doc = include_str!("state.md")]
pub mod state {}
