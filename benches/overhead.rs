//! Checkpoint overhead against throughput: a running count per key with checkpoints off, every second, every 100 ms and
//! every 10 ms, to a file on disk, durable against a loss of power. One worker; the writer has the other core.
//!
//! `cargo bench --bench overhead` prints ratios of medians of alternating runs in one process; `-- --test` runs it small.
//! The state folder is made under `target/`, which must be on a disk: elsewhere a sync costs nothing and proves nothing.

mod support;

use snapring::runtime::{Checkpoints, Config};
use std::time::Duration;
use support::{Work, keyed_count, median, pinned, placement_ns};

fn main() {
    let (runs, scale) = if std::env::args().any(|arg| arg == "--test") { (1, 100) } else { (5, 1) };
    let intervals = [None, Some(1000), Some(100), Some(10)];
    for keys in [10_000, 1_000_000] {
        let work = Work { events: 60_000_000 / scale, keys: keys / scale };
        let mut times = intervals.map(|_| Vec::new());
        let mut placements = Vec::new();
        for _ in 0..runs {
            placements.push(placement_ns());
            for (interval, times) in intervals.iter().zip(&mut times) {
                times.push(with_checkpoints(&work, interval.map(Duration::from_millis)));
            }
        }
        println!(
            "keyed count, {} keys, {} events, one worker, medians of {runs} alternating runs",
            work.keys, work.events
        );
        let off = median(times[0].clone());
        for (interval, times) in intervals.iter().zip(times) {
            let time = median(times);
            let rate = work.events as f64 / time.as_secs_f64() / 1e6;
            let name = interval.map_or("off".to_owned(), |ms| format!("every {ms} ms"));
            println!("  {name:<14} {rate:8.1} M/s  {:.3} x off", off.as_secs_f64() / time.as_secs_f64());
        }
        println!("  two-line round trip between the cores: {placements:?} ns");
    }
}

fn with_checkpoints(work: &Work, interval: Option<Duration>) -> Duration {
    let config: Config = pinned(1);
    let Some(interval) = interval else { return keyed_count(work, config, 1) };
    let folder = tempfile::tempdir_in(concat!(env!("CARGO_MANIFEST_DIR"), "/target")).expect("target is writable");
    keyed_count(work, config.checkpoints(Checkpoints::every(interval).to(folder.path())), 1)
}
