//! What each snapshot protocol costs on graphs that make it hard: deep chains, full rings, inputs of unequal speed, a loop,
//! a hot key. Two workers; a checkpoint every 100 ms, durable against a loss of power.
//!
//! `cargo bench --bench protocols` prints a table for each graph: throughput against none (medians of alternating runs in one
//! process), the time until all tasks had frozen and until the checkpoint was complete, its logs included, and the bytes of
//! state and of channels. `-- --test` runs it small; `-- slow` runs only graphs with that in their name.

mod support;

use snapring::connector::{Discard, Generate};
use snapring::dataflow::{Dataflow, Stream};
use snapring::runtime::{CheckpointMetrics, CheckpointOutcome, Checkpoints, Config, Initiators};
use snapring::{Protocol, Record};
use std::time::{Duration, Instant};
use support::{median, pinned, placement_ns};

/// Records in a batch.
const BATCH: usize = 256;

#[derive(Clone, Copy)]
enum Graph {
    /// So many stages in a row; the last takes so long for each record.
    Chain { depth: usize, slow_ns: u64 },
    /// Two inputs, one of which takes ten times as long for a record.
    Join,
    /// Tokens go round.
    Loop,
    /// A count per key, where one key has so many of a hundred records.
    Skew { hot_percent: u64 },
}

const GRAPHS: [(&str, Graph); 11] = [
    ("chain of 1", Graph::Chain { depth: 1, slow_ns: 0 }),
    ("chain of 4", Graph::Chain { depth: 4, slow_ns: 0 }),
    ("chain of 16", Graph::Chain { depth: 16, slow_ns: 0 }),
    ("chain of 1, slow end", Graph::Chain { depth: 1, slow_ns: 2_000 }),
    ("chain of 4, slow end", Graph::Chain { depth: 4, slow_ns: 2_000 }),
    ("chain of 16, slow end", Graph::Chain { depth: 16, slow_ns: 2_000 }),
    ("join, one input 10 x slower", Graph::Join),
    ("loop", Graph::Loop),
    ("keys, none hot", Graph::Skew { hot_percent: 0 }),
    ("keys, one has 50 %", Graph::Skew { hot_percent: 50 }),
    ("keys, one has 90 %", Graph::Skew { hot_percent: 90 }),
];

/// Who begins, where that is a choice.
const VARIANTS: [(&str, Option<(Protocol, bool)>); 9] = [
    ("none", None),
    ("aligned", Some((Protocol::Aligned, false))),
    ("chandy-lamport", Some((Protocol::ChandyLamport, false))),
    ("chandy-lamport, all", Some((Protocol::ChandyLamport, true))),
    ("unaligned", Some((Protocol::Unaligned, false))),
    ("unaligned, all", Some((Protocol::Unaligned, true))),
    ("aligned-then-unaligned", Some((Protocol::AlignedThenUnaligned, false))),
    ("at-least-once", Some((Protocol::AtLeastOnce, false))),
    ("stop-the-world", Some((Protocol::StopTheWorld, false))),
];

#[derive(Clone, Record)]
struct Token {
    id: u64,
    laps: u32,
}

fn spin(ns: u64) {
    let start = Instant::now();
    while (start.elapsed().as_nanos() as u64) < ns {
        std::hint::spin_loop();
    }
}

fn source(flow: &Dataflow, name: &str, events: u64) -> Stream<u64> {
    flow.source(name, Generate::new(events, 4, |index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8))
}

impl Graph {
    /// Records that take about a second.
    fn events(self, scale: u64) -> u64 {
        let events = match self {
            Self::Chain { slow_ns: 0, depth } => 50_000_000 / (depth as u64 + 1),
            Self::Chain { slow_ns, .. } => 1_000_000_000 / slow_ns,
            Self::Join => 4_000_000,
            Self::Loop => 2_000,
            Self::Skew { .. } => 12_000_000,
        };
        (events / scale).max(100)
    }

    fn draw(self, events: u64, scale: u64) -> Dataflow {
        let flow = Dataflow::new("protocols");
        match self {
            Self::Chain { depth, slow_ns } => {
                let mut stream = source(&flow, "numbers", events);
                for stage in 0..depth {
                    stream = stream.stage(&format!("stage {stage}")).map(|number| number ^ 1).boxed();
                }
                stream.inspect(move |_| spin(slow_ns)).sink("out", Discard::new());
            }
            Self::Join => {
                let slow = source(&flow, "slow", events / 10).inspect(|_| spin(1_000));
                let joined = source(&flow, "fast", events).inspect(|_| spin(100)).merge(slow);
                joined.key_by(|number| number % 10_000).count("counts").sink("out", Discard::new());
            }
            Self::Loop => {
                let laps = (80_000 / scale) as u32;
                let tokens = flow.source("tokens", Generate::new(events, 4, move |id| Token { id, laps }));
                let (again, tokens) = tokens.feedback::<Token>("again");
                let stepped = tokens.stage("body").map(|token| Token { laps: token.laps - 1, ..token });
                let (more, done) = stepped.split(|token| token.laps > 0);
                again.close(more);
                done.sink("out", Discard::new());
            }
            Self::Skew { hot_percent } => {
                let key = move |number: &u64| if number % 100 < hot_percent { 0 } else { number % 100_000 };
                source(&flow, "numbers", events).key_by(key).count("counts").sink("out", Discard::new());
            }
        }
        flow
    }
}

/// Runs a graph under a protocol: how long it took, and the checkpoints that became durable while it ran.
fn run(graph: Graph, variant: Option<(Protocol, bool)>, scale: u64) -> (Duration, Vec<CheckpointMetrics>) {
    let mut config: Config = pinned(2).batch_len_max(BATCH);
    if matches!(graph, Graph::Chain { .. }) {
        config = config.parallelism(1);
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("target is writable");
    if let Some((protocol, all)) = variant {
        let initiators = if all { Initiators::All } else { Initiators::Sources };
        let checkpoints = Checkpoints::every(Duration::from_millis(100)).protocol(protocol).initiators(initiators);
        config = config.checkpoints(checkpoints.to(folder.path()));
    }
    let flow = graph.draw(graph.events(scale), scale);
    let start = Instant::now();
    let job = flow.start(config).expect("it starts");
    let mut checkpoints: Vec<CheckpointMetrics> = Vec::new();
    while !job.is_over() {
        std::thread::sleep(Duration::from_millis(20));
        checkpoints = job.metrics().checkpoints;
    }
    job.wait().expect("it runs");
    checkpoints.retain(|checkpoint| checkpoint.outcome == CheckpointOutcome::Durable);
    (start.elapsed(), checkpoints)
}

fn percentile_ms(sorted_ns: &[u64], percent: usize) -> f64 {
    sorted_ns
        .get((sorted_ns.len() * percent / 100).min(sorted_ns.len().saturating_sub(1)))
        .map_or(f64::NAN, |ns| *ns as f64 / 1e6)
}

fn sorted(checkpoints: &[CheckpointMetrics], what: impl Fn(&CheckpointMetrics) -> Option<u64>) -> Vec<u64> {
    let mut values: Vec<u64> = checkpoints.iter().filter_map(what).collect();
    values.sort_unstable();
    values
}

fn table(name: &str, graph: Graph, runs: usize, scale: u64) {
    let mut times = VARIANTS.map(|_| Vec::new());
    let mut checkpoints = VARIANTS.map(|_| Vec::new());
    for _ in 0..runs {
        for (number, (_, variant)) in VARIANTS.iter().enumerate() {
            let (time, made) = run(graph, *variant, scale);
            times[number].push(time);
            checkpoints[number].extend(made);
        }
    }
    let none = median(times[0].clone()).as_secs_f64();
    println!("{name}: {} records, {none:.2} s without checkpoints", graph.events(scale));
    println!(
        "  {:<24} {:>7} {:>5} {:>19} {:>19} {:>10} {:>10}",
        "", "x none", "made", "cut p50 / p99 ms", "complete p50 / p99", "state kB", "channels kB"
    );
    for ((name, _), (times, made)) in VARIANTS.iter().zip(times.into_iter().zip(checkpoints)).skip(1) {
        let (cut, complete) = (sorted(&made, |one| one.cut_ns), sorted(&made, |one| one.complete_ns));
        let (channels, all) = (sorted(&made, |one| Some(one.channel_bytes)), sorted(&made, |one| Some(one.bytes)));
        let kb = |values: &[u64]| percentile_ms(values, 50) * 1e3;
        println!(
            "  {name:<24} {:>7.3} {:>5} {:>9.2} / {:>7.2} {:>9.2} / {:>7.2} {:>10.1} {:>10.1}",
            none / median(times).as_secs_f64(),
            made.len(),
            percentile_ms(&cut, 50),
            percentile_ms(&cut, 99),
            percentile_ms(&complete, 50),
            percentile_ms(&complete, 99),
            kb(&all) - kb(&channels),
            kb(&channels),
        );
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (runs, scale) = if args.iter().any(|arg| arg == "--test") { (1, 50) } else { (3, 1) };
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with("--")).collect();
    println!("two-line round trip between the cores: {} ns", placement_ns());
    for (name, graph) in GRAPHS {
        if wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())) {
            table(name, graph, runs, scale);
        }
    }
}
