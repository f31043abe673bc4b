//! The memory of a ring: its words and its slots in one allocation, and who frees it. It knows neither how records are
//! written nor how they are read.
#![allow(unsafe_code)]

use super::cut::CutWord;
use super::ring_consumer::Consumer;
use super::ring_producer::Producer;
use super::slot::{Content, Header, SlotLayout};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// A channel between two tasks: a ring of `slots` slots of at most `batch_len_max` records each.
///
/// # Panics
/// `slots` or `batch_len_max` is 0 or above `u32::MAX`, or the ring does not fit into the address space.
pub fn ring<T: Send>(slots: usize, batch_len_max: usize) -> (Producer<T>, Consumer<T>) {
    ring_from(slots, batch_len_max, 0)
}

/// A ring whose positions begin at `start`, so that a test can watch them wrap.
pub(super) fn ring_from<T: Send>(slots: usize, batch_len_max: usize, start: u64) -> (Producer<T>, Consumer<T>) {
    let ring = Ring::allocate::<T>(slots, batch_len_max, start);
    let at = Cursor { position: start, slot: 0 };
    // SAFETY: one producer and one consumer are made of this memory, here; `leave` in their drops ends it.
    unsafe { (Producer::new(ring.share(), at, batch_len_max), Consumer::new(ring, at)) }
}

/// The words that both sides share, each on lines of its own.
#[repr(C)]
struct Words {
    /// Bits that only ever get set; read often and written at most three times.
    state: CachePadded<AtomicU32>,
    /// Slots released by the consumer.
    head: CachePadded<AtomicU64>,
    /// Where the last published cut lies; written by the producer, once a checkpoint.
    cut: CachePadded<CutWord>,
}

/// The producer has gone.
pub(super) const PRODUCER_GONE: u32 = 1;
/// The consumer has gone.
pub(super) const CONSUMER_GONE: u32 = 2;
/// Nothing is to be taken any more.
pub(super) const POISONED: u32 = 4;

/// A position and the slot it falls on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    pub(super) position: u64,
    pub(super) slot: u32,
}

/// One side's view of a ring's memory. Copies are views of the same memory: see [`Ring::leave`].
pub(super) struct Ring {
    words: NonNull<Words>,
    first_slot: NonNull<u8>,
    slots: u32,
    layout: SlotLayout,
    /// What the allocator gave, before alignment.
    memory: NonNull<u8>,
    memory_layout: Layout,
}

impl Ring {
    fn allocate<T>(slots: usize, len_max: usize, start: u64) -> Self {
        let in_range = 1..=u32::MAX as usize;
        assert!(in_range.contains(&slots), "a ring has 1 to 2^32 - 1 slots, not {slots}");
        assert!(in_range.contains(&len_max), "a slot holds 1 to 2^32 - 1 records, not {len_max}");
        let layout = SlotLayout::of::<T>(len_max);
        let words_bytes = size_of::<Words>().next_multiple_of(layout.align_bytes);
        // Aligned by hand: for a larger alignment the standard allocator would clear the memory by writing to it, here
        // and now, instead of leaving zero pages to whoever touches them first.
        let memory_layout = layout
            .stride_bytes
            .checked_mul(slots)
            .and_then(|bytes| bytes.checked_add(words_bytes + layout.align_bytes))
            .and_then(|bytes| Layout::from_size_align(bytes, align_of::<u64>()).ok())
            .expect("a ring must fit into the address space");
        // SAFETY: the size is not 0, it includes the words.
        let memory =
            NonNull::new(unsafe { alloc_zeroed(memory_layout) }).unwrap_or_else(|| handle_alloc_error(memory_layout));
        let skip = memory.align_offset(layout.align_bytes);
        // SAFETY: `skip` < `align_bytes`, which the size has to spare; the words lie within it too.
        let (words, first_slot) = unsafe { (memory.add(skip), memory.add(skip + words_bytes)) };
        let ring = Self { words: words.cast(), first_slot, slots: slots as u32, layout, memory, memory_layout };
        if start != 0 || cfg!(snapring_loom) {
            ring.initialize(start);
        }
        ring
    }

    /// Writes words and headers. For the standard library's atomics all bytes zero is the same as `initialize(0)`.
    fn initialize(&self, start: u64) {
        let words =
            Words { state: AtomicU32::new(0).into(), head: AtomicU64::new(start).into(), cut: CutWord::new().into() };
        // SAFETY: aligned, within the allocation, and nobody else knows of it yet.
        unsafe { self.words.write(words) };
        for slot in 0..self.slots {
            // SAFETY: as above.
            unsafe { self.slot(slot).cast::<Header>().write(Header::new(start)) };
        }
    }

    /// A second view, for the other side.
    pub(super) fn share(&self) -> Self {
        Self { ..*self }
    }

    fn words(&self) -> &Words {
        // SAFETY: initialized (zero or by `initialize`) and alive until both sides have left.
        unsafe { self.words.as_ref() }
    }

    #[inline(always)]
    fn slot(&self, slot: u32) -> NonNull<u8> {
        debug_assert!(slot < self.slots);
        // SAFETY: `slot` < `slots` by the cursor's invariant, so within the allocation.
        unsafe { self.first_slot.add(slot as usize * self.layout.stride_bytes) }
    }

    /// The header of a slot.
    #[inline(always)]
    pub(super) fn header(&self, slot: u32) -> &Header {
        // SAFETY: aligned by the layout, initialized as the words are, and only ever shared.
        unsafe { self.slot(slot).cast().as_ref() }
    }

    /// The place of the first record of a slot.
    #[inline(always)]
    pub(super) fn records<T>(&self, slot: u32) -> NonNull<T> {
        // SAFETY: within the slot, aligned for `T` by the layout.
        let first = unsafe { self.slot(slot).add(self.layout.records_at_bytes) }.cast::<T>();
        debug_assert!(first.is_aligned());
        first
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    #[inline(always)]
    pub(super) fn head(&self) -> &AtomicU64 {
        &self.words().head
    }

    #[inline(always)]
    pub(super) fn cut(&self) -> &CutWord {
        &self.words().cut
    }

    /// Bits of [`PRODUCER_GONE`], [`CONSUMER_GONE`], [`POISONED`].
    #[inline(always)]
    pub(super) fn state(&self) -> u32 {
        // Acquire: the AcqRel of `set`.
        self.words().state.load(Ordering::Acquire)
    }

    /// Sets a bit of the state and returns the bits before.
    pub(super) fn set(&self, bit: u32) -> u32 {
        // Release: all that this side has done is seen by one who sees the bit. Acquire: the side that finds the other
        // gone sees all that it has done, before it frees.
        self.words().state.fetch_or(bit, Ordering::AcqRel)
    }

    /// The slot after `at`.
    #[inline(always)]
    pub(super) fn after(&self, at: Cursor) -> Cursor {
        let slot = at.slot + 1;
        Cursor { position: at.position.wrapping_add(1), slot: if slot == self.slots { 0 } else { slot } }
    }

    /// The slot on which a position falls that is `ahead` slots, fewer than there are, after `at`.
    pub(super) fn slot_ahead(&self, at: Cursor, ahead: u32) -> u32 {
        debug_assert!(ahead < self.slots);
        let (slot, slots) = (u64::from(at.slot) + u64::from(ahead), u64::from(self.slots));
        (if slot < slots { slot } else { slot - slots }) as u32
    }

    /// Says that this side (`bit`) will not touch the ring again. If the other side has left already, drops what was
    /// published and not taken, and frees the memory; `head_slot` says which slot a head falls on.
    ///
    /// # Safety
    /// Called once by each side, as the last thing it does with the ring. `T` is the ring's record type.
    pub(super) unsafe fn leave<T>(&self, bit: u32, head_slot: impl FnOnce(u64) -> u32) {
        if self.set(bit) & (PRODUCER_GONE | CONSUMER_GONE) == 0 {
            return;
        }
        // Relaxed: `set` has acquired all that the other side did.
        let head = self.head().load(Ordering::Relaxed);
        let at = Cursor { position: head, slot: head_slot(head) };
        drop(Remains::<T> { ring: self, at, records: PhantomData });
    }
}

/// What both sides have left behind. Dropping it drops the records and frees the memory.
struct Remains<'a, T> {
    ring: &'a Ring,
    at: Cursor,
    records: PhantomData<T>,
}

impl<T> Drop for Remains<'_, T> {
    fn drop(&mut self) {
        while self.ring.header(self.at.slot).is_published(self.at.position) {
            let (header, records) = (self.ring.header(self.at.slot), self.ring.records::<T>(self.at.slot));
            self.at = self.ring.after(self.at);
            // SAFETY: published, not released, and no side is left that could touch it.
            let Content::Records(len) = (unsafe { header.content() }) else { continue };
            // If a record's drop panics, this one drops the remaining slots and frees, instead of `self`.
            let rest = Remains::<T> { ring: self.ring, at: self.at, records: PhantomData };
            // SAFETY: the slot holds `len` initialized records, which nobody has moved out; `at` is past them already.
            unsafe { ptr::slice_from_raw_parts_mut(records.as_ptr(), len as usize).drop_in_place() };
            std::mem::forget(rest);
        }
        // SAFETY: allocated so, and both sides have left.
        unsafe { dealloc(self.ring.memory.as_ptr(), self.ring.memory_layout) };
    }
}
