//! Records of one batch, read in place and moved out one by one. It does not know which ring they lie in, if any.
#![allow(unsafe_code)]

use super::slot::Header;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// The records of one batch: an iterator that owns them. Dropping it drops the records that are left and gives the slot
/// back to the producer, also while unwinding.
///
/// A batch that does not come out of a ring has the same type: see [`Records::of`].
pub struct Records<'a, T> {
    first: NonNull<T>,
    /// Records before this one are gone.
    next: usize,
    len: usize,
    /// Dropped after the records, even if a record's drop panics.
    _release: Option<Release<'a>>,
    records: PhantomData<&'a mut T>,
}

/// Gives a slot back when dropped.
pub(super) struct Release<'a> {
    pub(super) header: &'a Header,
    pub(super) head: &'a AtomicU64,
    /// The position after the slot.
    pub(super) position: u64,
}

impl Drop for Release<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.header.assert_owned();
        // Release: what was read from the slot was read before the producer's Acquire load in `claim` sees this.
        self.head.store(self.position, Ordering::Release);
    }
}

impl<'a, T> Records<'a, T> {
    /// The records of a published slot.
    ///
    /// # Safety
    /// `first` points to `len` initialized records that are nobody else's until `release` has run.
    #[inline(always)]
    pub(super) unsafe fn in_slot(first: NonNull<T>, len: u32, release: Release<'a>) -> Self {
        Self { first, next: 0, len: len as usize, _release: Some(release), records: PhantomData }
    }

    /// All records of a vector, which is empty from then on and keeps its capacity.
    #[inline]
    pub fn of(batch: &'a mut Vec<T>) -> Self {
        let len = batch.len();
        // SAFETY: 0 records are initialized. They belong to the iterator from here on; one that is forgotten leaks them.
        unsafe { batch.set_len(0) };
        // SAFETY: a vector's pointer is never null.
        let first = unsafe { NonNull::new_unchecked(batch.as_mut_ptr()) };
        Self { first, next: 0, len, _release: None, records: PhantomData }
    }
}

impl<T> Iterator for Records<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        if self.next == self.len {
            return None;
        }
        // SAFETY: `next` < `len`.
        let record = unsafe { self.first.add(self.next) };
        self.next += 1;
        // SAFETY: initialized, and counted as gone already.
        Some(unsafe { record.read() })
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len - self.next, Some(self.len - self.next))
    }
}

impl<T> ExactSizeIterator for Records<'_, T> {}
impl<T> FusedIterator for Records<'_, T> {}

impl<T> Drop for Records<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if std::mem::needs_drop::<T>() && self.next != self.len {
            drop_all(self.first, self.next, self.len);
        }
    }
}

/// By value, so that an iterator can live in registers.
#[inline(never)]
fn drop_all<T>(first: NonNull<T>, next: usize, len: usize) {
    // SAFETY: only called by the drop of the iterator, which owns the records from `next` to `len`.
    unsafe { ptr::slice_from_raw_parts_mut(first.as_ptr().add(next), len - next).drop_in_place() };
}
