//! Committing a checkpoint: rules 1 to 5 of the room, in this order: check, reserve, lay out in memory, write, sync,
//! meta, sync, account. It must not know what is in the pages, nor how a sink writes.

use super::codec::{encode, encoded_len, place};
use super::fault::io;
use super::format::{BLOCK_BYTES, BlobRef, META_COPIES, MapRef, Meta, TableEntry, TaggedSlot, offset_of};
use super::head::write_meta;
use super::map::PageMap;
use super::recover::{Base, Key};
use super::space::Blocks;
use super::store::{Durability, Store};
use super::tree::{NewBlock, blob_blocks, lay_out_blob};
use super::{Checkpoint, Entry};
use crate::error::StoreError;
use crate::page::{FrozenPages, PageId};
use std::collections::HashSet;
use std::io::ErrorKind;
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
}

/// What is to be written, and what of the file it supersedes.
#[derive(Default)]
struct Layout<'a> {
    pages: Vec<(u32, &'a [u8])>,
    blocks: Vec<NewBlock>,
    dead: Blocks,
}

/// A run is cut here: what is populated at once, and what is in one system call.
const RUN_BYTES_MAX: u64 = 16 << 20;

impl Store {
    /// Makes a checkpoint durable, as the options say; then those beyond `keep` have expired.
    ///
    /// # Errors
    /// `Refused` and `NoSpace` leave the store as it was. After any other error, and after `NoSpace` from a write, it
    /// is `Latched`: it takes no more checkpoints, and the newest epoch is the one before. The next open may find the
    /// failed one all the same; then it is whole.
    pub fn commit(&mut self, checkpoint: &Checkpoint) -> Result<CommitStats, StoreError> {
        if let Some(first) = &self.latched {
            return Err(StoreError::Latched { path: self.path.clone(), first: first.clone() });
        }
        let changes = self.check(checkpoint)?;
        let grown_bytes = self.reserve(checkpoint, &changes)?;
        let (layout, next) = self.lay_out(checkpoint, changes);
        let mut stats = self.write(&layout, &next).map_err(|(action, error)| {
            let bytes = layout.bytes();
            self.latch(action, error, bytes)
        })?;
        stats.grown_bytes = grown_bytes;
        self.account(layout.dead, next);
        Ok(stats)
    }

    /// Refuses what would not come back as it is.
    fn check<'a>(&self, checkpoint: &'a Checkpoint) -> Result<Vec<Change<'a>>, StoreError> {
        let refuse =
            |reason: String| Err(StoreError::Refused { path: self.path.clone(), epoch: checkpoint.epoch, reason });
        if checkpoint.epoch <= self.newest().unwrap_or(0) {
            return refuse(format!("the store is at epoch {} already", self.newest().unwrap_or(0)));
        }
        if encoded_len(checkpoint) as u64 > u64::from(u32::MAX) {
            return refuse("header, schemas and roots are above 4 GiB".into());
        }
        let mut names = HashSet::new();
        let mut changes = Vec::new();
        for entry in &checkpoint.entries {
            let Entry { operator, state, task, tasks, .. } = entry;
            let key = Key { operator: operator.clone(), state: state.clone(), task: *task, tasks: *tasks };
            let named = |reason: String| refuse(format!("{}: {reason}", place(operator, state, *task, *tasks)));
            if !names.insert((operator, state, task, tasks)) {
                return named("named twice".into());
            }
            if let Some(pages) = &entry.pages {
                match self.change(key, pages) {
                    Ok(change) => changes.push(change),
                    Err(reason) => return named(reason),
                }
            }
        }
        Ok(changes)
    }

    fn change<'a>(&self, key: Key, pages: &'a FrozenPages) -> Result<Change<'a>, String> {
        let page_bytes = self.geometry().page_bytes;
        let old = match &self.base {
            Ok(base) => base.maps.get(&key),
            Err(what) if !pages.full => {
                return Err(format!("builds on an epoch that is damaged ({what}): give all pages"));
            }
            Err(_) => None,
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
        let mut clear = Vec::new();
        if let Some(old) = old.filter(|_| !pages.full) {
            clear.clone_from(&pages.freed);
            clear.extend(old.ids_from(pages.count));
            ids.extend(&clear);
            ids.sort_unstable();
        }
        Ok(Change { key, pages, ids, clear })
    }

    /// Sees to it that there is space for all that the checkpoint may need. Gives back by how much the file grew.
    fn reserve(&mut self, checkpoint: &Checkpoint, changes: &[Change<'_>]) -> Result<u64, StoreError> {
        let pages: u64 = changes.iter().map(|change| change.pages.changed.len() as u64).sum();
        let fresh = PageMap::new(self.geometry().map_nodes());
        let maps: u64 = changes
            .iter()
            .map(|change| self.old_map(change).unwrap_or(&fresh).nodes_touched(&change.ids, change.pages.count))
            .sum();
        let table = (self.table.len() + 1).min(self.options.keep as usize) * size_of::<TableEntry>();
        let nodes = maps + blob_blocks(encoded_len(checkpoint)) + blob_blocks(table);
        let lacking = self.space.lacking_frames(pages, nodes);
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
                Err(error) => return Err(self.latch("allocate", error, bytes)),
            }
        }
        Err(StoreError::NoSpace { path: self.path.clone(), bytes })
    }

    /// The map that a change builds on.
    fn old_map(&self, change: &Change<'_>) -> Option<&PageMap> {
        self.base.as_ref().ok().and_then(|base| base.maps.get(&change.key)).filter(|_| !change.pages.full)
    }

    /// Gives everything its place. From here on the store in memory is that of the new epoch.
    fn lay_out<'a>(&mut self, checkpoint: &Checkpoint, changes: Vec<Change<'a>>) -> (Layout<'a>, Next) {
        let mut old = std::mem::replace(&mut self.base, Ok(Base::default())).unwrap_or_default();
        let pages: Vec<&[u8]> =
            changes.iter().flat_map(|change| &change.pages.changed).map(|(_, page)| &page[..]).collect();
        let mut sums = self.sums.of(&pages).into_iter();
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
        let mut table = self.table.clone();
        table.push(TableEntry {
            epoch: checkpoint.epoch.into(),
            record,
            pages: u64::into(pages),
            entries: (checkpoint.entries.len() as u32).into(),
            reserved: 0.into(),
        });
        table.drain(..table.len().saturating_sub(self.options.keep as usize));
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
        map.set_count(change.pages.count);
        let root = map.lay_out(&mut self.space, &mut layout.dead, &mut layout.blocks);
        (map, root)
    }

    fn blob(&mut self, bytes: &[u8], layout: &mut Layout<'_>) -> (BlobRef, Vec<u32>) {
        let before = layout.blocks.len();
        let blob = lay_out_blob(bytes, &mut self.space, &mut layout.blocks);
        (blob, layout.blocks[before..].iter().map(|(block, _)| *block).collect())
    }

    fn write(&mut self, layout: &Layout<'_>, next: &Next) -> Result<CommitStats, (&'static str, std::io::Error)> {
        let mut pieces: Vec<(u32, &[u8])> = layout.pages.clone();
        pieces.extend(layout.blocks.iter().map(|(block, bytes)| (*block, &bytes[..])));
        pieces.sort_unstable_by_key(|(block, _)| *block);
        let mut stats = CommitStats {
            bytes_written: layout.bytes() + (next.meta.as_bytes().len() * META_COPIES) as u64,
            pages_written: layout.pages.len() as u64,
            nodes_written: layout.blocks.len() as u64,
            ..CommitStats::default()
        };
        let mut run: Vec<&[u8]> = Vec::new();
        let mut rest = &pieces[..];
        while let Some((first, _)) = rest.first() {
            run.clear();
            let start_bytes = offset_of(*first);
            let mut end_bytes = start_bytes;
            while let Some((block, bytes)) = rest.first() {
                if offset_of(*block) != end_bytes || end_bytes - start_bytes >= RUN_BYTES_MAX {
                    break;
                }
                run.push(bytes);
                end_bytes += bytes.len() as u64;
                rest = &rest[1..];
            }
            self.sink.write(start_bytes, &run).map_err(|error| ("write", error))?;
            stats.runs_written += 1;
        }
        self.sync()?;
        write_meta(&mut *self.sink, &next.meta).map_err(|error| ("write", error))?;
        self.sync()?;
        Ok(stats)
    }

    fn sync(&mut self) -> Result<(), (&'static str, std::io::Error)> {
        match self.options.durability {
            Durability::PowerLoss => self.sink.sync().map_err(|error| ("sync", error)),
            Durability::ProcessCrash => Ok(()),
        }
    }

    /// Rule 4, after the second sync.
    fn account(&mut self, dead: Blocks, next: Next) {
        match self.newest() {
            Some(newest) => self.dying.entry(newest).or_default().append(dead),
            None => self.space.release(&dead),
        }
        let oldest = next.table.first().map_or(0, |entry| entry.epoch.get());
        let kept = self.dying.split_off(&oldest);
        let expired = std::mem::replace(&mut self.dying, kept);
        expired.values().for_each(|blocks| self.space.release(blocks));
        let nodes = std::mem::replace(&mut self.table_blocks, next.table_blocks);
        self.space.release(&Blocks { pages: Vec::new(), nodes });
        self.table = next.table;
        self.sequence = next.meta.sequence.get();
    }

    /// Rule 5.
    fn latch(&mut self, action: &'static str, error: std::io::Error, bytes: u64) -> StoreError {
        self.latched = Some(format!("cannot {action}: {error}"));
        if is_full(&error) {
            return StoreError::NoSpace { path: self.path.clone(), bytes };
        }
        io(action)(error).at(&self.path)
    }
}

/// What holds once the second sync has returned.
struct Next {
    meta: Meta,
    table: Vec<TableEntry>,
    table_blocks: Vec<u32>,
}

impl Layout<'_> {
    fn bytes(&self) -> u64 {
        let pages: usize = self.pages.iter().map(|(_, bytes)| bytes.len()).sum();
        (pages + self.blocks.len() * BLOCK_BYTES) as u64
    }
}

/// The disk, the quota or the limit of file sizes is used up.
fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
