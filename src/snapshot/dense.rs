//! Epochs copied into a new file, one block behind the other, what they share once. Every page and node is checked on the
//! way. It must not know where the file is, nor what becomes of those that the epochs came from.

use super::codec::{encode_record, place};
use super::earlier::Found;
use super::fault::{Fault, is_full};
use super::format::{BLOCK_BYTES, BlobRef, Geometry, MapRef, Meta, Nodes, Slot, Superblock, TableEntry, TaggedSlot};
use super::head::{format, write_meta};
use super::leaves::{Leaves, Seen};
use super::options::Durability;
use super::restored::{read_pages, read_record};
use super::sink::Sink;
use super::space::Space;
use super::sums::Sums;
use super::tree::{At, Forest, NewBlock, blob_blocks, lay_out_blob};
use super::writing::Writing;
use crate::error::StoreError;
use crate::page::PageId;
use std::collections::HashMap;
use std::path::Path;
use zerocopy::IntoBytes;

/// What is copied at a time.
const PORTION_BYTES: usize = 4 << 20;

/// The file that is made.
pub(super) struct Target<'a> {
    pub sink: &'a mut dyn Sink,
    /// For messages.
    pub path: &'a Path,
    pub superblock: Superblock,
    pub sums: &'a Sums,
}

/// Makes a store file of an empty one that holds these epochs, ascending, durably; its head is written last. Gives back how
/// long it is.
///
/// # Errors
/// `Corrupt`, with the file that the damage is in; `NoSpace`, `Io`. What has been made of the new file is no store.
pub(super) fn copy_epochs(from: &[Found<'_>], target: Target<'_>) -> Result<u64, StoreError> {
    let Target { sink, path, superblock, sums } = target;
    let (page_bytes, segment_bytes) = (superblock.page_bytes.get(), superblock.segment_bytes.get());
    let geometry = Geometry { version: superblock.version.get(), page_bytes, segment_bytes, segments: 1 };
    let mut dense = Dense {
        sink,
        path,
        writing: Writing::new(sums, Durability::PowerLoss, None),
        space: Space::new(geometry),
        sums,
        blocks: Vec::new(),
        pages: Vec::new(),
        moved: Moved::default(),
    };
    format(dense.sink, &superblock).map_err(|fault| dense.failed(fault))?;
    let mut table = Vec::with_capacity(from.len());
    let mut last: Option<&Path> = None;
    for found in from {
        if last.replace(found.path) != Some(found.path) {
            // Blocks of another file are others, whatever their numbers.
            dense.moved = Moved::default();
        }
        table.push(dense.epoch(found)?);
    }
    dense.finish(superblock.id, &table)
}

/// Where things lie now that have been copied, by the block that they had.
#[derive(Default)]
struct Moved {
    pages: HashMap<u32, u32>,
    nodes: HashMap<(u32, u32), Slot>,
}

struct Dense<'a> {
    sink: &'a mut dyn Sink,
    path: &'a Path,
    writing: Writing<'a>,
    space: Space,
    sums: &'a Sums,
    /// Nodes and small things that are to be written.
    blocks: Vec<NewBlock>,
    /// Pages that are to be copied, with their new blocks.
    pages: Vec<(u32, (PageId, TaggedSlot))>,
    moved: Moved,
}

impl Dense<'_> {
    fn epoch(&mut self, found: &Found<'_>) -> Result<TableEntry, StoreError> {
        let (epoch, forest) = (found.entry.epoch.get(), found.forest);
        let at = |fault: Fault| fault.within(|| format!("epoch {epoch}")).at(found.path);
        let mut record = read_record(forest, found.entry).map_err(at)?;
        let mut seen = Seen::new(forest.geometry);
        for entry in &mut record.entries {
            let name = place(&entry.operator, &entry.state, entry.task, entry.tasks);
            if let Some(map) = &mut entry.map {
                // Nothing is followed that has not been found in order.
                let read = Leaves::read(forest, map, &mut seen, self.sums);
                read.map_err(|fault| at(fault.within(|| name.clone())))?;
                *map = self.map(found, map, &name)?;
                self.copy_pages(found, &name)?;
            }
        }
        let record = self.blob(&encode_record(&record))?;
        self.write_blocks()?;
        Ok(TableEntry { record, ..*found.entry })
    }

    fn map(&mut self, found: &Found<'_>, map: &MapRef, name: &str) -> Result<MapRef, StoreError> {
        let nodes = found.forest.geometry.map_nodes();
        let at = At { depth: map.depth.get(), first: 0, nodes };
        let root = TaggedSlot { slot: map.root, ..TaggedSlot::default() };
        let root = if map.root.is_some() { self.tree(found, root, at, name)?.slot } else { map.root };
        Ok(MapRef { root, ..*map })
    }

    /// Copies what is below a slot, unless that has been done, and says where it lies now.
    fn tree(&mut self, found: &Found<'_>, from: TaggedSlot, at: At, name: &str) -> Result<TaggedSlot, StoreError> {
        let block = from.block();
        if at.depth == 0 {
            let to = match self.moved.pages.get(&block) {
                Some(to) => *to,
                None => self.page(found, at.first as PageId, from, name)?,
            };
            return Ok(TaggedSlot::new(to, from.crc(), from.tag.get()));
        }
        if let Some(slot) = self.moved.nodes.get(&(block, at.depth)) {
            return Ok(TaggedSlot { slot: *slot, ..from });
        }
        let mut slots = read_node(found.forest, from.slot, at.nodes)
            .map_err(|fault| fault.within(|| format!("epoch {}, {name}", found.entry.epoch)).at(found.path))?;
        let below = At { depth: at.depth - 1, ..at };
        for (i, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| slot.is_some()) {
            *slot = self.tree(found, *slot, At { first: at.first + i as u64 * below.span(), ..below }, name)?;
        }
        let bytes = at.nodes.block(&slots);
        self.make_room(0, 1)?;
        let slot = Slot::new(self.space.take_node(), crc32c::crc32c(&bytes[..]));
        self.blocks.push((slot.block.get(), bytes));
        self.moved.nodes.insert((block, at.depth), slot);
        Ok(TaggedSlot { slot, ..from })
    }

    fn page(&mut self, found: &Found<'_>, id: PageId, from: TaggedSlot, name: &str) -> Result<u32, StoreError> {
        self.make_room(1, 0)?;
        let to = self.space.take_page();
        self.moved.pages.insert(from.block(), to);
        self.pages.push((to, (id, from)));
        if self.pages.len() * self.space.geometry().page_bytes as usize >= PORTION_BYTES {
            self.copy_pages(found, name)?;
        }
        Ok(to)
    }

    fn copy_pages(&mut self, found: &Found<'_>, name: &str) -> Result<(), StoreError> {
        let page_bytes = self.space.geometry().page_bytes as usize;
        let mut bytes = vec![0; self.pages.len() * page_bytes];
        let (blocks, slots): (Vec<u32>, Vec<_>) = self.pages.drain(..).unzip();
        let read = read_pages(found.forest, &slots, &mut bytes, self.sums);
        read.map_err(|fault| fault.within(|| format!("epoch {}, {name}", found.entry.epoch)).at(found.path))?;
        let pages: Vec<&[u8]> = bytes.chunks(page_bytes).collect();
        let written = self.writing.pages(self.sink, &blocks, &pages);
        written.map(|_| ()).map_err(|error| self.failed(Fault::Io("write", error)))
    }

    fn blob(&mut self, bytes: &[u8]) -> Result<BlobRef, StoreError> {
        self.make_room(0, blob_blocks(bytes.len()))?;
        Ok(lay_out_blob(bytes, &mut self.space, &mut self.blocks))
    }

    fn write_blocks(&mut self) -> Result<(), StoreError> {
        let written = self.writing.blocks(self.sink, &std::mem::take(&mut self.blocks));
        written.map_err(|error| self.failed(Fault::Io("write", error)))
    }

    fn make_room(&mut self, pages: u64, nodes: u64) -> Result<(), StoreError> {
        let mut geometry = self.space.geometry();
        let lacking = self.space.lacking_frames(pages, nodes) * u64::from(geometry.page_bytes);
        if lacking == 0 {
            return Ok(());
        }
        let from_bytes = geometry.file_bytes();
        let more = lacking.div_ceil(geometry.segment_bytes).max(u64::from(geometry.segments / 16));
        geometry.segments = geometry.segments.saturating_add(more as u32).min(geometry.segments_max());
        let grown = self.sink.grow(from_bytes, geometry.file_bytes());
        grown.map_err(|error| self.failed(Fault::Io("allocate", error)))?;
        self.space.grow(geometry.segments);
        if self.space.lacking_frames(pages, nodes) == 0 { Ok(()) } else { Err(self.full()) }
    }

    fn finish(mut self, id: [u8; 16], table: &[TableEntry]) -> Result<u64, StoreError> {
        let table_ref = self.blob(table.as_bytes())?;
        self.write_blocks()?;
        let geometry = self.space.geometry();
        let newest = table.last().map_or(0, |entry| entry.epoch.get());
        let meta = Meta::new(id, 2, newest, geometry.segments, table.len() as u32, table_ref);
        let synced = self.sink.sync().and_then(|()| write_meta(self.sink, &meta)).and_then(|()| self.sink.sync());
        synced.map_err(|error| self.failed(Fault::Io("sync", error)))?;
        Ok(geometry.file_bytes())
    }

    fn failed(&self, fault: Fault) -> StoreError {
        match fault {
            Fault::Io(_, error) if is_full(&error) => self.full(),
            other => other.at(self.path),
        }
    }

    fn full(&self) -> StoreError {
        StoreError::NoSpace { path: self.path.to_owned(), bytes: self.space.geometry().segment_bytes }
    }
}

fn read_node(forest: Forest<'_>, slot: Slot, nodes: Nodes) -> Result<Box<[TaggedSlot]>, Fault> {
    let mut bytes = [0; BLOCK_BYTES];
    forest.read_block(slot, &mut bytes)?;
    Ok(nodes.parse(&bytes))
}
