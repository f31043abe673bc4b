//! The words that the threads of a job share. Everything here is read once per batch at most.

use super::resident::resident_bytes;
use crate::channel::Wakers;
use crate::clock::Clock;
use crate::error::{Cause, Failed};
use crate::handle::Outside;
use crate::operator::Skipped;
use crate::page::Pool;
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// One for each job.
pub(crate) struct Shared {
    /// The newest epoch that has begun (protocols, rule 1).
    requested: CachePadded<AtomicU64>,
    /// Epochs up to this one that are not durable have been given up (rule 2).
    aborted_to: CachePadded<AtomicU64>,
    /// The newest durable epoch.
    durable_to: CachePadded<AtomicU64>,
    /// Epochs up to this one are durable or given up (rule 9).
    closed_to: CachePadded<AtomicU64>,
    /// Epochs up to this one take too long to be aligned (rule 22).
    timed_out: CachePadded<AtomicU64>,
    /// All tasks have paused for epochs up to this one (rule 24).
    released: CachePadded<AtomicU64>,
    /// When a task last froze.
    last_cut_ns: CachePadded<AtomicU64>,
    /// The longest pause of a task in the newest epoch.
    pause_ns: CachePadded<AtomicU64>,
    /// The epoch whose cut is that of the view under way; 0: there is none.
    viewed: CachePadded<AtomicU64>,
    /// The newest epoch that is for a view alone: nothing is frozen in it.
    view_only: CachePadded<AtomicU64>,
    /// From this epoch on tasks hand over all their pages, and not only what has changed.
    full_from: CachePadded<AtomicU64>,
    stopping: CachePadded<AtomicBool>,
    /// Sources are to stop as if their input ended here.
    draining: AtomicBool,
    workers: Arc<Wakers>,
    pub(crate) outside: Arc<Outside>,
    /// Where the pages of all state come from.
    pub(crate) memory: Pool,
    /// False for a job without checkpoints: nothing is ever frozen.
    pub(crate) checkpointing: bool,
    pub(crate) meter: Meter,
}

/// Counts what sources read, and paces them.
pub(crate) struct Meter {
    clock: Clock,
    rate_per_s: Option<u64>,
    /// From when on the rate counts: opening a store on a busy disk is no reason for a burst.
    paced_from_ns: u64,
    /// Records that had been read by then.
    paced_from_records: u64,
    records: CachePadded<AtomicU64>,
    /// When the first record was read, plus one; 0 before.
    first_record_ns: AtomicU64,
    /// Bad lines; those before the restored epoch too.
    skipped: Mutex<Skipped>,
    /// Bytes of the process in memory at that moment, plus one; 0 before.
    first_resident_bytes: AtomicU64,
}

impl Shared {
    /// For a job that goes on from `epoch` (0: afresh).
    pub(crate) fn new(
        epoch: u64,
        checkpointing: bool,
        clock: Clock,
        rate_per_s: Option<u64>,
        outside: Arc<Outside>,
        memory: Pool,
    ) -> Self {
        outside.durable(epoch);
        let word = |value| CachePadded::new(AtomicU64::new(value));
        Self {
            requested: word(epoch),
            aborted_to: word(0),
            durable_to: word(epoch),
            closed_to: word(epoch),
            timed_out: word(0),
            released: word(0),
            last_cut_ns: word(0),
            pause_ns: word(0),
            viewed: word(0),
            view_only: word(0),
            full_from: word(u64::MAX),
            stopping: CachePadded::new(AtomicBool::new(false)),
            draining: AtomicBool::new(false),
            workers: Arc::default(),
            outside,
            memory,
            checkpointing,
            meter: Meter {
                paced_from_ns: clock.now_ns(),
                paced_from_records: 0,
                clock,
                rate_per_s,
                records: word(0),
                first_record_ns: AtomicU64::new(0),
                skipped: Mutex::default(),
                first_resident_bytes: AtomicU64::new(0),
            },
        }
    }

    /// For the next attempt of the same job, from `epoch`: only counts and clock go on.
    pub(crate) fn next(&self, epoch: u64, memory: Pool) -> Self {
        let Meter { clock, rate_per_s, .. } = &self.meter;
        let mut next = Self::new(epoch, self.checkpointing, clock.clone(), *rate_per_s, self.outside.clone(), memory);
        next.meter.paced_from_records = self.meter.records();
        *next.meter.records.get_mut() = self.meter.records();
        *next.meter.first_record_ns.get_mut() = self.meter.first_record_ns.load(Ordering::Relaxed);
        *next.meter.first_resident_bytes.get_mut() = self.meter.first_resident_bytes.load(Ordering::Relaxed);
        next
    }

    // Each Acquire below pairs with the Release of the setter of the same word: who sees an epoch also sees what the
    // coordinator did before it said so.

    pub(crate) fn requested(&self) -> u64 {
        self.requested.load(Ordering::Acquire)
    }

    pub(crate) fn aborted_to(&self) -> u64 {
        self.aborted_to.load(Ordering::Acquire)
    }

    pub(crate) fn durable_to(&self) -> u64 {
        self.durable_to.load(Ordering::Acquire)
    }

    pub(crate) fn closed_to(&self) -> u64 {
        self.closed_to.load(Ordering::Acquire)
    }

    pub(crate) fn timed_out(&self) -> u64 {
        self.timed_out.load(Ordering::Acquire)
    }

    pub(crate) fn released(&self) -> u64 {
        self.released.load(Ordering::Acquire)
    }

    /// Whether tasks hand over all their pages in this epoch.
    pub(crate) fn is_full(&self, epoch: u64) -> bool {
        epoch >= self.full_from.load(Ordering::Acquire)
    }

    /// Said ahead of the request for the epoch.
    pub(crate) fn full_from(&self, epoch: u64) {
        self.full_from.store(epoch, Ordering::Release);
    }

    pub(crate) fn request(&self, epoch: u64) {
        self.requested.store(epoch, Ordering::Release);
        self.wake_surely();
    }

    /// What waits for alignment in this epoch is cut unaligned.
    pub(crate) fn time_out(&self, epoch: u64) {
        self.timed_out.store(epoch, Ordering::Release);
        self.wake_surely();
    }

    /// All have paused for this epoch: they freeze.
    pub(crate) fn release(&self, epoch: u64) {
        self.released.store(epoch, Ordering::Release);
        self.wake_surely();
    }

    /// The epoch of the view under way.
    pub(crate) fn viewed(&self) -> u64 {
        self.viewed.load(Ordering::Acquire)
    }

    /// Whether nothing is frozen in this epoch.
    pub(crate) fn is_view_only(&self, epoch: u64) -> bool {
        self.view_only.load(Ordering::Acquire) == epoch
    }

    /// Said ahead of the request for the epoch.
    pub(crate) fn view(&self, epoch: u64, only: bool) {
        if only {
            self.view_only.store(epoch, Ordering::Release);
        }
        self.viewed.store(epoch, Ordering::Release);
    }

    /// The view of this epoch is not wanted any more.
    pub(crate) fn drop_view(&self, epoch: u64) {
        let _ = self.viewed.compare_exchange(epoch, 0, Ordering::Release, Ordering::Relaxed);
    }

    /// A task has frozen, now, and stood still for so long.
    pub(crate) fn note_cut(&self, begun_ns: u64) {
        let now_ns = self.meter.clock.now_ns();
        self.last_cut_ns.fetch_max(now_ns, Ordering::Relaxed);
        self.pause_ns.fetch_max(now_ns - begun_ns, Ordering::Relaxed);
    }

    /// The longest pause of a task since this was asked last.
    pub(crate) fn take_pause_ns(&self) -> u64 {
        self.pause_ns.swap(0, Ordering::Relaxed)
    }

    /// When a task last froze, in the job's nanoseconds.
    pub(crate) fn last_cut_ns(&self) -> u64 {
        self.last_cut_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn abort(&self, epoch: u64) {
        self.aborted_to.store(epoch, Ordering::Release);
        self.close(epoch);
    }

    pub(crate) fn durable(&self, epoch: u64) {
        self.durable_to.store(epoch, Ordering::Release);
        self.outside.durable(epoch);
    }

    pub(crate) fn close(&self, epoch: u64) {
        self.closed_to.store(epoch, Ordering::Release);
        self.wake_surely();
    }

    /// Ends all loops, soon and without ceremony.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.memory.abandon_waits();
        self.wake_surely();
    }

    /// Ends the input of all sources.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        self.wake_surely();
    }

    /// Pairs with the Release in `drain`, though nothing is handed over by it.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Pairs with the Release in `stop`: who sees a ring whose other end has gone, and then looks here, sees why.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// A neighbour has gone. The one that failed has said why before; any other must not go unnoticed.
    pub(crate) fn check_neighbours(&self) -> Result<(), Failed> {
        if self.is_stopping() { Ok(()) } else { Err(Cause::NeighbourGone.into()) }
    }

    /// The workers, as far as they sleep.
    pub(crate) fn workers(&self) -> &Arc<Wakers> {
        &self.workers
    }

    /// Wakes the workers, and whoever waits at a handle. One who is just falling asleep may be missed.
    #[inline]
    pub(crate) fn wake(&self) {
        self.workers.wake();
        self.outside.wakers().wake();
    }

    /// Wakes them for all that the caller has published.
    pub(crate) fn wake_surely(&self) {
        self.workers.wake_surely();
        self.outside.wakers().wake_surely();
    }
}

impl Meter {
    /// How many records may be read now, at most `max`.
    pub(crate) fn allowance(&self, max: usize) -> usize {
        let Some(rate) = self.rate_per_s else { return max };
        let paced_ns = self.clock.now_ns() - self.paced_from_ns;
        let due = u128::from(paced_ns) * u128::from(rate) / 1_000_000_000 + u128::from(self.paced_from_records);
        let left = due.saturating_sub(u128::from(self.records()));
        usize::try_from(left).unwrap_or(max).min(max)
    }

    /// So many records have been read.
    pub(crate) fn read(&self, records: u64) {
        if self.records.fetch_add(records, Ordering::Relaxed) == 0 && records > 0 {
            self.first_record_ns.store(self.clock.now_ns() + 1, Ordering::Relaxed);
            let resident_bytes = resident_bytes().map_or(0, |bytes| bytes + 1);
            self.first_resident_bytes.store(resident_bytes, Ordering::Relaxed);
        }
    }

    /// These bad lines have been skipped.
    pub(crate) fn skipped(&self, skipped: &Skipped) {
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner).add(skipped);
    }

    /// All bad lines that have been skipped.
    pub(crate) fn all_skipped(&self) -> Skipped {
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Nanoseconds from the job's beginning to the first record read.
    pub(crate) fn first_record_ns(&self) -> Option<u64> {
        self.first_record_ns.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Bytes of the process that were in memory then.
    pub(crate) fn first_resident_bytes(&self) -> Option<u64> {
        self.first_resident_bytes.load(Ordering::Relaxed).checked_sub(1)
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
}
