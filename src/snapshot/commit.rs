//! Committing a checkpoint: rules 1 to 5 of the room, in this order: check, reserve, lay out in memory, write, sync,
//! meta, sync, account. It must not know what is in the pages, nor how a sink writes.

use super::codec::{encode, encoded_len, place};
use super::fault::{Stop, io, is_full};
use super::format::{BLOCK_BYTES, BlobRef, META_COPIES, MapRef, Meta, TableEntry, TaggedSlot, offset_of};
use super::generation::Generation;
use super::head::write_meta;
use super::map::PageMap;
use super::options::Durability;
use super::recover::{Base, Key};
use super::restored::read_pages;
use super::space::Blocks;
use super::sums::Sums;
use super::tree::{Forest, NewBlock, blob_blocks, lay_out_blob};
use super::{Checkpoint, Entry};
use crate::error::StoreError;
use crate::page::{FrozenPages, PageId};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use zerocopy::IntoBytes;

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
struct Change<'a> {
    key: Key,
    pages: &'a FrozenPages,
    /// Changed, freed or cut off, ascending.
    ids: Vec<PageId>,
    /// Ids that are taken out before the changed ones come in.
    clear: Vec<PageId>,
    /// What has not changed and is in an earlier generation.
    copied: Vec<(PageId, TaggedSlot)>,
}

/// What is to be written, and what of the file it supersedes.
#[derive(Default)]
struct Layout<'a> {
    pages: Vec<(u32, &'a [u8])>,
    /// Pages to be copied: the new block, and where they are.
    copies: Vec<(u32, (PageId, TaggedSlot))>,
    blocks: Vec<NewBlock>,
    dead: Blocks,
}

/// A run is cut here: what is populated at once, and what is in one system call.
const RUN_BYTES_MAX: u64 = 16 << 20;

/// What a generation is told about a commit.
pub(super) struct Way<'a> {
    pub keep: u32,
    /// Whether an epoch must stay though its time is over.
    pub is_held: &'a dyn Fn(u64) -> bool,
    pub durability: Durability,
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
    /// Makes a checkpoint durable; then those beyond `keep` have expired.
    pub fn commit(&mut self, checkpoint: &Checkpoint, way: &Way<'_>) -> Result<CommitStats, Stop> {
        let changes = self.check(checkpoint, way).map_err(|reason| {
            let (path, epoch) = (self.path.clone(), checkpoint.epoch);
            Stop::Declined(StoreError::Refused { path, epoch, reason })
        })?;
        let table = self.next_table(way);
        self.hold(&table, way);
        let grown_bytes = self.reserve(checkpoint, &changes, table.len() + 1)?;
        let (layout, next) = self.lay_out(checkpoint, changes, table, way);
        let mut stats = self.write(&layout, &next, way)?;
        stats.grown_bytes = grown_bytes;
        self.account(layout.dead, next);
        Ok(stats)
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
        let mut ids: Vec<PageId> = pages.changed.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
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
        Ok(Change { key, pages, ids, clear, copied })
    }

    /// Sees to it that there is space for all that the checkpoint may need. Gives back by how much the file grew.
    fn reserve(&mut self, checkpoint: &Checkpoint, changes: &[Change<'_>], epochs: usize) -> Result<u64, Stop> {
        let pages: usize = changes.iter().map(|change| change.pages.changed.len() + change.copied.len()).sum();
        let fresh = PageMap::new(self.geometry().map_nodes());
        let maps: u64 = changes
            .iter()
            .map(|change| self.old_map(change).unwrap_or(&fresh).nodes_touched(&change.ids, change.pages.count))
            .sum();
        let table = epochs * size_of::<TableEntry>();
        let nodes = maps + blob_blocks(encoded_len(checkpoint)) + blob_blocks(table);
        let lacking = self.space.lacking_frames(pages as u64, nodes);
        if lacking == 0 {
            return Ok(0);
        }
        let mut geometry = self.geometry();
        let (from_bytes, segments) = (geometry.file_bytes(), geometry.segments);
        let bytes = lacking * u64::from(geometry.page_bytes);
        let need = bytes.div_ceil(geometry.segment_bytes);
        // More than needed, so that growing is rare; just what is needed, if there is no more.
        for more in [need.max(u64::from(segments / 8)), need] {
            let target = u64::from(segments) + more;
            if target > u64::from(geometry.segments_max()) {
                continue;
            }
            geometry.segments = target as u32;
            match self.sink.grow(from_bytes, geometry.file_bytes()) {
                Ok(()) => {
                    self.space.grow(geometry.segments);
                    return Ok(geometry.file_bytes() - from_bytes);
                }
                Err(error) if is_full(&error) => {}
                Err(error) => return Err(self.failed("allocate", error, bytes)),
            }
        }
        Err(Stop::Declined(StoreError::NoSpace { path: self.path.clone(), bytes }))
    }

    /// The map that a change builds on.
    fn old_map(&self, change: &Change<'_>) -> Option<&PageMap> {
        self.base.as_ref().ok().and_then(|base| base.maps.get(&change.key)).filter(|_| !change.pages.full)
    }

    /// Gives everything its place. From here on the store in memory is that of the new epoch.
    fn lay_out<'a>(
        &mut self,
        checkpoint: &Checkpoint,
        changes: Vec<Change<'a>>,
        mut table: Vec<TableEntry>,
        way: &Way<'_>,
    ) -> (Layout<'a>, Next) {
        let mut old = std::mem::replace(&mut self.base, Ok(Base::default())).unwrap_or_default();
        let pages: Vec<&[u8]> =
            changes.iter().flat_map(|change| &change.pages.changed).map(|(_, page)| &page[..]).collect();
        let mut sums = way.sums.of(&pages).into_iter();
        let mut layout = Layout::default();
        let mut base = Base::default();
        let mut refs = Vec::new();
        let nodes = self.geometry().map_nodes();
        for change in changes {
            let map = old.maps.remove(&change.key).unwrap_or_else(|| PageMap::new(nodes));
            let (map, root) = self.lay_out_map(&change, map, &mut sums, &mut layout);
            base.maps.insert(change.key, map);
            refs.push(root);
        }
        old.maps.values().for_each(|map| layout.dead.append(map.blocks()));
        layout.dead.nodes.append(&mut old.record);
        let pages = refs.iter().map(|map| map.pages.get()).sum();
        let mut refs = refs.into_iter();
        let maps: Vec<_> =
            checkpoint.entries.iter().map(|entry| entry.pages.as_ref().and_then(|_| refs.next())).collect();
        let (record, blocks) = self.blob(&encode(checkpoint, &maps), &mut layout);
        base.record = blocks;
        table.push(TableEntry {
            epoch: checkpoint.epoch.into(),
            record,
            pages: u64::into(pages),
            entries: (checkpoint.entries.len() as u32).into(),
            reserved: 0.into(),
        });
        let (table_ref, table_blocks) = self.blob(table.as_bytes(), &mut layout);
        self.base = Ok(base);
        let (segments, epochs) = (self.geometry().segments, table.len() as u32);
        let meta = Meta::new(self.id, self.sequence + 1, checkpoint.epoch, segments, epochs, table_ref);
        (layout, Next { meta, table, table_blocks })
    }

    fn lay_out_map<'a>(
        &mut self,
        change: &Change<'a>,
        mut map: PageMap,
        sums: &mut impl Iterator<Item = u32>,
        layout: &mut Layout<'a>,
    ) -> (PageMap, MapRef) {
        if change.pages.full {
            let old = std::mem::replace(&mut map, PageMap::new(self.geometry().map_nodes()));
            layout.dead.append(old.blocks());
        }
        layout.dead.pages.extend(change.clear.iter().filter_map(|id| map.clear(*id)));
        let mut changed: Vec<_> = change.pages.changed.iter().zip(sums).collect();
        // Neighbours by id become neighbours in the file, which makes reading them back one run.
        changed.sort_unstable_by_key(|((id, _), _)| *id);
        for ((id, page), crc) in changed {
            let block = self.space.take_page();
            layout.dead.pages.extend(map.set(*id, TaggedSlot::new(block, crc, (change.pages.tag_of)(page))));
            layout.pages.push((block, page));
        }
        for (id, slot) in &change.copied {
            let block = self.space.take_page();
            map.set(*id, TaggedSlot::new(block, slot.crc(), slot.tag.get()));
            layout.copies.push((block, (*id, *slot)));
        }
        map.set_count(change.pages.count);
        let root = map.lay_out(&mut self.space, &mut layout.dead, &mut layout.blocks);
        (map, root)
    }

    fn blob(&mut self, bytes: &[u8], layout: &mut Layout<'_>) -> (BlobRef, Vec<u32>) {
        let before = layout.blocks.len();
        let blob = lay_out_blob(bytes, &mut self.space, &mut layout.blocks);
        (blob, layout.blocks[before..].iter().map(|(block, _)| *block).collect())
    }

    fn write(&mut self, layout: &Layout<'_>, next: &Next, way: &Way<'_>) -> Result<CommitStats, Stop> {
        let bytes = layout.bytes(self.geometry().page_bytes);
        let mut stats = CommitStats {
            bytes_written: bytes + (next.meta.as_bytes().len() * META_COPIES) as u64,
            pages_written: (layout.pages.len() + layout.copies.len()) as u64,
            nodes_written: layout.blocks.len() as u64,
            ..CommitStats::default()
        };
        let mut pieces: Vec<(u32, &[u8])> = layout.pages.clone();
        pieces.extend(layout.blocks.iter().map(|(block, bytes)| (*block, &bytes[..])));
        pieces.sort_unstable_by_key(|(block, _)| *block);
        stats.runs_written = self.write_pieces(&pieces).map_err(|error| self.failed("write", error, bytes))?;
        if let Some(origin) = way.origin {
            stats.runs_written += self.copy(&layout.copies, origin, way.sums, bytes)?;
        }
        self.sync(way, bytes)?;
        write_meta(&mut *self.sink, &next.meta).map_err(|error| self.failed("write", error, bytes))?;
        self.sync(way, bytes)?;
        Ok(stats)
    }

    /// Writes pieces, ascending, as runs of neighbours, and says how many these were.
    fn write_pieces(&mut self, mut pieces: &[(u32, &[u8])]) -> std::io::Result<u64> {
        let mut run: Vec<&[u8]> = Vec::new();
        let mut runs = 0;
        while let Some((first, _)) = pieces.first() {
            run.clear();
            let start_bytes = offset_of(*first);
            let mut end_bytes = start_bytes;
            while let Some((block, bytes)) = pieces.first() {
                if offset_of(*block) != end_bytes || end_bytes - start_bytes >= RUN_BYTES_MAX {
                    break;
                }
                run.push(bytes);
                end_bytes += bytes.len() as u64;
                pieces = &pieces[1..];
            }
            self.sink.write(start_bytes, &run)?;
            runs += 1;
        }
        Ok(runs)
    }

    /// Copies pages out of an earlier generation, each checked on the way.
    fn copy(
        &mut self,
        copies: &[(u32, (PageId, TaggedSlot))],
        origin: Elsewhere<'_>,
        sums: &Sums,
        needed_bytes: u64,
    ) -> Result<u64, Stop> {
        let page_bytes = self.geometry().page_bytes as usize;
        let mut bytes = Vec::new();
        let mut runs = 0;
        for copies in copies.chunks((RUN_BYTES_MAX as usize / page_bytes).max(1)) {
            bytes.resize(copies.len() * page_bytes, 0);
            let slots: Vec<_> = copies.iter().map(|(_, place)| *place).collect();
            let read = read_pages(origin.forest, &slots, &mut bytes, sums);
            read.map_err(|fault| Stop::Origin(fault.at(origin.path)))?;
            let mut pieces: Vec<_> = copies.iter().map(|(to, _)| *to).zip(bytes.chunks(page_bytes)).collect();
            pieces.sort_unstable_by_key(|(block, _)| *block);
            runs += self.write_pieces(&pieces).map_err(|error| self.failed("write", error, needed_bytes))?;
        }
        Ok(runs)
    }

    fn sync(&mut self, way: &Way<'_>, bytes: u64) -> Result<(), Stop> {
        match way.durability {
            Durability::PowerLoss => self.sink.sync().map_err(|error| self.failed("sync", error, bytes)),
            Durability::ProcessCrash => Ok(()),
        }
    }

    /// Rule 4, after the second sync.
    fn account(&mut self, dead: Blocks, next: Next) {
        match self.newest() {
            Some(newest) => self.dying.entry(newest).or_default().append(dead),
            None => self.space.release(&dead),
        }
        self.expire(&next.table);
        let nodes = std::mem::replace(&mut self.table_blocks, next.table_blocks);
        self.space.release(&Blocks { pages: Vec::new(), nodes });
        self.table = next.table;
        self.sequence = next.meta.sequence.get();
    }

    /// Rule 5.
    fn failed(&self, action: &'static str, error: std::io::Error, bytes: u64) -> Stop {
        if is_full(&error) {
            return Stop::Failed(StoreError::NoSpace { path: self.path.clone(), bytes });
        }
        Stop::Failed(io(action)(error).at(&self.path))
    }
}

/// What holds once the second sync has returned.
struct Next {
    meta: Meta,
    table: Vec<TableEntry>,
    table_blocks: Vec<u32>,
}

impl Layout<'_> {
    fn bytes(&self, page_bytes: u32) -> u64 {
        let pages = (self.pages.len() + self.copies.len()) as u64;
        pages * u64::from(page_bytes) + (self.blocks.len() * BLOCK_BYTES) as u64
    }
}
