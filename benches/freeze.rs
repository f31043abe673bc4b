//! What a freeze costs the task: its pause against the size of the state, and the copies that follow; and, in the same run, what
//! the machine itself does to a busy loop. `--test` makes everything tiny, to see that it runs.

use snapring::page::Pool;
use snapring::state::{Hasher, Table, range_of};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Entries that are changed between two freezes: each in a page of its own, mostly.
const CHANGES: u64 = 1000;
const EPOCHS: usize = 500;

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

/// p50, p99 and greatest.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    format!("p50 {:?} p99 {:?} max {:?}", at(50), at(99), at(100))
}

/// What a loop of half a microsecond takes when it is timed as often.
fn noise(times: usize) -> Vec<Duration> {
    let spin = || {
        let mut x = 1u64;
        for n in 0..400 {
            x = black_box(x.wrapping_mul(31).wrapping_add(n));
        }
        x
    };
    (0..times).map(|_| timed(spin).0).collect()
}

fn measure(state_bytes: usize, epochs: usize) {
    let pool = Pool::new(16 << 10, 2 * state_bytes + (64 << 20));
    let _touched = pool.keep_touched(64 << 20);
    let mut table = Table::new(&pool, Hasher::default(), range_of(0, 1)).expect("the pool is large enough");
    let keys = fill(&mut table, state_bytes);
    let (all_dirty, mut frozen) = timed(|| table.freeze());
    let pages = frozen.1.changed.len();
    table.durable();
    let (mut pauses, mut machine, mut shared, mut alone) = (Vec::new(), Vec::new(), Duration::ZERO, Duration::ZERO);
    let copies = table.page_copies();
    for epoch in 0..epochs as u64 / 2 {
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
        machine.extend(noise(2));
    }
    let per_change = |time: Duration| time.as_nanos() / (u128::from(CHANGES) * (epochs as u128 / 2));
    println!(
        "{:>6} MiB, {pages:>6} pages: pause {} ({CHANGES} changes before each), all dirty {all_dirty:?}; the machine alone: {}; \
         first write {} ns held, {} ns let go; {} pages copied",
        table.bytes() >> 20,
        spread(pauses),
        spread(machine),
        per_change(shared),
        per_change(alone),
        table.page_copies() - copies,
    );
}

fn main() {
    let is_test = !std::env::args().any(|arg| arg == "--bench") || std::env::args().any(|arg| arg == "--test");
    let (sizes, epochs): (&[usize], usize) =
        if is_test { (&[1 << 20], 4) } else { (&[16 << 20, 128 << 20, 1 << 30, 2 << 30], EPOCHS) };
    sizes.iter().for_each(|&state_bytes| measure(state_bytes, epochs));
}
