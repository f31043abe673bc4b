//! What a busy job loses while it reads restored state ahead: its throughput until all is there, against that of the same
//! time after.

use super::resident_bytes;
use snapring::connector::{Discard, Generate};
use snapring::dataflow::Dataflow;
use snapring::runtime::{Checkpoints, Config, Hydrate, Job};
use std::path::Path;
use std::time::{Duration, Instant};

/// Keys that records go to once all have been there: what is read for their sake is little.
const HOT_KEYS: u64 = 2000;
const SAMPLES_EVERY: Duration = Duration::from_millis(20);
/// Memory that has grown no more for so long is all there.
const STILL: u32 = 25;

fn start(state: &Path, keys: u64, batch_len: usize, hydrate: Hydrate) -> Job {
    let flow = Dataflow::new("busy");
    let key = move |index: u64| if index < keys { index } else { index.wrapping_mul(0x9e37_79b9) % HOT_KEYS };
    flow.source("events", Generate::new(u64::MAX, 1, key))
        .key_by(|key| *key)
        .count("counts")
        .sink("out", Discard::new());
    let checkpoints = Checkpoints::on_demand().to(state).hydrate(hydrate);
    let config = Config::new().unpinned_workers(1).batch_len_max(batch_len).checkpoints(checkpoints);
    flow.start(config).expect("the job starts")
}

/// Makes a state folder of a job that has had all keys.
fn make(state: &Path, keys: u64) {
    let job = start(state, keys, 1024, Hydrate::Background);
    while job.progress().records < keys + HOT_KEYS {
        std::thread::sleep(SAMPLES_EVERY);
    }
    job.stop(Duration::MAX).expect("it stops").checkpoint.expect("and makes a checkpoint");
}

/// Records per second until memory is still, and in as long a time after; and how long that was.
fn run(state: &Path, keys: u64, batch_len: usize, hydrate: Hydrate, least: Duration) -> (f64, f64, Duration) {
    let job = start(state, keys, batch_len, hydrate);
    while job.progress().records == 0 {
        std::thread::yield_now();
    }
    let (begin, first) = (Instant::now(), job.progress().records);
    let (mut still, mut most) = (0, 0);
    while still < STILL || begin.elapsed() < least {
        std::thread::sleep(SAMPLES_EVERY);
        let now = resident_bytes();
        still = if now > most + (1 << 20) { 0 } else { still + 1 };
        most = most.max(now);
    }
    let (took, middle) = (begin.elapsed(), job.progress().records);
    std::thread::sleep(took);
    let last = job.progress().records;
    job.abort(Duration::MAX).expect("it stops");
    let rate = |records: u64| records as f64 / took.as_secs_f64();
    (rate(middle - first), rate(last - middle), took)
}

pub fn measure(keys: u64, rounds: u32) {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    let state = dir.path().join("state");
    make(&state, keys);
    for batch_len in [1024, 16] {
        for round in 0..rounds {
            let (during, after, took) = run(&state, keys, batch_len, Hydrate::Background, Duration::ZERO);
            let (during_touch, after_touch, _) = run(&state, keys, batch_len, Hydrate::OnTouch, took);
            println!(
                "{keys} keys, batches of {batch_len}, round {round}: {:.2} M records/s while it hydrates ({:.1} s), {:.2} after: \
                 {:.3}; without hydration {:.2} and {:.2}: {:.3}",
                during / 1e6,
                took.as_secs_f64(),
                after / 1e6,
                during / after,
                during_touch / 1e6,
                after_touch / 1e6,
                during_touch / after_touch
            );
        }
    }
}
