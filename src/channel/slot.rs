//! What a slot looks like in memory: a header, and its records inline behind it. It does not know who fills a slot,
//! nor when.
//!
//! The consumer waits for a slot by looking at its sequence. Records of up to 40 bytes begin in the same cache line, so
//! that a slot with a single one crosses between two cores as one line; larger ones begin on the next line.
#![allow(unsafe_code)]

use crate::marks::Mark;
use crate::sync::{
    UnsafeCell,
    atomic::{AtomicU64, Ordering},
};
use std::mem::MaybeUninit;

/// What a published slot holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// So many records.
    Records(u32),
    /// A mark, and no records.
    Mark(Mark),
}

/// The head of a slot. All bytes zero is a header of a slot that has never been published (position 0 waits for 1).
#[repr(C)]
pub(super) struct Header {
    sequence: AtomicU64,
    content: UnsafeCell<MaybeUninit<Content>>,
}

impl Header {
    /// A header that counts as unpublished in the first lap from `start`.
    pub(super) fn new(start: u64) -> Self {
        Self { sequence: AtomicU64::new(start), content: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Whether the slot at `position` is published. Pairs with the store in [`Header::publish`].
    #[inline(always)]
    pub(super) fn is_published(&self, position: u64) -> bool {
        // Acquire: the Release store in `publish`.
        self.sequence.load(Ordering::Acquire) == position.wrapping_add(1)
    }

    /// Hands the slot at `position` to the consumer.
    ///
    /// # Safety
    /// The caller is the producer, the slot has been released by the consumer (or never used), and the records that
    /// `content` counts are initialized.
    #[inline(always)]
    pub(super) unsafe fn publish(&self, position: u64, content: Content) {
        // SAFETY: the slot is the producer's alone, by this function's contract.
        self.content.with_mut(|place| unsafe { (*place).write(content) });
        // Release: the Acquire load in `is_published`.
        self.sequence.store(position.wrapping_add(1), Ordering::Release);
    }

    /// What the slot holds.
    ///
    /// # Safety
    /// The caller is the consumer, has seen the slot published and has not released it.
    #[inline(always)]
    pub(super) unsafe fn content(&self) -> Content {
        // SAFETY: published, so written before; not released, so the producer does not touch it.
        self.content.with(|place| unsafe { (*place).assume_init() })
    }

    /// Tells loom that the caller owns the whole slot at this moment: loom does not see the records themselves, which
    /// are only ever touched between two such moments of the same side.
    #[inline(always)]
    pub(super) fn assert_owned(&self) {
        #[cfg(snapring_loom)]
        self.content.with_mut(|_| ());
    }
}

/// How slots of one ring lie in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotLayout {
    /// From a header to the first record.
    pub(super) records_at_bytes: usize,
    /// From a header to the next.
    pub(super) stride_bytes: usize,
    /// What the first header must be aligned to.
    pub(super) align_bytes: usize,
}

/// A cache line.
pub(super) const LINE_BYTES: usize = 64;
/// Two lines: processors fetch them in pairs, so that slots closer together would disturb each other.
const PAIR_BYTES: usize = 128;

impl SlotLayout {
    /// The layout of slots of `len_max` records of `T`.
    ///
    /// # Panics
    /// Such a slot does not fit into the address space.
    pub(super) fn of<T>(len_max: usize) -> Self {
        let in_line = size_of::<Header>() + size_of::<T>() <= LINE_BYTES;
        let records_align = align_of::<T>().max(if in_line { 1 } else { LINE_BYTES });
        let records_at_bytes = size_of::<Header>().next_multiple_of(records_align);
        let align_bytes = align_of::<T>().max(PAIR_BYTES);
        let stride_bytes = size_of::<T>()
            .checked_mul(len_max)
            .and_then(|bytes| bytes.checked_add(records_at_bytes))
            .and_then(|bytes| bytes.checked_next_multiple_of(align_bytes))
            .expect("a slot must fit into the address space");
        Self { records_at_bytes, stride_bytes, align_bytes }
    }
}

/// Fetches a line that is about to be written. It is most likely in the consumer's cache, and a processor waits for it
/// with each store in order, unless it has been asked for ahead. Any address will do: nothing is accessed.
#[inline(always)]
pub(super) fn fetch_to_write(line: *const u8) {
    // SAFETY: a hint, without effect on memory or registers.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) line, options(readonly, nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) line, options(readonly, nostack, preserves_flags));
    }
}
