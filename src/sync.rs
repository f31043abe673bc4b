//! The loom facade: atomics, cells and threads of the standard library, or loom's under `cfg(snapring_loom)`.

#[cfg(snapring_loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(snapring_loom))]
pub(crate) use std::sync::atomic;
