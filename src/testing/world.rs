//! What survives from one start of a simulated job to the next, as the one who draws the job sees it. How the job is run is
//! in `drive`.

use super::{Random, SimDisk, Trip};
use crate::checkpoint::Protocol;
use crate::connector::Memory;
use crate::record::Record;
use crate::runtime::StageConfig;
use crate::snapshot::Reader;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

/// The world in which a simulated job lives: its disk, its clock, its sinks, and the bad luck that a seed brings.
///
/// The dataflow is drawn anew for each start of the job, with the same world. After the last start, when the job has
/// finished, the world shows what was committed.
pub struct World {
    seed: u64,
    /// Decides what happens.
    pub(super) random: Random,
    pub(super) disk: SimDisk,
    pub(super) stages: BTreeMap<String, StageConfig>,
    /// Each start has one of these numbers of tasks.
    pub(super) tasks: Vec<u32>,
    sinks: BTreeMap<String, Box<dyn Shelf>>,
    /// Of the start under way.
    pub(super) trip: Trip,
    pub(super) length: Length,
    /// Crashes take what was not synced, or only the process dies.
    pub(super) power_fails: bool,
    /// The newest epoch that was reported as durable: no crash may take it.
    pub(super) promised: u64,
    pub(super) seen: Seen,
    /// How every start cuts; none: each in one of the exact ways.
    pub(super) protocol: Option<Protocol>,
    pub(super) audit: Option<Arc<Audit>>,
    /// The newest epoch of the start under way that was looked at.
    pub(super) audited: u64,
}

/// Looks at a checkpoint.
type Audit = dyn Fn(&Reader, u64) + Send + Sync;

/// How long an undisturbed run is: what happens to the others happens within.
#[derive(Clone, Copy)]
pub(super) struct Length {
    /// Steps of tasks, at least 1.
    pub(super) steps: u64,
    /// Calls of user code that may fail.
    pub(super) calls: u64,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("seed", &self.seed).field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl World {
    pub(super) fn new(seed: u64, tasks: Vec<u32>) -> Self {
        let mut random = Random::new(seed);
        let power_fails = random.one_in(2);
        Self {
            seed,
            random,
            disk: SimDisk::new(),
            stages: BTreeMap::new(),
            tasks,
            sinks: BTreeMap::new(),
            trip: Trip::never(),
            length: Length { steps: 1000, calls: 100 },
            power_fails,
            promised: 0,
            seen: Seen { seeds: 1, ..Seen::default() },
            protocol: None,
            audit: None,
            audited: 0,
        }
    }

    /// The number that all follows from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Numbers to make input of, or a dataflow: the same at each start of the job, so that it is the same job.
    #[must_use]
    pub fn random(&self) -> Random {
        Random::new(self.seed ^ 0x5851_f42d_4c95_7f2d)
    }

    /// The exactly-once sink of this name, the same at each start.
    ///
    /// # Panics
    /// It was asked for with another type of record before.
    pub fn sink<T: Record>(&mut self, name: &str) -> Memory<T> {
        let shelf = self.sinks.entry(name.to_owned()).or_insert_with(|| Box::new(Memory::<T>::new()));
        of_type(name, &**shelf).clone()
    }

    /// What is committed in a sink, in the order of epoch, task and start of the job.
    ///
    /// # Panics
    /// No sink of this name was asked for, or it was one of another type of record.
    #[must_use]
    pub fn committed<T: Record>(&self, name: &str) -> Vec<T> {
        match self.sinks.get(name) {
            Some(shelf) => of_type::<T>(name, &**shelf).committed(),
            None => panic!("no sink `{name}` was drawn; there are {:?}", self.sinks.keys()),
        }
    }

    /// What makes user code fail in this start: call [`Trip::pass`] in it, or wrap it in [`Trip::before`].
    #[must_use]
    pub fn trip(&self) -> Trip {
        self.trip.clone()
    }

    /// How a stage or operator runs, at every start.
    pub fn stage(&mut self, name: &str, stage: StageConfig) {
        self.stages.insert(name.to_owned(), stage);
    }

    /// How many tasks a chain may have: each start takes one of these numbers. Default: 1 to 4.
    ///
    /// # Panics
    /// There is none.
    pub fn parallelism(&mut self, tasks: impl Into<Vec<u32>>) {
        self.tasks = tasks.into();
        assert!(!self.tasks.is_empty(), "a number of tasks is needed");
    }

    /// How checkpoints are taken, at every start. Default: each start takes one of the exact protocols.
    pub fn protocol(&mut self, protocol: Protocol) {
        self.protocol = Some(protocol);
    }

    /// Calls `look` with each checkpoint as it becomes durable, by its epoch: for what must be true of every one of them, such
    /// as a sum over states and channels. A panic in it is a fault of the seed.
    pub fn at_checkpoint(&mut self, look: impl Fn(&Reader, u64) + Send + Sync + 'static) {
        self.audit = Some(Arc::new(look));
    }

    pub(super) fn lose_power(&self) {
        self.sinks.values().for_each(|shelf| shelf.lose_power());
    }

    /// A part that is prepared and not committed, and its sink.
    pub(super) fn pending(&self) -> Option<(String, &str)> {
        self.sinks.iter().find_map(|(name, shelf)| Some((shelf.pending()?, name.as_str())))
    }
}

/// A [`Memory`], whatever it holds.
trait Shelf {
    fn as_any(&self) -> &dyn Any;
    fn lose_power(&self);
    fn pending(&self) -> Option<String>;
}

impl<T: Record> Shelf for Memory<T> {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn lose_power(&self) {
        Memory::lose_power(self);
    }
    fn pending(&self) -> Option<String> {
        Memory::pending(self).pop()
    }
}

fn of_type<'a, T: Record>(name: &str, shelf: &'a dyn Shelf) -> &'a Memory<T> {
    let memory = shelf.as_any().downcast_ref();
    memory.unwrap_or_else(|| panic!("the sink `{name}` is one of other records than {}", std::any::type_name::<T>()))
}

/// What simulations have gone through. A simulation in which nothing happens finds nothing: look at these numbers once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// Seeds.
    pub seeds: u64,
    /// Crashes, of the process or of the machine.
    pub crashes: u64,
    /// Starts that went on from a checkpoint.
    pub restores: u64,
    /// Of these, those that went back behind the newest one.
    pub went_back: u64,
    /// Restarts in process, after user code has failed.
    pub restarts: u64,
    /// Checkpoints that were asked for and made.
    pub durable: u64,
    /// Checkpoints that were asked for and not made.
    pub given_up: u64,
    /// Of these, those for which a write or a sync had failed.
    pub failed: u64,
    /// Runs in which the store went on to a new file.
    pub new_files: u64,
    /// Checkpoints that were read back: see [`World::at_checkpoint`].
    pub audited: u64,
    /// Views that were taken, held and looked at again.
    pub views: u64,
    /// Tables in them that were held against the checkpoint of the same cut.
    pub views_compared: u64,
    /// How often what there was of one was let go of, as if memory were short.
    pub views_short: u64,
}

impl AddAssign<&Seen> for Seen {
    fn add_assign(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.crashes += other.crashes;
        self.restores += other.restores;
        self.went_back += other.went_back;
        self.restarts += other.restarts;
        self.durable += other.durable;
        self.given_up += other.given_up;
        self.failed += other.failed;
        self.new_files += other.new_files;
        self.audited += other.audited;
        self.views += other.views;
        self.views_compared += other.views_compared;
        self.views_short += other.views_short;
    }
}
