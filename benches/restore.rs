//! How long a restore takes, and how much memory, before the first record and until all state is there: pages read by system
//! calls when they are touched, as the library does it, against pages copied out of a mapping of the file; in alternating
//! rounds of one process, with the file in the page cache. `--test` makes everything tiny, to see that it runs.

mod support;

use memmap2::Mmap;
use snapring::page::{FrozenPages, PageError, PageId, PageSource, Pool};
use snapring::snapshot::{Checkpoint, Entry, RestoredEntry, STORE_FILE, Store, StoreOptions};
use snapring::state::{Hasher, Part, PartPages, Table, range_of};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::median;

/// Records that are looked up before the first of them is done, and those of a batch.
const WINDOW: u64 = 64;
const BATCH: u64 = 2048;

/// The same pages, out of a mapping. If somebody shortened the file meanwhile this would be a signal and no error.
struct Mapped {
    map: Mmap,
    /// Offset, checksum and tag of each page.
    places: HashMap<PageId, (u64, u32, u64)>,
    ids: Vec<PageId>,
}

impl Mapped {
    fn new(dir: &Path, entry: &RestoredEntry) -> Self {
        let file = File::open(dir.join(STORE_FILE)).expect("the store is there");
        // SAFETY: nobody shortens or changes the pages meanwhile: the file is this bench's own.
        let map = unsafe { Mmap::map(&file) }.expect("there is address space enough");
        let places = entry.places().map(|(id, offset_bytes, crc, tag)| (id, (offset_bytes, crc, tag)));
        Self { map, places: places.collect(), ids: entry.places().map(|(id, ..)| id).collect() }
    }
}

impl PageSource for Mapped {
    fn pages(&self) -> Box<dyn Iterator<Item = (PageId, u64)> + '_> {
        Box::new(self.ids.iter().map(|id| (*id, self.places[id].2)))
    }
    fn read(&self, id: PageId, into: &mut [u8]) -> Result<u64, PageError> {
        let (offset_bytes, crc, tag) = self.places[&id];
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Touch,
    Map,
    /// All at once before the first record, as `verify_on_restore` does.
    Verify,
}

/// What one round found: since the store began to be opened, and beyond what the process had before.
struct Found {
    first: Duration,
    first_bytes: u64,
    batch: Duration,
    batch_bytes: u64,
    all: Duration,
}

fn round(dir: &Path, way: Way, keys: u64, seed: u64) -> Found {
    let pool = Pool::new(16 << 10, usize::MAX);
    let mut key =
        (seed..).map(|n: u64| (u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * u128::from(keys) >> 64) as u64);
    let (start, before) = (Instant::now(), resident_bytes());
    let store = Store::open(dir, StoreOptions::default()).expect("the store was just made");
    let restored = if way == Way::Verify { store.read(1) } else { store.restore(1) }.expect("nothing is damaged");
    let entry = &restored.entries[0];
    let pages = match way {
        Way::Touch => PartPages::Absent(entry.source().expect("not read yet")),
        Way::Map => PartPages::Absent(Arc::new(Mapped::new(dir, entry))),
        Way::Verify => PartPages::Here(entry.pages().expect("read already").collect()),
    };
    let part = Part { root: &entry.root, pages };
    let mut table = Table::restore(&pool, Hasher::default(), range_of(0, 1), &[part]).expect("it fits");
    key.by_ref().take(WINDOW as usize).for_each(|key| add(&mut table, key));
    let (first, first_bytes) = (start.elapsed(), resident_bytes().saturating_sub(before));
    key.by_ref().take((BATCH - WINDOW) as usize).for_each(|key| add(&mut table, key));
    let (batch, batch_bytes) = (start.elapsed(), resident_bytes().saturating_sub(before));
    while !table.hydrate(1).expect("nothing is damaged") {}
    Found { first, first_bytes, batch, batch_bytes, all: start.elapsed() }
}

fn measure(state_bytes: usize, rounds: usize) {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    let keys = make(dir.path(), state_bytes);
    let mut found: HashMap<&str, Vec<Found>> = HashMap::new();
    for index in 0..rounds as u64 {
        for (name, way) in
            [("read on touch", Way::Touch), ("copied from a mapping", Way::Map), ("all verified", Way::Verify)]
        {
            found.entry(name).or_default().push(round(dir.path(), way, keys, index * BATCH));
        }
    }
    for (name, found) in found {
        let mid = |of: fn(&Found) -> Duration| median(found.iter().map(of).collect()).as_secs_f64() * 1e3;
        let mib = |of: fn(&Found) -> u64| median(found.iter().map(of).collect()) >> 20;
        println!(
            "{:>5} MiB, {name:>21}: first {WINDOW} records {:7.1} ms, {:4} MiB; {BATCH} records {:7.1} ms, {:4} MiB; all there {:7.1} ms",
            state_bytes >> 20,
            mid(|found| found.first),
            mib(|found| found.first_bytes),
            mid(|found| found.batch),
            mib(|found| found.batch_bytes),
            mid(|found| found.all),
        );
    }
}

fn main() {
    let is_test = !std::env::args().any(|arg| arg == "--bench") || std::env::args().any(|arg| arg == "--test");
    if is_test {
        return measure(2 << 20, 1);
    }
    measure(256 << 20, 7);
    measure(1 << 30, 7);
}
