//! Snapring.
#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("snapring runs on Linux on x86-64 and aarch64 only");

// `#[derive(Record)]` writes `::snapring::…`, also inside this crate.
extern crate self as snapring;

pub mod channel;
pub mod checkpoint;
pub mod connector;
pub mod docs;
pub mod error;
pub mod marks;
pub mod operator;
pub mod page;
pub mod record;
pub mod snapshot;
pub mod state;
mod sync;
