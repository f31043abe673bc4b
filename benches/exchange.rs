//! A running count per key, end to end: against a hand-written loop over a hash map without any engine, and over the
//! repartition on two workers against one.
//!
//! `cargo bench --bench exchange` prints ratios of medians of alternating runs in one process; `-- --test` runs it small.

mod support;

use hashbrown::HashMap;
use snapring::connector::{Discard, Generate};
use snapring::dataflow::Dataflow;
use snapring::error::Failed;
use snapring::operator::{Emit, Operator, Value};
use snapring::state::Hasher;
use std::hash::{BuildHasher, Hasher as StdHasher};
use std::hint::black_box;
use std::time::{Duration, Instant};
use support::{Work, keyed_count, median, placement_ns};

/// The engine's own hash function, so that the two sides differ in the engine only.
#[derive(Clone, Copy)]
struct SameHash(Hasher);
struct SameHashState(Hasher, u64);

impl BuildHasher for SameHash {
    type Hasher = SameHashState;
    fn build_hasher(&self) -> SameHashState {
        SameHashState(self.0, 0)
    }
}
impl StdHasher for SameHashState {
    fn finish(&self) -> u64 {
        self.1
    }
    fn write(&mut self, bytes: &[u8]) {
        self.1 = self.0.hash_bytes(bytes);
    }
}

fn loop_over_a_map(work: &Work) -> Duration {
    let mut counts: HashMap<u64, u64, SameHash> = HashMap::with_hasher(SameHash(Hasher::default()));
    let start = Instant::now();
    for index in 0..work.events {
        let count = counts.entry(work.key(index)).or_insert(0);
        *count += 1;
        black_box(*count);
    }
    start.elapsed()
}

/// The same count as an operator of a user's own.
struct Count;

impl Operator for Count {
    type Key = u64;
    type In = u64;
    type Out = (u64, u64);
    type State = Value<u64>;

    fn on_record<E: Emit<(u64, u64)>>(
        &self,
        key: &u64,
        _: u64,
        value: &mut Value<u64>,
        out: &mut E,
    ) -> Result<(), Failed> {
        let count = value.get_or_insert_with(|| 0)?;
        *count += 1;
        out.emit((*key, *count))
    }
}

fn by_an_operator(work: &Work) -> Duration {
    let (start, work) = (Instant::now(), *work);
    let flow = Dataflow::new("keyed-count");
    flow.source("events", Generate::new(work.events, 1, move |index| work.key(index)))
        .key_by(|key| *key)
        .process("counts", Count)
        .sink("out", Discard::new());
    flow.start(support::pinned(1)).and_then(|job| job.wait()).expect("the count runs");
    start.elapsed()
}

fn main() {
    let (runs, scale) = if std::env::args().any(|arg| arg == "--test") { (1, 100) } else { (7, 1) };
    for keys in [10_000, 1_000_000] {
        let work = Work { events: 20_000_000 / scale, keys: keys / scale };
        let (mut plain, mut one, mut own, mut two, mut placements) = (vec![], vec![], vec![], vec![], vec![]);
        for _ in 0..runs {
            placements.push(placement_ns());
            plain.push(loop_over_a_map(&work));
            one.push(keyed_count(&work, support::pinned(1), 1));
            own.push(by_an_operator(&work));
            two.push(keyed_count(&work, support::pinned(2), 2));
        }
        let rate = |time: Duration| work.events as f64 / time.as_secs_f64() / 1e6;
        let (plain, one, own, two) = (median(plain), median(one), median(own), median(two));
        println!("keyed count, {} keys, {} events, medians of {runs} alternating runs", work.keys, work.events);
        println!("  hand-written loop over a map  {:8.1} M/s", rate(plain));
        println!("  one worker                    {:8.1} M/s  {:.2} x the loop", rate(one), rate(one) / rate(plain));
        println!("  with an operator of one's own {:8.1} M/s  {:.2} x one worker", rate(own), rate(own) / rate(one));
        println!("  two workers                   {:8.1} M/s  {:.2} x one worker", rate(two), rate(two) / rate(one));
        println!("  two-line round trip between the cores: {:?} ns", placements);
    }
}
