//! Jobs held at both ends, under a seed: as `simulate`, with sources that the program pushes and results that it polls, each
//! counted once as the handles' documentation says one can, and with drains at any moment. The world here is one of its own,
//! for it has to know what the job was told by and by.
//!
//! The seed is the bug report: `SNAPRING_SEED=17 cargo test --test held`. More seeds: `SNAPRING_SEEDS=100000`.

mod ends;
#[path = "../simulate/recipe.rs"]
mod recipe;
mod trip;

use ends::{Ends, Poller, Pusher};
use recipe::{Ground, Item, Pass, Step, before};
use snapring::clock::Clock;
use snapring::connector::{Generate, Memory};
use snapring::dataflow::{Dataflow, Stream};
use snapring::error::{Cause, Error};
use snapring::handle::{Input, Output};
use snapring::operator::Progress;
use snapring::runtime::{Checkpoints, Config, Hydrate, Local, Pending, Restart, StageConfig};
use snapring::snapshot::sim::{Incident, SimDisk};
use snapring::snapshot::{Generations, Store, StoreOptions};
use snapring::testing::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trip::{TRIPPED, Trip};

const SEEDS: u64 = 2000;
/// No job here takes as many steps.
const STUCK_AFTER: u64 = 3_000_000;

/// What survives from one start of the job to the next.
struct World {
    random: Random,
    disk: SimDisk,
    shelves: BTreeMap<String, Memory<Item>>,
    /// The steps that begin or end in the hands of the program.
    held: BTreeSet<String>,
    /// What the sources gave goes to sinks as well, as the job may be drained: nobody else knows how far it has come then.
    is_witnessed: bool,
    ends: Ends,
    steps: Vec<Step>,
    /// The epoch that the last start was to go back to, and the newest one then.
    back: Option<(u64, u64)>,
    /// Crashes take what was not synced, or only the process dies.
    power_fails: bool,
    /// Some have failed.
    syncs_fail: bool,
    /// The newest epoch that was reported as durable: no crash may take it.
    promised: u64,
    seen: Seen,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Finished,
    Crashed,
}

/// One start of the drawing.
struct Drawn<'a> {
    shelves: &'a mut BTreeMap<String, Memory<Item>>,
    stages: BTreeMap<String, StageConfig>,
    held: &'a BTreeSet<String>,
    is_witnessed: bool,
    trip: &'a Trip,
    inputs: Vec<Input<Item>>,
    outputs: Vec<Output<Item>>,
}

impl Ground for Drawn<'_> {
    fn pass(&self) -> Pass {
        let trip = self.trip.clone();
        Arc::new(move || trip.pass())
    }

    fn sink(&mut self, name: &str) -> Memory<Item> {
        self.shelves.entry(name.to_owned()).or_default().clone()
    }

    fn stage(&mut self, name: &str, stage: StageConfig) {
        self.stages.insert(name.to_owned(), stage);
    }

    fn source(&mut self, flow: &Dataflow, name: &str, step: &Step) -> Stream<Item> {
        let &Step::Source { number, events, splits, keys } = step else { panic!("{step:?} is no source") };
        let stream = if self.held.contains(name) {
            let (input, stream) = flow.input(name);
            self.inputs.push(input);
            stream.map(before(&self.pass(), |item| item)).stage(&format!("{name}-pushed"))
        } else {
            let nth = before(&self.pass(), move |index| Item::nth(number, index, keys));
            flow.source(name, Generate::new(events, splits, nth))
        };
        if !self.is_witnessed {
            return stream;
        }
        let (one, other) = stream.fork();
        other.sink(&witness(name), self.sink(&witness(name)));
        one
    }

    fn end(&mut self, name: &str, stream: Stream<Item>) {
        if self.held.contains(name) {
            self.outputs.push(stream.output(name));
        } else {
            stream.sink(name, self.sink(name));
        }
    }
}

fn witness(name: &str) -> String {
    format!("{name}-witness")
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let steps = recipe::random(&mut random);
        let (mut held, mut ends) = (BTreeSet::new(), Ends::default());
        for (at, step) in steps.iter().enumerate().filter(|_| random.one_in(2)) {
            match *step {
                Step::Source { number, events, keys, .. } => ends.pushers.push(Pusher::new(number, events, keys)),
                Step::Sink => ends.pollers.push(Poller::default()),
                _ => continue,
            }
            held.insert(at.to_string());
        }
        let (is_witnessed, power_fails) = (random.one_in(4), random.one_in(2));
        Self {
            random,
            disk: SimDisk::new(),
            shelves: BTreeMap::new(),
            held,
            is_witnessed,
            ends,
            steps,
            back: None,
            power_fails,
            syncs_fail: false,
            promised: 0,
            seen: Seen::default(),
        }
    }

    fn config(&mut self, clock: &Arc<AtomicU64>) -> Result<Config, Error> {
        let random = &mut self.random;
        let options = StoreOptions {
            keep: random.between(2, 4) as u32,
            page_bytes: 4096,
            segment_bytes: 64 << 10,
            writer_threads: 1,
            ..StoreOptions::default()
        };
        let store = Store::open_on(Box::new(self.disk.clone()), options)?;
        let mut checkpoints = match random.below(3) {
            0 => Checkpoints::on_demand(),
            _ => Checkpoints::every(Duration::from_nanos(random.between(50, 3000))),
        };
        // Mostly nothing but the page map is read at a restore, and what no record needs before the next crash never is.
        let hydrate = if random.one_in(2) { Hydrate::OnTouch } else { Hydrate::Background };
        checkpoints = checkpoints.hydrate(hydrate).verify_on_restore(random.one_in(5));
        let newest = store.newest();
        match self.back.take() {
            // It did, though it came no further.
            Some((to, from)) if newest > Some(from) => self.ends.went_back(to + 1, from),
            _ => self.ends.started(newest),
        }
        let epochs: Vec<_> = store.epochs().into_iter().filter(|kept| self.ends.knows(kept.epoch)).collect();
        if !epochs.is_empty() && random.one_in(4) {
            let to = epochs[random.below(epochs.len() as u64) as usize].epoch;
            self.back = newest.filter(|newest| to < *newest).map(|newest| (to, newest));
            self.seen.went_back += u64::from(Some(to) != store.newest());
            checkpoints = checkpoints.from_epoch(to);
        }
        let timeout = if random.one_in(3) { random.between(20, 400) } else { u64::MAX };
        let pauses = [random.below(50), random.below(500)].map(Duration::from_nanos);
        let config = Config::new()
            .restart(Restart::attempts(random.below(5) as u32).backoff(pauses[0], pauses[1]))
            .careful(random.one_in(8))
            .unpinned_workers(1)
            .parallelism(random.between(1, 4) as u32)
            .ring_capacity(random.between(1, 3) as usize)
            .batch_len_max(random.between(1, 6) as usize)
            .clock(Clock::Manual(clock.clone()))
            .checkpoints(checkpoints.timeout(Duration::from_nanos(timeout)).store(store));
        // Now and then the plain order that embedders see.
        Ok(if random.one_in(8) { config } else { config.seed(random.next()) })
    }

    /// One start of the job: until it is finished, or until a crash, which comes after some steps or at a write.
    fn run(&mut self, may_crash: bool) -> Outcome {
        let clock = Arc::new(AtomicU64::new(0));
        if may_crash && self.random.one_in(2) {
            let call = self.disk.calls() + self.random.below(60);
            self.disk.at(call, Incident::Crash);
        }
        // Writes and syncs that fail cost their checkpoints, and no more than that.
        if may_crash && self.random.one_in(3) {
            self.syncs_fail = true;
            for _ in 0..self.random.between(1, 4) {
                let first = self.disk.calls() + self.random.below(80);
                for call in first..first + self.random.between(1, 3) {
                    self.disk.at(call, if self.random.one_in(3) { Incident::Full } else { Incident::Fail });
                }
            }
        }
        // A disk that is full for a while declines checkpoints; the job runs on. The last one must find room.
        let full = may_crash && self.random.one_in(4);
        self.disk.full_above(full.then(|| self.disk.used_bytes()));
        let steps = if may_crash { self.random.below(2500) } else { STUCK_AFTER };
        let fails = may_crash && self.random.one_in(2);
        let trip = Trip::new(self.random.next(), if fails { self.random.below(7) } else { 0 }, 600);
        let outcome = self.start(&clock, &trip).and_then(|mut job| {
            let outcome = self.drive(&mut job, &clock, steps);
            self.seen.restarts += u64::from(job.restarts());
            drop(job);
            self.ends.take_left(&mut self.random);
            outcome
        });
        match outcome {
            Ok(outcome) => outcome,
            Err(error) if may_crash && (is_of_the_store(&error) || is_tripped(&error)) => Outcome::Crashed,
            Err(error) => panic!("{error}"),
        }
    }

    fn start(&mut self, clock: &Arc<AtomicU64>, trip: &Trip) -> Result<Local, Error> {
        let mut config = self.config(clock)?;
        let mut drawn = Drawn {
            shelves: &mut self.shelves,
            stages: BTreeMap::new(),
            held: &self.held,
            is_witnessed: self.is_witnessed,
            trip,
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let flow = recipe::draw(&self.steps, &mut drawn);
        for (name, stage) in std::mem::take(&mut drawn.stages) {
            config = config.stage(&name, stage);
        }
        let (inputs, outputs) = (drawn.inputs, drawn.outputs);
        let job = flow.into_local(config)?;
        if let Some((to, from)) = self.back.take() {
            self.ends.went_back(to + 1, from);
        }
        self.ends.attach(inputs, outputs);
        self.seen.restores += u64::from(job.restored_epoch().is_some());
        assert!(job.restored_epoch().unwrap_or(0) >= self.promised, "epoch {} was promised", self.promised);
        Ok(job)
    }

    fn drive(&mut self, job: &mut Local, clock: &AtomicU64, steps: u64) -> Result<Outcome, Error> {
        // A job whose epochs come from nobody but the clock, if at all, must come to its end as well.
        let asks = !self.random.one_in(3);
        let mut asked: Option<Pending> = None;
        for _ in 0..steps {
            clock.fetch_add(self.random.below(3), Ordering::Relaxed);
            let stepped = job.step();
            // An answer given before a crash, in the same step even, holds after it.
            asked = asked.and_then(|pending| self.hear(pending));
            if stepped? == Progress::Done {
                assert!(asked.is_none(), "the job is over, and whoever asked for a checkpoint hears nothing");
                return Ok(Outcome::Finished);
            }
            self.ends.step(&mut self.random);
            if self.is_witnessed && self.random.one_in(800) {
                job.drain();
                self.seen.drained += 1;
            }
            if asks && asked.is_none() && self.random.one_in(70) {
                asked = Some(job.checkpoint()?);
            }
        }
        assert!(steps < STUCK_AFTER, "the job is stuck");
        Ok(Outcome::Crashed)
    }

    /// Takes the answer, if there is one.
    fn hear(&mut self, pending: Pending) -> Option<Pending> {
        match pending.try_wait() {
            Ok(None) => return Some(pending),
            Ok(Some(report)) => {
                self.promised = report.epoch;
                self.seen.durable += 1;
            }
            Err(error) => {
                self.seen.given_up += 1;
                self.seen.failed += u64::from(error.to_string().contains("simulated failure"));
            }
        }
        None
    }

    fn crash(&mut self) {
        let random = &mut self.random;
        // Where a sync has failed the next start might find, in the system's memory, what no sync can make durable any more:
        // a file that was given up, if no other could be made. Nobody sees that until the power fails, so it does.
        if !self.power_fails || (!self.syncs_fail && random.one_in(3)) {
            self.disk.kill();
        } else {
            self.disk.crash(|_| random.one_in(2));
            self.shelves.values().for_each(Memory::lose_power);
        }
    }
}

fn is_of_the_store(error: &Error) -> bool {
    match error {
        Error::Store(_) => true,
        Error::Job(failure) => matches!(failure.cause, Cause::Store(_)),
        _ => false,
    }
}

/// Restarts did not help.
fn is_tripped(error: &Error) -> bool {
    let Error::Job(failure) = error else { return false };
    matches!(&failure.cause, Cause::Panic(message) if message.starts_with(TRIPPED))
}

/// What the seeds have gone through together.
#[derive(Debug, Default)]
struct Seen {
    crashes: u64,
    restores: u64,
    given_up: u64,
    durable: u64,
    failed: u64,
    new_files: u64,
    went_back: u64,
    restarts: u64,
    drained: u64,
    rewound: u64,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.crashes += other.crashes;
        self.restores += other.restores;
        self.given_up += other.given_up;
        self.durable += other.durable;
        self.failed += other.failed;
        self.new_files += other.new_files;
        self.went_back += other.went_back;
        self.restarts += other.restarts;
        self.drained += other.drained;
        self.rewound += other.rewound;
    }
}

fn simulate(seed: u64, seen: &mut Seen) {
    let mut world = World::new(seed);
    let crashes = world.random.below(6);
    for _ in 0..crashes {
        if world.run(true) == Outcome::Finished {
            break;
        }
        world.crash();
        world.seen.crashes += 1;
    }
    // Where the job finished before its crash came, that is called off; going on then finds nothing left to do.
    world.disk.kill();
    assert_eq!(world.run(false), Outcome::Finished);
    world.seen.new_files = u64::from(world.disk.list().unwrap() != [1]);
    world.seen.rewound = world.ends.rewound;
    check(&world);
    seen.add(&world.seen);
}

/// The output is what the steps make of what the sources gave.
fn check(world: &World) {
    let World { steps, shelves, held, ends, .. } = world;
    let mut sources = recipe::sources(steps);
    for (at, source) in sources.iter_mut().enumerate().filter(|_| world.is_witnessed) {
        let gave = shelves[&witness(&at.to_string())].committed();
        source.sort();
        assert!(gave.iter().all(|item| source.binary_search(item).is_ok()), "a source gave what it does not have");
        *source = gave;
    }
    for (name, shelf) in shelves {
        assert!(shelf.pending().is_empty(), "parts are left pending in sink {name}");
    }
    let mut pollers = ends.pollers.iter();
    for (name, expected) in recipe::sinks(steps).into_iter().zip(recipe::compute(steps, sources)) {
        let mut committed: Vec<Item> = match held.contains(&name) {
            true => pollers.next().expect("one for each").kept.iter().map(|kept| kept.item.clone()).collect(),
            false => shelves[&name].committed(),
        };
        committed.sort();
        let (is, should) = (committed.len(), expected.len());
        assert!(committed == expected, "end {name} of {steps:?}, held {held:?}: {is} records and not {should}");
    }
}

#[test]
fn what_is_pushed_and_polled_is_counted_once() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let mut seen = Seen::default();
    if let Some(seed) = number("SNAPRING_SEED") {
        return simulate(seed, &mut seen);
    }
    let seeds = number("SNAPRING_SEEDS").unwrap_or(SEEDS);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>();
        if !message.is_some_and(|message| message.starts_with(TRIPPED)) {
            hook(panic);
        }
    }));
    for seed in 0..seeds {
        if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| simulate(seed, &mut seen))) {
            eprintln!("SNAPRING_SEED={seed} repeats this");
            std::panic::resume_unwind(panic);
        }
    }
    println!("{seeds} seeds: {seen:?}");
    // A simulation in which nothing happens would pass as well.
    let enough = [
        seen.drained > seeds / 10,
        seen.rewound > seeds / 10,
        seen.crashes > seeds,
        seen.restores > seeds / 2,
        seen.given_up > seeds / 50,
        seen.durable > seeds / 2,
        seen.failed > seeds / 50,
        seen.new_files > seeds / 30,
        seen.went_back > seeds / 20,
        seen.restarts > seeds / 5,
    ];
    assert!(seeds < 1000 || enough == [true; 10], "{seen:?}");
}
