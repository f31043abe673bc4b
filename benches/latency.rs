//! How long a program waits for an answer: a record pushed into a handle, through one operator with state, until its result is
//! polled from another. Against the bare round trip of two atomics between the same two cores, and with checkpoints against
//! without.
//!
//! The program's thread is on the first core, the job's one worker on the second, and both spin. *Round trip*: the next record
//! is pushed when the last result is there; the bare ping-pong is timed in the same way, so what the clock itself costs is in
//! both. *Open loop*: record n is due 10 µs after record n - 1, whatever became of that, and its time counts from when it was due.
//! (The machine's own hiccups show in the tail of both; what the bare loop has there, no engine can take away.)
//!
//! `cargo bench --bench latency` prints percentiles of alternating runs in one process; `-- --test` runs it small.

mod support;

use crossbeam_utils::CachePadded;
use snapring::channel::Wait;
use snapring::handle::{Input, Output};
use snapring::{Checkpoints, Config, Dataflow, Job};
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{median, placement_ns};

const KEYS: u64 = 10_000;

/// Times, in ns.
struct Times(Vec<u64>);

impl Times {
    fn with_room(trips: usize) -> Self {
        Self(Vec::with_capacity(trips))
    }

    fn percentiles(mut self) -> [u64; 4] {
        self.0.sort_unstable();
        [0.5, 0.99, 0.999, 1.0].map(|share| self.0[((self.0.len() - 1) as f64 * share) as usize])
    }
}

fn pin(at: usize) {
    let cores = CORES.get_or_init(|| core_affinity::get_core_ids().unwrap_or_default());
    if let Some(core) = cores.get(at) {
        core_affinity::set_for_current(*core);
    }
}

/// Runs it on a thread that is pinned to the first core. The main thread never is: what it starts would inherit it.
fn on_first_core<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let pinned = scope.spawn(|| {
            pin(0);
            run()
        });
        pinned.join().expect("a run does not panic")
    })
}

/// The allowed cores as the main thread saw them before it was pinned.
static CORES: std::sync::OnceLock<Vec<core_affinity::CoreId>> = std::sync::OnceLock::new();

/// Two atomics on two lines.
fn bare(trips: usize) -> Times {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let lines = Arc::new((Line(AtomicU64::new(0)), Line(AtomicU64::new(0))));
    let theirs = lines.clone();
    let echo = std::thread::spawn(move || {
        pin(1);
        for trip in 1..=trips as u64 {
            while theirs.0.0.load(Ordering::Acquire) < trip {
                spin_loop();
            }
            theirs.1.0.store(trip, Ordering::Release);
        }
    });
    let mut times = Times::with_room(trips);
    for trip in 1..=trips as u64 {
        let start = Instant::now();
        lines.0.0.store(trip, Ordering::Release);
        while lines.1.0.load(Ordering::Acquire) < trip {
            spin_loop();
        }
        times.0.push(start.elapsed().as_nanos() as u64);
    }
    echo.join().expect("the echo ends");
    times
}

/// The same ping-pong with a due time each: what the machine itself does to an open loop.
fn bare_open_loop(records: usize, every: Duration) -> Times {
    let line = || Arc::new(CachePadded::new(AtomicU64::new(0)));
    let (ping, pong) = (line(), line());
    let theirs = (ping.clone(), pong.clone());
    let echo = std::thread::spawn(move || {
        pin(1);
        let mut seen = 0;
        while seen < records as u64 {
            seen = theirs.0.load(Ordering::Acquire);
            theirs.1.store(seen, Ordering::Release);
            spin_loop();
        }
    });
    let (mut times, mut pushed) = (Times::with_room(records), 0);
    let start = Instant::now();
    let due = |record: usize| every * record as u32;
    while times.0.len() < records {
        if pushed < records && start.elapsed() >= due(pushed) {
            pushed += 1;
            ping.store(pushed as u64, Ordering::Release);
        }
        while times.0.len() < pong.load(Ordering::Acquire) as usize {
            times.0.push((start.elapsed() - due(times.0.len())).as_nanos() as u64);
        }
    }
    echo.join().expect("the echo ends");
    times
}

/// A running count per key, between two handles.
struct Engine {
    input: Input<u64>,
    output: Output<(u64, u64)>,
    job: Job,
    _state: Option<tempfile::TempDir>,
}

impl Engine {
    fn start(interval: Option<Duration>) -> Self {
        let flow = Dataflow::new("latency");
        let (input, stream) = flow.input::<u64>("keys");
        let output = stream.key_by(|key| *key).count("counts").output("results");
        let mut config = Config::new().parallelism(1).wait(Wait::Spin);
        config = match CORES.get().and_then(|cores| cores.get(1)) {
            Some(core) => config.cores([core.id]),
            None => config.unpinned_workers(1),
        };
        let state = interval.map(|_| tempfile::tempdir().expect("a folder for the state"));
        if let (Some(interval), Some(state)) = (interval, &state) {
            config = config.checkpoints(Checkpoints::every(interval).to(state.path()));
        }
        let job = flow.start(config).expect("the job starts");
        let mut engine = Self { input, output, job, _state: state };
        on_first_core(|| (0..KEYS).for_each(|key| _ = engine.trip(key)));
        engine
    }

    fn push(&mut self, key: u64) {
        while self.input.push(key).is_err() {
            spin_loop();
        }
    }

    /// The count, if a result is there.
    #[inline]
    fn poll(&mut self) -> Option<u64> {
        self.output.poll().expect("the job runs").map(|result| result.record.1)
    }

    /// The time from push to poll.
    fn trip(&mut self, key: u64) -> u64 {
        let start = Instant::now();
        self.push(key);
        while self.poll().is_none() {
            spin_loop();
        }
        start.elapsed().as_nanos() as u64
    }

    fn round_trips(&mut self, trips: usize) -> Times {
        let mut times = Times::with_room(trips);
        times.0.extend((0..trips as u64).map(|trip| self.trip(trip.wrapping_mul(7919) % KEYS)));
        times
    }

    fn open_loop(&mut self, records: usize, every: Duration) -> Times {
        let (mut times, mut pushed) = (Times::with_room(records), 0);
        let start = Instant::now();
        let due = |record: usize| every * record as u32;
        while times.0.len() < records {
            let now = start.elapsed();
            if pushed < records
                && now >= due(pushed)
                && self.input.push((pushed as u64).wrapping_mul(7919) % KEYS).is_ok()
            {
                pushed += 1;
            }
            if self.poll().is_some() {
                times.0.push((start.elapsed() - due(times.0.len())).as_nanos() as u64);
            }
        }
        times
    }

    fn end(mut self) -> u64 {
        self.input.close().expect("the input is open");
        while self.output.poll().is_ok() {}
        self.job.wait().expect("the job ends").checkpoints
    }
}

fn report(name: &str, runs: &[[u64; 4]]) -> [u64; 4] {
    let of = |at: usize| median(runs.iter().map(|run| run[at]).collect());
    let (all, worst) = ([of(0), of(1), of(2), of(3)], runs.iter().map(|run| run[3]).max().unwrap_or(0));
    println!("  {name:44} p50 {:6}  p99 {:6}  p99.9 {:7}  max {:8} ns (worst {worst})", all[0], all[1], all[2], all[3]);
    all
}

fn main() {
    CORES.get_or_init(|| core_affinity::get_core_ids().unwrap_or_default());
    let (runs, trips) = if std::env::args().any(|arg| arg == "--test") { (1, 1_000) } else { (7, 200_000) };
    let every = Duration::from_micros(10);
    let interval = Duration::from_millis(100);
    let (mut rounds, mut open, mut placements) = ([const { Vec::new() }; 2], [const { Vec::new() }; 3], vec![]);
    let mut checkpoints = 0;
    for _ in 0..runs {
        placements.push(placement_ns());
        rounds[0].push(on_first_core(|| bare(trips)).percentiles());
        let mut engine = Engine::start(None);
        rounds[1].push(on_first_core(|| engine.round_trips(trips)).percentiles());
        open[0].push(on_first_core(|| engine.open_loop(trips, every)).percentiles());
        engine.end();
        open[2].push(on_first_core(|| bare_open_loop(trips, every)).percentiles());
        let mut engine = Engine::start(Some(interval));
        open[1].push(on_first_core(|| engine.open_loop(trips, every)).percentiles());
        checkpoints += engine.end();
    }
    println!(
        "handle to handle through a running count of {KEYS} keys, {trips} records, medians of {runs} alternating runs"
    );
    let bare = report("bare round trip of two atomics", &rounds[0]);
    let trip = report("round trip", &rounds[1]);
    println!(
        "    p50 {:.2} x bare, p99.9 {:.2} x bare",
        trip[0] as f64 / bare[0] as f64,
        trip[2] as f64 / bare[2] as f64
    );
    report("open loop of the two atomics, one each 10 us", &open[2]);
    let without = report("open loop, one each 10 us", &open[0]);
    let with = report("open loop, checkpoints every 100 ms", &open[1]);
    println!(
        "    p50 {:.2} x without, p99 {:.2} x without ({checkpoints} checkpoints)",
        with[0] as f64 / without[0] as f64,
        with[1] as f64 / without[1] as f64
    );
    println!("  two-line round trip between the cores: {placements:?} ns");
}
