//! The loom facade: what the ring shares between two threads comes from the standard library, or from loom under
//! `cfg(snapring_loom)`, so that loom can try every order. It must not know who uses it.

#[cfg(snapring_loom)]
pub(crate) use loom::{cell::UnsafeCell, sync::atomic};
#[cfg(not(snapring_loom))]
pub(crate) use std::sync::atomic;

/// A cell with loom's interface, at no cost.
#[cfg(not(snapring_loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(snapring_loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// A pointer to read through while nobody writes.
    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// A pointer to write through while nobody else reads or writes.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
