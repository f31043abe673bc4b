//! Restoring by the page map: what is read when, what stays where it is meanwhile, and how damage shows that is found late.

mod store_support;

use snapring::error::{StateError, StoreError};
use snapring::page::Pool;
use snapring::snapshot::sim::SimDisk;
use snapring::snapshot::{
    Checkpoint, Entry, Generations, Hold, Home, Pinned, ReadAt, Restored, STORE_FILE, Sink, SinkKind, Store,
    StoreOptions,
};
use snapring::state::{Hasher, Part, PartPages, Table, range_of};
use std::collections::BTreeMap;
use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store_support::{PAGE_BYTES, Rng, entry, in_use, options, written_in};

type Words = Table<u64, String>;

fn pool() -> Pool {
    Pool::new(PAGE_BYTES as usize, usize::MAX)
}

fn empty() -> Words {
    Table::new(&pool(), Hasher::default(), range_of(0, 1)).unwrap()
}

/// Mostly short, some of several pages.
fn word(key: u64, change: u64) -> String {
    let len = if key.is_multiple_of(40) { 3 * PAGE_BYTES as usize } else { 20 + (change % 60) as usize };
    format!("{key}-{change}-{}", "x".repeat(len))
}

fn insert(table: &mut Words, key: u64, value: String) {
    let hash = table.hash(&key);
    table.insert(hash, &key, value).unwrap();
}

fn get(table: &mut Words, key: u64) -> Result<Option<String>, StateError> {
    let hash = table.hash(&key);
    table.get(hash, &key)
}

fn checkpoint(table: &mut Words, epoch: u64) -> Checkpoint {
    let (root, pages) = table.freeze();
    let (operator, state) = ("words".to_owned(), "table".to_owned());
    let entry = Entry { operator, state, task: 0, tasks: 1, schema: Vec::new(), root, pages: Some(pages) };
    Checkpoint { epoch, header: Vec::new(), entries: vec![entry] }
}

fn commit(store: &mut Store, table: &mut Words, epoch: u64) {
    store.commit(&checkpoint(table, epoch)).unwrap();
    table.durable();
}

/// A table of which no page has been read.
fn restore(restored: &Restored) -> Words {
    let entry = &restored.entries[0];
    let part = Part { root: &entry.root, pages: PartPages::Absent(entry.source().unwrap()) };
    Table::restore(&pool(), Hasher::default(), range_of(0, 1), &[part]).unwrap()
}

fn check(table: &mut Words, model: &BTreeMap<u64, String>) {
    assert_eq!(table.len(), model.len() as u64);
    for (key, value) in model {
        assert_eq!(get(table, *key).unwrap().as_ref(), Some(value), "key {key}");
    }
}

/// A disk that counts what is read of it, and fails when told to.
#[derive(Clone, Default)]
struct Watched {
    disk: SimDisk,
    bytes_read: Arc<AtomicU64>,
    is_broken: Arc<AtomicBool>,
}

impl Watched {
    fn take_bytes_read(&self) -> u64 {
        self.bytes_read.swap(0, Ordering::Relaxed)
    }
}

impl Generations for Watched {
    fn list(&self) -> io::Result<Vec<u32>> {
        self.disk.list()
    }
    fn path(&self, generation: u32) -> PathBuf {
        self.disk.path(generation)
    }
    fn open(&self, generation: u32) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(File { file: self.disk.open(generation)?, watched: self.clone() }))
    }
    fn pin(&self, epoch: u64) -> Pinned {
        self.disk.pin(epoch)
    }
}

impl Home for Watched {
    fn hold(&self) -> Hold {
        self.disk.hold()
    }
    fn claim(&mut self, epoch: u64) -> bool {
        self.disk.claim(epoch)
    }
    fn let_go(&mut self) {
        self.disk.let_go();
    }
    fn open_to_write(&mut self, generation: u32, len_bytes: u64) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(File { file: self.disk.open_to_write(generation, len_bytes)?, watched: self.clone() }))
    }
    fn begin(&mut self, generation: u32) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(File { file: self.disk.begin(generation)?, watched: self.clone() }))
    }
    fn publish(&mut self, generation: u32) -> io::Result<()> {
        self.disk.publish(generation)
    }
    fn sync_names(&mut self) -> io::Result<()> {
        self.disk.sync_names()
    }
    fn remove(&mut self, generation: u32) -> io::Result<()> {
        self.disk.remove(generation)
    }
    fn check(&self, generation: u32) -> io::Result<()> {
        self.disk.check(generation)
    }
}

/// A file of it.
struct File<F> {
    watched: Watched,
    file: F,
}

impl<F: Deref<Target: ReadAt> + Send + Sync> ReadAt for File<F> {
    fn len_bytes(&self) -> io::Result<u64> {
        self.file.len_bytes()
    }
    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        if self.watched.is_broken.load(Ordering::Relaxed) {
            return Err(io::Error::other("the test's disk is broken"));
        }
        self.watched.bytes_read.fetch_add(into.len() as u64, Ordering::Relaxed);
        self.file.read(offset_bytes, into)
    }
}

impl Sink for File<Box<dyn Sink>> {
    fn grow(&mut self, from_bytes: u64, to_bytes: u64) -> io::Result<()> {
        self.file.grow(from_bytes, to_bytes)
    }
    fn write(&mut self, offset_bytes: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.file.write(offset_bytes, parts)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
    fn reader(&self) -> io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(File { file: self.file.reader()?, watched: self.watched.clone() }))
    }
}

#[test]
fn a_restore_reads_maps_and_a_touch_reads_a_page() {
    let disk = Watched::default();
    let open = || Store::open_on(Box::new(disk.clone()), StoreOptions { segment_bytes: 1 << 20, ..options() }).unwrap();
    let mut table = empty();
    let keys = 40_000;
    (0..keys).for_each(|key| insert(&mut table, key * 40 + 1, word(1, key)));
    commit(&mut open(), &mut table, 1);
    let state_bytes = table.bytes() as u64;
    disk.take_bytes_read();

    let mut table = restore(&open().restore(1).unwrap());
    let read = disk.take_bytes_read();
    assert!(read * 50 < state_bytes, "{read} bytes were read of a state of {state_bytes}");
    assert_eq!(table.len(), keys);
    insert(&mut table, 41, word(1, 7));
    assert_eq!(disk.take_bytes_read(), u64::from(PAGE_BYTES));
    insert(&mut table, 41, word(1, 8));
    assert_eq!(disk.take_bytes_read(), 0);
    assert!(!table.hydrate(10).unwrap());
    assert_eq!(disk.take_bytes_read(), 10 * u64::from(PAGE_BYTES));
    assert!(table.hydrate(u32::MAX).unwrap());
    assert_eq!(disk.take_bytes_read(), state_bytes - 11 * u64::from(PAGE_BYTES));
}

/// Nodes that are full, that have holes and that are not there at all.
#[test]
fn a_source_tells_the_same_of_its_pages_in_each_way() {
    let disk = SimDisk::default();
    let mut store = Store::open_on(Box::new(disk), options()).unwrap();
    let ids: Vec<u32> = (1..900).filter(|id| ![255, 256, 300, 301, 899].contains(id)).chain([2000, 5000]).collect();
    store.commit(&entry(1, &ids, 6000, true)).unwrap();
    let restored = store.restore(1).unwrap();
    let source = restored.entries[0].source().unwrap();
    let (mut each, mut next) = (Vec::new(), 0);
    source.each(&mut |first, notes| {
        assert!(first >= next && !notes.is_empty());
        next = first + notes.len() as u32;
        each.extend((first..).zip(notes.iter().copied()));
    });
    assert_eq!(each, source.pages().collect::<Vec<_>>());
    assert!(each.iter().map(|(id, _)| *id).eq(ids.iter().copied()));
    assert_eq!((source.live(), source.count()), (ids.len() as u32, 5001));
}

#[test]
fn pages_that_are_never_touched_stay_where_they_are() {
    let disk = SimDisk::new();
    let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    let mut model: BTreeMap<u64, String> = (0..2000).map(|key| (key, word(key, 0))).collect();
    let mut table = empty();
    model.iter().for_each(|(key, value)| insert(&mut table, *key, value.clone()));
    commit(&mut store, &mut table, 1);
    // Many checkpoints, of which two are kept; a few keys change, most pages are never read.
    let restored = store.restore(1).unwrap();
    let places: Vec<_> = restored.entries[0].places().collect();
    table = restore(&restored);
    drop(restored);
    for epoch in 2..80 {
        for key in 0..3 {
            model.insert(key, word(key, epoch));
            insert(&mut table, key, model[&key].clone());
        }
        disk.guard(in_use(&store));
        commit(&mut store, &mut table, epoch);
        assert_eq!(store.epochs().len(), 2.min(epoch as usize));
    }
    let absent = table.absent_pages();
    assert!(absent as usize > places.len() / 2, "{absent} of {} pages are absent", places.len());
    assert!(table.hydrate(u32::MAX).unwrap());
    check(&mut table, &model);
    check(&mut restore(&store.restore(79).unwrap()), &model);
    assert!(store.audit().unwrap().exact);
}

/// What a task does with a store over several lives, each of which reads only what it needs.
#[test]
fn random_lives_lose_nothing() {
    let mut restores = 0;
    for seed in 0..60 {
        let mut rng = Rng(seed);
        let disk = SimDisk::new();
        let options = StoreOptions { keep: 2 + rng.below(2) as u32, ..options() };
        let mut store = Store::open_on(Box::new(disk.clone()), options.clone()).unwrap();
        let (mut table, mut model) = (empty(), BTreeMap::new());
        let mut durable = model.clone();
        let mut epoch = 0;
        for _ in 0..60 {
            for _ in 0..rng.below(12) {
                let key = rng.below(400);
                if rng.below(4) == 0 {
                    let hash = table.hash(&key);
                    assert_eq!(table.remove(hash, &key).unwrap(), model.remove(&key));
                } else {
                    model.insert(key, word(key, rng.next()));
                    insert(&mut table, key, model[&key].clone());
                }
            }
            epoch += 1;
            match rng.below(6) {
                0 => {
                    drop(table.freeze());
                    table.abandon();
                }
                1 => drop(table.hydrate(rng.below(20) as u32).unwrap()),
                2 if !durable.is_empty() => {
                    drop(store);
                    store = Store::open_on(Box::new(disk.clone()), options.clone()).unwrap();
                    table = restore(&store.restore(store.newest().unwrap()).unwrap());
                    model.clone_from(&durable);
                    restores += 1;
                }
                _ => {
                    disk.guard(in_use(&store));
                    commit(&mut store, &mut table, epoch);
                    durable.clone_from(&model);
                }
            }
        }
        check(&mut table, &model);
    }
    assert!(restores > 200, "{restores}");
}

/// A store of one table, and for each page its offset in the file.
fn stored(open: impl Fn() -> Store) -> (u64, Vec<(u32, u64)>) {
    let mut table = empty();
    let keys = 500;
    (0..keys).for_each(|key| insert(&mut table, key, word(key, 0)));
    let mut store = open();
    commit(&mut store, &mut table, 7);
    let places = store.restore(7).unwrap().entries[0].places().map(|(id, offset, ..)| (id, offset)).collect();
    (keys, places)
}

/// The first error that touching all keys meets.
fn touch_all(table: &mut Words, keys: u64) -> Option<StateError> {
    (0..keys).find_map(|key| get(table, key).err())
}

#[test]
fn a_damaged_page_is_found_whenever_it_comes_and_named() {
    let disk = SimDisk::new();
    let (keys, places) = stored(|| Store::open_on(Box::new(disk.clone()), options()).unwrap());
    for (id, offset) in places {
        let mut image = disk.image();
        image[offset as usize + 100 + id as usize] ^= 0x10;
        let store = Store::open_on(Box::new(SimDisk::with_image(image)), options()).unwrap();
        let restored = store.restore(7).unwrap();
        let (touched, hydrated) = (&mut restore(&restored), &mut restore(&restored));
        for error in [touch_all(touched, keys).unwrap(), hydrated.hydrate(u32::MAX).unwrap_err()] {
            let StateError::Corrupt { what } = &error else { panic!("{error}") };
            let name =
                format!("simulated-1: epoch 7, operator `words`, state `table`, task 0 of 1, page {id} at block");
            assert!(what.starts_with(&name), "{what}");
        }
        assert!(hydrated.hydrate(u32::MAX).is_err(), "it stays so");
        let name = format!("epoch 7, operator `words`, state `table`, task 0 of 1, page {id} at block");
        let all_at_once = restored.entries[0].pages().err().expect("a page is damaged").to_string();
        for error in [store.read(7).unwrap_err().to_string(), all_at_once] {
            assert!(error.contains(&name), "{error}");
        }
    }
}

#[test]
fn a_file_shortened_under_a_running_job_is_an_error_and_no_signal() {
    for sink in [SinkKind::Mapped, SinkKind::Pwrite] {
        let dir = tempfile::tempdir().unwrap();
        let open = || Store::open(dir.path(), StoreOptions { sink, ..options() }).unwrap();
        let (keys, _) = stored(open);
        let store = open();
        let mut table = restore(&store.restore(7).unwrap());
        get(&mut table, 1).unwrap();
        let path = dir.path().join(STORE_FILE);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(65536).unwrap();
        for error in [touch_all(&mut table, keys).unwrap(), table.hydrate(u32::MAX).unwrap_err()] {
            let text = error.to_string();
            assert!(matches!(error, StateError::Corrupt { .. }) && text.contains("truncated"), "{text}");
            assert!(text.contains(&path.display().to_string()), "{text}");
        }
        assert!(matches!(store.read(7), Err(StoreError::Corrupt { .. } | StoreError::Io { .. })));
    }
}

#[test]
fn a_disk_that_cannot_be_read_is_told_apart_from_damage() {
    let disk = Watched::default();
    let (keys, _) = stored(|| Store::open_on(Box::new(disk.clone()), options()).unwrap());
    let store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    let mut table = restore(&store.restore(7).unwrap());
    disk.is_broken.store(true, Ordering::Relaxed);
    for error in [touch_all(&mut table, keys).unwrap(), table.hydrate(1).unwrap_err()] {
        let text = error.to_string();
        assert!(matches!(error, StateError::Unreadable { .. }), "{text}");
        assert!(text.contains("page ") && text.contains("the test's disk is broken"), "{text}");
    }
    assert!(matches!(store.restore(7), Err(StoreError::Io { .. })));
    disk.is_broken.store(false, Ordering::Relaxed);
    assert!(touch_all(&mut table, keys).is_none(), "it may be tried again");
}

#[test]
fn opening_reads_no_map_and_takes_nothing_before_it_has() {
    let disk = Watched::default();
    let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    let all: Vec<u32> = (0..600).collect();
    store.commit(&entry(1, &all, 600, true)).unwrap();
    store.commit(&entry(2, &[7], 600, false)).unwrap();
    drop(store);
    disk.take_bytes_read();
    let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    // Head, metas, epoch table: four sectors and a block, and another round for the one that is written.
    let read = disk.take_bytes_read();
    assert!(read <= 2 * (5 * 512 + 4096), "{read}");
    let audit = store.audit().unwrap();
    assert!(audit.exact && audit.pages == 601, "{audit:?}");
    disk.disk.guard(in_use(&store));
    store.commit(&entry(3, &[8], 600, false)).unwrap();
    assert!(store.audit().unwrap().exact);
    let restored = store.read(3).unwrap();
    let written: Vec<u64> = restored.entries[0].pages().unwrap().map(|(_, bytes)| written_in(bytes)).collect();
    assert_eq!(&written[6..10], [1, 2, 3, 1]);
}
