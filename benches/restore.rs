//! How long a restore takes, and how much memory, before the first record and until all state is there: pages read by system
//! calls when they are touched, as the library does it, against pages copied out of a mapping of the file, and against
//! reading all at once; in alternating rounds, each a process of its own, with the file in the page cache. `--test` makes
//! everything tiny, to see that it runs.

mod support;

use memmap2::Mmap;
use snapring::page::{FrozenPages, PageError, PageId, PageSource, Pool};
use snapring::snapshot::{Checkpoint, Entry, RestoredEntry, STORE_FILE, Store, StoreOptions};
use snapring::state::{Hasher, Part, PartPages, Table, range_of};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;
use support::{Work, median};

/// Records that are looked up before the first of them is done, and those of a batch.
const WINDOW: usize = 64;
const BATCH: usize = 2048;

/// The same pages, out of a mapping. If somebody shortened the file meanwhile this would be a signal and no error.
struct Mapped {
    map: Mmap,
    /// Offset, checksum and tag of each page, by ascending id.
    places: Vec<(PageId, u64, u32, u64)>,
}

impl Mapped {
    fn new(dir: &Path, entry: &RestoredEntry) -> Self {
        let file = File::open(dir.join(STORE_FILE)).expect("the store is there");
        // SAFETY: nobody shortens or changes the pages meanwhile: the file is this bench's own.
        let map = unsafe { Mmap::map(&file) }.expect("there is address space enough");
        Self { map, places: entry.places().collect() }
    }
}

impl PageSource for Mapped {
    fn pages(&self) -> Box<dyn Iterator<Item = (PageId, u64)> + '_> {
        Box::new(self.places.iter().map(|(id, .., tag)| (*id, *tag)))
    }
    fn read(&self, id: PageId, into: &mut [u8]) -> Result<u64, PageError> {
        let at = self.places.binary_search_by_key(&id, |place| place.0).expect("only pages that there are");
        let (_, offset_bytes, crc, tag) = self.places[at];
        into.copy_from_slice(&self.map[offset_bytes as usize..][..into.len()]);
        if crc32c::crc32c(into) == crc { Ok(tag) } else { Err(PageError::Corrupt { what: self.name(id) }) }
    }
    fn name(&self, id: PageId) -> String {
        format!("page {id}")
    }
}

fn add(table: &mut Table<u64, u64>, key: u64) {
    let hash = table.hash(&key);
    table.update(hash, &key, || 0, |count| *count += 1).expect("the pool is large enough");
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * rustix::param::page_size() as u64
}

/// Makes a store that holds a table of so many bytes, and says how many keys that has.
fn make(dir: &Path, state_bytes: usize) -> u64 {
    let pool = Pool::new(16 << 10, 2 * state_bytes + (64 << 20));
    let mut table = Table::<u64, u64>::new(&pool, Hasher::default(), range_of(0, 1)).expect("the pool is large enough");
    let mut keys = 0;
    while table.bytes() < state_bytes {
        add(&mut table, keys);
        keys += 1;
    }
    let (root, pages): (_, FrozenPages) = table.freeze();
    let (operator, state) = ("count".to_owned(), "table".to_owned());
    let entry = Entry { operator, state, task: 0, tasks: 1, schema: Vec::new(), root, pages: Some(pages) };
    let checkpoint = Checkpoint { epoch: 1, header: Vec::new(), entries: vec![entry] };
    let mut store = Store::open(dir, StoreOptions::default()).expect("the folder is new");
    store.commit(&checkpoint).expect("there is room");
    keys
}

/// Ways to restore, with the names under which a round is told them.
const TOUCH: &str = "read on touch";
const MAP: &str = "copied from a mapping";
/// Before the first record, as `verify_on_restore` does.
const ALL: &str = "all at once";

/// Has one round done by another process: microseconds and bytes of memory at the end of the first window, of the first
/// batch, and when all is there, since the store began to be opened and beyond what the process had before.
fn round(dir: &Path, way: &str, keys: u64, seed: u64) -> Vec<u64> {
    let itself = std::env::current_exe().expect("Linux knows it");
    let numbers = [keys, seed].map(|number| number.to_string());
    let ran = Command::new(itself).args(["--round", way]).arg(dir).args(numbers).output().expect("it has run before");
    let out = String::from_utf8(ran.stdout).expect("numbers are text");
    out.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

/// A round, in its process.
fn restore(way: &str, dir: &Path, keys: u64, seed: u64) {
    let (pool, keys) = (Pool::new(16 << 10, usize::MAX), Work { events: u64::MAX, keys });
    let mut key = (seed..).map(|index| keys.key(index));
    let (start, before) = (Instant::now(), resident_bytes());
    let say = || println!("{} {}", start.elapsed().as_micros(), resident_bytes().saturating_sub(before));
    let store = Store::open(dir, StoreOptions::default()).expect("the store was just made");
    let restored = if way == ALL { store.read(1) } else { store.restore(1) }.expect("nothing is damaged");
    let entry = &restored.entries[0];
    let pages = match way {
        TOUCH => PartPages::Absent(entry.source().expect("not read yet")),
        MAP => PartPages::Absent(Arc::new(Mapped::new(dir, entry))),
        _ => PartPages::Here(entry.pages().expect("read already").collect()),
    };
    let part = Part { root: &entry.root, pages };
    let mut table = Table::restore(&pool, Hasher::default(), range_of(0, 1), &[part]).expect("it fits");
    drop(restored);
    key.by_ref().take(WINDOW).for_each(|key| add(&mut table, key));
    say();
    key.by_ref().take(BATCH - WINDOW).for_each(|key| add(&mut table, key));
    say();
    while !table.hydrate(1).expect("nothing is damaged") {}
    say();
}

fn measure(state_bytes: usize, rounds: u64) {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    let keys = make(dir.path(), state_bytes);
    let ways = [TOUCH, MAP, ALL];
    let mut found = ways.map(|_| Vec::new());
    for index in 0..rounds {
        for (way, found) in ways.iter().zip(&mut found) {
            found.push(round(dir.path(), way, keys, index * BATCH as u64));
        }
    }
    for (way, found) in ways.iter().zip(found) {
        let middle = |at: usize| median(found.iter().map(|numbers| numbers[at]).collect());
        let at = |place: usize| format!("{:7.1} ms, {:4} MiB", middle(place) as f64 / 1e3, middle(place + 1) >> 20);
        println!(
            "{:>5} MiB, {way:>21}: {WINDOW} records {}; {BATCH} records {}; all there {}",
            state_bytes >> 20,
            at(0),
            at(2),
            at(4)
        );
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, flag, way, dir, keys, seed] = &args[..]
        && flag == "--round"
    {
        let number = |text: &str| text.parse().expect("the other process gives numbers");
        return restore(way, Path::new(dir), number(keys), number(seed));
    }
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if !has("--bench") || has("--test") {
        return measure(2 << 20, 1);
    }
    measure(256 << 20, 7);
    measure(1 << 30, 7);
}
