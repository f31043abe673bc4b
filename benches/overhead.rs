//! Checkpoint overhead against throughput, as a matrix: how often, how much state, how much of it changes in between. One
//! worker; the writer has the other core. Checkpoints go to a file on disk, durable against a loss of power.
//!
//! In one job times with checkpoints alternate with times without, so that both have the same state, the same keys and the
//! same neighbours. What changes between two checkpoints are the keys of a window over the pages of the state, which moves
//! on: a share of the pages, not of the keys wherever they are. `cargo bench --bench overhead` takes some minutes;
//! `-- "1024 MiB, 1 %"` runs the rows with that in their name, `-- --full` adds 2 GiB, an interval of 10 s and other
//! protocols; `-- --test` runs it small. The state folder is made under `target/`, which must be on a disk: elsewhere a sync
//! costs nothing and proves nothing.

mod support;

use snapring::connector::{Discard, Generate};
use snapring::runtime::{CheckpointMetrics, CheckpointOutcome, Checkpoints};
use snapring::{Dataflow, Job, Protocol};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use support::{median, pinned, placement_ns};

/// What is kept of a key: with the key two cache lines.
type Value = [u64; 15];
const ENTRY_BYTES: u64 = 128;

/// A row.
#[derive(Clone, Copy)]
struct Row {
    state_mib: u64,
    /// Thousandths of the state that change between two checkpoints.
    per_mille: u64,
    protocol: Protocol,
}

impl Row {
    fn name(&self) -> String {
        let share = self.per_mille as f64 / 10.0;
        format!("{} MiB, {share} %, {}", self.state_mib, self.protocol)
    }
}

fn rows(full: bool) -> Vec<Row> {
    let sizes: &[u64] = if full { &[16, 256, 1024, 2048] } else { &[16, 256, 1024] };
    let others = [Protocol::Unaligned, Protocol::ChandyLamport, Protocol::StopTheWorld];
    let protocols = [&[Protocol::Aligned][..], if full { &others } else { &[] }].concat();
    let mut rows = Vec::new();
    for protocol in protocols {
        for &state_mib in sizes {
            rows.extend([1, 10, 100, 1000].map(|per_mille| Row { state_mib, per_mille, protocol }));
        }
    }
    rows
}

/// Keys, of which a window is drawn from.
struct Keys {
    count: u64,
    /// In the order in which they lie in the pages of the state, once that is known.
    by_page: OnceLock<Vec<u64>>,
    window: AtomicU64,
    per_mille: u64,
}

impl Keys {
    fn new(count: u64, per_mille: u64) -> Self {
        Self { count, by_page: OnceLock::new(), window: AtomicU64::new(0), per_mille }
    }

    /// The key of an event: first each in turn, then those of the window.
    fn key(&self, index: u64) -> u64 {
        let count = self.count;
        let Some(by_page) = self.by_page.get() else { return index % count };
        let span = (count * self.per_mille / 1000).max(1);
        let first = self.window.load(Ordering::Relaxed) * span;
        let mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        by_page[((first + mixed % span) % count) as usize]
    }
}

fn start(row: Row, keys: &Arc<Keys>, folder: &std::path::Path) -> Job {
    let flow = Dataflow::new("overhead");
    let drawn = keys.clone();
    flow.source("events", Generate::new(u64::MAX, 1, move |index| drawn.key(index)))
        .key_by(|key| *key)
        .fold_to_end("counts", Value::default(), |value, _| value[0] += 1)
        .sink("out", Discard::new());
    let checkpoints = Checkpoints::on_demand().protocol(row.protocol).to(folder);
    let job = flow.start(pinned(1).checkpoints(checkpoints)).expect("it starts");
    while job.progress().records < keys.count {
        std::thread::sleep(Duration::from_millis(5));
    }
    let view = job.view().and_then(|asked| asked.wait()).expect("nothing keeps it");
    let table = view.table::<u64, Value>("counts").expect("it is kept under this name");
    let mut by_page = Vec::new();
    table.each(|key, _| by_page.push(key)).expect("it is all in memory");
    keys.by_page.set(by_page).expect("it is set once");
    drop((table, view));
    checkpoint(&job);
    job
}

/// Makes one, and waits until it is durable.
fn checkpoint(job: &Job) {
    job.checkpoint().and_then(|asked| asked.wait()).expect("there is room");
}

/// Runs for a while with windows that move every so often, and with a checkpoint of each if they are wanted; events per second.
fn phase(job: &Job, keys: &Keys, every: Duration, lasts: Duration, with_checkpoints: bool) -> f64 {
    let (begin, before) = (Instant::now(), job.progress().records);
    let (mut next, mut asked) = (begin, None);
    while begin.elapsed() < lasts {
        if Instant::now() >= next {
            next += every;
            keys.window.fetch_add(1, Ordering::Relaxed);
            // One that takes longer than the interval puts off the next.
            let is_free =
                asked.as_ref().is_none_or(|asked: &snapring::runtime::Pending| !matches!(asked.try_wait(), Ok(None)));
            if with_checkpoints && is_free {
                asked = Some(job.checkpoint().expect("it has checkpoints"));
            }
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
    }
    let (records, seconds) = (job.progress().records - before, begin.elapsed().as_secs_f64());
    if let Some(asked) = asked {
        let _ = asked.wait();
    }
    records as f64 / seconds
}

fn percentiles(checkpoints: &[CheckpointMetrics], of: impl Fn(&CheckpointMetrics) -> Option<u64>) -> String {
    let mut values: Vec<u64> = checkpoints.iter().filter_map(of).collect();
    values.sort_unstable();
    let Some(last) = values.len().checked_sub(1) else { return "-".to_owned() };
    let at = |share: usize| Duration::from_nanos(values[(last * share).div_ceil(100)]);
    format!("{:.1?} {:.1?} {:.1?}", at(50), at(99), at(100))
}

fn measure(row: Row, intervals: &[Duration], rounds: usize, is_test: bool) {
    let state_bytes = if is_test { 1 << 20 } else { row.state_mib << 20 };
    // Pages are about two thirds full.
    let keys = Arc::new(Keys::new(state_bytes * 2 / 3 / ENTRY_BYTES, row.per_mille));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("target is writable");
    let job = start(row, &keys, folder.path());
    println!("{}: {} keys, {} MiB in memory", row.name(), keys.count, job.metrics().memory.in_use_bytes >> 20);
    for every in intervals {
        let lasts = if is_test { *every } else { (*every * 3).max(Duration::from_secs(1)) };
        let (mut off, mut on, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            off.push(phase(&job, &keys, *every, lasts, false) as u64);
            // All that has changed meanwhile belongs to no interval.
            checkpoint(&job);
            let newest = job.metrics().checkpoints.last().map_or(0, |checkpoint| checkpoint.epoch);
            on.push(phase(&job, &keys, *every, lasts, true) as u64);
            seen.extend(job.metrics().checkpoints.into_iter().filter(|checkpoint| checkpoint.epoch > newest));
        }
        seen.retain(|checkpoint| checkpoint.outcome == CheckpointOutcome::Durable);
        let (off, on, placement) = (median(off) as f64, median(on) as f64, placement_ns());
        let bytes = seen.iter().map(|checkpoint| checkpoint.bytes).sum::<u64>() / (seen.len() as u64).max(1);
        println!(
            "  every {every:>7.0?}: {:5.1} M/s  {:.3} x off ({:.1})  pause {}  durable {}  {:.1} MiB each  {} checkpoints  \
             placement {placement} ns",
            on / 1e6,
            on / off,
            off / 1e6,
            percentiles(&seen, |checkpoint| checkpoint.pause_ns),
            percentiles(&seen, |checkpoint| checkpoint.durable_ns),
            bytes as f64 / f64::from(1 << 20),
            seen.len(),
        );
    }
    job.abort(Duration::from_secs(60)).expect("it stops");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let (is_test, full) = (has("--test"), has("--full"));
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with("--")).collect();
    let ms: &[u64] = if is_test {
        &[100, 10]
    } else if full {
        &[10_000, 1000, 100, 10]
    } else {
        &[1000, 100, 10]
    };
    let intervals: Vec<Duration> = ms.iter().map(|ms| Duration::from_millis(*ms)).collect();
    println!("checkpoints against none, medians of alternating times in one job; p50, p99, max of the newest ones");
    let mut rows = rows(full);
    rows.retain(|row| wanted.iter().all(|part| row.name().contains(part.as_str())));
    rows.truncate(if is_test { 1 } else { usize::MAX });
    for row in rows {
        measure(row, &intervals, if is_test { 1 } else { 3 }, is_test);
    }
}
