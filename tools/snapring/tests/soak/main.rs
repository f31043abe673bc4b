//! A soak: `routes` over a month of real flights, killed, stalled, stopped, out of room, its files taken away, and started
//! again and again, at another parallelism and interval each time. After every start what is committed is consistent, and in
//! the end it is what an undisturbed run commits.
//!
//! 30 s, or as long as one says: `SNAPRING_SOAK_S=600 cargo test -p snapring-cli --test soak -- --nocapture`. The seed is
//! printed, and `SNAPRING_SOAK_SEED=17` repeats what was decided; when it hits is up to the machine. Where the system lets it
//! (user namespaces), it runs in a small file system and process space of its own: no process can outlast it.

#[allow(dead_code)]
#[path = "../cli/plain.rs"]
mod plain;
#[allow(dead_code)]
#[path = "../cli/support.rs"]
mod support;

mod campaign;
mod disk;
mod harm;
mod random;
mod start;

use campaign::Campaign;
use disk::Disk;
use random::Random;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What has been gone through.
#[derive(Debug, Default)]
pub struct Met {
    campaigns: u32,
    starts: u32,
    restored: u32,
    killed: u32,
    stopped: u32,
    finished: u32,
    failed: u32,
    stalled: u32,
    full: u32,
    limited: u32,
    taken_away: u32,
    damaged: u32,
    went_back: u32,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
fn soak() {
    if let Some(status) = disk::run_within("soak") {
        assert!(status.success(), "the soak has failed: {status}");
        return;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is right");
    let seed = number("SNAPRING_SOAK_SEED").unwrap_or(since.as_nanos() as u64 % 1_000_000);
    let limit_s = number("SNAPRING_SOAK_S").unwrap_or(30);
    println!("a soak of {limit_s} s: SNAPRING_SOAK_SEED={seed} repeats its decisions");
    let (mut random, mut met) = (Random::new(seed), Met::default());
    let until = Instant::now() + Duration::from_secs(limit_s);
    let disk = Disk::new();
    while Instant::now() < until {
        met.campaigns += 1;
        println!("campaign {}", met.campaigns);
        Campaign::new(&disk, &mut random).run(&mut random, until, &mut met);
    }
    println!("{met:?}");
    if limit_s >= 25 {
        let enough = [met.restored > 3, met.killed > 2, met.stopped > 0, met.starts > met.campaigns + 4];
        assert!(enough == [true; 4], "a soak in which nothing happens would pass as well: {met:?}");
    }
}
