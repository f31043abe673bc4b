//! When what was written is over: the time of states with a time-to-live. It knows no table.
//!
//! 1. Time is nanoseconds since 1970, or what a test's clock shows. It is read once a batch and never goes back: a restored
//!    state goes on from at least the time that was kept with it.
//! 2. What was written at *t* is over at *t* + time-to-live, whoever looks.
//! 3. What is over is removed when its key is met, and otherwise by a cursor that goes round all buckets: each record pays
//!    for a look at [`LOOKS_PER_RECORD`] entries. Where a bucket is dirty, and so will be written by the next checkpoint
//!    anyway, all that is over is removed. Another is left as it is, and makes no checkpoint larger, until half of its
//!    entries are over.
//! 4. So at most half of a page is over that nothing else has changed for a whole round; and in a round not more entries
//!    are added than an eighth of those that there are. Memory levels off.

use super::super::operating::Open;

/// Entries looked at for each record.
const LOOKS_PER_RECORD: i64 = 8;

pub(super) struct Timer {
    ttl_ns: u64,
    /// Never goes back.
    now_ns: u64,
    /// What is added to the clock.
    ahead_ns: u64,
    /// The hash at which the removal goes on.
    pub cursor: u64,
    /// Entries that may be looked at.
    credit: i64,
}

impl Timer {
    /// `kept_ns`: the time that was kept.
    pub fn new(open: &Open, ttl_ns: u64, kept_ns: u64, cursor: u64) -> Self {
        let clock_ns = open.clock.now_ns();
        let now_ns = kept_ns.max(open.clock.time_ns());
        Self { ttl_ns, now_ns, ahead_ns: now_ns.saturating_sub(clock_ns), cursor, credit: 0 }
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub fn tick(&mut self, clock_ns: u64) {
        self.now_ns = self.now_ns.max(clock_ns.saturating_add(self.ahead_ns));
    }

    /// Whether what was written then is over.
    pub fn is_over(&self, written_ns: u64) -> bool {
        written_ns.saturating_add(self.ttl_ns) <= self.now_ns
    }

    /// What was written then or before is over; none: nothing can be.
    pub fn bound_ns(&self) -> Option<u64> {
        self.now_ns.checked_sub(self.ttl_ns)
    }

    pub fn earn(&mut self, records: u64) {
        self.credit = self.credit.saturating_add(LOOKS_PER_RECORD.saturating_mul(records as i64));
    }

    pub fn may_look(&self) -> bool {
        self.credit > 0
    }

    pub fn has_looked(&mut self, entries: u64) {
        // Also an empty bucket costs something.
        self.credit -= entries.max(8) as i64;
    }

    /// All has been looked at: what is left of the credit is not saved up.
    pub fn has_gone_round(&mut self) {
        self.credit = self.credit.min(0);
    }
}
