//! The keyed table against hand-written loops over hashbrown maps with the same hash function, one thread each: keys and values
//! of a fixed layout (u64 to u64, and to values of 120 bytes) and of variable length (words to u64), inserted, updated and
//! removed; pages of other sizes; and how long the slowest batch takes while the table grows.
//!
//! Times are CPU time of the thread, so that what else the machine does counts for neither side; of the slowest batch it is time
//! on the wall, with a plain computation beside it. `--test` makes everything tiny, to see that it runs. Other arguments choose
//! rows by a part of their name: `cargo bench --bench state -- "u64 1 M"`.

mod state_support;

use snapring::page::Pool;
use snapring::record::Record;
use snapring::state::{Hasher, StateError, Table, Window, mirror_of, range_of};
use state_support::{Account, Batches, Count, Map, Numbers, Times, numbers, spelled, zipf};
use std::hash::Hash;
use std::hint::black_box;

/// Records that are looked up together.
const WINDOW: usize = 256;
/// Touched ahead of need, as a job does.
const AHEAD_BYTES: usize = 64 << 20;
/// Updates of one side before it is the other's turn.
const TURN: usize = 250_000;

/// What both sides do with keys.
trait Side<K> {
    fn insert(&mut self, keys: &[K]);
    fn update(&mut self, keys: &[K]);
    fn remove(&mut self, keys: &[K]);
}

impl<K: Clone + Eq + Hash, V: Count> Side<K> for Map<K, V> {
    fn insert(&mut self, keys: &[K]) {
        self.update(keys);
    }
    fn update(&mut self, keys: &[K]) {
        for key in keys {
            match self.get_mut(key) {
                Some(value) => {
                    black_box(value.add());
                }
                None => drop(Map::insert(self, key.clone(), V::one())),
            }
        }
    }
    fn remove(&mut self, keys: &[K]) {
        for key in keys {
            black_box(Map::remove(self, key));
        }
    }
}

/// A table and what goes through its windows.
struct Ours<K: Record, V> {
    table: Table<K, V>,
    window: Window<K, ((), ())>,
}

impl<K: Record + Clone, V: Count> Ours<K, V> {
    fn new(pool: &Pool) -> Self {
        let hasher = Hasher::default();
        let table = Table::new(pool, hasher, range_of(0, 1)).expect("the pool is large enough");
        Self { table, window: Window::new(hasher, WINDOW) }
    }

    fn fill(&mut self, keys: &[K]) {
        for key in keys {
            self.window.key(key);
            self.window.push(((), ()));
        }
    }
}

impl<K: Record + Clone, V: Count> Side<K> for Ours<K, V> {
    fn insert(&mut self, keys: &[K]) {
        self.update(keys);
    }
    fn update(&mut self, keys: &[K]) {
        let (first, next) = (|()| V::one(), |value: &mut V, ()| _ = value.add());
        let each = |(), count| {
            black_box(count);
            Ok::<_, StateError>(())
        };
        for keys in keys.chunks(WINDOW) {
            let result = if self.table.takes_straight() {
                let keys = keys.iter().map(|key| (mirror_of(key), ((), ())));
                self.table.update_straight(keys, first, next, V::count, each)
            } else {
                self.fill(keys);
                self.table.update_batch(self.window.drain(), first, next, V::count, each)
            };
            result.expect("the pool is large enough");
        }
    }
    fn remove(&mut self, keys: &[K]) {
        for keys in keys.chunks(WINDOW) {
            self.fill(keys);
            self.table.prefetch_hashes(self.window.hashes());
            for (key, (hash, ..)) in keys.iter().zip(self.window.drain()) {
                black_box(self.table.remove(hash, key).expect("the pool is large enough"));
            }
        }
    }
}

/// A row: how many rounds, and the size of its pages.
struct Row<'a> {
    name: &'a str,
    rounds: usize,
    updates: usize,
    page_bytes: usize,
}

impl Row<'_> {
    /// In each round both sides are made anew: all keys are inserted, a sample of them is updated in turns, and all are removed.
    fn run<K: Record + Clone + Eq + Hash, V: Count>(&self, all: &[K], sample: impl Fn(u64, usize) -> Vec<K>) {
        let mut times = [const { Times::new() }; 3];
        let mut bytes = 0;
        for round in 0..self.rounds as u64 {
            let pool = Pool::new(self.page_bytes, 16 << 30);
            let _touched = pool.keep_touched(AHEAD_BYTES);
            let (mut ours, mut map) = (Ours::<K, V>::new(&pool), Map::<K, V>::default());
            times[0].take(all.len(), || Side::insert(&mut map, all), || ours.insert(all));
            bytes = ours.table.bytes();
            let mut updates = 0;
            while updates < self.updates {
                let keys = sample(round << 40 | updates as u64, TURN.min(self.updates));
                times[1].take(keys.len(), || map.update(&keys), || ours.update(&keys));
                updates += keys.len();
            }
            assert_eq!(ours.table.len(), map.len() as u64);
            for (key, value) in map.iter().take(1000) {
                let hash = ours.table.hash(key);
                assert_eq!(
                    ours.table.get(hash, key).expect("readable").as_ref(),
                    Some(value),
                    "both have seen the same"
                );
            }
            times[2].take(all.len(), || Side::remove(&mut map, all), || ours.remove(all));
            assert!(ours.table.is_empty() && map.is_empty());
        }
        let [insert, update, remove] = times;
        println!("{:<28} insert {insert} | update {update} | remove {remove} | {} MiB", self.name, bytes >> 20);
    }
}

/// Keys in an order that is not theirs.
fn shuffled(size: u64) -> Vec<u64> {
    let mut keys: Vec<u64> = (0..size).collect();
    for (at, other) in (1..size).zip(numbers(3, u64::MAX)) {
        keys.swap(at as usize, (other % (at + 1)) as usize);
    }
    keys
}

/// Words as they come in a text: short, the frequent ones much more often.
fn words_of_a_text(name: &str, rounds: usize, updates: usize) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bible-genesis.txt");
    let text = std::fs::read_to_string(file).expect("it is a part of the project").to_lowercase();
    let letters = |letter: char| !letter.is_alphabetic();
    let words: Vec<String> = text.split(letters).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let all: Vec<String> = words.iter().collect::<std::collections::BTreeSet<_>>().into_iter().cloned().collect();
    let sample = |seed: u64, len| words.iter().cycle().skip(seed as usize % words.len()).take(len).cloned().collect();
    Row { name, rounds, updates, page_bytes: 16 << 10 }.run::<_, u64>(&all, sample);
}

/// The slowest of all batches of 1024 while so many keys are inserted, beside batches of a computation of the same length.
fn slowest_batch(name: &str, size: u64) {
    let pool = Pool::new(16 << 10, 16 << 30);
    let _touched = pool.keep_touched(AHEAD_BYTES);
    let (mut ours, keys) = (Ours::<u64, u64>::new(&pool), shuffled(size));
    let (mut batches, mut noise) = (Batches::default(), Batches::default());
    for keys in keys.chunks(1024) {
        batches.time(|| ours.insert(keys));
        noise.time_busy(batches.mean_ns());
    }
    println!("{name:<28}{batches} a computation of the same length beside it{noise}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let is_test = !has("--bench") || has("--test");
    let parts: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let wants = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()));
    let scale = if is_test { 10_000 } else { 1 };
    println!(
        "ns of CPU time per key (map / table, and the ratio: higher is better for the table), medians of alternating turns"
    );
    for (size, count) in [("10 k", 10_000), ("1 M", 1_000_000), ("10 M", 10_000_000)] {
        let count = (count / scale).max(100);
        let (rounds, updates) = if is_test {
            (1, 1000)
        } else if count > 1_000_000 {
            (2, 4_000_000)
        } else {
            (5, 4_000_000)
        };
        for keys in ["uniform", "Zipf"] {
            let at = |seed, len| -> Vec<u64> {
                if keys == "Zipf" {
                    zipf(seed, count).take(len).collect()
                } else {
                    numbers(seed, count).take(len).collect()
                }
            };
            let fixed = format!("u64 {size} {keys}");
            if wants(&fixed) {
                Row { name: &fixed, rounds, updates, page_bytes: 16 << 10 }.run::<u64, u64>(&shuffled(count), at);
            }
            let (long, record) = (format!("u64 to 120 B {size} {keys}"), format!("u64 to record {size} {keys}"));
            if wants(&long) {
                Row { name: &long, rounds, updates, page_bytes: 16 << 10 }.run::<u64, Numbers>(&shuffled(count), at);
            }
            if wants(&record) {
                Row { name: &record, rounds, updates, page_bytes: 16 << 10 }.run::<u64, Account>(&shuffled(count), at);
            }
            let titles = |number: u64| format!("the title of number {}", spelled(number));
            for (of, text) in [("words", spelled as fn(u64) -> String), ("titles", titles)] {
                let name = format!("{of} {size} {keys}");
                if wants(&name) {
                    let all: Vec<String> = shuffled(count).into_iter().map(text).collect();
                    let sample = |seed, len| at(seed, len).into_iter().map(text).collect();
                    Row { name: &name, rounds, updates, page_bytes: 16 << 10 }.run::<_, u64>(&all, sample);
                }
            }
        }
    }
    if wants("words of a text") {
        words_of_a_text("words of a text", if is_test { 1 } else { 5 }, 4_000_000 / scale as usize);
    }
    for kib in [4, 8, 16, 32, 64] {
        let name = format!("u64 1 M uniform, {kib} KiB pages");
        if wants(&name) {
            let count = 1_000_000 / scale;
            let row = Row {
                name: &name,
                rounds: if is_test { 1 } else { 3 },
                updates: 4_000_000 / scale as usize,
                page_bytes: kib << 10,
            };
            row.run::<u64, u64>(&shuffled(count), |seed, len| numbers(seed, count).take(len).collect());
        }
    }
    if wants("slowest batch") {
        slowest_batch("slowest batch", 10_000_000 / scale);
    }
}
