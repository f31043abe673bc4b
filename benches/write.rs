//! How fast checkpoints reach the disk, in steady state: `Store::commit` against bare loops that write the same pages over
//! space which is allocated and has been written before, by several means, in alternating rounds; then what a loop over
//! much memory loses beside commits, at full speed and at a share of it. `-- large`, `-- small`,
//! `-- power-loss` and `-- process-crash` choose among the rows; `--test` makes everything tiny, to see that it runs.
//!
//! A bare loop syncs once. A store syncs twice: what a meta refers to has to be on the disk before it. What of the
//! difference is due to that, the bare loops say that write a header afterwards and sync it too: a store is held against the
//! best of either kind.
//!
//! The files are made under `target/`, which must be on a disk: elsewhere a sync costs nothing and proves nothing.

#[path = "write_support/bare.rs"]
mod bare;
mod support;

use bare::{Bare, By, Space};
use snapring::page::{FrozenPages, PageId, Pages, Pool};
use snapring::snapshot::{Checkpoint, Durability, Entry, SinkKind, Store, StoreOptions};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{median, placement_ns};

const PAGE_BYTES: usize = 16 << 10;
/// A bare loop's space, in sizes of the state: as many as a store's file has that keeps two.
const SETS: u64 = 4;

/// The state whose changed pages are written.
struct State {
    pages: Pages,
    ids: Vec<PageId>,
    seed: u64,
}

impl State {
    fn new(state_bytes: usize) -> Self {
        let mut pages = Pages::new(&Pool::new(PAGE_BYTES, 2 * state_bytes + (64 << 20)));
        let ids: Vec<PageId> =
            (0..state_bytes / PAGE_BYTES).map(|_| pages.allocate().expect("there is room")).collect();
        Self { pages, ids, seed: 1 }
    }

    /// Changes so many pages, drawn evenly, and freezes.
    fn change(&mut self, count: usize) -> FrozenPages {
        for at in 0..count {
            self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let other = at + (self.seed >> 33) as usize % (self.ids.len() - at);
            self.ids.swap(at, other);
            let page = self.pages.write(self.ids[at]).expect("there is room");
            page[..8].copy_from_slice(&self.seed.to_le_bytes());
        }
        let mut frozen = self.pages.freeze();
        frozen.changed.sort_unstable_by_key(|(id, _)| *id);
        frozen
    }
}

/// A way to write pages.
enum Way {
    Bare(Bare),
    Store { store: Box<Store>, epoch: u64, runs: u64 },
}

/// How long this thread has been running.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

impl Way {
    fn store(folder: &Path, sink: SinkKind, durability: Durability) -> Self {
        let options = StoreOptions { keep: 2, sink, durability, ..StoreOptions::default() };
        Self::Store { store: Box::new(Store::open(folder, options).expect("the folder is new")), epoch: 0, runs: 0 }
    }

    /// The same with the CPU time of this thread.
    fn timed(&mut self, frozen: FrozenPages, syncs: bool) -> (Duration, Duration, FrozenPages) {
        let before = cpu_time();
        let (took, frozen) = self.write(frozen, syncs);
        (took, cpu_time() - before, frozen)
    }

    fn write(&mut self, frozen: FrozenPages, syncs: bool) -> (Duration, FrozenPages) {
        match self {
            Self::Bare(bare) => {
                let start = Instant::now();
                bare.write(&frozen.changed, syncs);
                (start.elapsed(), frozen)
            }
            Self::Store { store, epoch, runs } => {
                *epoch += 1;
                let mut frozen = frozen;
                frozen.full = *epoch == 1;
                let entry = Entry {
                    operator: "count".into(),
                    state: "table".into(),
                    task: 0,
                    tasks: 1,
                    schema: Vec::new(),
                    root: Vec::new(),
                    pages: Some(frozen),
                };
                let checkpoint = Checkpoint { epoch: *epoch, header: Vec::new(), entries: vec![entry] };
                let start = Instant::now();
                *runs = store.commit(&checkpoint).expect("there is room").runs_written;
                let took = start.elapsed();
                let Checkpoint { entries, .. } = checkpoint;
                (took, entries.into_iter().next().and_then(|entry| entry.pages).expect("they were given"))
            }
        }
    }
}

const NAMES: [&str; 7] = [
    "bare pwrite",
    "bare, sent ahead",
    "bare, mapped",
    "pwrite, and a header",
    "sent ahead, and a header",
    "store, pwrite",
    "store, mapped",
];
/// Those of them that sync once, and those that sync twice.
const ONCE: std::ops::Range<usize> = 0..3;
const TWICE: std::ops::Range<usize> = 3..5;

fn ways(state_bytes: usize, durability: Durability, folders: [&Path; 2]) -> [Way; NAMES.len()] {
    let [space, mapped] = [false, true].map(|is_mapped| Space::new(SETS * state_bytes as u64, is_mapped));
    let bare = |space: &Rc<Space>, by, with_header| Way::Bare(Bare { space: space.clone(), by, with_header });
    [
        bare(&space, By::Pwrite, false),
        bare(&space, By::Ahead, false),
        bare(&mapped, By::Mapped, false),
        bare(&space, By::Pwrite, true),
        bare(&space, By::Ahead, true),
        Way::store(folders[0], SinkKind::Pwrite, durability),
        Way::store(folders[1], SinkKind::Mapped, durability),
    ]
}

fn measure(state_bytes: usize, changed_bytes: usize, durability: Durability, rounds: usize) {
    let mut state = State::new(state_bytes);
    let syncs = durability == Durability::PowerLoss;
    let folders = [(); 2].map(|()| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("target is writable"));
    let mut ways = ways(state_bytes, durability, [folders[0].path(), folders[1].path()]);
    let mut all = state.change(state_bytes / PAGE_BYTES);
    for way in &mut ways {
        // The first checkpoint is complete.
        all = way.write(all, true).1;
    }
    drop(all);
    state.pages.durable();
    let mut took: [Vec<(Duration, Duration)>; NAMES.len()] = Default::default();
    // Until all of every file has been written more than once: what is only allocated takes longer the first time.
    let recycles = 4 * SETS as usize;
    for round in 0..recycles + rounds {
        let changed_bytes = if round < recycles { state_bytes / 2 } else { changed_bytes };
        let mut frozen = state.change(changed_bytes / PAGE_BYTES);
        for at in 0..ways.len() {
            // Each in its turn is the first to read the pages.
            let at = (at + round) % ways.len();
            let (time, cpu, back) = ways[at].timed(frozen, syncs);
            frozen = back;
            if round >= recycles {
                took[at].push((time, cpu));
            }
        }
        drop(frozen);
        state.pages.durable();
    }
    report(changed_bytes, durability, &ways, took);
}

fn report(changed_bytes: usize, durability: Durability, ways: &[Way], took: [Vec<(Duration, Duration)>; NAMES.len()]) {
    let cpu = took.clone().map(|times| median(times.into_iter().map(|(_, cpu)| cpu).collect()));
    let medians = took.map(|times| median(times.into_iter().map(|(time, _)| time).collect()).as_secs_f64());
    let best = |of: std::ops::Range<usize>| medians[of].iter().copied().fold(f64::MAX, f64::min);
    println!("{} KiB a commit, {durability:?}, placement {} ns", changed_bytes >> 10, placement_ns());
    for (at, way) in ways.iter().enumerate() {
        let (seconds, cpu_us) = (medians[at], cpu[at].as_micros());
        let mib_per_s = changed_bytes as f64 / (1 << 20) as f64 / seconds;
        let (us, once) = (seconds * 1e6, best(ONCE) / seconds);
        print!(
            "  {:>24}: {mib_per_s:6.0} MiB/s, {us:7.0} us, {cpu_us:6} of CPU, {once:.2} x the best bare one",
            NAMES[at]
        );
        match way {
            Way::Bare(_) => println!(),
            Way::Store { runs, .. } => {
                println!(", {:.2} x the best with a header; {runs} runs", best(TWICE) / seconds);
            }
        }
    }
}

/// Random updates of memory that fits no cache, for so long; how many.
fn updates(memory: &mut [u64], time: Duration) -> u64 {
    let (start, mut count, mut seed) = (Instant::now(), 0, 1u64);
    while start.elapsed() < time {
        for _ in 0..4096 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = ((u128::from(seed) * memory.len() as u128) >> 64) as usize;
            memory[at] = memory[at].wrapping_add(seed);
        }
        count += 4096;
    }
    count
}

/// The loop beside commits, one after the other, of `changed_bytes` each; per second, and what the commits came to.
fn beside(
    folder: &Path,
    changed_bytes: usize,
    bytes_per_s: Option<u64>,
    memory: &mut [u64],
    time: Duration,
) -> (f64, f64) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let options = StoreOptions { keep: 2, bandwidth_bytes_per_s: bytes_per_s, ..StoreOptions::default() };
            let store = Box::new(Store::open(folder, options).expect("it is a store"));
            let (mut state, mut way) = (State::new(changed_bytes), Way::Store { store, epoch: 0, runs: 0 });
            let (start, mut bytes) = (Instant::now(), 0);
            while !done.load(Ordering::Acquire) {
                way.write(state.change(changed_bytes / PAGE_BYTES), true);
                state.pages.durable();
                bytes += changed_bytes;
            }
            bytes as f64 / start.elapsed().as_secs_f64()
        });
        let count = updates(memory, time);
        done.store(true, Ordering::Release);
        (count as f64 / time.as_secs_f64(), writer.join().expect("there is room"))
    })
}

fn measure_beside(changed_bytes: usize, time: Duration, rounds: usize) {
    let mut memory = vec![0u64; 4 * changed_bytes / 8];
    let limits = [None, Some(400 << 20), Some(100 << 20)];
    let mut found: Vec<Vec<(u64, u64)>> = limits.iter().map(|_| Vec::new()).collect();
    let mut alone = Vec::new();
    for _ in 0..rounds {
        alone.push((updates(&mut memory, time) as f64 / time.as_secs_f64()) as u64);
        for (limit, found) in limits.iter().zip(&mut found) {
            let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("target is writable");
            let (per_s, written) = beside(folder.path(), changed_bytes, *limit, &mut memory, time);
            found.push((per_s as u64, written as u64));
        }
    }
    let alone = median(alone) as f64;
    println!("a loop of {:.0} M updates/s alone, beside commits of {} MiB", alone / 1e6, changed_bytes >> 20);
    for (limit, found) in limits.iter().zip(found) {
        let (per_s, written): (Vec<u64>, Vec<u64>) = found.into_iter().unzip();
        let limit = limit.map_or("as fast as it goes".to_owned(), |limit| format!("at most {} MiB/s", limit >> 20));
        println!("  {limit:>18}: {:.2} x alone; {} MiB/s written", median(per_s) as f64 / alone, median(written) >> 20);
    }
}

fn main() {
    let has = |flag: &str| std::env::args().any(|arg| arg == flag);
    if !has("--bench") || has("--test") {
        measure(1 << 20, 256 << 10, Durability::PowerLoss, 1);
        return measure_beside(1 << 20, Duration::from_millis(50), 1);
    }
    // `large`, `small`, `power-loss`, `process-crash` name some of the rows, and none of the words all.
    let of = |word: &str, others: &[&str]| has(word) || !others.iter().any(|other| has(other));
    for (word, durability) in [("power-loss", Durability::PowerLoss), ("process-crash", Durability::ProcessCrash)] {
        let is_wanted = of(word, &["power-loss", "process-crash"]);
        for (size, changed_bytes, rounds) in [("large", 64 << 20, 24), ("small", 1 << 20, 96)] {
            if is_wanted && of(size, &["large", "small"]) {
                measure(128 << 20, changed_bytes, durability, rounds);
            }
        }
    }
    if !["large", "small", "power-loss", "process-crash"].iter().any(|word| has(word)) {
        measure_beside(64 << 20, Duration::from_secs(2), 5);
    }
}
