//! A loop as its tasks share it: how full its heads are, and which lap is under way since its outside inputs ended. The words
//! are read once a step at most. When a loop has ended is decided in `checkpoint`.

use crate::checkpoint;
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// One for each strongly connected component of the tasks.
pub(crate) struct Component {
    /// Heads that hold more than they should: outside inputs wait (protocols, rule 28).
    full_heads: CachePadded<AtomicU32>,
    /// What heads go by: the lap under way, or that the loop has ended.
    lap: CachePadded<AtomicU64>,
    laps: Mutex<checkpoint::Component>,
}

impl Component {
    /// Of so many heads.
    pub(crate) fn new(heads: usize) -> Self {
        let laps = checkpoint::Component::new(heads);
        Self {
            full_heads: CachePadded::new(AtomicU32::new(0)),
            lap: CachePadded::new(AtomicU64::new(laps.lap())),
            laps: Mutex::new(laps),
        }
    }

    /// Whether outside inputs should wait.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.full_heads.load(Ordering::Relaxed) != 0
    }

    /// A head holds more than it should, or no longer does.
    pub(super) fn head_is_full(&self, full: bool) {
        if full {
            self.full_heads.fetch_add(1, Ordering::Relaxed);
        } else {
            self.full_heads.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The lap under way.
    #[inline]
    pub(super) fn lap(&self) -> u64 {
        // Acquire: the Release in `report`.
        self.lap.load(Ordering::Acquire)
    }

    /// Whether the loop has ended: nothing goes round any more.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.lap() == checkpoint::Component::ENDED
    }

    /// A head has seen a lap through. `dirty`: it has processed a record from within since it began that lap.
    pub(super) fn report(&self, lap: u64, dirty: bool) {
        let mut laps = self.laps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = laps.report(lap, dirty) {
            // Release: whoever sees the next lap sees what the heads did in the one before.
            self.lap.store(next, Ordering::Release);
        }
    }
}
