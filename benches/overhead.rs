//! Checkpoint overhead against throughput: a running count per key with checkpoints off, every second, every 100 ms and
//! every 10 ms, to a file on disk, durable against a loss of power. One worker; the writer has the other core.
//!
//! `cargo bench --bench overhead` prints ratios of medians of alternating runs in one process; `-- --test` runs it small.
//! The state folder is made under `target/`, which must be on a disk: elsewhere a sync costs nothing and proves nothing.

mod support;

use snapring::runtime::{Checkpoints, Config};
use snapring::snapshot::SinkKind;
use std::time::Duration;
use support::{Work, keyed_count, median, pinned, placement_ns};

/// Off, or an interval in ms and a way of writing.
const VARIANTS: [Option<(u64, SinkKind)>; 5] = [
    None,
    Some((1000, SinkKind::Mapped)),
    Some((100, SinkKind::Mapped)),
    Some((100, SinkKind::Pwrite)),
    Some((10, SinkKind::Mapped)),
];

fn main() {
    let (runs, scale) = if std::env::args().any(|arg| arg == "--test") { (1, 100) } else { (5, 1) };
    for keys in [10_000, 1_000_000] {
        let work = Work { events: 40_000_000 / scale, keys: keys / scale };
        let mut times = VARIANTS.map(|_| Vec::new());
        let mut placements = Vec::new();
        for _ in 0..runs {
            placements.push(placement_ns());
            for (variant, times) in VARIANTS.iter().zip(&mut times) {
                times.push(with_checkpoints(&work, *variant));
            }
        }
        println!(
            "keyed count, {} keys, {} events, one worker, medians of {runs} alternating runs",
            work.keys, work.events
        );
        let off = median(times[0].clone()).as_secs_f64();
        for (variant, times) in VARIANTS.iter().zip(times) {
            let seconds = median(times).as_secs_f64();
            let name = variant.map_or("off".to_owned(), |(ms, sink)| format!("every {ms} ms, {sink:?}"));
            println!("  {name:<22} {:8.1} M/s  {:.3} x off", work.events as f64 / seconds / 1e6, off / seconds);
        }
        println!("  two-line round trip between the cores: {placements:?} ns");
    }
}

fn with_checkpoints(work: &Work, variant: Option<(u64, SinkKind)>) -> Duration {
    let config: Config = pinned(1);
    let Some((ms, sink)) = variant else { return keyed_count(work, config, 1) };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("target is writable");
    let checkpoints = Checkpoints::every(Duration::from_millis(ms)).sink(sink).to(folder.path());
    keyed_count(work, config.checkpoints(checkpoints), 1)
}
