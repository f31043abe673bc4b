//! How long two cores take to hand something to each other and back: what a ring costs at least, and what two workers can
//! gain. A virtual machine may be moved about by its host, so it holds for now.
//!
//! It cannot hang: each pair has a time, and so have all together.

use super::finding::{Finding, Level};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// More would take long and say little.
const CORES_MAX: usize = 8;
const BLOCKS: usize = 9;
const TRIPS_PER_BLOCK: u64 = 1000;
const PAIR_WITHIN: Duration = Duration::from_millis(300);
const ALL_WITHIN: Duration = Duration::from_secs(2);
/// Two sockets of one machine are nearer.
const FAR_NS: u64 = 1000;

/// A round trip.
struct Trip {
    cores: [usize; 2],
    ns: u64,
}

pub fn look(allowed: &[usize]) -> Finding {
    let about = "round trip";
    let cores = &allowed[..allowed.len().min(CORES_MAX)];
    if cores.len() < 2 {
        return Finding::ok(about, "one core: nothing to hand to another").fact("trips", Vec::<u64>::new());
    }
    let begin = Instant::now();
    let pairs = cores.iter().enumerate().flat_map(|(at, one)| cores[at + 1..].iter().map(move |other| [*one, *other]));
    let mut trips: Vec<Trip> = pairs
        .take_while(|_| begin.elapsed() < ALL_WITHIN)
        .filter_map(|cores| Some(Trip { cores, ns: round_trip_ns(cores)? }))
        .collect();
    trips.sort_by_key(|trip| trip.ns);
    let (Some(best), Some(worst)) = (trips.first(), trips.last()) else {
        let advice = "other programs keep the cores busy, or the host lets only one of them run: stop those, or name other --cores";
        return Finding::new(Level::Warning, about, "no two cores answered each other in time")
            .but(Level::Warning, advice)
            .fact("trips", Vec::<u64>::new());
    };
    let named = |trip: &Trip| format!("{} ns between cores {} and {}", trip.ns, trip.cores[0], trip.cores[1]);
    let says = if trips.len() == 1 { named(best) } else { format!("{} to {}", named(best), named(worst)) };
    let numbers: serde_json::Value =
        trips.iter().map(|trip| serde_json::json!({ "cores": trip.cores, "ns": trip.ns })).collect();
    let finding = Finding::ok(about, says).fact("trips", numbers);
    if worst.ns <= FAR_NS {
        return finding;
    }
    finding.but(Level::Warning, "that is far: records between such workers cost more; try again, or name near --cores")
}

#[repr(align(128))]
struct Line(AtomicU64);

/// The median of some blocks of trips; none: it took too long, or the system refused to pin.
fn round_trip_ns([one, other]: [usize; 2]) -> Option<u64> {
    let (ping, pong, over) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let echo = || {
            pin(other);
            let mut last = 0;
            while !over.load(Ordering::Relaxed) {
                // Acquire and Release as in a ring, whose cost this tells: with the Release of the store below.
                let now = ping.0.load(Ordering::Acquire);
                if now == last {
                    std::hint::spin_loop();
                } else {
                    // With the Acquire of the loop that waits for it.
                    pong.0.store(now, Ordering::Release);
                    last = now;
                }
            }
        };
        let asker = || {
            let blocks = if pin(one) { ask(&ping, &pong) } else { Vec::new() };
            over.store(true, Ordering::Relaxed);
            blocks
        };
        // Whoever calls stays unpinned.
        scope.spawn(echo);
        let mut blocks = scope.spawn(asker).join().ok()?;
        blocks.sort_unstable();
        blocks.get(blocks.len() / 2).copied()
    })
}

fn ask(ping: &Line, pong: &Line) -> Vec<u64> {
    let begin = Instant::now();
    let mut blocks = Vec::new();
    let mut trip = 0;
    for _ in 0..BLOCKS {
        let start = Instant::now();
        for _ in 0..TRIPS_PER_BLOCK {
            trip += 1;
            // Release and Acquire: see the other side.
            ping.0.store(trip, Ordering::Release);
            let mut spins = 0_u32;
            while pong.0.load(Ordering::Acquire) < trip {
                std::hint::spin_loop();
                spins = spins.wrapping_add(1);
                if spins.is_multiple_of(4096) && begin.elapsed() > PAIR_WITHIN {
                    return blocks;
                }
            }
        }
        blocks.push(start.elapsed().as_nanos() as u64 / TRIPS_PER_BLOCK);
    }
    blocks
}

/// False: the system refuses.
fn pin(core: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_alone_has_nobody_to_answer_and_a_pair_without_an_answer_ends() {
        assert_eq!(look(&[0]).level, Level::Ok);
        assert_eq!(look(&[]).level, Level::Ok);
        let (ping, pong) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
        let begin = Instant::now();
        assert!(ask(&ping, &pong).is_empty());
        assert!(begin.elapsed() >= PAIR_WITHIN && begin.elapsed() < 20 * PAIR_WITHIN);
    }
}
