//! Why a job stands still: for each task what it waits for, and the circle of tasks that wait for each other, if there is
//! one. Found by looking at a job's numbers only. It must not know how a job runs.
//!
//! A task waits
//! - for *room*, where its output found no free slot: for the reader of each full ring;
//! - for a *barrier*, where some of its inputs are at theirs: for the writers of those that are not;
//! - for *records*, where it has nothing to do: for the writers of its rings, as long as they have not finished.
//!
//! The first two are waits for all of them, the last for any. So a circle is told only if it has a wait of the first two
//! kinds in it: tasks that merely wait for records are idle, in a circle or not.

use super::gauges::TaskState;
use super::metrics::{ChannelMetrics, Metrics};
use std::collections::VecDeque;
use std::fmt;

/// What each task of a job waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// One for each task, in the order of [`Metrics::tasks`].
    pub tasks: Vec<Waiting>,
    /// Tasks that wait for each other, each for the next and the last for the first: indices into `tasks`. Empty: there is no
    /// such circle.
    pub circle: Vec<usize>,
}

/// What one task waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// What a person would call it: `accounts 2`.
    pub task: String,
    /// What it is doing.
    pub state: TaskState,
    /// What it waits for; nothing, if it works or has finished, or waits for something outside the job.
    pub waits: Vec<WaitsFor>,
}

/// Something that a task waits for, from another: an index into [`Diagnosis::tasks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// A free slot in the ring to this task, which is full.
    Room(usize),
    /// A barrier from this task: other inputs have theirs, and wait.
    Barrier(usize),
    /// Records, or anything, from this task: its ring is empty.
    Records(usize),
}

impl WaitsFor {
    /// The task that it waits for.
    #[must_use]
    pub fn task(self) -> usize {
        match self {
            Self::Room(task) | Self::Barrier(task) | Self::Records(task) => task,
        }
    }

    /// The first circle of tasks each of which waits for the next, and the last for the first, with a wait that is not for
    /// records; empty, if there is none. `waits`: what each task waits for.
    ///
    /// # Panics
    /// A task waits for one that there is not.
    #[must_use]
    pub fn circle(waits: &[impl AsRef<[Self]>]) -> Vec<usize> {
        let is_hard = |wait: &&Self| !matches!(wait, Self::Records(_));
        let hard = waits.iter().enumerate().flat_map(|(task, waits)| {
            let hard = waits.as_ref().iter().filter(is_hard);
            hard.map(move |wait| (task, wait.task()))
        });
        let mut circles = hard.filter_map(|(task, waits_for)| way(waits, waits_for, task));
        let mut circle = circles.next().unwrap_or_default();
        if !circle.is_empty() {
            circle.rotate_right(1);
        }
        circle
    }
}

impl Diagnosis {
    /// Of a job with these numbers.
    #[must_use]
    pub fn of(metrics: &Metrics) -> Self {
        let finished = |task: usize| metrics.tasks[task].state == TaskState::Finished;
        let waits = |number: usize, state: TaskState| {
            let into = |channel: &&ChannelMetrics| channel.to == number && !finished(channel.from);
            let channels = metrics.channels.iter();
            match state {
                TaskState::Busy | TaskState::Finished => Vec::new(),
                TaskState::BlockedByOutput => {
                    let is_full = |channel: &&ChannelMetrics| channel.from == number && channel.filled >= channel.slots;
                    channels.filter(is_full).map(|channel| WaitsFor::Room(channel.to)).collect()
                }
                TaskState::BlockedByAlignment => {
                    let lacks = channels.filter(into).filter(|channel| !channel.held);
                    lacks.map(|channel| WaitsFor::Barrier(channel.from)).collect()
                }
                TaskState::Idle => {
                    let is_empty = channels.filter(into).filter(|channel| channel.filled == 0);
                    is_empty.map(|channel| WaitsFor::Records(channel.from)).collect()
                }
            }
        };
        let task = |(number, task): (usize, &super::metrics::TaskMetrics)| Waiting {
            task: format!("{} {}", task.name, task.index),
            state: task.state,
            waits: waits(number, task.state),
        };
        let tasks: Vec<Waiting> = metrics.tasks.iter().enumerate().map(task).collect();
        let waits: Vec<&[WaitsFor]> = tasks.iter().map(|waiting| waiting.waits.as_slice()).collect();
        let circle = WaitsFor::circle(&waits);
        Self { tasks, circle }
    }
}

/// The shortest way of waits from one task to another, both included.
fn way(waits: &[impl AsRef<[WaitsFor]>], from: usize, to: usize) -> Option<Vec<usize>> {
    let mut led_by = vec![None; waits.len()];
    let mut found = VecDeque::from([from]);
    while let Some(task) = found.pop_front() {
        if task == to {
            let mut way: Vec<usize> =
                std::iter::successors(Some(to), |&task| (task != from).then(|| led_by[task])?).collect();
            way.reverse();
            return Some(way);
        }
        for next in waits[task].as_ref().iter().map(|wait| wait.task()) {
            if next != from && led_by[next].is_none() {
                led_by[next] = Some(task);
                found.push_back(next);
            }
        }
    }
    None
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Room(_) => "room in the ring to",
            Self::Barrier(_) => "the barrier of",
            Self::Records(_) => "records of",
        })
    }
}

/// A line for each task that waits for another, then the circle.
impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for waiting in self.tasks.iter().filter(|waiting| !waiting.waits.is_empty()) {
            write!(f, "  {} waits for", waiting.task)?;
            for (number, wait) in waiting.waits.iter().enumerate() {
                let and = if number == 0 { "" } else { "," };
                write!(f, "{and} {wait} {}", self.tasks[wait.task()].task)?;
            }
            writeln!(f)?;
        }
        if let Some(first) = self.circle.first() {
            let names = self.circle.iter().chain([first]).map(|task| self.tasks[*task].task.as_str());
            writeln!(f, "  in a circle: {}", names.collect::<Vec<_>>().join(" → "))?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::super::metrics::{MemoryMetrics, Samples, TaskMetrics};
    use super::*;
    use TaskState::{BlockedByAlignment, BlockedByOutput, Busy, Finished, Idle};

    /// `channels`: from, to, filled of 2 slots, held.
    fn diagnose(states: &[TaskState], channels: &[(usize, usize, u64, bool)]) -> Diagnosis {
        let task = |(number, state): (usize, &TaskState)| TaskMetrics {
            name: format!("t{number}"),
            index: 0,
            operators: Vec::new(),
            worker: 0,
            records: 0,
            batches: 0,
            state: *state,
            samples: Samples::default(),
        };
        let channel = |&(from, to, filled, held): &(usize, usize, u64, bool)| ChannelMetrics {
            from,
            to,
            slots: 2,
            filled,
            held,
            batches: 0,
            records: 0,
        };
        Diagnosis::of(&Metrics {
            memory: MemoryMetrics::default(),
            tasks: states.iter().enumerate().map(task).collect(),
            channels: channels.iter().map(channel).collect(),
            checkpoints: Vec::new(),
            durable: 0,
            given_up: 0,
            restarts: 0,
            records: 0,
            stalls: Vec::new(),
        })
    }

    #[test]
    fn rings_that_are_full_in_a_circle_are_a_circle() {
        let states = [BlockedByOutput, BlockedByOutput, BlockedByOutput];
        let diagnosis = diagnose(&states, &[(0, 1, 2, false), (1, 2, 2, false), (2, 1, 2, false), (1, 0, 1, false)]);
        assert_eq!(diagnosis.circle, [1, 2]);
        assert_eq!(diagnosis.tasks[0].waits, [WaitsFor::Room(1)]);
        let text = diagnosis.to_string();
        assert!(text.contains("t1 0 waits for room in the ring to t2 0"), "{text}");
        assert!(text.contains("in a circle: t1 0 → t2 0 → t1 0"), "{text}");
    }

    #[test]
    fn a_barrier_that_waits_behind_a_full_ring_of_its_own_reader_is_a_circle() {
        // 0 brings 2 its barrier; 1 has no room to 2, which waits for 1.
        let states = [Idle, BlockedByOutput, BlockedByAlignment];
        let diagnosis = diagnose(&states, &[(0, 2, 1, true), (1, 2, 2, false)]);
        assert_eq!(diagnosis.tasks[2].waits, [WaitsFor::Barrier(1)]);
        assert_eq!(diagnosis.circle, [1, 2]);
    }

    #[test]
    fn who_merely_waits_for_records_stands_in_no_circle() {
        let idle = diagnose(&[Idle, Idle], &[(0, 1, 0, false), (1, 0, 0, false)]);
        assert_eq!((idle.tasks[0].waits.as_slice(), idle.circle.len()), (&[WaitsFor::Records(1)][..], 0));
        let chain = diagnose(&[BlockedByOutput, Busy, Finished], &[(0, 1, 2, false), (1, 2, 0, false)]);
        assert_eq!((chain.tasks[0].waits.as_slice(), chain.circle.len()), (&[WaitsFor::Room(1)][..], 0));
        // But a wait for records may be part of one: 1 has nothing until 0 goes on, which waits for room at 1.
        let mixed = diagnose(&[BlockedByOutput, Idle], &[(0, 1, 2, false), (0, 1, 0, false)]);
        assert_eq!(mixed.circle, [0, 1]);
    }
}
