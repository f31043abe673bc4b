//! The consumer's handle: it looks at one slot after the other and lends out its records in place. It does not know
//! what marks mean, but that nothing follows [`Mark::End`].
#![allow(unsafe_code)]

use super::cut::{CutReader, SeenCut};
use super::gauge::Gauge;
use super::ring::{CONSUMER_GONE, Cursor, POISONED, PRODUCER_GONE, Ring};
use super::ring_records::{Records, Release};
use super::slot::Content;
use crate::marks::Mark;
use crate::sync::atomic::Ordering;
use std::marker::PhantomData;
use std::sync::Arc;

/// The reading end of a ring.
pub struct Consumer<T> {
    /// The slot that is taken next.
    at: Cursor,
    ended: bool,
    gauge: Option<Arc<Gauge>>,
    cut: CutReader,
    ring: Ring,
    records: PhantomData<T>,
}

/// What a consumer found.
pub enum Polled<'a, T> {
    /// Nothing yet; or nothing ever again, once [`Mark::End`] has been taken.
    Empty,
    /// A batch.
    Records(Records<'a, T>),
    /// A mark.
    Mark(Mark),
    /// The producer has gone, all that it published has been taken, and [`Mark::End`] was not there: an abnormal end.
    Closed,
    /// One of the two sides has poisoned the ring: the job is failing.
    Poisoned,
}

/// What [`Consumer::peek`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Peeked<'a, T> {
    /// A batch. It stays where it is.
    Records(&'a [T]),
    /// A mark.
    Mark(Mark),
}

/// What [`Consumer::poll`] would find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Nothing,
    Slot,
    Closed,
    Poisoned,
}

// SAFETY: the handle is the only one on its side; the records that it gets from the other thread are `Send`.
unsafe impl<T: Send> Send for Consumer<T> {}

impl<T> Consumer<T> {
    /// # Safety
    /// The only consumer of this ring, whose records are `T` and whose positions begin `at`.
    pub(super) unsafe fn new(ring: Ring, at: Cursor) -> Self {
        Self { at, ended: false, gauge: None, cut: CutReader::new(), ring, records: PhantomData }
    }

    /// Counts from here on what is taken, in `gauge`.
    pub fn show(&mut self, gauge: Arc<Gauge>) {
        self.gauge = Some(gauge);
    }

    /// Shows whether what is there is left for later.
    pub fn hold(&self, held: bool) {
        if let Some(gauge) = &self.gauge {
            gauge.hold(held);
        }
    }

    /// Takes the next batch or mark, if there is one. Never waits.
    #[inline]
    pub fn poll(&mut self) -> Polled<'_, T> {
        match self.look() {
            Look::Slot => self.take(),
            Look::Nothing => Polled::Empty,
            Look::Closed => Polled::Closed,
            Look::Poisoned => Polled::Poisoned,
        }
    }

    /// Whether [`Consumer::poll`] would find anything, be it bad news.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.look() != Look::Nothing
    }

    /// Whether [`Consumer::poll`] would find a batch.
    #[inline]
    pub fn has_records(&self) -> bool {
        // SAFETY: published, as `look` has seen, and not released: that is up to this handle.
        self.look() == Look::Slot && matches!(unsafe { self.ring.header(self.at.slot).content() }, Content::Records(_))
    }

    /// How many batches and marks it holds at most.
    pub fn slots(&self) -> usize {
        self.ring.slots() as usize
    }

    /// Whether [`Mark::End`] has been taken.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The position of the slot that is taken next.
    #[inline]
    pub fn position(&self) -> u64 {
        self.at.position
    }

    /// The last cut that the producer has published, if there is one. `near` is an epoch that the caller knows of, fewer
    /// than 2^23 from the cut's when it is first seen here.
    ///
    /// So that no slot behind a cut is taken before the cut is seen, look first whether a slot is there
    /// ([`Consumer::is_ready`], [`Consumer::peek`]), then here, and only then take that slot.
    #[inline]
    pub fn cut(&self, near: u64) -> Option<SeenCut> {
        let ahead = self.at.position.wrapping_add(u64::from(self.ring.slots()));
        self.cut.read(self.ring.cut(), near, ahead)
    }

    /// What lies in the slot at `position`, if it is published and has not been taken. Takes nothing.
    pub fn peek(&self, position: u64) -> Option<Peeked<'_, T>> {
        let ahead = position.wrapping_sub(self.at.position);
        if ahead >= u64::from(self.ring.slots()) || self.ring.state() & POISONED != 0 {
            return None;
        }
        let slot = self.ring.slot_ahead(self.at, ahead as u32);
        let header = self.ring.header(slot);
        if !header.is_published(position) {
            return None;
        }
        // SAFETY: published, as has just been seen, and not released: the head never passes `at`, which is not past it.
        Some(match unsafe { header.content() } {
            Content::Records(len) => {
                let first = self.ring.records::<T>(slot);
                // SAFETY: so many records were published in this slot. The producer does not touch a slot before the head has
                // passed it, and only this handle moves the head and takes records, for which it must not be borrowed.
                Peeked::Records(unsafe { std::slice::from_raw_parts(first.as_ptr(), len as usize) })
            }
            Content::Mark(mark) => Peeked::Mark(mark),
        })
    }

    #[inline]
    fn look(&self) -> Look {
        // Before the sequence (rule 5). A line that is hardly ever written: it stays in this core's cache.
        let state = self.ring.state();
        if self.ended {
            Look::Nothing
        } else if state & POISONED != 0 {
            Look::Poisoned
        } else if self.ring.header(self.at.slot).is_published(self.at.position) {
            Look::Slot
        } else if state & PRODUCER_GONE != 0 {
            Look::Closed
        } else {
            Look::Nothing
        }
    }

    /// Takes the slot `at`, which must be published.
    #[inline(always)]
    fn take(&mut self) -> Polled<'_, T> {
        let slot = self.at.slot;
        self.at = self.ring.after(self.at);
        if let Some(gauge) = &self.gauge {
            gauge.took_slot();
        }
        let header = self.ring.header(slot);
        let release = Release { header, head: self.ring.head(), position: self.at.position };
        // SAFETY: published, as `look` has seen, and not released before `release` is dropped.
        match unsafe { header.content() } {
            Content::Records(len) => {
                let first = self.ring.records(slot);
                // SAFETY: so many records were published in this slot; `at` is past it, so nobody else takes them.
                Polled::Records(unsafe { Records::in_slot(first, len, release) })
            }
            Content::Mark(mark) => {
                drop(release);
                self.ended = mark == Mark::End;
                Polled::Mark(mark)
            }
        }
    }

    /// Tells the producer, and this side too, that nothing is taken any more.
    pub fn poison(&mut self) {
        self.ring.set(POISONED);
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        // Release: as in `Release`. A batch that was forgotten instead of dropped is leaked, not dropped twice.
        self.ring.head().store(self.at.position, Ordering::Release);
        let slot = self.at.slot;
        // SAFETY: the last thing that the consumer does.
        unsafe { self.ring.leave::<T>(CONSUMER_GONE, |_| slot) };
    }
}
