//! Making room in a bucket: compacting, splitting, chaining (rules 4 and 5 at the head of the room).

use super::buckets::Buckets;
use super::chain::{Chain, chain};
use super::directory::DEPTH_MAX;
use super::groups::Shape;
use super::head::{BUCKET, CHAINED, HEAD_BYTES, Head, set_count};
use super::layout::{Layout, groups_for};
use super::{HashRange, StateError};
use crate::page::PageId;
use std::ops::Add;

/// Memory for taking a bucket apart.
#[derive(Default)]
pub(super) struct Scratch {
    /// A copy of one of its pages.
    pub page: Vec<u8>,
    /// Hash and slot of what goes into either half.
    halves: [Vec<(u64, usize)>; 2],
}

/// What the pages of a bucket hold.
#[derive(Clone, Copy, Default)]
pub(super) struct Load {
    pub count: usize,
    /// Bytes of the entries, if they were built anew.
    pub heap_live: usize,
}

impl Add for Load {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { count: self.count + other.count, heap_live: self.heap_live + other.heap_live }
    }
}

/// All hashes that begin with so many bits of a prefix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub prefix: u64,
    pub depth: u32,
}

impl Region {
    pub fn hashes(self) -> HashRange {
        HashRange::of_prefix(self.prefix, self.depth)
    }

    /// Whether there can be a bucket of it in a table of this range.
    pub fn is_within(self, range: &HashRange) -> bool {
        self.depth <= DEPTH_MAX && self.hashes().start == self.prefix && self.hashes().meets(range)
    }

    /// The one that differs in the last bit of the prefix.
    pub fn buddy(self) -> Option<Self> {
        (self.depth > 0).then(|| Self { prefix: self.prefix ^ 1 << (64 - self.depth), ..self })
    }

    fn halves(self) -> [Self; 2] {
        let depth = self.depth + 1;
        [Self { depth, ..self }, Self { prefix: self.prefix | 1 << (64 - depth), depth }]
    }
}

impl Buckets {
    /// A page of the bucket of `hash` that takes another entry of so many bytes, made writable in this epoch.
    pub fn ensure_room(&mut self, hash: u64, bytes: usize) -> Result<PageId, StateError> {
        loop {
            let bucket = self.directory.bucket_of(hash);
            if let Some(id) = self.page_with_room(bucket, bytes)? {
                self.pages.write(id)?;
                return Ok(id);
            }
            self.make_room(bucket, bytes)?;
        }
    }

    fn page_with_room(&self, bucket: PageId, bytes: usize) -> Result<Option<PageId>, StateError> {
        let mut chain = Chain::new(&self.pages, bucket);
        while let Some((id, page)) = chain.next()? {
            if self.layout.has_room(page, bytes, self.is_near()) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn make_room(&mut self, bucket: PageId, bytes: usize) -> Result<(), StateError> {
        self.moves += 1;
        let head = Head::load(self.pages.read(bucket)?);
        let region = Region { prefix: head.prefix, depth: u32::from(head.depth) };
        let chain = chain(&self.pages, bucket)?;
        let mut load = Load { count: 1, heap_live: bytes };
        for &id in &chain {
            if self.compact_for(id, bytes)? {
                return Ok(());
            }
            load = load + self.load_of(self.pages.read(id)?);
        }
        let groups = self.groups_for(load.count, load.heap_live);
        let ours: Vec<_> = region.halves().into_iter().filter(|half| half.hashes().meets(&self.range)).collect();
        if self.directory.make_way(ours[0], self.buckets) {
            return self.rebuild(&chain, &ours, groups);
        }
        self.chain_on(chain[chain.len() - 1], region, groups).map(|_| ())
    }

    /// What a page holds.
    pub fn load_of(&self, page: &[u8]) -> Load {
        let mut load = Load { count: Head::load(page).count as usize, heap_live: 0 };
        if self.layout == Layout::Heap {
            load.heap_live = self.layout.entries(page).map(|entry| entry.trimmed().bytes()).sum();
        }
        load
    }

    pub fn groups_for(&self, count: usize, heap_bytes: usize) -> usize {
        match self.layout {
            Layout::Fixed { key_bytes, value_bytes } => {
                Shape::filling(self.pages.page_bytes(), key_bytes + value_bytes).groups
            }
            Layout::Heap => groups_for(self.pages.page_bytes(), count, heap_bytes),
        }
    }

    /// Compacts a page if it then takes an entry of so many bytes and has enough left that it does not soon come to that again.
    fn compact_for(&mut self, id: PageId, bytes: usize) -> Result<bool, StateError> {
        if self.layout != Layout::Heap {
            return Ok(false);
        }
        let load = self.load_of(self.pages.read(id)?);
        let groups = self.groups_for(load.count + 1, load.heap_live + bytes);
        let shape = self.layout.shape(groups);
        let is_worth_it =
            shape.end() + load.heap_live + bytes <= self.pages.page_bytes() * 7 / 8 && load.count < shape.limit();
        if is_worth_it {
            self.compact(id, groups)?;
        }
        Ok(is_worth_it)
    }

    /// Builds a page anew where it is: without dead bytes, with so many groups, which are enough.
    pub fn compact(&mut self, id: PageId, groups: usize) -> Result<(), StateError> {
        let (layout, shape) = (self.layout, self.layout.shape(groups));
        let page = self.pages.write(id)?;
        self.scratch.page.clear();
        self.scratch.page.extend_from_slice(page);
        let (heap_low, groups) = (page.len() as u32, groups as u16);
        Head { groups, count: 0, heap_low, heap_dead: 0, long_entries: 0, ..Head::load(page) }.store(page);
        page[HEAD_BYTES..shape.end()].fill(0);
        for entry in layout.entries(&self.scratch.page) {
            layout.add(page, entry.hash(&self.hasher), &entry.trimmed());
        }
        Ok(())
    }

    /// A new page without entries.
    pub fn new_page(&mut self, kind: u8, region: Region, groups: usize) -> Result<PageId, StateError> {
        let id = self.pages.allocate()?;
        let page = self.pages.write(id)?;
        let Region { prefix, depth } = region;
        let heap_low = page.len() as u32;
        let head = Head { kind, depth: depth as u8, groups: groups as u16, prefix, heap_low, ..Head::default() };
        head.store(page);
        Ok(id)
    }

    /// A new bucket without entries; the directory points to it. Says whether no bucket was there before.
    pub fn new_bucket(&mut self, region: Region) -> Result<bool, StateError> {
        let groups = self.groups_for(0, 0);
        let id = self.new_page(BUCKET, region, groups)?;
        self.buckets += 1;
        Ok(self.directory.point(region.prefix, region.depth, id))
    }

    /// Adds a page to a chain behind its last one.
    fn chain_on(&mut self, last: PageId, region: Region, groups: usize) -> Result<PageId, StateError> {
        self.pages.write(last)?;
        let id = self.new_page(CHAINED, region, groups)?;
        let page = self.pages.write(last)?;
        Head { next: Some(id), ..Head::load(page) }.store(page);
        Ok(id)
    }

    /// Builds new buckets (one, or the halves) of the entries of an old one, and replaces it by them.
    fn rebuild(&mut self, old: &[PageId], regions: &[Region], groups: usize) -> Result<(), StateError> {
        let mut made = Vec::new();
        let filled = match (self.layout, old) {
            (Layout::Fixed { key_bytes, .. }, &[page]) => self.deal_slots(page, key_bytes, regions, groups, &mut made),
            _ => self.refill(old, regions, groups, &mut made),
        };
        if let Err(error) = filled {
            made.into_iter().for_each(|id| self.pages.free(id));
            return Err(error);
        }
        for (region, &id) in regions.iter().zip(&made) {
            self.directory.point(region.prefix, region.depth, id);
        }
        self.buckets += regions.len() as u64 - 1;
        old.iter().for_each(|&id| self.pages.free(id));
        Ok(())
    }

    /// Copies entries to new pages: first one for each region, then whatever else is needed.
    fn refill(
        &mut self,
        old: &[PageId],
        regions: &[Region],
        groups: usize,
        made: &mut Vec<PageId>,
    ) -> Result<(), StateError> {
        for &region in regions {
            made.push(self.new_page(BUCKET, region, groups)?);
        }
        let mut tails = made.clone();
        let mut copy = std::mem::take(&mut self.scratch.page);
        for &id in old {
            copy.clear();
            copy.extend_from_slice(self.pages.read(id)?);
            for entry in self.layout.entries(&copy) {
                let entry = entry.trimmed();
                let hash = entry.hash(&self.hasher);
                let half = usize::from(regions.len() > 1 && hash >> (64 - regions[0].depth) & 1 == 1);
                if !self.layout.has_room(self.pages.read(tails[half])?, entry.bytes(), false) {
                    tails[half] = self.chain_on(tails[half], regions[half], groups)?;
                    made.push(tails[half]);
                }
                self.layout.add(self.pages.write(tails[half])?, hash, &entry);
            }
        }
        self.scratch.page = copy;
        Ok(())
    }

    /// [`Buckets::refill`] for one page whose slots are keys and values: they are copied as they are, and fit.
    fn deal_slots(
        &mut self,
        old: PageId,
        key_bytes: usize,
        regions: &[Region],
        groups: usize,
        made: &mut Vec<PageId>,
    ) -> Result<(), StateError> {
        let Scratch { page: mut copy, mut halves } = std::mem::take(&mut self.scratch);
        copy.clear();
        copy.extend_from_slice(self.pages.read(old)?);
        let shape = self.layout.shape(groups);
        for slot in shape.taken(&copy) {
            let hash = self.hasher.hash_bytes(&copy[slot..slot + key_bytes]);
            let half = usize::from(regions.len() > 1 && hash >> (64 - regions[0].depth) & 1 == 1);
            halves[half].push((hash, slot));
        }
        for (&region, slots) in regions.iter().zip(&mut halves) {
            made.push(self.new_page(BUCKET, region, groups)?);
            let page = self.pages.write(made[made.len() - 1])?;
            set_count(page, slots.len() as u32);
            for (hash, slot) in slots.drain(..) {
                let to = shape.claim(page, hash);
                copy_slot(&mut page[to..to + shape.slot_bytes], &copy[slot..slot + shape.slot_bytes]);
            }
        }
        self.scratch = Scratch { page: copy, halves };
        Ok(())
    }
}

/// Copies a slot: without a call, if it is one of the most frequent size.
#[inline(always)]
fn copy_slot(to: &mut [u8], from: &[u8]) {
    match (<&mut [u8; 16]>::try_from(&mut *to), <&[u8; 16]>::try_from(from)) {
        (Ok(to), Ok(from)) => *to = *from,
        _ => to.copy_from_slice(from),
    }
}
