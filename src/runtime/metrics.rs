//! A running job in numbers: plain values, read from what its threads show of themselves. It must not know how they run.

use super::gauges::{Dials, TaskState};
use super::ledger::{CheckpointMetrics, Ledger};
use super::shared::Shared;
use crate::page::{Pool, Shortage};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A running job in numbers. Counts of tasks and channels begin anew with each restart, all others go on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// The tasks, in the order of their numbers.
    pub tasks: Vec<TaskMetrics>,
    /// The channels between them.
    pub channels: Vec<ChannelMetrics>,
    /// The newest checkpoints, up to 64, oldest first.
    pub checkpoints: Vec<CheckpointMetrics>,
    /// Durable checkpoints.
    pub durable: u64,
    /// Checkpoints that were given up: out of time, or out of room.
    pub given_up: u64,
    /// Restarts after failures.
    pub restarts: u32,
    /// Records read by all sources; what is read again after a failure counts again.
    pub records: u64,
    /// Workers that are stuck in user code now.
    pub stalls: Vec<Stall>,
    /// The memory for state.
    pub memory: MemoryMetrics,
}

/// The memory for state, in numbers; they begin anew with each restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryMetrics {
    /// Bytes of pages in use: of state, and of what checkpoints and views hold of what it was.
    pub in_use_bytes: u64,
    /// How many there may be ([`Config::state_bytes_max`](super::Config::state_bytes_max)).
    pub limit_bytes: u64,
    /// Tasks that wait for a page now, since all are in use and some will come back.
    pub waiting: u64,
    /// How often one has waited.
    pub stalls: u64,
    /// How long, all together.
    pub stalled_ns: u64,
}

impl MemoryMetrics {
    fn of(pool: &Pool) -> Self {
        let Shortage { waiting, stalls, stalled_ns } = pool.shortage();
        Self {
            in_use_bytes: (pool.in_use() * pool.page_bytes()) as u64,
            limit_bytes: pool.limit_bytes() as u64,
            waiting: waiting as u64,
            stalls,
            stalled_ns,
        }
    }
}

/// A task in numbers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskMetrics {
    /// Its chain, named by its first named operator.
    pub name: String,
    /// Its number within the chain.
    pub index: u32,
    /// The operators of the chain.
    pub operators: Vec<String>,
    /// The number of the worker that runs it.
    pub worker: usize,
    /// Records taken in.
    pub records: u64,
    /// Batches taken in.
    pub batches: u64,
    /// What it is doing now.
    pub state: TaskState,
    /// What it was doing whenever it was looked at.
    pub samples: Samples,
}

/// How often a task was seen in each state, by looks every 20 milliseconds: shares of its time. There are none while
/// the coordinator writes a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// [`TaskState::Busy`].
    pub busy: u64,
    /// [`TaskState::BlockedByOutput`].
    pub blocked_by_output: u64,
    /// [`TaskState::BlockedByAlignment`].
    pub blocked_by_alignment: u64,
    /// [`TaskState::Idle`].
    pub idle: u64,
    /// [`TaskState::Finished`].
    pub finished: u64,
}

/// A channel in numbers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChannelMetrics {
    /// The task that writes to it: an index into [`Metrics::tasks`].
    pub from: usize,
    /// The task that reads from it: an index into [`Metrics::tasks`].
    pub to: usize,
    /// Slots that it has.
    pub slots: u64,
    /// Slots filled now, with batches and marks that nobody has taken yet. The one that is being read does not count.
    pub filled: u64,
    /// Whether the reader leaves them for later: it waits for the barriers of its other inputs, or its loop is full.
    pub held: bool,
    /// Batches passed.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
}

/// A worker that has been within one step of a task for longer than the watchdog's limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// The number of the worker.
    pub worker: usize,
    /// The task and its operators: one of them does not return.
    pub place: String,
    /// For how long, when it was noticed.
    pub stuck: Duration,
}

impl std::fmt::Display for Stall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { worker, place, stuck } = self;
        write!(f, "worker {worker} has been in one step of {place} for {stuck:.1?}: an operator there does not return")
    }
}

impl Metrics {
    /// The mean time from begin to begin of the newest checkpoints: what the interval came to. Where a checkpoint takes longer than
    /// the interval that was asked for, the next begins when it is over. None before there are two.
    #[must_use]
    pub fn checkpoint_interval(&self) -> Option<Duration> {
        let (first, last) = (self.checkpoints.first()?, self.checkpoints.last()?);
        let between = u64::try_from(self.checkpoints.len()).ok()?.checked_sub(1).filter(|count| *count > 0)?;
        Some(Duration::from_nanos((last.begun_ns - first.begun_ns) / between))
    }

    pub(super) fn of(dials: &Dials, ledger: &Ledger, shared: &Shared, restarts: u32, stalls: Vec<Stall>) -> Self {
        let tasks = dials.tasks.iter().map(|dial| {
            let (records, batches) = dial.gauge.taken();
            let [busy, blocked_by_output, blocked_by_alignment, idle, finished] =
                dial.samples.each_ref().map(|count| count.load(Ordering::Relaxed));
            TaskMetrics {
                name: dial.name.to_string(),
                index: dial.index,
                operators: dial.operators.clone(),
                worker: dial.worker,
                records,
                batches,
                state: dial.gauge.state(),
                samples: Samples { busy, blocked_by_output, blocked_by_alignment, idle, finished },
            }
        });
        let channels = dials.channels.iter().map(|channel| {
            let flow = channel.gauge.read();
            let (batches, records, filled) = (flow.batches, flow.records, flow.filled.min(channel.slots));
            let (from, to, slots, held) = (channel.from, channel.to, channel.slots, flow.held);
            ChannelMetrics { from, to, slots, filled, held, batches, records }
        });
        let status = ledger.status();
        Self {
            tasks: tasks.collect(),
            channels: channels.collect(),
            checkpoints: ledger.history(),
            durable: status.checkpoints,
            given_up: status.given_up,
            restarts,
            records: shared.meter.records(),
            stalls,
            memory: MemoryMetrics::of(&shared.memory),
        }
    }
}
