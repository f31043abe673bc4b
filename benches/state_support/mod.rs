//! What the bench of the state needs beside the table: a map with the same hash function, keys, values, and times.

use rustix::time::{ClockId, clock_gettime};
use snapring::record::{Record, Text};
use snapring::state::Hasher;
use std::fmt::{self, Debug};
use std::hash::BuildHasher;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// hashbrown's door to our hash function.
#[derive(Clone, Default)]
pub struct Same(Hasher);

pub struct SameState<'a>(&'a Hasher, u64);

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

pub type Map<K, V> = hashbrown::HashMap<K, V, Same>;

/// A value that counts.
pub trait Count: Record + Clone + PartialEq + Debug {
    /// 1.
    fn one() -> Self;
    /// One more; says how many.
    fn add(&mut self) -> u64;
    fn count(&self) -> u64;
}

impl Count for u64 {
    fn one() -> Self {
        1
    }
    fn add(&mut self) -> u64 {
        *self += 1;
        *self
    }
    fn count(&self) -> u64 {
        *self
    }
}

/// 120 bytes, of which a few change. Whoever keeps the value itself need not look at the others.
pub type Numbers = [u64; 15];

impl Count for Numbers {
    fn one() -> Self {
        [1; 15]
    }
    fn add(&mut self) -> u64 {
        self[0] += 1;
        self[0]
    }
    fn count(&self) -> u64 {
        self[0]
    }
}

/// 120 bytes of several kinds, as a record has them: they are checked whenever they come out of a page.
#[derive(Clone, Debug, PartialEq, Record)]
pub struct Account {
    count: u64,
    sum: i64,
    largest: i64,
    is_open: bool,
    owner: Text<61>,
    days: [u16; 16],
}

const _: () = assert!(matches!(Account::WIDTH, Some(120)));

impl Count for Account {
    fn one() -> Self {
        let owner = Text::truncated("somebody with a name");
        Self { count: 1, sum: 0, largest: 0, is_open: true, owner, days: [0; 16] }
    }
    fn add(&mut self) -> u64 {
        self.count += 1;
        self.sum += self.count as i64;
        self.largest = self.largest.max(self.sum);
        self.count
    }
    fn count(&self) -> u64 {
        self.count
    }
}

/// Numbers below `below`, evenly and without a pattern (splitmix64).
pub fn numbers(seed: u64, below: u64) -> impl Iterator<Item = u64> {
    (1..).map(move |step: u64| {
        let mut z = (seed + step).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ z >> 31) * u128::from(below)) >> 64) as u64
    })
}

/// Numbers below `below`, the n-th lowest about a n-th as often as the lowest: a power of even ones.
pub fn zipf(seed: u64, below: u64) -> impl Iterator<Item = u64> {
    let even = numbers(seed, 1 << 32).map(|number| number as f64 / 2f64.powi(32));
    even.map(move |exponent| ((below as f64 + 1.0).powf(exponent) - 1.0) as u64)
}

/// A word of 3 to 15 letters; every number has its own.
pub fn spelled(number: u64) -> String {
    let tail = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("{number:x}-{}", &format!("{tail:016x}")[..1 + tail as usize % 6])
}

/// CPU time of this thread.
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub fn median(figures: &[f64]) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Nanoseconds a key, of map and table.
pub struct Times([Vec<f64>; 2]);

impl Times {
    pub const fn new() -> Self {
        Self([Vec::new(), Vec::new()])
    }

    /// One turn of each.
    pub fn take(&mut self, keys: usize, map: impl FnOnce(), table: impl FnOnce()) {
        let start = cpu_ns();
        map();
        let middle = cpu_ns();
        table();
        for (times, ns) in self.0.iter_mut().zip([middle - start, cpu_ns() - middle]) {
            times.push(ns as f64 / keys as f64);
        }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [map, table] = [median(&self.0[0]), median(&self.0[1])];
        write!(f, "{map:5.1} /{table:6.1} ({:.2}x)", map / table)
    }
}

/// How long batches took.
#[derive(Default)]
pub struct Batches {
    wall: Vec<u64>,
    cpu: Vec<u64>,
    sum: u64,
}

impl Batches {
    pub fn time(&mut self, work: impl FnOnce()) {
        let (start, cpu) = (Instant::now(), cpu_ns());
        work();
        let ns = cpu_ns() - cpu;
        self.wall.push(start.elapsed().as_nanos() as u64);
        self.cpu.push(ns);
        self.sum += ns;
    }

    pub fn mean_ns(&self) -> u64 {
        self.sum / self.cpu.len() as u64
    }

    /// A batch of nothing but arithmetic that is meant to take so long: what is above that is the machine's own doing.
    pub fn time_busy(&mut self, ns: u64) {
        // About a nanosecond each.
        self.time(|| {
            black_box((0..ns).fold(1, |sum: u64, step| black_box(sum.wrapping_mul(step | 1))));
        });
    }
}

impl fmt::Display for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, times) in [("wall", &self.wall), ("CPU", &self.cpu)] {
            let mut times = times.clone();
            times.sort_unstable();
            let at = |share: f64| Duration::from_nanos(times[((times.len() - 1) as f64 * share) as usize]);
            write!(f, " {name}: p50 {:.1?}, p99.9 {:.1?}, slowest {:.1?};", at(0.5), at(0.999), at(1.0))?;
        }
        Ok(())
    }
}
