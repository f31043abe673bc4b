//! The ways without a seed in which a bed runs an operator. They must not know how that is done.

use std::fmt;

/// What happens on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Nothing.
    AtOnce,
    /// After each record the job is left and restored.
    Restored,
    /// Before that, it crashes once, and the record is processed again.
    Crashed,
}

/// A way to run an operator.
#[derive(Debug)]
pub(super) struct Mode {
    pub(super) way: Way,
    /// Numbers of tasks: each start has the next one.
    pub(super) tasks: Vec<u32>,
    pub(super) batch_len: usize,
    pub(super) ring_capacity: usize,
}

impl Mode {
    /// The most ordinary one.
    pub(super) fn plain() -> Self {
        Self { way: Way::AtOnce, tasks: vec![1], batch_len: 1000, ring_capacity: 8 }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.way {
            Way::AtOnce => "all input at once",
            Way::Restored => "restored from a checkpoint after each record",
            Way::Crashed => "crashed and restored from a checkpoint after each record",
        })?;
        match &self.tasks[..] {
            [tasks] => write!(f, ", parallelism {tasks}")?,
            tasks => write!(f, ", parallelism {tasks:?} by turns")?,
        }
        write!(f, ", batches of {}, rings of {}", self.batch_len, self.ring_capacity)
    }
}

/// All of them, the simplest first: what fails there is easier to understand.
pub(super) fn modes(parallelism: &[u32]) -> Vec<Mode> {
    let mut modes = Vec::new();
    for tasks in parallelism {
        for (batch_len, ring_capacity) in [(1000, 8), (1, 1), (3, 1), (7, 2)] {
            modes.push(Mode { way: Way::AtOnce, tasks: vec![*tasks], batch_len, ring_capacity });
        }
    }
    let mut turns: Vec<Vec<u32>> = parallelism.iter().map(|tasks| vec![*tasks]).collect();
    if parallelism.len() > 1 {
        turns.push(parallelism.to_vec());
    }
    for way in [Way::Restored, Way::Crashed] {
        modes.extend(turns.iter().map(|tasks| Mode { way, tasks: tasks.clone(), batch_len: 3, ring_capacity: 1 }));
    }
    modes
}
