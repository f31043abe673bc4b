//! What running tasks and workers show of themselves, for metrics and for the watchdog. Each writes to lines of its own,
//! without any order, and never waits for whoever looks.

use crate::channel::Gauge;
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TaskState {
    /// It takes in records, or emits what is left at the end.
    Busy,
    /// Its output finds no free slot: those behind it are slower.
    BlockedByOutput,
    /// Some of its inputs wait at a barrier, and the others have nothing.
    BlockedByAlignment,
    /// It has nothing to do: those ahead of it are slower.
    Idle,
    /// It is done.
    Finished,
}

/// All of them, by number.
pub(super) const STATES: [TaskState; 5] =
    [TaskState::Busy, TaskState::BlockedByOutput, TaskState::BlockedByAlignment, TaskState::Idle, TaskState::Finished];

/// Written by the task's worker.
#[derive(Default)]
pub(crate) struct TaskGauge(CachePadded<TaskWords>);

#[derive(Default)]
struct TaskWords {
    state: AtomicU8,
    records: AtomicU64,
    batches: AtomicU64,
}

impl TaskGauge {
    #[inline]
    pub(super) fn show(&self, state: TaskState) {
        self.0.state.store(state as u8, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn took_batch(&self, records: u64) {
        self.0.records.store(records, Ordering::Relaxed);
        self.0.batches.store(self.0.batches.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    pub(super) fn state(&self) -> TaskState {
        STATES[self.0.state.load(Ordering::Relaxed) as usize % STATES.len()]
    }

    /// Records and batches taken in.
    pub(super) fn taken(&self) -> (u64, u64) {
        (self.0.records.load(Ordering::Relaxed), self.0.batches.load(Ordering::Relaxed))
    }
}

/// A worker's heartbeat.
#[derive(Default)]
pub(crate) struct Pulse(CachePadded<PulseWords>);

#[derive(Default)]
struct PulseWords {
    steps: AtomicU64,
    at: AtomicU32,
}

/// Between two steps.
const NOWHERE: u32 = 0;
/// The worker has returned.
const GONE: u32 = u32::MAX;

/// Where a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    Between,
    /// In a step of the task with this number.
    In(u32),
    Gone,
}

impl Pulse {
    /// A step of a task begins.
    #[inline]
    pub(super) fn step(&self, task: u32) {
        self.0.steps.store(self.0.steps.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.0.at.store(task + 1, Ordering::Relaxed);
    }

    /// No step is under way.
    #[inline]
    pub(super) fn rest(&self) {
        self.0.at.store(NOWHERE, Ordering::Relaxed);
    }

    /// The last act.
    pub(super) fn gone(&self) {
        self.0.at.store(GONE, Ordering::Relaxed);
    }

    /// Steps begun so far, and where the worker is.
    pub(super) fn look(&self) -> (u64, Whereabouts) {
        let at = match self.0.at.load(Ordering::Relaxed) {
            NOWHERE => Whereabouts::Between,
            GONE => Whereabouts::Gone,
            task => Whereabouts::In(task - 1),
        };
        (self.0.steps.load(Ordering::Relaxed), at)
    }
}

/// A task, as whoever looks knows it.
pub(crate) struct TaskDial {
    pub(crate) name: Arc<str>,
    pub(crate) index: u32,
    pub(crate) worker: usize,
    /// The operators of its chain, in their order.
    pub(crate) operators: Vec<String>,
    pub(crate) gauge: Arc<TaskGauge>,
    /// How often it was seen in each state.
    pub(super) samples: [AtomicU64; STATES.len()],
}

impl TaskDial {
    pub(crate) fn new(
        name: Arc<str>,
        index: u32,
        worker: usize,
        operators: Vec<String>,
        gauge: Arc<TaskGauge>,
    ) -> Self {
        Self { name, index, worker, operators, gauge, samples: Default::default() }
    }

    pub(super) fn sample(&self, state: TaskState) {
        self.samples[state as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// A channel, as whoever looks knows it.
pub(crate) struct ChannelDial {
    /// Numbers of tasks.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) slots: u64,
    pub(crate) gauge: Arc<Gauge>,
}

/// All that an attempt shows.
#[derive(Default)]
pub(crate) struct Dials {
    /// By number.
    pub(crate) tasks: Vec<TaskDial>,
    pub(crate) channels: Vec<ChannelDial>,
    /// One for each worker; none for a job on the caller's thread.
    pub(crate) pulses: Vec<Arc<Pulse>>,
}

impl Dials {
    /// What a person would call a task: who it is, and what runs in it.
    pub(super) fn place(&self, task: u32) -> String {
        match self.tasks.get(task as usize) {
            Some(dial) => format!("task {} of `{}` ({})", dial.index, dial.name, dial.operators.join(" → ")),
            None => format!("task number {task}"),
        }
    }

    /// A number that changes whenever a task takes something in or hands something on.
    pub(super) fn moved(&self) -> u64 {
        let taken = self.tasks.iter().map(|task| task.gauge.taken().1);
        let handed_on = self.channels.iter().map(|channel| {
            let flow = channel.gauge.read();
            flow.batches.wrapping_mul(2).wrapping_sub(flow.filled)
        });
        taken.chain(handed_on).fold(0, u64::wrapping_add)
    }

    /// Whether some task waits for another to make room, or to bring a barrier.
    pub(super) fn waits(&self) -> bool {
        let waits = |state| matches!(state, TaskState::BlockedByOutput | TaskState::BlockedByAlignment);
        self.tasks.iter().any(|task| waits(task.gauge.state()))
    }

    /// Slots that lie in rings, published and not taken.
    pub(super) fn filled(&self) -> u64 {
        self.channels.iter().map(|channel| channel.gauge.read().filled).sum()
    }
}
