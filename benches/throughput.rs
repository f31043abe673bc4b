//! Single figures under criterion, for regressions: a running count per key with checkpoints off and at three intervals.
//! Ratios to quote come from `overhead`, whose runs alternate.

mod support;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use snapring::runtime::Checkpoints;
use std::time::Duration;
use support::{Work, keyed_count, pinned};

const WORK: Work = Work { events: 4_000_000, keys: 100_000 };

fn checkpoint_overhead(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("keyed count");
    group.throughput(Throughput::Elements(WORK.events)).sample_size(10);
    for interval_ms in [None, Some(1000), Some(100), Some(10)] {
        let name = interval_ms.map_or("checkpoints off".to_owned(), |ms| format!("checkpoints every {ms} ms"));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_custom(|runs| (0..runs).map(|_| one(interval_ms)).sum());
        });
    }
    group.finish();
}

fn one(interval_ms: Option<u64>) -> Duration {
    let Some(ms) = interval_ms else { return keyed_count(&WORK, pinned(1), 1) };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("target is writable");
    let checkpoints = Checkpoints::every(Duration::from_millis(ms)).to(folder.path());
    keyed_count(&WORK, pinned(1).checkpoints(checkpoints), 1)
}

criterion_group!(benches, checkpoint_overhead);
criterion_main!(benches);
