//! Committing a checkpoint: rules 1 to 5 of the room, in this order: check, reserve, write pages, lay out what is above
//! them, write that, sync, meta, sync, account. It must not know what is in the pages, nor how a sink writes.

use super::codec::{encoded_len, place};
use super::fault::{Stop, io, is_full};
use super::format::{META_COPIES, Meta, SECTOR_BYTES, TableEntry, TaggedSlot};
use super::generation::Generation;
use super::head::write_meta;
use super::layout::{Layout, Next, Placed};
use super::map::PageMap;
use super::options::Durability;
use super::recover::Key;
use super::restored::read_pages;
use super::space::Blocks;
use super::sums::Sums;
use super::tree::{Forest, blob_blocks};
use super::writing::Writing;
use super::{Checkpoint, Entry};
use crate::error::StoreError;
use crate::page::{FrozenPages, PageId};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// What a commit did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitStats {
    /// All that was written, the meta included.
    pub bytes_written: u64,
    /// Pages of state.
    pub pages_written: u64,
    /// Map nodes and blocks of small things.
    pub nodes_written: u64,
    /// Runs of neighbouring blocks: calls to the sink.
    pub runs_written: u64,
    /// By how much the file grew.
    pub grown_bytes: u64,
}

/// What one entry changes in its map.
pub(super) struct Change<'a> {
    pub key: Key,
    pub pages: &'a FrozenPages,
    /// Changed pages by ascending id: neighbours by id become neighbours in the file, which makes reading them back one run.
    pub changed: Vec<(PageId, &'a [u8])>,
    /// Changed, freed or cut off, ascending.
    pub ids: Vec<PageId>,
    /// Ids that are taken out before the changed ones come in.
    pub clear: Vec<PageId>,
    /// What has not changed and is in an earlier generation.
    pub copied: Vec<(PageId, TaggedSlot)>,
}

/// Pages read at a time of those that are copied.
const COPY_BYTES: usize = 16 << 20;

/// What a generation is told about a commit.
pub(super) struct Way<'a> {
    /// The epochs that expire with it.
    pub expiring: &'a [u64],
    pub durability: Durability,
    pub bandwidth_bytes_per_s: Option<u64>,
    pub sums: &'a Sums,
    /// Where the pages are that the checkpoint builds on, if they are not in this generation: they are copied.
    pub origin: Option<Elsewhere<'a>>,
}

/// An epoch of an earlier generation.
#[derive(Clone, Copy)]
pub(super) struct Elsewhere<'a> {
    pub path: &'a Path,
    pub forest: Forest<'a>,
    pub maps: &'a HashMap<Key, PageMap>,
}

impl Generation {
    /// Makes a checkpoint durable; then those that were to expire have.
    pub fn commit(&mut self, checkpoint: &Checkpoint, way: &Way<'_>) -> Result<CommitStats, Stop> {
        let changes = self.check(checkpoint, way).map_err(|reason| {
            let (path, epoch) = (self.path.clone(), checkpoint.epoch);
            Stop::Declined(StoreError::Refused { path, epoch, reason })
        })?;
        let grown_bytes = self.reserve(checkpoint, &changes, way)?;
        let mut writing = Writing::new(way.sums, way.durability, way.bandwidth_bytes_per_s);
        self.space.begin(checkpoint.epoch);
        let placed = self.place(&changes);
        let sums = self.write_pages(&placed, way, &mut writing)?;
        let (pages_written, page_bytes) = (placed.pages(), u64::from(self.geometry().page_bytes));
        let (layout, next) = self.lay_out(checkpoint, changes, placed, &sums, way);
        let nodes_written = layout.blocks.len() as u64;
        let bytes = pages_written * page_bytes + layout.bytes();
        self.write_above(&layout, &next, way, &mut writing, bytes)?;
        self.account(layout.dead, next);
        let bytes_written = bytes + (SECTOR_BYTES * META_COPIES) as u64;
        Ok(CommitStats { bytes_written, pages_written, nodes_written, runs_written: writing.runs, grown_bytes })
    }

    /// Refuses what would not come back as it is.
    fn check<'a>(&self, checkpoint: &'a Checkpoint, way: &Way<'_>) -> Result<Vec<Change<'a>>, String> {
        if encoded_len(checkpoint) as u64 > u64::from(u32::MAX) {
            return Err("header, schemas and roots are above 4 GiB".into());
        }
        let mut names = HashSet::new();
        let mut changes = Vec::new();
        for entry in &checkpoint.entries {
            let Entry { operator, state, task, tasks, .. } = entry;
            let key = Key { operator: operator.clone(), state: state.clone(), task: *task, tasks: *tasks };
            let named = |reason: String| format!("{}: {reason}", place(operator, state, *task, *tasks));
            if !names.insert((operator, state, task, tasks)) {
                return Err(named("named twice".into()));
            }
            if let Some(pages) = &entry.pages {
                changes.push(self.change(key, pages, way.origin).map_err(named)?);
            }
        }
        Ok(changes)
    }

    fn change<'a>(
        &self,
        key: Key,
        pages: &'a FrozenPages,
        origin: Option<Elsewhere<'_>>,
    ) -> Result<Change<'a>, String> {
        let page_bytes = self.geometry().page_bytes;
        let old = match (&self.base, origin) {
            (_, Some(origin)) => origin.maps.get(&key),
            (Ok(base), None) => base.maps.get(&key),
            (Err(what), None) if !pages.full => {
                return Err(format!("builds on pages that cannot be read any more ({what})"));
            }
            (Err(_), None) => None,
        };
        if old.is_none() && !pages.full {
            return Err("builds on an epoch that does not have it: give all pages".into());
        }
        if pages.page_bytes != page_bytes || pages.changed.iter().any(|(_, page)| page.len() != page_bytes as usize) {
            return Err(format!("pages of {} bytes in a store of {page_bytes}", pages.page_bytes));
        }
        let mut changed: Vec<(PageId, &[u8])> = pages.changed.iter().map(|(id, page)| (*id, &page[..])).collect();
        changed.sort_unstable_by_key(|(id, _)| *id);
        let mut ids: Vec<PageId> = changed.iter().map(|(id, _)| *id).collect();
        if !ids.is_sorted_by(|a, b| a < b) || ids.last().is_some_and(|id| *id >= pages.count) {
            return Err(format!("a page comes twice, or not below the count of {}", pages.count));
        }
        let (mut clear, mut copied) = (Vec::new(), Vec::new());
        if let Some(old) = old.filter(|_| !pages.full) {
            if origin.is_some() {
                let gone: HashSet<PageId> = pages.freed.iter().chain(&ids).copied().collect();
                let stays = |(id, _): &(PageId, TaggedSlot)| *id < pages.count && !gone.contains(id);
                copied.extend(old.slots().filter(stays));
                ids.extend(copied.iter().map(|(id, _)| *id));
            } else {
                clear.clone_from(&pages.freed);
                clear.extend(old.ids_from(pages.count));
                ids.extend(&clear);
            }
            ids.sort_unstable();
        }
        Ok(Change { key, pages, changed, ids, clear, copied })
    }

    /// Sees to it that there is space for all that the checkpoint may need. Gives back by how much the file grew.
    fn reserve(&mut self, checkpoint: &Checkpoint, changes: &[Change<'_>], way: &Way<'_>) -> Result<u64, Stop> {
        let pages: usize = changes.iter().map(|change| change.pages.changed.len() + change.copied.len()).sum();
        let fresh = PageMap::new(self.geometry().map_nodes());
        let maps: u64 = changes
            .iter()
            .map(|change| self.old_map(change).unwrap_or(&fresh).nodes_touched(&change.ids, change.pages.count))
            .sum();
        let table = (self.table.len() + 1 - way.expiring.len()) * size_of::<TableEntry>();
        let nodes = maps + blob_blocks(encoded_len(checkpoint)) + blob_blocks(table);
        self.make_room(pages as u64, nodes, true)
    }

    /// Sees to it that so many pages and nodes can be taken, and room to spare is there. Gives back by how much the file grew.
    pub fn make_room(&mut self, pages: u64, nodes: u64, and_spare: bool) -> Result<u64, Stop> {
        let geometry = self.geometry();
        let frames = |count: u64| (count * u64::from(geometry.page_bytes)).div_ceil(geometry.segment_bytes);
        let lacking = self.space.lacking_frames(pages, nodes);
        // Rule 13.
        let free = u64::from(self.space.free_frames());
        let used = u64::from(geometry.frames()) - free + pages + nodes.div_ceil(u64::from(geometry.blocks_per_page()));
        let spare = if and_spare { (2 * used).saturating_sub(u64::from(geometry.frames())) } else { 0 };
        let wants_more = lacking > 0 || 4 * spare > used && !self.is_tight;
        for (is_needed, more) in [(wants_more, spare.max(lacking)), (lacking > 0, lacking)] {
            if !is_needed {
                continue;
            }
            match self.grow(frames(more)) {
                Ok(0) => self.is_tight = true,
                Ok(bytes) => return Ok(bytes),
                Err(error) => return Err(self.failed("allocate", error, more * u64::from(geometry.page_bytes))),
            }
        }
        if lacking == 0 {
            return Ok(0);
        }
        let bytes = lacking * u64::from(geometry.page_bytes);
        Err(Stop::Declined(StoreError::NoSpace { path: self.path.clone(), bytes }))
    }

    /// Makes the file longer by so many segments. 0: there is no room.
    fn grow(&mut self, segments: u64) -> std::io::Result<u64> {
        let mut geometry = self.geometry();
        let from_bytes = geometry.file_bytes();
        let target = u64::from(geometry.segments) + segments;
        if target > u64::from(geometry.segments_max()) {
            return Ok(0);
        }
        geometry.segments = target as u32;
        match self.sink.grow(from_bytes, geometry.file_bytes()) {
            Ok(()) => {
                self.space.grow(geometry.segments);
                Ok(geometry.file_bytes() - from_bytes)
            }
            Err(error) if is_full(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// The map that a change builds on.
    fn old_map(&self, change: &Change<'_>) -> Option<&PageMap> {
        self.base.as_ref().ok().and_then(|base| base.maps.get(&change.key)).filter(|_| !change.pages.full)
    }

    /// In one pass over the pages: to where they go, and their checksums.
    fn write_pages(&mut self, placed: &Placed<'_>, way: &Way<'_>, writing: &mut Writing<'_>) -> Result<Vec<u32>, Stop> {
        let page_bytes = self.geometry().page_bytes as usize;
        let bytes = placed.pages() * page_bytes as u64;
        let sums = writing.pages(&mut *self.sink, &placed.blocks, &placed.bytes);
        let sums = sums.map_err(|error| self.failed("write", error, bytes))?;
        let Some(origin) = way.origin else { return Ok(sums) };
        // Out of an earlier generation, each checked on the way.
        let mut read = Vec::new();
        for copies in placed.copies.chunks((COPY_BYTES / page_bytes).max(1)) {
            let (blocks, slots): (Vec<u32>, Vec<_>) = copies.iter().copied().unzip();
            read.resize(copies.len() * page_bytes, 0);
            let copied = read_pages(origin.forest, &slots, &mut read, way.sums);
            copied.map_err(|fault| Stop::Origin(fault.at(origin.path)))?;
            let pages: Vec<&[u8]> = read.chunks(page_bytes).collect();
            let written = writing.pages(&mut *self.sink, &blocks, &pages);
            written.map_err(|error| self.failed("write", error, bytes))?;
        }
        Ok(sums)
    }

    /// What is above the pages; then rule 3.
    fn write_above(
        &mut self,
        layout: &Layout,
        next: &Next,
        way: &Way<'_>,
        writing: &mut Writing<'_>,
        bytes: u64,
    ) -> Result<(), Stop> {
        let written = writing.blocks(&mut *self.sink, &layout.blocks);
        written.map_err(|error| self.failed("write", error, bytes))?;
        self.publish(&next.meta, way.durability, bytes)
    }

    /// Rule 3: sync, meta, sync.
    pub fn publish(&mut self, meta: &Meta, durability: Durability, bytes: u64) -> Result<(), Stop> {
        self.sync(durability, bytes)?;
        write_meta(&mut *self.sink, meta).map_err(|error| self.failed("write", error, bytes))?;
        self.sync(durability, bytes)
    }

    fn sync(&mut self, durability: Durability, bytes: u64) -> Result<(), Stop> {
        match durability {
            Durability::PowerLoss => self.sink.sync().map_err(|error| self.failed("sync", error, bytes)),
            Durability::ProcessCrash => Ok(()),
        }
    }

    /// Rule 4, after the second sync.
    pub fn account(&mut self, dead: Blocks, next: Next) {
        match self.newest() {
            Some(newest) => self.dying.entry(newest).or_default().append(dead),
            None => self.space.release(&dead),
        }
        let nodes = std::mem::replace(&mut self.table_blocks, next.table_blocks);
        self.space.release(&Blocks { pages: Vec::new(), nodes });
        let before = std::mem::replace(&mut self.table, next.table);
        self.sequence = next.meta.sequence.get();
        let kept = |epoch| self.table.iter().any(|entry| entry.epoch.get() == epoch);
        for epoch in before.iter().map(|entry| entry.epoch.get()).filter(|epoch| !kept(*epoch)).collect::<Vec<_>>() {
            self.expire(epoch);
        }
    }

    /// An epoch is gone. What was to die with it is free, unless an older one that is kept may reach it as well.
    fn expire(&mut self, epoch: u64) {
        let Some(mut dead) = self.dying.remove(&epoch) else { return };
        let older = self.table.iter().rev().map(|entry| entry.epoch.get()).find(|older| *older < epoch);
        if let Some(older) = older {
            let reached = dead.split_off(|block| self.space.born(block) <= older);
            self.dying.entry(older).or_default().append(reached);
        }
        self.space.release(&dead);
    }

    /// Rule 5.
    pub fn failed(&self, action: &'static str, error: std::io::Error, bytes: u64) -> Stop {
        if is_full(&error) {
            return Stop::Failed(StoreError::NoSpace { path: self.path.clone(), bytes });
        }
        Stop::Failed(io(action)(error).at(&self.path))
    }
}
