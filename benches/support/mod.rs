//! What several benches need: the work, the runs, and a look at where the host has put the two cores.
#![allow(dead_code)] // each bench uses its part

use snapring::connector::{Discard, Generate};
use snapring::dataflow::Dataflow;
use snapring::runtime::Config;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A running count per key, over keys drawn evenly.
#[derive(Clone, Copy)]
pub struct Work {
    pub events: u64,
    pub keys: u64,
}

impl Work {
    /// The key of an event: a mixed index, brought into range by a multiplication.
    #[inline]
    pub fn key(&self, index: u64) -> u64 {
        let mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((u128::from(mixed ^ (mixed >> 32)) * u128::from(self.keys)) >> 64) as u64
    }
}

/// Runs the count in the engine; the time from its start to its end.
pub fn keyed_count(work: &Work, config: Config, splits: u32) -> Duration {
    let (start, work) = (Instant::now(), *work);
    let flow = Dataflow::new("keyed-count");
    flow.source("events", Generate::new(work.events, splits, move |index| work.key(index)))
        .key_by(|key| *key)
        .count("counts")
        .sink("out", Discard::new());
    let summary = flow.start(config).and_then(|job| job.wait()).expect("the count runs");
    assert_eq!(summary.records, work.events);
    start.elapsed()
}

pub fn unpinned(workers: usize) -> Config {
    Config::new().unpinned_workers(workers)
}

/// One worker on each of the first cores allowed to this process.
pub fn pinned(workers: usize) -> Config {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    if cores.len() < workers {
        unpinned(workers)
    } else {
        Config::new().cores(cores.iter().take(workers).map(|core| core.id))
    }
}

/// The CPU time that all threads of this process have used, in seconds, to a hundredth: other than the clock on the wall it
/// does not depend on what else the machine does.
pub fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold blanks: fields 14 and 15 of all, in ticks of 10 ms.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(14) + ticks(15)) / 100.0
}

/// Runs this on a thread where `pinned(1)` has its worker, so that both have the same neighbours.
pub fn on_first_core<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            if let Some(core) = core_affinity::get_core_ids().unwrap_or_default().first() {
                core_affinity::set_for_current(*core);
            }
            run()
        });
        there.join().expect("the loop does not panic")
    })
}

pub fn median<T: Ord + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

/// The round trip of two atomics on two lines between the first two cores, in ns: the host moves cores about, and what
/// two workers can gain depends on it (siblings 60 to 80, one L3 90 to 140, further apart more).
pub fn placement_ns() -> u64 {
    const TRIPS: u64 = 20_000;
    #[repr(align(128))]
    struct Line(AtomicU64);
    let (ping, pong) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let pin = |at: usize| cores.get(at).is_some_and(|core| core_affinity::set_for_current(*core));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            for trip in 1..=TRIPS {
                while ping.0.load(Ordering::Acquire) < trip {
                    std::hint::spin_loop();
                }
                pong.0.store(trip, Ordering::Release);
            }
        });
        let there = scope.spawn(|| {
            pin(0);
            let start = Instant::now();
            for trip in 1..=TRIPS {
                ping.0.store(trip, Ordering::Release);
                while pong.0.load(Ordering::Acquire) < trip {
                    std::hint::spin_loop();
                }
            }
            start.elapsed().as_nanos() as u64 / TRIPS
        });
        there.join().expect("the probe does not panic")
    })
}
