//! Where everything of a checkpoint goes: first its pages, then, when their checksums are known, what is above them. It must
//! not know how it gets there.

use super::Checkpoint;
use super::codec::encode;
use super::commit::{Change, Way};
use super::format::{BLOCK_BYTES, BlobRef, MapRef, Meta, TableEntry, TaggedSlot};
use super::generation::Generation;
use super::map::PageMap;
use super::recover::Base;
use super::space::Blocks;
use super::tree::{NewBlock, lay_out_blob};
use crate::page::PageId;
use zerocopy::IntoBytes;

/// Where the pages go.
#[derive(Default)]
pub(super) struct Placed<'a> {
    /// The changed ones, change by change, by ascending id.
    pub bytes: Vec<&'a [u8]>,
    /// The block of each.
    pub blocks: Vec<u32>,
    /// Those to be copied: the new block, and where they are.
    pub copies: Vec<(u32, (PageId, TaggedSlot))>,
}

impl Placed<'_> {
    pub fn pages(&self) -> u64 {
        (self.bytes.len() + self.copies.len()) as u64
    }
}

/// What is above the pages, and what of the file all of it supersedes.
#[derive(Default)]
pub(super) struct Layout {
    pub blocks: Vec<NewBlock>,
    pub dead: Blocks,
}

impl Layout {
    pub fn bytes(&self) -> u64 {
        (self.blocks.len() * BLOCK_BYTES) as u64
    }
}

/// What holds once the second sync has returned.
pub(super) struct Next {
    pub meta: Meta,
    pub table: Vec<TableEntry>,
    pub table_blocks: Vec<u32>,
}

/// The changed pages that have not been hung into their maps yet: block and checksum of each.
type Hanging<'a> = std::iter::Zip<std::vec::IntoIter<u32>, std::slice::Iter<'a, u32>>;

impl Generation {
    /// Gives pages their places.
    pub fn place<'a>(&mut self, changes: &[Change<'a>]) -> Placed<'a> {
        let mut placed = Placed::default();
        for change in changes {
            placed.bytes.extend(change.changed.iter().map(|(_, page)| *page));
            placed.blocks.extend(change.changed.iter().map(|_| self.space.take_page()));
            placed.copies.extend(change.copied.iter().map(|copy| (self.space.take_page(), *copy)));
        }
        placed
    }

    /// Gives what is above the pages its place. From here on the store in memory is that of the new epoch.
    pub fn lay_out(
        &mut self,
        checkpoint: &Checkpoint,
        changes: Vec<Change<'_>>,
        placed: Placed<'_>,
        sums: &[u32],
        way: &Way<'_>,
    ) -> (Layout, Next) {
        let mut old = std::mem::replace(&mut self.base, Ok(Base::default())).unwrap_or_default();
        let (mut changed, mut copied) = (placed.blocks.into_iter().zip(sums), placed.copies.into_iter());
        let mut layout = Layout::default();
        let mut base = Base::default();
        let mut refs = Vec::new();
        let nodes = self.geometry().map_nodes();
        for change in changes {
            let map = old.maps.remove(&change.key).unwrap_or_else(|| PageMap::new(nodes));
            let (map, root) = self.lay_out_map(&change, map, &mut changed, &mut copied, &mut layout);
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
        let mut table = self.table_without(way.expiring);
        table.push(TableEntry {
            epoch: checkpoint.epoch.into(),
            record,
            pages: u64::into(pages),
            entries: (checkpoint.entries.len() as u32).into(),
            reserved: 0.into(),
        });
        self.base = Ok(base);
        let next = self.lay_out_table(table, &mut layout);
        (layout, next)
    }

    fn lay_out_map(
        &mut self,
        change: &Change<'_>,
        mut map: PageMap,
        changed: &mut Hanging<'_>,
        copied: &mut impl Iterator<Item = (u32, (PageId, TaggedSlot))>,
        layout: &mut Layout,
    ) -> (PageMap, MapRef) {
        if change.pages.full {
            let old = std::mem::replace(&mut map, PageMap::new(self.geometry().map_nodes()));
            layout.dead.append(old.blocks());
        }
        layout.dead.pages.extend(change.clear.iter().filter_map(|id| map.clear(*id)));
        for ((id, page), (block, crc)) in change.changed.iter().zip(changed) {
            let slot = TaggedSlot::new(block, *crc, (change.pages.tag_of)(page));
            layout.dead.pages.extend(map.set(*id, slot));
        }
        for (block, (id, slot)) in copied.take(change.copied.len()) {
            map.set(id, TaggedSlot::new(block, slot.crc(), slot.tag.get()));
        }
        map.set_count(change.pages.count);
        let root = map.lay_out(&mut self.space, &mut layout.dead, &mut layout.blocks);
        (map, root)
    }

    fn blob(&mut self, bytes: &[u8], layout: &mut Layout) -> (BlobRef, Vec<u32>) {
        let before = layout.blocks.len();
        let blob = lay_out_blob(bytes, &mut self.space, &mut layout.blocks);
        (blob, layout.blocks[before..].iter().map(|(block, _)| *block).collect())
    }

    /// The epoch table without these.
    pub fn table_without(&self, epochs: &[u64]) -> Vec<TableEntry> {
        self.table.iter().filter(|entry| !epochs.contains(&entry.epoch.get())).copied().collect()
    }

    /// The table that is the next one, and the meta that refers to it.
    pub fn lay_out_table(&mut self, table: Vec<TableEntry>, layout: &mut Layout) -> Next {
        let (table_ref, table_blocks) = self.blob(table.as_bytes(), layout);
        let newest = table.last().map_or(0, |entry| entry.epoch.get());
        let (segments, epochs) = (self.geometry().segments, table.len() as u32);
        let meta = Meta::new(self.id, self.sequence + 1, newest, segments, epochs, table_ref);
        Next { meta, table, table_blocks }
    }
}
