//! How long a restore takes, and how much memory, before the first record and until all state is there: pages read by system
//! calls when they are touched, as the library does it, against pages copied out of a mapping of the file, and against reading
//! all at once; in alternating rounds, each a process of its own, with the file in the page cache.
//!
//! Arguments: sizes (`64MiB`, `2GiB`) measure dense tables of these; `sparse 100MiB 10GiB` tables of which most pages hold
//! nothing, made quickly; `rescale 1GiB` a restore at another parallelism; `busy` what a job loses while it hydrates. None:
//! what takes some minutes of these. `--test` makes everything tiny, to see that it runs.

#[path = "restore_support/busy.rs"]
mod busy;
#[path = "restore_support/sparse.rs"]
mod sparse;
mod support;

use memmap2::Mmap;
use rustix::time::{ClockId, clock_gettime};
use snapring::page::{FrozenPages, PageError, PageId, PageSource, Pool};
use snapring::snapshot::{Checkpoint, Entry, RestoredEntry, STORE_FILE, Store, StoreOptions};
use snapring::state::{Hasher, Part, PartPages, Table, range_of};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
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

/// The most that has been resident so far.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it says the peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Microseconds of all cores that this process has used.
fn cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is right").as_micros() as u64
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
/// The rest stays where it is: of a store that is much larger than what is on the disk.
const FIRST: &str = "read on touch, the first records only";
const MAP: &str = "copied from a mapping";
/// Before the first record, as `verify_on_restore` does.
const VERIFY: &str = "verified, then on touch";
const ALL: &str = "all at once";
/// Two tasks out of what one has left.
const DEALT: &str = "dealt out as it is read";
const DEALT_ALL: &str = "dealt out of all pages";

/// What a round is told, and what it tells of each moment: microseconds since its process was begun and since the store began
/// to be opened, those of all cores, and bytes of memory.
struct Round<'a> {
    dir: &'a Path,
    way: &'a str,
    keys: u64,
    seed: u64,
}

/// Microseconds since the process began, since the store began to be opened, of all cores; bytes resident, and at most.
type Moment = [u64; 5];

impl Round<'_> {
    /// Has it done by another process.
    fn run(&self) -> Vec<Moment> {
        let itself = std::env::current_exe().expect("Linux knows it");
        let numbers = [self.keys, self.seed, now_us()].map(|number| number.to_string());
        let mut command = Command::new(itself);
        let ran = command.args(["--round", self.way]).arg(self.dir).args(numbers).output().expect("it has run before");
        let out = String::from_utf8(ran.stdout).expect("numbers are text");
        let numbers: Vec<u64> = out.split_whitespace().map(|number| number.parse().expect("a number")).collect();
        numbers.chunks_exact(5).map(|moment| moment.try_into().expect("five")).collect()
    }

    /// A round, in its process.
    fn here(&self, began_us: u64) {
        let (pool, work) = (Pool::new(16 << 10, usize::MAX), Work { events: u64::MAX, keys: self.keys });
        let mut key = (self.seed..).map(|index| work.key(index));
        let (start_us, before) = (now_us(), resident_bytes());
        let say = || {
            let (now, more) = (now_us(), resident_bytes().saturating_sub(before));
            println!("{} {} {} {more} {}", now - began_us, now - start_us, cpu_us(), peak_bytes() - before);
        };
        let store = Store::open(self.dir, StoreOptions::default()).expect("the store was just made");
        say();
        let epoch = store.newest().expect("it has one");
        if self.way == VERIFY {
            store.verify(epoch).expect("nothing is damaged");
        }
        let restored = if self.way == ALL { store.read(epoch) } else { store.restore(epoch) };
        let restored = restored.expect("nothing is damaged");
        say();
        let entry = &restored.entries[0];
        let pages = match self.way {
            TOUCH | FIRST | VERIFY | DEALT => PartPages::Absent(entry.source().expect("not read yet")),
            MAP => PartPages::Absent(Arc::new(Mapped::new(self.dir, entry))),
            _ => PartPages::Here(entry.pages().expect("nothing is damaged").collect()),
        };
        let part = [Part { root: &entry.root, pages }];
        let tasks = if [DEALT, DEALT_ALL].contains(&self.way) { 2 } else { 1 };
        let restore = |task| Table::restore(&pool, Hasher::default(), range_of(task, tasks), &part).expect("it fits");
        let mut tables: Vec<Table<u64, u64>> = (0..tasks).map(restore).collect();
        drop(part);
        drop(restored);
        say();
        let mut add = |key: u64| {
            let hash = tables[0].hash(&key);
            let of_task = tables.iter_mut().find(|table| table.range().contains(hash));
            add(of_task.expect("each hash is somebody's"), key);
        };
        key.by_ref().take(WINDOW).for_each(&mut add);
        say();
        key.by_ref().take(BATCH - WINDOW).for_each(&mut add);
        say();
        if self.way == FIRST {
            return;
        }
        for table in &mut tables {
            while !table.hydrate(1).expect("nothing is damaged") {}
        }
        say();
    }
}

/// Moments of a round, in their order.
const MOMENTS: [&str; 6] = ["open", "maps", "table", "64 records", "2048", "all there"];

fn measure(dir: &Path, label: &str, ways: &[&str], keys: u64, rounds: u64) {
    let mut found: Vec<Vec<Vec<Moment>>> = ways.iter().map(|_| Vec::new()).collect();
    for index in 0..rounds {
        for (way, found) in ways.iter().zip(&mut found) {
            found.push(Round { dir, way, keys, seed: index * BATCH as u64 }.run());
        }
    }
    for (way, found) in ways.iter().zip(&found) {
        let at = |moment: usize, number: usize| found.iter().map(move |moments| moments[moment][number]);
        let middle = |moment, number| median(at(moment, number).collect()) as f64 / 1e3;
        let since_start = at(3, 0).min().unwrap_or(0) as f64 / 1e3;
        println!("{label}, {way}: 64 records {:.1} ms after the process began (least {since_start:.1})", middle(3, 0));
        for (moment, name) in MOMENTS.iter().enumerate().take(found[0].len()) {
            println!(
                "    {name:>10}: {:8.1} ms (least {:.1}), of all cores {:.1}; {:.0} MiB resident, {:.0} at most",
                middle(moment, 1),
                at(moment, 1).min().unwrap_or(0) as f64 / 1e3,
                middle(moment, 2),
                middle(moment, 3) * 1e3 / f64::from(1 << 20),
                middle(moment, 4) * 1e3 / f64::from(1 << 20),
            );
        }
    }
}

fn dense(state_bytes: usize, ways: &[&str], rounds: u64) {
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    let keys = make(dir.path(), state_bytes);
    measure(dir.path(), &format!("{} MiB", state_bytes >> 20), ways, keys, rounds);
}

/// One after the other, so that all are measured under the same load.
fn sparse(sizes: &[usize], rounds: u64) {
    let dirs = sizes.iter().map(|_| tempfile::tempdir().expect("there is a place for temporary files"));
    let dirs: Vec<_> = dirs.collect();
    sizes.iter().zip(&dirs).for_each(|(bytes, dir)| sparse::make(dir.path(), *bytes));
    for (bytes, dir) in sizes.iter().zip(&dirs) {
        measure(dir.path(), &format!("{} MiB, sparse", bytes >> 20), &[FIRST], u64::MAX, rounds);
    }
}

fn bytes_of(text: &str) -> Option<usize> {
    let (number, unit) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit())?);
    let shift = match unit {
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    Some(number.parse::<usize>().ok()? << shift)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, flag, way, dir, keys, seed, began_us] = &args[..]
        && flag == "--round"
    {
        let number = |text: &str| text.parse().expect("the other process gives numbers");
        let round = Round { dir: Path::new(dir), way, keys: number(keys), seed: number(seed) };
        return round.here(number(began_us));
    }
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let sizes: Vec<usize> = args.iter().filter_map(|arg| bytes_of(arg)).collect();
    if !has("--bench") || has("--test") {
        dense(2 << 20, &[TOUCH, MAP, VERIFY, ALL, DEALT, DEALT_ALL], 1);
        sparse(&[1 << 20, 4 << 20], 1);
        return busy::measure(10_000, 1);
    }
    let nothing = sizes.is_empty() && !has("busy");
    match &sizes[..] {
        _ if has("sparse") => sparse(&sizes, 9),
        sizes if has("rescale") => sizes.iter().for_each(|bytes| dense(*bytes, &[DEALT, DEALT_ALL], 3)),
        sizes => sizes.iter().for_each(|bytes| dense(*bytes, &[TOUCH, MAP, VERIFY], 7)),
    }
    if nothing {
        dense(64 << 20, &[TOUCH, MAP, VERIFY, ALL], 7);
        [256 << 20, 1 << 30, 2 << 30].into_iter().for_each(|bytes| dense(bytes, &[TOUCH, MAP, VERIFY], 7));
        dense(256 << 20, &[DEALT, DEALT_ALL], 3);
        sparse(&[100 << 20, 1 << 30], 9);
    }
    if nothing || has("busy") {
        busy::measure(8_000_000, 3);
    }
}
