//! Keyed updates of a table against a hand-written loop over a hashbrown map with the same hash function, in alternating
//! rounds of one process. `--test` makes everything tiny, to see that it runs.

use snapring::page::Pool;
use snapring::record::Record;
use snapring::state::{Hasher, StateError, Table, range_of};
use std::hash::BuildHasher;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 5;
const WINDOW: usize = 64;

/// hashbrown's door to our hash function.
#[derive(Clone, Default)]
struct Same(Hasher);

struct SameState<'a>(&'a Hasher, u64);

impl std::hash::Hasher for SameState<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.1 = self.0.hash_bytes(bytes);
    }
    fn write_u64(&mut self, number: u64) {
        self.1 = self.0.hash_bytes(&number.to_le_bytes());
    }
    fn write_u8(&mut self, _: u8) {} // The byte behind a str.
    fn finish(&self) -> u64 {
        self.1
    }
}

impl BuildHasher for Same {
    type Hasher = SameState<'static>;
    fn build_hasher(&self) -> Self::Hasher {
        // One hasher for the whole process: the trait has no lifetime to give.
        static HASHER: std::sync::OnceLock<Hasher> = std::sync::OnceLock::new();
        SameState(HASHER.get_or_init(|| self.0), 0)
    }
}

type Map<K> = hashbrown::HashMap<K, u64, Same>;

/// Numbers below `below`, evenly and without a pattern (splitmix64).
fn numbers(seed: u64, below: u64) -> impl Iterator<Item = u64> {
    (1..).map(move |step: u64| {
        let mut z = (seed + step).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ z >> 31) * u128::from(below)) >> 64) as u64
    })
}

fn table<K: Record>() -> Table<K, u64> {
    let pool = Pool::new(16 << 10, 8 << 30);
    Table::new(&pool, Hasher::default(), range_of(0, 1)).expect("the pool is large enough")
}

/// Nanoseconds a step.
fn timed(steps: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / steps as f64
}

fn one_by_one<K: Record>(table: &mut Table<K, u64>, keys: &[K]) {
    for key in keys {
        let hash = table.hash(key);
        let count = table.update(
            hash,
            key,
            || 0,
            |count| {
                *count += 1;
                *count
            },
        );
        black_box(count.expect("the pool is large enough"));
    }
}

fn by_window<K: Record + Clone>(table: &mut Table<K, u64>, keys: &[K]) {
    let mut window = Vec::with_capacity(WINDOW);
    for keys in keys.chunks(WINDOW) {
        window.extend(keys.iter().map(|key| (table.hash(key), key.clone(), ())));
        let each = |_, count| {
            black_box(count);
            Ok::<_, StateError>(())
        };
        table.prefetch_all(&window);
        let result = table.update_batch(window.drain(..), |()| 1, |count, ()| *count += 1, |&count| count, each);
        result.expect("the pool is large enough");
    }
}

fn by_map<K: Clone + Eq + std::hash::Hash>(map: &mut Map<K>, keys: &[K]) {
    for key in keys {
        match map.get_mut(key) {
            Some(count) => {
                *count += 1;
                black_box(*count);
            }
            None => drop(map.insert(key.clone(), 1)),
        }
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Inserts all keys, then updates the samples in turn by each of the three ways.
fn compare<K: Record + Clone + Eq + std::hash::Hash>(name: &str, all: &[K], sample: impl Fn(u64) -> Vec<K>) {
    let (mut table, mut map) = (table::<K>(), Map::<K>::default());
    let steps = all.len() as u64;
    let inserted = [timed(steps, || by_map(&mut map, all)), timed(steps, || one_by_one(&mut table, all))];
    let mut figures = [(); 3].map(|()| Vec::new());
    for round in 0..ROUNDS {
        let keys = sample(round as u64);
        let steps = keys.len() as u64;
        figures[0].push(timed(steps, || by_map(&mut map, &keys)));
        figures[1].push(timed(steps, || one_by_one(&mut table, &keys)));
        figures[2].push(timed(steps, || by_window(&mut table, &keys)));
    }
    let total: u64 = map.values().sum();
    assert_eq!(table.len(), map.len() as u64);
    for (key, count) in map.iter().take(1000) {
        let hash = table.hash(key);
        let ours = table.get(hash, key).expect("readable").expect("there");
        assert_eq!(ours, count + (count - 1), "both tables have seen the same; ours twice after the first");
    }
    let [by_map, one, window] = figures.map(median);
    println!(
        "{name:>14}  map {by_map:6.1}  one by one {one:6.1} ({:.2}x)  window {window:6.1} ({:.2}x)  insert: map {:6.1}  \
         table {:6.1}  {:.0} MiB  ({total} records)",
        by_map / one,
        by_map / window,
        inserted[0],
        inserted[1],
        table.bytes() as f64 / f64::from(1 << 20),
    );
}

fn main() {
    let is_test = !std::env::args().any(|arg| arg == "--bench") || std::env::args().any(|arg| arg == "--test");
    let (sizes, updates): (&[u64], usize) =
        if is_test { (&[1000], 2000) } else { (&[10_000, 1_000_000, 10_000_000], 4_000_000) };
    println!("ns per update, medians of {ROUNDS} rounds; ratios to the map (higher is better for the table)");
    for &size in sizes {
        let all: Vec<u64> = (0..size).collect();
        let sample = |seed| numbers(seed << 40, size).take(updates).collect();
        compare(&format!("u64 {size}"), &all, sample);
    }
    let vocabulary: usize = if is_test { 500 } else { 50_000 };
    let spelled = |(rank, n): (usize, u64)| format!("{rank:x}{}", &format!("{n:x}")[..n as usize % 8]);
    let words: Vec<String> = (0..vocabulary).zip(numbers(7, u64::MAX)).map(spelled).collect();
    // Few words are most of the text: a number squared twice falls low.
    let skewed = |n: u64| (n as f64 / 1e6).powi(4) * vocabulary as f64;
    let text =
        |seed: u64| numbers(seed << 40, 1_000_000).take(updates).map(|n| words[skewed(n) as usize].clone()).collect();
    compare("words", &words, text);
}
