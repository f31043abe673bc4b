//! What happens when no page is left: who waits, for what, and for how long. It does not know where pages come from.

use super::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::{Duration, Instant};

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
    /// Those of them that are part of something under way: somebody has to go on with that before they can be let go of.
    under_way: AtomicUsize,
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

    /// Whether pages may come back that are worth waiting for. Those of something under way are only for a while: it may be for
    /// the one who waits to go on with it.
    pub fn is_worth_waiting(&self, waited: Duration) -> bool {
        let under_way = self.under_way.load(Relaxed);
        // The Acquire goes with the Release in `Outstanding::drop`: who sees a freeze gone also sees what it gave back.
        let outstanding = self.outstanding.load(Acquire);
        let may_come_back = outstanding > under_way || (outstanding > 0 && waited < UNDER_WAY_MAX);
        may_come_back && self.is_allowed.load(Relaxed) && !self.is_abandoned.load(Relaxed)
    }

    /// Whether somebody has waited for so long that what is under way is called back, whatever else he waits for.
    pub fn are_loans_due(&self, waited: Duration) -> bool {
        waited >= UNDER_WAY_MAX && self.under_way.load(Relaxed) > 0
    }

    /// Somebody waits, until what this returns is dropped.
    pub fn begin(&self) -> Stall<'_> {
        self.waiting.fetch_add(1, Relaxed);
        self.stalls.fetch_add(1, Relaxed);
        Stall { stalls: self, since: Instant::now() }
    }
}

/// Others go on with what is under way between two batches.
const UNDER_WAY_MAX: Duration = Duration::from_millis(250);

/// A wait under way.
pub(super) struct Stall<'a> {
    stalls: &'a Stalls,
    since: Instant,
}

impl Stall<'_> {
    pub fn waited(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        self.stalls.waiting.fetch_sub(1, Relaxed);
        self.stalls.stalled_ns.fetch_add(self.since.elapsed().as_nanos() as u64, Relaxed);
    }
}

/// Goes with a freeze that was handed over: as long as it lives, pages may come back. Empty for one that holds none.
#[derive(Default)]
pub(crate) struct Outstanding {
    shared: Option<Arc<Shared>>,
    is_under_way: bool,
}

impl Outstanding {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        shared.stalls.outstanding.fetch_add(1, Relaxed);
        Self { shared: Some(Arc::clone(shared)), is_under_way: false }
    }

    /// It is part of something that is not complete.
    pub fn under_way(mut self) -> Self {
        if let Some(shared) = &self.shared {
            shared.stalls.under_way.fetch_add(1, Relaxed);
            self.is_under_way = true;
        }
        self
    }

    /// That is complete: whoever has it can let go of it.
    pub fn complete(&mut self) {
        if let Some(shared) = self.shared.as_ref().filter(|_| std::mem::take(&mut self.is_under_way)) {
            shared.stalls.under_way.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.complete();
        if let Some(shared) = &self.shared {
            // Release, for the Acquire in `is_worth_waiting`.
            shared.stalls.outstanding.fetch_sub(1, Release);
            shared.wake_waiting();
        }
    }
}

impl std::fmt::Debug for Outstanding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Outstanding({})", self.shared.is_some())
    }
}
