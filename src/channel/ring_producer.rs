//! The producer's handle: it holds the open slot and fills it in place. It knows nothing of leftovers: what finds no
//! free slot goes back to the caller.
#![allow(unsafe_code)]

use super::cut::END;
use super::gauge::Gauge;
use super::ring::{CONSUMER_GONE, Cursor, POISONED, PRODUCER_GONE, Ring};
use super::slot::{Content, LINE_BYTES, fetch_to_write};
use crate::marks::Mark;
use crate::sync::atomic::Ordering;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The writing end of a ring. Dropping it without having sent [`Mark::End`] is an abnormal end.
pub struct Producer<T> {
    /// The place of the first record of the open slot; dangling when none is open.
    first: NonNull<T>,
    /// Records in the open slot: always fewer than `room`, or 0 when none is open.
    len: usize,
    /// Records that the open slot can hold; 0 when none is open.
    room: usize,
    /// The slot that is open or will be opened next.
    at: Cursor,
    /// The head as last seen: slots before `head_seen` + number of slots may be written.
    head_seen: u64,
    len_max: usize,
    /// The highest epoch of which a cut has been published; `END` for the end, 0 for none.
    cut: u64,
    gauge: Option<Arc<Gauge>>,
    ring: Ring,
    records: PhantomData<T>,
}

// SAFETY: the handle is the only one on its side; the records that it moves to the other thread are `Send`.
unsafe impl<T: Send> Send for Producer<T> {}

impl<T> Producer<T> {
    /// How many records ahead of the one that is written lines are fetched: 24 lines, about what a processor can wait for
    /// at a time. None for records of several lines, which copy fast enough by themselves.
    const AHEAD: usize =
        if size_of::<T>() == 0 || size_of::<T>() > 2 * LINE_BYTES { 0 } else { 24 * LINE_BYTES / size_of::<T>() };

    /// # Safety
    /// The only producer of this ring, whose slots hold `len_max` records of `T` and whose positions begin `at`.
    pub(super) unsafe fn new(ring: Ring, at: Cursor, len_max: usize) -> Self {
        let first = NonNull::dangling();
        let (head_seen, records) = (at.position, PhantomData);
        Self { first, len: 0, room: 0, at, head_seen, len_max, cut: 0, gauge: None, ring, records }
    }

    /// Counts from here on what goes through, in `gauge`.
    pub fn show(&mut self, gauge: Arc<Gauge>) {
        self.gauge = Some(gauge);
    }

    /// Puts a record into the open slot, opening one if none is open. A slot that is full then is published.
    ///
    /// # Errors
    /// No slot is free: the record comes back. The consumer may have gone: see [`Producer::is_closed`].
    #[inline(always)]
    pub fn push(&mut self, record: T) -> Result<(), T> {
        // The record is never handed to a function that is not inlined: it would have to lie in memory for that, and
        // the copy, made before every compare, would cost more than all the rest.
        if !self.is_open() && !self.open() {
            return Err(record);
        }
        self.push_open(record);
        Ok(())
    }

    /// Pushes records until there are no more (`true`) or no slot is free (`false`). Faster than one at a time: the place
    /// of the next record stays in a register. A record is asked for only when there is room for it.
    #[inline]
    pub fn push_all(&mut self, records: &mut impl Iterator<Item = T>) -> bool {
        while self.is_open() || self.open() {
            let (first, room) = (self.first, self.room);
            let mut fill = Fill { len: self.len, producer: self };
            while fill.len != room {
                let Some(record) = records.next() else { return true };
                // SAFETY: a slot is open and `len` < `room`.
                unsafe { first.add(fill.len).write(record) };
                fill.len += 1;
            }
            drop(fill);
            self.publish();
        }
        false
    }

    /// Whether a slot is open; it then has room for at least one record.
    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        self.room != 0
    }

    /// Opens a slot, if one is free. None must be open.
    #[inline(never)]
    pub(super) fn open(&mut self) -> bool {
        debug_assert!(!self.is_open());
        if self.claim() {
            self.first = self.ring.records(self.at.slot);
            self.room = self.len_max;
            let bytes = Self::AHEAD.min(self.len_max) * size_of::<T>();
            (0..bytes)
                .step_by(LINE_BYTES)
                .for_each(|at| fetch_to_write(self.first.as_ptr().cast::<u8>().wrapping_add(at)));
        }
        self.is_open()
    }

    /// Puts a record into the open slot, and publishes the slot if it is full then.
    ///
    /// # Panics
    /// No slot is open.
    #[inline(always)]
    pub(super) fn push_open(&mut self, record: T) {
        assert!(self.is_open());
        if Self::AHEAD != 0 {
            let ahead: *mut T = self.first.as_ptr().wrapping_add(self.len + Self::AHEAD);
            let begins_line = ahead.addr() % LINE_BYTES < size_of::<T>();
            if begins_line && self.len + Self::AHEAD < self.room {
                fetch_to_write(ahead.cast());
            }
        }
        // SAFETY: a slot is open and `len` < `room`.
        unsafe { self.first.add(self.len).write(record) };
        self.len += 1;
        if self.len == self.room {
            self.publish();
        }
    }

    /// Whether [`Producer::push`] would take a record.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        self.is_open() || self.claim()
    }

    /// Whether the slot `at` is free.
    fn claim(&mut self) -> bool {
        let slots = u64::from(self.ring.slots());
        if self.at.position.wrapping_sub(self.head_seen) == slots {
            // Acquire: the Release store of the consumer's `Release`; what it read of the slot, it has read.
            self.head_seen = self.ring.head().load(Ordering::Acquire);
            if self.at.position.wrapping_sub(self.head_seen) == slots {
                return false;
            }
        }
        self.ring.header(self.at.slot).assert_owned();
        true
    }

    /// Hands the open slot to the consumer, if it holds anything. None is open afterwards.
    #[inline]
    pub fn publish(&mut self) {
        let len = self.len as u32;
        (self.len, self.room) = (0, 0);
        if len != 0 {
            // SAFETY: `len` records were written to the slot `at`, which was claimed.
            unsafe { self.publish_at(Content::Records(len)) };
            if let Some(gauge) = &self.gauge {
                gauge.sent_batch(len);
            }
        }
    }

    /// # Safety
    /// The slot `at` has been claimed and holds what `content` says.
    #[inline(always)]
    unsafe fn publish_at(&mut self, content: Content) {
        // SAFETY: this function's contract.
        unsafe { self.ring.header(self.at.slot).publish(self.at.position, content) };
        self.at = self.ring.after(self.at);
    }

    /// Sends a mark behind all records pushed so far. The open slot is published in any case.
    ///
    /// # Errors
    /// No slot is free: the mark comes back.
    pub fn mark(&mut self, mark: Mark) -> Result<(), Mark> {
        self.publish();
        if !self.claim() {
            return Err(mark);
        }
        // SAFETY: just claimed; a mark needs no records.
        unsafe { self.publish_at(Content::Mark(mark)) };
        if let Some(gauge) = &self.gauge {
            gauge.sent_mark();
        }
        Ok(())
    }

    /// Publishes a cut of `epoch`, not 0, behind all records pushed and marks sent so far, for the consumer to see over
    /// whatever lies queued. It needs no slot. The open slot is published in any case. A cut of the same or a higher epoch
    /// stays what it is.
    pub fn publish_cut(&mut self, epoch: u64) {
        debug_assert!(epoch != 0, "epochs begin with 1");
        self.publish();
        if epoch > self.cut {
            self.cut = epoch;
            self.ring.cut().store(epoch, self.at.position);
        }
    }

    /// As [`Producer::publish_cut`], for all epochs to come: the producer has finished. Nothing replaces it.
    pub fn publish_end_cut(&mut self) {
        self.publish_cut(END);
    }

    /// Whether the consumer has gone: nothing will ever be taken again.
    pub fn is_closed(&self) -> bool {
        self.ring.state() & CONSUMER_GONE != 0
    }

    /// Whether one of the two sides has poisoned the ring.
    pub fn is_poisoned(&self) -> bool {
        self.ring.state() & POISONED != 0
    }

    /// Tells the consumer to take nothing more. What lies in the open slot is dropped.
    pub fn poison(&mut self) {
        self.ring.set(POISONED);
        self.drop_open();
    }

    fn drop_open(&mut self) {
        let len = self.len;
        (self.len, self.room) = (0, 0);
        // SAFETY: `len` records are initialized, and no longer counted.
        unsafe { ptr::slice_from_raw_parts_mut(self.first.as_ptr(), len).drop_in_place() };
    }
}

/// Counts what has been written to the open slot also if the iterator panics.
struct Fill<'a, T> {
    producer: &'a mut Producer<T>,
    len: usize,
}

impl<T> Drop for Fill<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.producer.len = self.len;
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        /// Leaves the ring even if a record's drop panics.
        struct Leave<'a, T>(&'a Ring, Cursor, PhantomData<T>);
        impl<T> Drop for Leave<'_, T> {
            fn drop(&mut self) {
                let (slots, at) = (u64::from(self.0.slots()), self.1);
                // Slots lie between the head and `at`, at most all of them.
                let head_slot = |head| {
                    let ahead = at.position.wrapping_sub(head);
                    ((u64::from(at.slot) + slots - ahead) % slots) as u32
                };
                // SAFETY: the last thing that the producer does.
                unsafe { self.0.leave::<T>(PRODUCER_GONE, head_slot) };
            }
        }
        let ring = self.ring.share();
        let _leave = Leave::<T>(&ring, self.at, PhantomData);
        self.drop_open();
    }
}
