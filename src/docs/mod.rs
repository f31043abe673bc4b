//! Notes that are published with the code.

#[doc = include_str!("format.md")]
pub mod format {}
