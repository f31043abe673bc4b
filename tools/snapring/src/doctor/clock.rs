//! What a look at the clock costs. Jobs look once a batch, latency measurements once a record.

use super::finding::{Finding, Level};
use super::system::System;
use std::time::Instant;

const READS: u32 = 10_000;
const BLOCKS: usize = 5;
/// What the kernel answers without being called is below it.
const SLOW_NS: u64 = 200;

pub fn look(system: &System) -> Finding {
    let source = system.read("sys/devices/system/clocksource/clocksource0/current_clocksource");
    let cost_ns = cost_ns();
    let says = format!("{}, {cost_ns} ns a look", source.as_deref().unwrap_or("of an unknown source"));
    let finding = Finding::ok("clock", says).fact("source", source).fact("read_ns", cost_ns);
    if cost_ns < SLOW_NS {
        return finding;
    }
    let advice =
        "each look is a call of the kernel: see whether available_clocksource (beside current_clocksource) has tsc";
    finding.but(Level::Warning, advice)
}

fn cost_ns() -> u64 {
    let mut blocks: Vec<u64> = (0..BLOCKS)
        .map(|_| {
            let start = Instant::now();
            (0..READS).for_each(|_| {
                std::hint::black_box(Instant::now());
            });
            start.elapsed().as_nanos() as u64 / u64::from(READS)
        })
        .collect();
    blocks.sort_unstable();
    blocks[BLOCKS / 2]
}
