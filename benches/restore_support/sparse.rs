//! Stores that are large and made quickly: their tables have many pages with nothing in them, and what is zero takes no room
//! on the disk. To a restore they look like any other.

use snapring::page::{FrozenPages, PageId, Pages, Pool};
use snapring::snapshot::{
    Checkpoint, Durability, Entry, Generations, Hold, Home, Pinned, ReadAt, STORE_FILE, Sink, Store, StoreOptions,
};
use snapring::state::{Hasher, Table, range_of};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PAGE_BYTES: usize = 16 << 10;
const BLOCK_BYTES: usize = 4 << 10;
const PAGES_A_COMMIT: usize = 4096;

/// A folder whose file has holes where only zeros were written.
struct Folder(PathBuf);

struct Holey(File);

impl ReadAt for Holey {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, offset_bytes)
    }
}

impl Sink for Holey {
    fn grow(&mut self, _: u64, to_bytes: u64) -> io::Result<()> {
        self.0.set_len(to_bytes)
    }
    fn write(&mut self, offset_bytes: u64, parts: &[&[u8]]) -> io::Result<()> {
        let mut at = offset_bytes;
        for part in parts {
            for block in part.chunks(BLOCK_BYTES) {
                if block.iter().any(|byte| *byte != 0) {
                    self.0.write_all_at(block, at)?;
                }
                at += block.len() as u64;
            }
        }
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn reader(&self) -> io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(Self(self.0.try_clone()?)))
    }
}

impl Folder {
    fn file(&self) -> PathBuf {
        self.0.join(STORE_FILE)
    }
}

impl Generations for Folder {
    fn list(&self) -> io::Result<Vec<u32>> {
        Ok(if self.file().exists() { vec![1] } else { Vec::new() })
    }
    fn path(&self, _: u32) -> PathBuf {
        self.file()
    }
    fn open(&self, _: u32) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(Holey(File::open(self.file())?)))
    }
    fn pin(&self, _: u64) -> Pinned {
        Pinned::Unpinned
    }
}

impl Home for Folder {
    fn open_to_write(&mut self, _: u32, _: u64) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(Holey(File::options().read(true).write(true).open(self.file())?)))
    }
    fn begin(&mut self, _: u32) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(Holey(File::options().read(true).write(true).create_new(true).open(self.file())?)))
    }
    fn publish(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }
    fn sync_names(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn remove(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }
    fn check(&self, _: u32) -> io::Result<()> {
        Ok(())
    }
    fn claim(&mut self, _: u64) -> bool {
        true
    }
    fn let_go(&mut self) {}
    fn hold(&self) -> Hold {
        Arc::new(())
    }
}

/// What the store keeps of a page beside its place: see `docs::state`.
fn tag_of(page: &[u8]) -> u64 {
    let prefix = u64::from_le_bytes(page[8..16].try_into().expect("eight bytes"));
    u64::from(page[0]) | u64::from(page[1]) << 8 | prefix >> 32 << 32
}

/// Depth and prefix of each of so many buckets that together have every hash, in an order of no meaning.
fn buckets(count: usize) -> Vec<(u8, u64)> {
    let depth = count.ilog2();
    let split = count - (1 << depth);
    let mut buckets = Vec::with_capacity(count);
    for number in 0..1u64 << depth {
        let prefix = number.checked_shl(64 - depth).unwrap_or(0);
        if (number as usize) < split {
            buckets.extend([(depth as u8 + 1, prefix), (depth as u8 + 1, prefix | 1 << (63 - depth))]);
        } else {
            buckets.push((depth as u8, prefix));
        }
    }
    (0..count).map(|at| buckets[at * 7919 % count]).collect()
}

/// Makes a store with a table of so many bytes, as epoch 1 and some more.
pub fn make(dir: &Path, state_bytes: usize) {
    let mut count = state_bytes / PAGE_BYTES;
    // So that stepping through the buckets meets each of them.
    count -= usize::from(count.is_multiple_of(7919));
    let pool = Pool::new(PAGE_BYTES, usize::MAX);
    let mut empty = Table::<u64, u64>::new(&pool, Hasher::default(), range_of(0, 1)).expect("the pool is large enough");
    let (root, pages) = empty.freeze();
    let template = pages.changed[0].1.to_vec();
    let options = StoreOptions { durability: Durability::ProcessCrash, ..StoreOptions::default() };
    let home = Box::new(Folder(dir.to_owned()));
    let mut store = Store::open_on(home, options).expect("the folder is there");
    for (commit, buckets) in buckets(count).chunks(PAGES_A_COMMIT).enumerate() {
        let first = commit * PAGES_A_COMMIT;
        let mut pages = Pages::new(&pool);
        for (depth, prefix) in buckets {
            let id = pages.allocate().expect("the pool is large enough");
            let page = pages.write(id).expect("it is there");
            page.copy_from_slice(&template);
            page[1] = *depth;
            page[8..16].copy_from_slice(&prefix.to_le_bytes());
        }
        let changed = pages.freeze().changed.into_iter().map(|(id, page)| (first as PageId + id, page)).collect();
        let count = (first + buckets.len()) as u32;
        let mut frozen = FrozenPages::of(changed, Vec::new(), PAGE_BYTES as u32, count, commit == 0);
        frozen.tag_of = tag_of;
        let (operator, state, pages) = ("count".to_owned(), "table".to_owned(), Some(frozen));
        let entry = Entry { operator, state, task: 0, tasks: 1, schema: Vec::new(), root: root.clone(), pages };
        let checkpoint = Checkpoint { epoch: commit as u64 + 1, header: Vec::new(), entries: vec![entry] };
        store.commit(&checkpoint).expect("there is room");
    }
}
