//! Loops on threads: no deadlock, no starvation, bounded memory, an end; with checkpoints on time, under every protocol. And
//! what at-least-once promises, under the seeded simulator.

mod at_least_once;
mod ends;
mod late;
mod pressure;
mod restored;

use snapring::error::Error;
use snapring::runtime::Summary;
use snapring::{Checkpoints, Config, Dataflow, Protocol, Record};
use std::time::{Duration, Instant};

/// What goes round.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Record)]
struct Token {
    id: u64,
    laps: u32,
}

fn token(id: u64, laps: u32) -> Token {
    Token { id, laps }
}

/// One lap less.
fn step(token: Token) -> Token {
    Token { laps: token.laps.saturating_sub(1), ..token }
}

/// Two workers and the smallest rings, with a checkpoint every few milliseconds.
fn tight(protocol: Protocol, state: &std::path::Path) -> Config {
    let checkpoints = Checkpoints::every(Duration::from_millis(3)).unaligned_after(Duration::from_millis(1));
    Config::new()
        .unpinned_workers(2)
        .ring_capacity(1)
        .batch_len_max(2)
        .checkpoints(checkpoints.protocol(protocol).to(state))
}

/// Runs a job to its end, which must come soon: after seconds, on a machine with much other work after some more.
fn run(flow: Dataflow, config: Config) -> Result<Summary, Error> {
    let job = flow.start(config)?;
    let start = Instant::now();
    while !job.is_over() {
        assert!(start.elapsed() < Duration::from_secs(240), "it is stuck:\n{}", job.diagnosis());
        std::thread::sleep(Duration::from_millis(1));
    }
    job.wait()
}
