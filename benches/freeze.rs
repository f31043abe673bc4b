//! What a freeze costs the task: its pause against the size of the state, and the copies that follow. `--test` makes
//! everything tiny, to see that it runs.

use snapring::page::Pool;
use snapring::state::{Hasher, Table, range_of};
use std::time::{Duration, Instant};

/// Entries that are changed between two freezes: each in a page of its own, mostly.
const CHANGES: u64 = 1000;
const EPOCHS: usize = 50;

fn add(table: &mut Table<u64, u64>, key: u64) {
    let hash = table.hash(&key);
    table.update(hash, &key, || 0, |count| *count += 1).expect("the pool is large enough");
}

fn timed<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// Adds keys until the table has so many bytes, and says how many.
fn fill(table: &mut Table<u64, u64>, state_bytes: usize) -> u64 {
    let mut keys = 0;
    while table.bytes() < state_bytes {
        add(table, keys);
        keys += 1;
    }
    keys
}

fn measure(state_bytes: usize) {
    let pool = Pool::new(16 << 10, 4 * state_bytes + (64 << 20));
    let mut table = Table::new(&pool, Hasher::default(), range_of(0, 1)).expect("the pool is large enough");
    let keys = fill(&mut table, state_bytes);
    let (all_dirty, mut frozen) = timed(|| table.freeze());
    let pages = frozen.1.changed.len();
    table.durable();
    let (mut pauses, mut shared, mut alone) = (Vec::new(), Duration::ZERO, Duration::ZERO);
    let copies = table.page_copies();
    for epoch in 0..EPOCHS as u64 {
        // Once with the frozen pages still in the writer's hands, once after it has let them go.
        let changed = |round: u64| (0..CHANGES).map(move |n| (n * 7919 + round * 104_729 + epoch) % keys);
        shared += timed(|| changed(0).for_each(|key| add(&mut table, key))).0;
        let (pause, now) = timed(|| table.freeze());
        pauses.push(pause);
        drop(frozen);
        drop(now);
        table.durable();
        alone += timed(|| changed(1).for_each(|key| add(&mut table, key))).0;
        let (pause, now) = timed(|| table.freeze());
        pauses.push(pause);
        table.durable();
        frozen = now;
    }
    pauses.sort();
    let per_change = |time: Duration| time.as_nanos() / (u128::from(CHANGES) * EPOCHS as u128);
    println!(
        "{:>6} MiB, {pages:>6} pages: pause p50 {:?} p99 {:?} max {:?} ({CHANGES} changes before each), all dirty \
         {all_dirty:?}; first write {} ns held, {} ns let go; {} pages copied",
        table.bytes() >> 20,
        pauses[pauses.len() / 2],
        pauses[pauses.len() * 99 / 100],
        pauses[pauses.len() - 1],
        per_change(shared),
        per_change(alone),
        table.page_copies() - copies,
    );
}

fn main() {
    let is_test = !std::env::args().any(|arg| arg == "--bench") || std::env::args().any(|arg| arg == "--test");
    let sizes: &[usize] = if is_test { &[1 << 20] } else { &[16 << 20, 128 << 20, 1 << 30] };
    sizes.iter().for_each(|&state_bytes| measure(state_bytes));
}
