//! Reading an epoch back: whole, every block checked before anyone sees its bytes, or its record and page maps only, so that
//! pages are read when they are needed. It must not know what a page means.

use super::codec::{self, EntryRecord, EpochRecord, place};
use super::fault::{Fault, io};
use super::format::{TableEntry, TaggedSlot, offset_of};
use super::leaves::{Leaves, Seen};
use super::sink::ReadAt;
use super::stored::StoredPages;
use super::sums::Sums;
use super::tree::Forest;
use crate::error::StoreError;
use crate::page::{PageId, PageSource};
use rayon::prelude::*;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// An epoch as it was committed. Its pages are verified, or will be when they are read.
#[derive(Debug)]
pub struct Restored {
    /// Its number.
    pub epoch: u64,
    /// As given to the commit.
    pub header: Vec<u8>,
    /// As given to the commit, in the same order; each holds its pages, and gives their memory back when dropped.
    pub entries: Vec<RestoredEntry>,
}

/// One task's part of one state.
pub struct RestoredEntry {
    /// The operator as drawn.
    pub operator: String,
    /// The state within the operator.
    pub state: String,
    /// Which of the tasks.
    pub task: u32,
    /// How many tasks the operator had.
    pub tasks: u32,
    /// The layout of what is in the pages.
    pub schema: Vec<u8>,
    /// The small part of the state.
    pub root: Vec<u8>,
    /// The entry was committed with pages, even if there were none left.
    pub paged: bool,
    /// All page ids are below.
    pub page_count: u32,
    /// The size of every page.
    pub page_bytes: u32,
    /// Where they are.
    leaves: Arc<Leaves>,
    /// All pages, once they have been read.
    bytes: OnceLock<Vec<u8>>,
    /// If they are to be read when needed.
    stored: Option<Arc<StoredPages>>,
}

impl std::fmt::Debug for RestoredEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = place(&self.operator, &self.state, self.task, self.tasks);
        write!(f, "RestoredEntry({name}, {} pages)", self.page_len())
    }
}

impl RestoredEntry {
    /// The pages, by ascending id. They are read and verified now, unless that has been done.
    ///
    /// # Errors
    /// `Corrupt`, naming epoch, entry and page; `Io`.
    pub fn pages(&self) -> Result<impl ExactSizeIterator<Item = (PageId, &[u8])>, StoreError> {
        let bytes = match (self.bytes.get(), &self.stored) {
            (None, Some(stored)) => {
                let read = stored.read_all()?;
                self.bytes.get_or_init(|| read)
            }
            (bytes, _) => bytes.map_or(&[][..], Vec::as_slice),
        };
        let ids: Vec<PageId> = self.leaves.iter().map(|(id, _)| id).collect();
        Ok(ids.into_iter().zip(bytes.chunks_exact(self.page_bytes as usize)))
    }

    /// How many pages there are.
    pub fn page_len(&self) -> usize {
        self.leaves.len()
    }

    /// Where the pages can be read one by one, by whom and for as long as one likes. None: they have been read all together.
    pub fn source(&self) -> Option<Arc<dyn PageSource>> {
        self.stored.clone().map(|stored| stored as Arc<dyn PageSource>)
    }

    /// Offset in the file, checksum and tag of each page that has not been read; for benches.
    #[doc(hidden)]
    pub fn places(&self) -> impl Iterator<Item = (PageId, u64, u32, u64)> {
        let slots = self.stored.iter().flat_map(|stored| stored.leaves.iter());
        slots.map(|(id, slot)| (id, offset_of(slot.block()), slot.crc(), slot.tag.get()))
    }
}

/// The record of an epoch.
pub(super) fn read_record(forest: Forest<'_>, entry: &TableEntry) -> Result<EpochRecord, Fault> {
    let bytes = forest.read_blob(&entry.record, &mut |_| Ok(())).map_err(|fault| fault.within(|| "record".into()))?;
    let record = codec::decode(&bytes)?;
    if record.epoch != entry.epoch.get() {
        return Err(Fault::Corrupt(format!("its record is of epoch {}", record.epoch)));
    }
    Ok(record)
}

/// What a record says, without any page.
pub(super) fn outline(record: EpochRecord, page_bytes: u32) -> Restored {
    let entry = |entry: EntryRecord| RestoredEntry {
        operator: entry.operator,
        state: entry.state,
        task: entry.task,
        tasks: entry.tasks,
        schema: entry.schema,
        root: entry.root,
        paged: entry.map.is_some(),
        page_count: entry.map.map_or(0, |map| map.count.get()),
        page_bytes,
        leaves: Arc::default(),
        bytes: OnceLock::new(),
        stored: None,
    };
    Restored { epoch: record.epoch, header: record.header, entries: record.entries.into_iter().map(entry).collect() }
}

/// What becomes of the pages of an epoch.
#[derive(Clone, Copy)]
pub(super) enum Take<'a> {
    /// They are read and verified now.
    Now(&'a Sums),
    /// They are read from here, the file of this path, when they are needed.
    Later(&'a Arc<dyn ReadAt>, &'a Path, &'a Arc<Sums>),
}

impl<'a> Take<'a> {
    fn sums(&self) -> &'a Sums {
        match self {
            Self::Now(sums) => sums,
            Self::Later(.., sums) => sums,
        }
    }
}

/// Reads and verifies an epoch.
pub(super) fn read_epoch(forest: Forest<'_>, entry: &TableEntry, reading: Take<'_>) -> Result<Restored, Fault> {
    let epoch = format!("epoch {}", entry.epoch);
    let record = read_record(forest, entry).map_err(|fault| fault.within(|| epoch.clone()))?;
    let mut entries = Vec::with_capacity(record.entries.len());
    let mut seen = Seen::new(forest.geometry);
    for entry in record.entries {
        let name = format!("{epoch}, {}", place(&entry.operator, &entry.state, entry.task, entry.tasks));
        let read = read_entry(forest, entry, &name, &mut seen, reading);
        entries.push(read.map_err(|fault| fault.within(|| name))?);
    }
    Ok(Restored { epoch: record.epoch, header: record.header, entries })
}

fn read_entry(
    forest: Forest<'_>,
    entry: EntryRecord,
    name: &str,
    seen: &mut Seen,
    reading: Take<'_>,
) -> Result<RestoredEntry, Fault> {
    let geometry = forest.geometry;
    let EntryRecord { operator, state, task, tasks, schema, root, map } = entry;
    let leaves = map.as_ref().map_or(Ok(Leaves::default()), |map| Leaves::read(forest, map, seen, reading.sums()))?;
    let (leaves, bytes) = (Arc::new(leaves), OnceLock::new());
    let stored = match reading {
        Take::Now(sums) => {
            let slots: Vec<_> = leaves.iter().collect();
            let mut all = vec![0; slots.len() * geometry.page_bytes as usize];
            read_pages(forest, &slots, &mut all, sums)?;
            bytes.get_or_init(|| all);
            None
        }
        Take::Later(file, path, sums) => {
            let (file, path, place, sums) = (file.clone(), path.to_owned(), name.to_owned(), sums.clone());
            Some(Arc::new(StoredPages { file, path, geometry, place, leaves: leaves.clone(), sums }))
        }
    };
    let page_count = map.map_or(0, |map| map.count.get());
    let (paged, page_bytes) = (map.is_some(), geometry.page_bytes);
    Ok(RestoredEntry {
        operator,
        state,
        task,
        tasks,
        schema,
        root,
        paged,
        page_count,
        page_bytes,
        leaves,
        bytes,
        stored,
    })
}

/// What is verified at a time.
const PORTION_BYTES: usize = 4 << 20;

/// Reads every page of an epoch and keeps none.
pub(super) fn verify_epoch(forest: Forest<'_>, entry: &TableEntry, sums: &Sums) -> Result<(), Fault> {
    let epoch = || format!("epoch {}", entry.epoch);
    let record = read_record(forest, entry).map_err(|fault| fault.within(epoch))?;
    let (mut seen, page_bytes) = (Seen::new(forest.geometry), forest.geometry.page_bytes as usize);
    let mut bytes = vec![0; PORTION_BYTES];
    for EntryRecord { operator, state, task, tasks, map, .. } in &record.entries {
        let named = |fault: Fault| fault.within(|| format!("{}, {}", epoch(), place(operator, state, *task, *tasks)));
        let Some(map) = map else { continue };
        let slots: Vec<_> = Leaves::read(forest, map, &mut seen, sums).map_err(named)?.iter().collect();
        for slots in slots.chunks(PORTION_BYTES / page_bytes) {
            read_pages(forest, slots, &mut bytes[..slots.len() * page_bytes], sums).map_err(named)?;
        }
    }
    Ok(())
}

/// Pages read at a time, for one thread.
const PAGES_A_PORTION: usize = 64;

/// Reads the pages one after the other into `bytes`, and checks each.
pub(super) fn read_pages(
    forest: Forest<'_>,
    pages: &[(PageId, TaggedSlot)],
    bytes: &mut [u8],
    sums: &Sums,
) -> Result<(), Fault> {
    let portion_bytes = PAGES_A_PORTION * forest.geometry.page_bytes as usize;
    sums.install(bytes.len(), |parallel| {
        if parallel {
            let portions = bytes.par_chunks_mut(portion_bytes).zip(pages.par_chunks(PAGES_A_PORTION));
            portions.try_for_each(|(bytes, pages)| read_portion(forest, pages, bytes))
        } else {
            let mut portions = bytes.chunks_mut(portion_bytes).zip(pages.chunks(PAGES_A_PORTION));
            portions.try_for_each(|(bytes, pages)| read_portion(forest, pages, bytes))
        }
    })
}

fn read_portion(forest: Forest<'_>, mut pages: &[(PageId, TaggedSlot)], mut bytes: &mut [u8]) -> Result<(), Fault> {
    let blocks = forest.geometry.blocks_per_page();
    while let Some((_, first)) = pages.first() {
        let follows = |(i, (_, slot)): &(usize, &(PageId, TaggedSlot))| {
            slot.block() == first.block().wrapping_add(*i as u32 * blocks)
        };
        let run = pages.iter().enumerate().take_while(follows).count();
        let (now, rest) = bytes.split_at_mut(run * forest.geometry.page_bytes as usize);
        forest.source.read(offset_of(first.block()), now).map_err(io("read"))?;
        for ((id, slot), page) in pages[..run].iter().zip(now.chunks(forest.geometry.page_bytes as usize)) {
            if crc32c::crc32c(page) != slot.crc() {
                return Err(Fault::Corrupt(format!("page {id} at block {}: checksum does not match", slot.block())));
            }
        }
        (pages, bytes) = (&pages[run..], rest);
    }
    Ok(())
}
