//! Reading an epoch back: whole, every block checked before anyone sees its bytes, or its record and page maps only, so that
//! pages are read when they are needed. It must not know what a page means.

use super::codec::{self, EntryRecord, EpochRecord, place};
use super::fault::{Fault, io};
use super::format::{Geometry, MapRef, TableEntry, TaggedSlot, offset_of};
use super::sink::ReadAt;
use super::stored::StoredPages;
use super::sums::Sums;
use super::tree::{At, Forest, Visit};
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
    ids: Vec<PageId>,
    /// All pages, once they have been read.
    bytes: OnceLock<Vec<u8>>,
    /// Where they are, if they are to be read when needed.
    stored: Option<Arc<StoredPages>>,
}

impl std::fmt::Debug for RestoredEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = place(&self.operator, &self.state, self.task, self.tasks);
        write!(f, "RestoredEntry({name}, {} pages)", self.ids.len())
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
        Ok(self.ids.iter().copied().zip(bytes.chunks_exact(self.page_bytes as usize)))
    }

    /// How many pages there are.
    pub fn page_len(&self) -> usize {
        self.ids.len()
    }

    /// Where the pages can be read one by one, by whom and for as long as one likes. None: they have been read all together.
    pub fn source(&self) -> Option<Arc<dyn PageSource>> {
        self.stored.clone().map(|stored| stored as Arc<dyn PageSource>)
    }

    /// Offset in the file, checksum and tag of each page that has not been read; for benches.
    #[doc(hidden)]
    pub fn places(&self) -> impl Iterator<Item = (PageId, u64, u32, u64)> {
        let slots = self.stored.iter().flat_map(|stored| &stored.slots);
        slots.map(|(id, slot)| (*id, offset_of(slot.block()), slot.crc(), slot.tag.get()))
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
        ids: Vec::new(),
        bytes: OnceLock::new(),
        stored: None,
    };
    Restored { epoch: record.epoch, header: record.header, entries: record.entries.into_iter().map(entry).collect() }
}

/// Blocks that an epoch's maps have referred to: a file that is made to hurt could refer to one very often.
pub(super) struct Seen(Vec<u64>);

impl Seen {
    pub fn new(geometry: Geometry) -> Self {
        Self(vec![0; (geometry.end_block() as usize).div_ceil(64)])
    }
    /// `false`: again. The block is within the file.
    fn insert(&mut self, block: u32) -> bool {
        let (word, bit) = (&mut self.0[block as usize / 64], 1 << (block % 64));
        std::mem::replace(word, *word | bit) & bit == 0
    }
}

/// The pages of a map, by ascending id.
pub(super) fn list_pages(
    forest: Forest<'_>,
    map: &MapRef,
    seen: &mut Seen,
) -> Result<Vec<(PageId, TaggedSlot)>, Fault> {
    let mut listing = Listing { forest, map, seen, pages: Vec::new() };
    forest.walk_map(map, &mut listing)?;
    if listing.pages.len() as u64 != map.pages.get() {
        return Err(Fault::Corrupt(format!("the map holds {} pages and not {}", listing.pages.len(), map.pages)));
    }
    Ok(listing.pages)
}

struct Listing<'a> {
    forest: Forest<'a>,
    map: &'a MapRef,
    seen: &'a mut Seen,
    pages: Vec<(PageId, TaggedSlot)>,
}

impl Visit for Listing<'_> {
    fn enter(&mut self, _: At, block: u32) -> Result<bool, Fault> {
        let fits = self.forest.geometry.holds_node(block) && self.seen.insert(block);
        if fits { Ok(true) } else { Err(Fault::Corrupt(format!("map node at block {block} is out of place"))) }
    }
    fn leaf(&mut self, index: u64, slot: TaggedSlot) -> Result<(), Fault> {
        let block = slot.block();
        let fits = index < u64::from(self.map.count.get()) && self.forest.geometry.holds_page(block);
        if !fits || !self.seen.insert(block) {
            return Err(Fault::Corrupt(format!("page {index}: block {block} is out of place")));
        }
        self.pages.push((index as PageId, slot));
        Ok(())
    }
}

/// What becomes of the pages of an epoch.
#[derive(Clone, Copy)]
pub(super) enum Take<'a> {
    /// They are read and verified now.
    Now(&'a Sums),
    /// They are read from here, the file of this path, when they are needed.
    Later(&'a Arc<dyn ReadAt>, &'a Path),
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
    let slots = map.as_ref().map_or(Ok(Vec::new()), |map| list_pages(forest, map, seen))?;
    let (ids, bytes) = (slots.iter().map(|(id, _)| *id).collect(), OnceLock::new());
    let stored = match reading {
        Take::Now(sums) => {
            let mut all = vec![0; slots.len() * geometry.page_bytes as usize];
            read_pages(forest, &slots, &mut all, sums)?;
            bytes.get_or_init(|| all);
            None
        }
        Take::Later(file, path) => {
            let (file, path, place) = (file.clone(), path.to_owned(), name.to_owned());
            Some(Arc::new(StoredPages { file, path, geometry, place, slots }))
        }
    };
    let page_count = map.map_or(0, |map| map.count.get());
    let (paged, page_bytes) = (map.is_some(), geometry.page_bytes);
    Ok(RestoredEntry { operator, state, task, tasks, schema, root, paged, page_count, page_bytes, ids, bytes, stored })
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
