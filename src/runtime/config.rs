//! How a job runs: cores, parallelism, rings, limits.

use super::checkpoints::{Checkpoints, StatePlace};
use super::restart::Restart;
use crate::channel::Wait;
use crate::checkpoint::Protocol;
use crate::clock::Clock;
use crate::error::BuildError;
use std::collections::BTreeMap;
use std::time::Duration;

/// Slots in a ring, at most.
const RING_CAPACITY_MAX: usize = 1 << 16;
/// Records in a batch, at most.
const BATCH_LEN_MAX: usize = 1 << 20;

/// How a job runs. What is not said has a default that suits one machine.
#[derive(Debug)]
#[must_use]
pub struct Config {
    pub(crate) cores: Option<Vec<usize>>,
    pub(crate) workers: Option<usize>,
    pub(crate) parallelism: Option<u32>,
    pub(crate) stages: BTreeMap<String, StageConfig>,
    pub(crate) ring_capacity: usize,
    pub(crate) batch_len_max: Option<usize>,
    pub(crate) outbox_bytes_max: usize,
    pub(crate) state_bytes_max: usize,
    pub(crate) spill_memory_bytes: usize,
    pub(crate) spill_bytes_max: u64,
    pub(crate) wait: Wait,
    pub(crate) rate_per_s: Option<u64>,
    pub(crate) checkpoints: Option<Checkpoints>,
    pub(crate) restart: Restart,
    pub(crate) careful: bool,
    pub(crate) watchdog: Duration,
    pub(crate) stall_limit: Duration,
    pub(crate) seed: Option<u64>,
    pub(crate) clock: Option<Clock>,
}

/// How one stage runs.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct StageConfig {
    pub(crate) parallelism: Option<u32>,
    pub(crate) cores: Vec<usize>,
}

impl StageConfig {
    /// As the job.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of its tasks.
    pub fn parallelism(mut self, tasks: u32) -> Self {
        self.parallelism = Some(tasks);
        self
    }

    /// The cores whose workers run it; they must be among the job's.
    pub fn cores(mut self, cores: impl IntoIterator<Item = usize>) -> Self {
        self.cores = cores.into_iter().collect();
        self
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// One worker on each allowed core, one task of each chain per worker, no checkpoints.
    pub fn new() -> Self {
        Self {
            cores: None,
            workers: None,
            parallelism: None,
            stages: BTreeMap::new(),
            ring_capacity: 8,
            batch_len_max: None,
            outbox_bytes_max: 1 << 30,
            state_bytes_max: usize::MAX,
            spill_memory_bytes: 64 << 20,
            spill_bytes_max: 4 << 30,
            wait: Wait::Park,
            rate_per_s: None,
            checkpoints: None,
            restart: Restart::never(),
            careful: false,
            watchdog: Duration::from_secs(10),
            stall_limit: Duration::from_secs(60),
            seed: None,
            clock: None,
        }
    }

    /// One worker pinned to each of these cores, by the system's numbers.
    pub fn cores(mut self, cores: impl IntoIterator<Item = usize>) -> Self {
        self.cores = Some(cores.into_iter().collect());
        self
    }

    /// So many workers that are not pinned, instead of pinned ones.
    pub fn unpinned_workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Tasks per chain, unless its stage says otherwise. Default: the number of workers.
    pub fn parallelism(mut self, tasks: u32) -> Self {
        self.parallelism = Some(tasks);
        self
    }

    /// How the stage or operator of this name runs.
    pub fn stage(mut self, name: &str, stage: StageConfig) -> Self {
        self.stages.insert(name.to_owned(), stage);
        self
    }

    /// Slots (batches or marks) in each ring, from 1 to 65,536. Default: 8.
    pub fn ring_capacity(mut self, slots: usize) -> Self {
        self.ring_capacity = slots;
        self
    }

    /// Records in a batch, from 1 to 1,048,576. Default: as many as fit 16 KiB.
    pub fn batch_len_max(mut self, records: usize) -> Self {
        self.batch_len_max = Some(records);
        self
    }

    /// The output of a task that may wait for room in the rings, in bytes: what one batch expands to must fit. A job that goes over it
    /// fails. Default: 1 GiB.
    pub fn outbox_bytes_max(mut self, bytes: usize) -> Self {
        self.outbox_bytes_max = bytes;
        self
    }

    /// The memory for state, in bytes; a job that goes over it fails. Default: no limit.
    pub fn state_bytes_max(mut self, bytes: usize) -> Self {
        self.state_bytes_max = bytes;
        self
    }

    /// For each ring by which records come round a loop: the bytes of those that may wait there for their turn in memory, and in all.
    /// What is above the first lies in a temporary file; a loop that goes over the second fails the job. Default: 64 MiB, 4 GiB.
    pub fn spill(mut self, memory_bytes: usize, bytes_max: u64) -> Self {
        (self.spill_memory_bytes, self.spill_bytes_max) = (memory_bytes, bytes_max);
        self
    }

    /// How idle workers wait. Default: park.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// Paces the sources: records per second, over all of them together. What is pushed into a handle is never held back.
    pub fn rate_per_s(mut self, records: u64) -> Self {
        self.rate_per_s = Some(records);
        self
    }

    /// When checkpoints are made, and where they are kept.
    pub fn checkpoints(mut self, checkpoints: Checkpoints) -> Self {
        self.checkpoints = Some(checkpoints);
        self
    }

    /// What follows a failure. Default: nothing, the job ends with it.
    pub fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// Hands records on one by one, so that a failure says which record it was, as text. That costs much of the throughput.
    /// After a failure, restarts do so by themselves until the next checkpoint. Default: false.
    pub fn careful(mut self, careful: bool) -> Self {
        self.careful = careful;
        self
    }

    /// A worker that is within one step of a task for longer is named as stuck in user code: in
    /// [`Job::warnings`](crate::runtime::Job::warnings), in the metrics and as an event. Default: 10 s.
    pub fn watchdog(mut self, limit: Duration) -> Self {
        self.watchdog = limit;
        self
    }

    /// A job in which nothing moves for longer, though a task waits for another, is told to stand still, with what each task
    /// waits for: in [`Job::warnings`](crate::runtime::Job::warnings) and as an event. Default: 60 s.
    pub fn stall_limit(mut self, limit: Duration) -> Self {
        self.stall_limit = limit;
        self
    }

    /// For [`crate::runtime::Local`]: the task that steps next is drawn from this seed, so that a run can be repeated
    /// exactly. Default: one after the other.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The clock of the job. Default: the system's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// How the tasks agree on a cut, if they do.
    pub(crate) fn protocol(&self) -> Protocol {
        self.checkpoints.as_ref().map_or(Protocol::default(), |checkpoints| checkpoints.protocol)
    }

    /// Checks the numbers that the graph's layout does not check.
    pub(crate) fn validate(&self) -> Result<(), BuildError> {
        let at_least_one = |what, is: Option<usize>| match is {
            Some(0) => Err(BuildError::Setting { what, must: "at least 1".to_owned(), is: "0".to_owned() }),
            _ => Ok(()),
        };
        // Above, the memory for rings would be asked for in one piece, and an allocation that fails ends the process.
        let in_bounds = |what, is: usize, max: usize| match is {
            1.. if is <= max => Ok(()),
            _ => Err(BuildError::Setting { what, must: format!("between 1 and {max}"), is: is.to_string() }),
        };
        in_bounds("ring_capacity", self.ring_capacity, RING_CAPACITY_MAX)?;
        in_bounds("batch_len_max", self.batch_len_max.unwrap_or(1), BATCH_LEN_MAX)?;
        at_least_one("rate_per_s", self.rate_per_s.map(|rate| rate as usize))?;
        at_least_one("unpinned_workers", self.workers)?;
        at_least_one("the number of cores", self.cores.as_ref().map(Vec::len))?;
        if self.cores.is_some() && self.workers.is_some() {
            return Err(BuildError::CoresAndUnpinned);
        }
        if self.restart.attempts > 0 && self.checkpoints.is_none() {
            return Err(BuildError::RestartNeedsCheckpoints);
        }
        if let Some(checkpoints) = &self.checkpoints {
            at_least_one("the checkpoint interval in ns", checkpoints.interval.map(|every| every.as_nanos() as usize))?;
            let is_nowhere =
                |place: &StatePlace| matches!(place, StatePlace::Folder(path) if path.as_os_str().is_empty());
            if checkpoints.place.as_ref().is_none_or(is_nowhere) {
                return Err(BuildError::NoStateFolder);
            }
            if let (Some(_), Some(StatePlace::Open(_))) = (&checkpoints.from_savepoint, &checkpoints.place) {
                let (must, is) = ("used with a state folder".to_owned(), "with a store that is open".to_owned());
                return Err(BuildError::Setting { what: "from_savepoint", must, is });
            }
            if checkpoints.keep < 2 {
                let (must, is) = ("at least 2".to_owned(), checkpoints.keep.to_string());
                return Err(BuildError::Setting { what: "keep", must, is });
            }
        }
        Ok(())
    }
}
