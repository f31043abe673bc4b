//! What a ring shows of itself to whoever looks: how much has gone through it, and how full it is. It takes no part in
//! handing anything over.
//!
//! Each side writes to a line of its own, once for each slot and without any order: a look is a moment old.

use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The counts of one ring.
#[derive(Debug, Default)]
pub struct Gauge {
    sent: CachePadded<Sent>,
    /// Slots taken.
    taken: CachePadded<AtomicU64>,
    /// What is there is left for later.
    held: AtomicBool,
}

#[derive(Debug, Default)]
struct Sent {
    batches: AtomicU64,
    marks: AtomicU64,
    records: AtomicU64,
}

/// What a [`Gauge`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Batches published.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Slots published and not taken yet, batches and marks.
    pub filled: u64,
    /// Whether the consumer leaves them for later.
    pub held: bool,
}

/// Only one thread writes to each word.
#[inline(always)]
fn add(word: &AtomicU64, more: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

impl Gauge {
    #[inline(always)]
    pub(super) fn sent_batch(&self, records: u32) {
        add(&self.sent.batches, 1);
        add(&self.sent.records, u64::from(records));
    }

    #[inline(always)]
    pub(super) fn sent_mark(&self) {
        add(&self.sent.marks, 1);
    }

    #[inline(always)]
    pub(super) fn took_slot(&self) {
        add(&self.taken, 1);
    }

    /// The consumer leaves what is there for later, or no longer does.
    pub(super) fn hold(&self, held: bool) {
        self.held.store(held, Ordering::Relaxed);
    }

    /// A look.
    pub fn read(&self) -> Flow {
        // Taken first: what is taken in between makes the ring look fuller, not emptier than empty.
        let taken = self.taken.load(Ordering::Relaxed);
        let [batches, marks, records] =
            [&self.sent.batches, &self.sent.marks, &self.sent.records].map(|word| word.load(Ordering::Relaxed));
        Flow {
            batches,
            records,
            filled: (batches + marks).saturating_sub(taken),
            held: self.held.load(Ordering::Relaxed),
        }
    }
}
