//! How a job runs: cores, parallelism, rings, checkpoints.

use super::protocol::Initiators;
use super::restart::Restart;
use crate::channel::Wait;
use crate::checkpoint::Protocol;
use crate::clock::Clock;
use crate::error::BuildError;
use crate::snapshot::{Durability, SinkKind, Store};
use std::collections::BTreeMap;
use std::path::PathBuf;
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

    /// For each back edge of a loop, at each task: the bytes of records that may wait there for their turn in memory, and in all.
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
            if checkpoints.keep < 2 {
                let (must, is) = ("at least 2".to_owned(), checkpoints.keep.to_string());
                return Err(BuildError::Setting { what: "keep", must, is });
            }
        }
        Ok(())
    }
}

/// When checkpoints are made, and where they are kept.
#[derive(Debug)]
#[must_use]
pub struct Checkpoints {
    pub(crate) interval: Option<Duration>,
    pub(crate) timeout: Duration,
    pub(crate) keep: u32,
    pub(crate) durability: Durability,
    pub(crate) sink: SinkKind,
    pub(crate) from_epoch: Option<u64>,
    pub(crate) accept_duplicates: bool,
    pub(crate) place: Option<StatePlace>,
    pub(crate) verify_on_restore: bool,
    pub(crate) hydrate: Hydrate,
    pub(crate) protocol: Protocol,
    pub(crate) initiators: Initiators,
    pub(crate) unaligned_after: Duration,
}

/// When restored state is read from the snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hydrate {
    /// What a record needs, at once; the rest in the background: each task reads a page whenever it has no input, and one
    /// every 16 batches under load.
    #[default]
    Background,
    /// Only what a record needs. What is never needed stays in the file and takes no memory.
    OnTouch,
}

/// Where checkpoints are kept.
#[derive(Debug)]
pub(crate) enum StatePlace {
    Folder(PathBuf),
    Open(Box<Store>),
}

impl Checkpoints {
    /// One begins every `interval`, counted from begin to begin; the next waits until the last is durable or given up.
    pub fn every(interval: Duration) -> Self {
        Self { interval: Some(interval), ..Self::on_demand() }
    }

    /// Only when [`Job::checkpoint`](crate::runtime::Job::checkpoint) asks, and a last one at the end.
    pub fn on_demand() -> Self {
        Self {
            interval: None,
            timeout: Duration::from_secs(600),
            keep: 3,
            durability: Durability::PowerLoss,
            sink: SinkKind::default(),
            from_epoch: None,
            accept_duplicates: false,
            place: None,
            verify_on_restore: false,
            hydrate: Hydrate::default(),
            protocol: Protocol::default(),
            initiators: Initiators::default(),
            unaligned_after: Duration::from_millis(20),
        }
    }

    /// How the tasks agree on a cut. Default: [`Protocol::Aligned`]. A checkpoint can be restored under another one than made it.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Who begins a cut, for [`Protocol::ChandyLamport`] and [`Protocol::Unaligned`]. Default: the sources.
    pub fn initiators(mut self, initiators: Initiators) -> Self {
        self.initiators = initiators;
        self
    }

    /// For [`Protocol::AlignedThenUnaligned`]: after so long what has not been aligned is cut unaligned. Default: 20 ms.
    pub fn unaligned_after(mut self, limit: Duration) -> Self {
        self.unaligned_after = limit;
        self
    }

    /// The state folder; made if it is missing. One job at a time.
    pub fn to(mut self, folder: impl Into<PathBuf>) -> Self {
        self.place = Some(StatePlace::Folder(folder.into()));
        self
    }

    /// A store that is open already, be it a simulated one.
    pub fn store(mut self, store: Store) -> Self {
        self.place = Some(StatePlace::Open(Box::new(store)));
        self
    }

    /// A checkpoint whose cut takes longer is given up. Default: 10 minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Checkpoints to keep, at least 2. Default: 3.
    pub fn keep(mut self, checkpoints: u32) -> Self {
        self.keep = checkpoints;
        self
    }

    /// Goes on from this kept epoch instead of the newest one. What was done after it is done again: sinks take back what they
    /// have committed since, as the file sink does by moving parts aside into a subfolder. It holds for the first start only,
    /// and makes the old epoch the newest one, so that any later start goes on from there.
    pub fn from_epoch(mut self, epoch: u64) -> Self {
        self.from_epoch = Some(epoch);
        self
    }

    /// With [`Checkpoints::from_epoch`]: goes back even where an exactly-once sink cannot take back what it has committed.
    /// Those results will be there twice.
    pub fn accept_duplicates(mut self) -> Self {
        self.accept_duplicates = true;
        self
    }

    /// How the store's file is written. Default: through mappings.
    pub fn sink(mut self, sink: SinkKind) -> Self {
        self.sink = sink;
        self
    }

    /// Reads and checks all state before the job goes on from it, instead of each page when it is first needed: a start that
    /// takes longer the more state there is, and no damage that shows later. Default: false.
    pub fn verify_on_restore(mut self, verify: bool) -> Self {
        self.verify_on_restore = verify;
        self
    }

    /// When restored state is read. Default: in the background.
    pub fn hydrate(mut self, hydrate: Hydrate) -> Self {
        self.hydrate = hydrate;
        self
    }

    /// What a checkpoint must survive. Default: a loss of power.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
}
