//! What happens when no page is left: who waits, for what, and for how long. It does not know where pages come from.

use super::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Instant;

/// How often, and for how long, pages have been waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// Threads that wait right now.
    pub waiting: usize,
    /// Waits so far, those under way included.
    pub stalls: u64,
    /// Nanoseconds of the waits that are over, all together.
    pub stalled_ns: u64,
}

/// The counts behind it. They are hints to people; what they are about is under the pool's lock.
#[derive(Default)]
pub(super) struct Stalls {
    /// Whether anybody is to wait at all.
    pub is_allowed: AtomicBool,
    /// Nobody waits any more.
    pub is_abandoned: AtomicBool,
    /// Freezes in somebody's hands.
    outstanding: AtomicUsize,
    waiting: AtomicUsize,
    stalls: AtomicU64,
    stalled_ns: AtomicU64,
}

impl Stalls {
    pub fn shortage(&self) -> Shortage {
        let Self { waiting, stalls, stalled_ns, .. } = self;
        Shortage { waiting: waiting.load(Relaxed), stalls: stalls.load(Relaxed), stalled_ns: stalled_ns.load(Relaxed) }
    }

    pub fn is_anybody_waiting(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// Whether pages may come back that are worth waiting for.
    pub fn is_worth_waiting(&self) -> bool {
        // The Acquire goes with the Release in `Outstanding::drop`: who sees a freeze gone also sees what it gave back.
        self.outstanding.load(Acquire) > 0 && self.is_allowed.load(Relaxed) && !self.is_abandoned.load(Relaxed)
    }

    /// Somebody waits, until what this returns is dropped.
    pub fn begin(&self) -> Stall<'_> {
        self.waiting.fetch_add(1, Relaxed);
        self.stalls.fetch_add(1, Relaxed);
        Stall { stalls: self, since: Instant::now() }
    }
}

/// A wait under way.
pub(super) struct Stall<'a> {
    stalls: &'a Stalls,
    since: Instant,
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        self.stalls.waiting.fetch_sub(1, Relaxed);
        self.stalls.stalled_ns.fetch_add(self.since.elapsed().as_nanos() as u64, Relaxed);
    }
}

/// Goes with a freeze that was handed over: as long as it lives, pages may come back. Empty for one that holds none.
#[derive(Default)]
pub(crate) struct Outstanding(Option<Arc<Shared>>);

impl Outstanding {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        shared.stalls.outstanding.fetch_add(1, Relaxed);
        Self(Some(Arc::clone(shared)))
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            // Release, for the Acquire in `is_worth_waiting`.
            shared.stalls.outstanding.fetch_sub(1, Release);
            shared.wake_waiting();
        }
    }
}

impl std::fmt::Debug for Outstanding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Outstanding({})", self.0.is_some())
    }
}
