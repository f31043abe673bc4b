//! The bed for operators: a piece of dataflow between a source and a sink of ours, run in every way in which a job may come to
//! run it. The habit is that of Hazelcast Jet's `TestSupport`.

use super::compare::{Order, difference};
use super::drive::STUCK_AFTER;
use super::fault::unless_panic;
use super::feed::{Feed, Gate};
use super::modes::{Mode, Way, modes};
use super::settings::store_options;
use super::{Fault, Seen, SimDisk, Trip, World};
use crate::clock::Clock;
use crate::connector::{Items, Memory};
use crate::dataflow::{Dataflow, Stream};
use crate::error::Error;
use crate::operator::{Progress, Stage};
use crate::record::{Record, to_bytes};
use crate::runtime::{Checkpoints, Config, Local};
use crate::snapshot::Store;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Draws the piece between an input and an output.
type Piece<In, Out> = Box<dyn Fn(&Dataflow, Feed<In>, Memory<Out>, &Trip)>;

/// A place to try an operator in, or any piece of a dataflow from one stream to another.
///
/// [`OperatorBed::run`] runs it
/// - on all the input at once: in large batches and batches of odd sizes, one record at a time, through rings of one slot, by
///   one task and by several;
/// - record by record, with a checkpoint after each: the job is dropped there and restored, by as many tasks and by another
///   number; also with a crash before each checkpoint, so that each record is processed, lost, and processed again;
/// - under some seeds, as [`simulate`](super::simulate) does: checkpoints and crashes anywhere, failures of user code before
///   and behind the operator with restarts in process, failing writes, going back to older checkpoints;
///
/// and compares what comes out, each time.
///
/// ```
/// use snapring::testing::OperatorBed;
///
/// OperatorBed::new([3, 1, 3, 3], |numbers| numbers.key_by(|number| *number).count("times"))
///     .expect([(3, 1), (1, 1), (3, 2), (3, 3)])
///     .run()?;
/// # Ok::<(), snapring::testing::Fault>(())
/// ```
pub struct OperatorBed<In, Out> {
    input: Vec<In>,
    splits: u32,
    piece: Piece<In, Out>,
    expected: Option<Vec<Out>>,
    order: Order<Out>,
    tasks: Vec<u32>,
    seeds: Vec<u64>,
}

impl<In, Out> fmt::Debug for OperatorBed<In, Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorBed").field("order", &self.order).field("tasks", &self.tasks).finish_non_exhaustive()
    }
}

const INPUT: &str = "input of the bed";
const OUTPUT: &str = "output of the bed";

impl<In: Record + Clone + Sync, Out: Record> OperatorBed<In, Out> {
    /// A bed for what `piece` draws. It is drawn many times: state that is not the library's does not survive.
    pub fn new<C>(input: impl IntoIterator<Item = In>, piece: impl Fn(Stream<In>) -> Stream<Out, C> + 'static) -> Self
    where
        C: Stage<Out = Out>,
    {
        let piece: Piece<In, Out> = Box::new(move |flow, feed, sink, trip| {
            piece(flow.source(INPUT, feed)).map(trip.before(|record| record)).sink(OUTPUT, sink);
        });
        Self {
            input: input.into_iter().collect(),
            splits: 1,
            piece,
            expected: None,
            order: Order::Exact,
            tasks: vec![1, 2, 3],
            seeds: (0..50).collect(),
        }
    }

    /// What must come out. Without it: what comes out of an undisturbed run with one task.
    ///
    /// The order counts where one task runs; several emit in an order of their own. See also [`OperatorBed::in_any_order`] and
    /// [`OperatorBed::in_order_per_key`].
    #[must_use]
    pub fn expect(mut self, output: impl IntoIterator<Item = Out>) -> Self {
        self.expected = Some(output.into_iter().collect());
        self
    }

    /// The order of the output does not count at all: for what is emitted at the end of the input, key by key.
    #[must_use]
    pub fn in_any_order(mut self) -> Self {
        self.order = Order::Any;
        self
    }

    /// The order of what has the same key counts, however many tasks there are: for keyed operators that emit something about
    /// the key.
    #[must_use]
    pub fn in_order_per_key<K: Record>(mut self, key: impl Fn(&Out) -> K + 'static) -> Self {
        self.order = Order::PerKey(Arc::new(move |record| to_bytes(&key(record))));
        self
    }

    /// Cuts the input into so many splits that are read side by side. Their records come in any order between each other, so
    /// this is for operators to which that is no matter. Default: one, whose records come in order.
    #[must_use]
    pub fn in_splits(mut self, splits: u32) -> Self {
        self.splits = splits.max(1);
        self
    }

    /// The numbers of tasks to try. Default: 1, 2 and 3. For a piece that is right only with one task: `[1]`.
    ///
    /// # Panics
    /// There is none.
    #[must_use]
    pub fn parallelism(mut self, tasks: impl Into<Vec<u32>>) -> Self {
        self.tasks = tasks.into();
        assert!(!self.tasks.is_empty(), "a number of tasks is needed");
        self
    }

    /// The seeds of the random runs. Default: 0 to 49.
    #[must_use]
    pub fn seeds(mut self, seeds: impl IntoIterator<Item = u64>) -> Self {
        self.seeds = seeds.into_iter().collect();
        self
    }

    /// Runs it in every way.
    ///
    /// # Errors
    /// The first way in which it fails or gives other output: the fault names the way, the seed if there is one, and the first
    /// difference.
    pub fn run(mut self) -> Result<Seen, Fault> {
        let expected = match self.expected.take() {
            Some(expected) => expected,
            None => self.try_mode(&Mode::plain())?,
        };
        for mode in modes(&self.tasks) {
            let found = self.try_mode(&mode)?;
            self.compare(&mode.tasks, &expected, &found, &mode.to_string())?;
        }
        let mut seen = Seen::default();
        for seed in &self.seeds {
            let mut world = World::new(*seed, self.tasks.clone());
            let how = world.how();
            unless_panic(&how, || world.live(&|world| self.draw(&Gate::open(), &world.sink(OUTPUT), &world.trip())))?;
            self.compare(&self.tasks, &expected, &world.committed(OUTPUT), &how)?;
            seen += &world.seen;
        }
        Ok(seen)
    }

    fn compare(&self, tasks: &[u32], expected: &[Out], found: &[Out], run: &str) -> Result<(), Fault> {
        let one_task = self.splits == 1 && tasks.iter().all(|tasks| *tasks == 1);
        let difference = difference(&self.order, one_task, expected, found);
        difference.map_or(Ok(()), |difference| Err(Fault::Output { difference, run: run.to_owned() }))
    }

    fn draw(&self, gate: &Gate, sink: &Memory<Out>, trip: &Trip) -> Dataflow {
        let flow = Dataflow::new("operator bed");
        let items = Items::new(self.input.clone()).in_splits(self.splits);
        (self.piece)(&flow, Feed { items, gate: gate.clone(), trip: trip.clone() }, sink.clone(), trip);
        flow
    }

    /// What comes out in one of the ways without a seed.
    fn try_mode(&self, mode: &Mode) -> Result<Vec<Out>, Fault> {
        let run = mode.to_string();
        unless_panic(&run, || {
            let trial = Trial { bed: self, mode, disk: SimDisk::new(), sink: Memory::new(), gate: Gate::open() };
            let result = match mode.way {
                Way::AtOnce => trial.start(0).and_then(|job| trial.finish(job)),
                Way::Restored => trial.step_by_step(false),
                Way::Crashed => trial.step_by_step(true),
            };
            result.map_err(|halt| match halt {
                Halt::Stuck => Fault::Stuck { steps: STUCK_AFTER, run: run.clone() },
                Halt::Failed(error) => Fault::Job { error: error.to_string(), run: run.clone() },
            })?;
            Ok(trial.sink.committed())
        })
    }
}

/// Why a trial has no output.
enum Halt {
    Stuck,
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A job in one of the ways, and what outlives it.
struct Trial<'a, In, Out> {
    bed: &'a OperatorBed<In, Out>,
    mode: &'a Mode,
    disk: SimDisk,
    sink: Memory<Out>,
    gate: Gate,
}

impl<In: Record + Clone + Sync, Out: Record> Trial<'_, In, Out> {
    /// The `start`th start.
    fn start(&self, start: usize) -> Result<Local, Halt> {
        let store = Store::open_on(Box::new(self.disk.clone()), store_options(2)).map_err(Error::Store)?;
        let config = Config::new()
            .unpinned_workers(1)
            .parallelism(self.mode.tasks[start % self.mode.tasks.len()])
            .ring_capacity(self.mode.ring_capacity)
            .batch_len_max(self.mode.batch_len)
            .clock(Clock::Manual(Arc::new(AtomicU64::new(0))))
            .checkpoints(Checkpoints::on_demand().store(store));
        Ok(self.bed.draw(&self.gate, &self.sink, &Trip::never()).into_local(config)?)
    }

    /// A checkpoint and a new start after each record, or after so many that it is not done too often; `crashes`: one more
    /// start before each checkpoint, of which nothing remains.
    fn step_by_step(&self, crashes: bool) -> Result<(), Halt> {
        let records = self.bed.input.len().div_ceil(self.bed.splits as usize);
        let stride = records.div_ceil(CUTS_MAX).max(1);
        for (start, passed) in (0..=records).step_by(stride).enumerate() {
            self.gate.set(passed as u64);
            if crashes {
                self.rest(&mut self.start(start + 1)?)?;
            }
            let mut job = self.start(start)?;
            self.rest(&mut job)?;
            let checkpoint = job.checkpoint()?;
            self.step_until(&mut job, |_| Ok(checkpoint.try_wait()?.is_some()))?;
        }
        self.gate.set(u64::MAX);
        self.finish(self.start(0)?)
    }

    /// Until the job has nothing more to do with what it has been given.
    fn rest(&self, job: &mut Local) -> Result<(), Halt> {
        self.step_until(job, |progress| Ok(progress == Progress::None))
    }

    fn finish(&self, mut job: Local) -> Result<(), Halt> {
        self.step_until(&mut job, |progress| Ok(progress == Progress::Done))
    }

    fn step_until(&self, job: &mut Local, is_there: impl Fn(Progress) -> Result<bool, Error>) -> Result<(), Halt> {
        for _ in 0..STUCK_AFTER {
            let progress = job.step()?;
            if is_there(progress)? {
                return Ok(());
            }
        }
        Err(Halt::Stuck)
    }
}

/// More cuts than these are not made in one run.
const CUTS_MAX: usize = 100;
