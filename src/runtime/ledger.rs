//! What checkpoints have come to, over all attempts of a job: written by the coordinator, read by anybody.

use super::coordinator::CheckpointReport;
use crate::checkpoint::Protocol;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many checkpoints the history remembers.
const HISTORY_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Ledger(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    status: Status,
    history: VecDeque<CheckpointMetrics>,
    /// What user code the coordinator is in.
    place: Option<String>,
}

/// Sums.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Status {
    pub(crate) last: Option<CheckpointReport>,
    pub(crate) checkpoints: u64,
    pub(crate) given_up: u64,
    pub(crate) checkpoint_bytes: u64,
    /// Parts that sinks have prepared and that are not committed.
    pub(crate) parts: u64,
    /// The job has come to its end.
    pub(crate) ended: bool,
}

/// A checkpoint, phase by phase. Times of phases are nanoseconds from its begin; none: it did not come so far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointMetrics {
    /// Its epoch.
    pub epoch: u64,
    /// When it began: nanoseconds since the job did.
    pub begun_ns: u64,
    /// The protocol by which it was made.
    pub protocol: Protocol,
    /// It was aligned no more after a while, but cut unaligned.
    pub timed_out: bool,
    /// Until the last task had frozen.
    pub cut_ns: Option<u64>,
    /// The longest time that a task stood still to be cut.
    pub pause_ns: Option<u64>,
    /// Until all logs of channels were complete.
    pub complete_ns: Option<u64>,
    /// Bytes of records that were on their way in channels.
    pub channel_bytes: u64,
    /// Until the prepared parts of sinks were synced.
    pub synced_ns: Option<u64>,
    /// Until it was written and synced: it is durable.
    pub durable_ns: Option<u64>,
    /// Until the parts of sinks were committed.
    pub committed_ns: Option<u64>,
    /// Bytes written to the store for it.
    pub bytes: u64,
    /// What came of it.
    pub outcome: CheckpointOutcome,
}

/// What came of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointOutcome {
    /// It is under way.
    Begun,
    /// It is durable.
    Durable,
    /// It was given up, for this reason.
    GivenUp(String),
}

impl CheckpointMetrics {
    pub(super) fn begun(epoch: u64, begun_ns: u64, protocol: Protocol) -> Self {
        let outcome = CheckpointOutcome::Begun;
        Self {
            epoch,
            begun_ns,
            protocol,
            timed_out: false,
            cut_ns: None,
            pause_ns: None,
            complete_ns: None,
            channel_bytes: 0,
            synced_ns: None,
            durable_ns: None,
            committed_ns: None,
            bytes: 0,
            outcome,
        }
    }
}

impl Ledger {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn status(&self) -> Status {
        self.pages().status
    }

    pub(super) fn update(&self, update: impl FnOnce(&mut Status)) {
        update(&mut self.pages().status);
    }

    /// A checkpoint has begun.
    pub(super) fn begin(&self, epoch: u64, begun_ns: u64, protocol: Protocol) {
        let history = &mut self.pages().history;
        if history.len() == HISTORY_MAX {
            history.pop_front();
        }
        history.push_back(CheckpointMetrics::begun(epoch, begun_ns, protocol));
    }

    /// Something has happened to the checkpoint under way.
    pub(super) fn note(&self, note: impl FnOnce(&mut CheckpointMetrics)) {
        let mut pages = self.pages();
        if let Some(under_way) = pages.history.back_mut().filter(|last| last.outcome == CheckpointOutcome::Begun) {
            note(under_way);
        }
    }

    /// The parts of a durable checkpoint are committed.
    pub(super) fn committed(&self, epoch: u64, ns: u64) {
        let mut pages = self.pages();
        if let Some(durable) = pages.history.back_mut().filter(|last| last.epoch == epoch) {
            durable.committed_ns = Some(ns);
        }
    }

    pub(super) fn history(&self) -> Vec<CheckpointMetrics> {
        self.pages().history.iter().cloned().collect()
    }

    /// Runs user code on the coordinator's thread, and says meanwhile what that is.
    pub(super) fn at<R>(&self, place: impl FnOnce() -> String, run: impl FnOnce() -> R) -> R {
        self.pages().place = Some(place());
        let result = run();
        self.pages().place = None;
        result
    }

    pub(super) fn place(&self) -> Option<String> {
        self.pages().place.clone()
    }
}
