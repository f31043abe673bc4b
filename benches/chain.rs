//! What a chain of stateless operators costs beside the loop that one would write by hand: 64-byte records are generated,
//! mapped, filtered and counted, on one worker. The records are made the same way on both sides, and what comes out is
//! looked at.
//!
//! `cargo bench --bench chain` prints ratios over alternating runs in one process, by the clock and by CPU time; `-- --test`
//! runs it small.

mod support;

use snapring::Record;
use snapring::connector::{Discard, Generate};
use snapring::dataflow::Dataflow;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::median;

/// 64 bytes: what a tick, a reading or a click comes to.
#[derive(Clone, Copy, Record)]
struct Reading {
    sensor: u64,
    at_ns: u64,
    values: [f64; 6],
}

fn reading(index: u64) -> Reading {
    let mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (mixed >> 40) as f64;
    Reading {
        sensor: mixed >> 54,
        at_ns: index * 1000,
        values: [value, value + 1.0, value + 2.0, value + 3.0, value + 4.0, value + 5.0],
    }
}

/// From one scale to another.
fn calibrated(mut reading: Reading) -> Reading {
    reading.values.iter_mut().for_each(|value| *value = *value * 0.25 - 7.0);
    reading
}

/// About half of them.
fn is_due(reading: &Reading) -> bool {
    reading.values[0] + reading.values[5] > 4_194_304.0
}

/// Nothing but the loop: the compiler may keep a record in registers, and leave out what is never looked at.
fn by_hand(records: u64) -> (u64, Duration) {
    let start = Instant::now();
    let mut count = 0;
    for index in 0..records {
        let reading = calibrated(reading(index));
        if is_due(&reading) {
            black_box(&reading);
            count += 1;
        }
    }
    (count, start.elapsed())
}

/// The same with each record in memory before it is looked at, as where records come from a file or another thread.
fn by_hand_in_memory(records: u64) -> (u64, Duration) {
    let start = Instant::now();
    let mut count = 0;
    for index in 0..records {
        let made = reading(index);
        let reading = calibrated(*black_box(&made));
        if is_due(&reading) {
            black_box(&reading);
            count += 1;
        }
    }
    (count, start.elapsed())
}

fn in_a_chain(records: u64) -> (u64, Duration) {
    let counted = Arc::new(AtomicU64::new(0));
    let count = counted.clone();
    let start = Instant::now();
    let flow = Dataflow::new("chain");
    flow.source("readings", Generate::new(records, 1, reading))
        .map(calibrated)
        .filter(is_due)
        .inspect(move |_| {
            // One thread counts: a load and a store do, as they do by hand.
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        })
        .sink("out", Discard::new()); // which looks at each record, so that none can be left out
    flow.start(support::pinned(1)).and_then(|job| job.wait()).expect("the chain runs");
    (counted.load(Ordering::Relaxed), start.elapsed())
}

/// One of the three, over all its runs.
#[derive(Default)]
struct Side {
    times: Vec<Duration>,
    cpu_s: f64,
}

impl Side {
    fn run(&mut self, run: impl FnOnce() -> (u64, Duration)) -> u64 {
        let before = support::cpu_s();
        let (count, time) = run();
        self.cpu_s += support::cpu_s() - before;
        self.times.push(time);
        count
    }

    fn show(&self, name: &str, records: u64, than: &Self) {
        let time = |side: &Self| median(side.times.clone()).as_secs_f64();
        let (rate, ratio) = (records as f64 / time(self) / 1e6, time(than) / time(self));
        let cpu_ns = self.cpu_s * 1e9 / (records as f64 * self.times.len() as f64);
        let cpu_ratio = than.cpu_s / self.cpu_s;
        println!("  {name:42} {rate:8.1} M/s, {ratio:.2} x; {cpu_ns:5.2} ns of CPU a record, {cpu_ratio:.2} x");
    }
}

fn main() {
    let (runs, records) = if std::env::args().any(|arg| arg == "--test") { (1, 100_000) } else { (9, 50_000_000) };
    let (mut hand, mut memory, mut chain) = (Side::default(), Side::default(), Side::default());
    for _ in 0..runs {
        let expected = hand.run(|| support::on_first_core(|| by_hand(records)));
        let also = memory.run(|| support::on_first_core(|| by_hand_in_memory(records)));
        assert_eq!((also, chain.run(|| in_a_chain(records))), (expected, expected));
    }
    println!("map, filter, count over {records} records of {} bytes, one worker,", size_of::<Reading>());
    println!("medians of {runs} alternating runs, and ratios to the hand-written loop");
    hand.show("hand-written loop", records, &hand);
    memory.show("the same over records that lie in memory", records, &hand);
    chain.show("chain", records, &hand);
}
