//! A page map as it is in the file, read level by level: where each page is. It must not know what a page means.
//!
//! The nodes of a level are read in order of the pages below, neighbours in the file by one call, each straight to where it
//! stays, and several portions at a time if they are many: what a restore waits for before the first record is this. Each
//! node is held against its checksum, and nothing is read twice, however a map that is made to hurt refers to its blocks.

use super::fault::{Fault, io};
use super::format::{BLOCK_BYTES, DEPTH_MAX, Geometry, MapRef, Nodes, Slot, TaggedSlot, offset_of};
use super::sums::Sums;
use super::tree::Forest;
use crate::page::{Large, PageId};
use rayon::prelude::*;
use zerocopy::IntoBytes;

/// Nodes read by one thread at a time.
const NODES_A_PORTION: usize = 64;

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

/// Where a page map says that its pages are.
#[derive(Default)]
pub(super) struct Leaves {
    fanout: u32,
    /// Of each leaf node there is, ascending: the id of its first page.
    firsts: Vec<PageId>,
    /// Its slots, node by node.
    slots: Large<TaggedSlot>,
    pages: usize,
    /// All ids are below.
    count: u32,
}

impl Leaves {
    /// Reads a map, and checks it against itself and the file.
    pub fn read(forest: Forest<'_>, map: &MapRef, seen: &mut Seen, sums: &Sums) -> Result<Self, Fault> {
        let (nodes, depth) = (forest.geometry.map_nodes(), map.depth.get());
        if depth > DEPTH_MAX || (depth == 0 && map.root.is_some()) {
            return Err(Fault::Corrupt(format!("a page map of depth {depth}")));
        }
        let top = map.root.is_some().then_some((0, map.root));
        let mut level = Level { forest, nodes, depth, at: top.into_iter().collect() };
        while level.depth > 1 {
            let slots = level.read(seen, sums)?;
            level = level.below(&slots);
        }
        let slots = level.read(seen, sums)?;
        // Beyond these no id fits; what a slot refers to there is found below.
        let firsts = level.at.iter().map(|(first, _)| PageId::try_from(*first).unwrap_or(PageId::MAX)).collect();
        let mut leaves = Self { fanout: nodes.fanout(), firsts, slots, pages: 0, count: 0 };
        leaves.check(forest.geometry, map, &level.at, seen)?;
        Ok(leaves)
    }

    fn check(&mut self, geometry: Geometry, map: &MapRef, nodes: &[(u64, Slot)], seen: &mut Seen) -> Result<(), Fault> {
        let (count, holds_page) = (u64::from(map.count.get()), geometry.pages_held());
        let (mut pages, mut next) = (0, 0);
        for ((first, _), slots) in nodes.iter().zip(self.slots.chunks(self.fanout as usize)) {
            for (id, slot) in (*first..).zip(slots).filter(|(_, slot)| slot.is_some()) {
                let block = slot.block();
                if id >= count || !holds_page(block) || !seen.insert(block) {
                    return Err(Fault::Corrupt(format!("page {id}: block {block} is out of place")));
                }
                (pages, next) = (pages + 1, id as u32 + 1);
            }
        }
        (self.pages, self.count) = (pages, next);
        if self.pages as u64 != map.pages.get() {
            return Err(Fault::Corrupt(format!("the map holds {} pages and not {}", self.pages, map.pages)));
        }
        Ok(())
    }

    /// How many pages there are.
    pub fn len(&self) -> usize {
        self.pages
    }

    /// All ids are below, and no fewer.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The pages, by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, TaggedSlot)> + '_ {
        let nodes = self.firsts.iter().zip(self.slots.chunks(self.fanout.max(1) as usize));
        nodes
            .flat_map(|(first, slots)| (*first..=PageId::MAX).zip(slots.iter().copied()))
            .filter(|(_, slot)| slot.is_some())
    }

    /// The same, neighbours together, as far as they are of one node.
    pub fn runs(&self, mut visit: impl FnMut(PageId, &[TaggedSlot])) {
        for (first, slots) in self.firsts.iter().zip(self.slots.chunks(self.fanout.max(1) as usize)) {
            // Almost all are.
            if slots.iter().fold(true, |full, slot| full & slot.is_some()) {
                visit(*first, slots);
                continue;
            }
            let mut id = *first;
            for run in slots.chunk_by(|one, next| one.is_some() == next.is_some()) {
                if run[0].is_some() {
                    visit(id, run);
                }
                // Beyond the highest id there is no page.
                id = id.saturating_add(run.len() as PageId);
            }
        }
    }

    /// Where this page is, if it is anywhere.
    pub fn get(&self, id: PageId) -> Option<TaggedSlot> {
        let within = id.checked_rem(self.fanout)?;
        let node = self.firsts.binary_search(&(id - within)).ok()?;
        Some(self.slots[node * self.fanout as usize + within as usize]).filter(|slot| slot.is_some())
    }
}

/// The nodes of a level that are there, by what is below them: the first page, and where the node is.
struct Level<'a> {
    forest: Forest<'a>,
    nodes: Nodes,
    /// Levels from here to the pages.
    depth: u32,
    at: Vec<(u64, Slot)>,
}

impl Level<'_> {
    /// Pages below each node.
    fn span(&self) -> u64 {
        u64::from(self.nodes.fanout()).pow(self.depth)
    }

    fn read(&self, seen: &mut Seen, sums: &Sums) -> Result<Large<TaggedSlot>, Fault> {
        for (_, slot) in &self.at {
            let block = slot.block.get();
            if !self.forest.geometry.holds_node(block) || !seen.insert(block) {
                return Err(Fault::Corrupt(format!("map node at block {block} is out of place")));
            }
        }
        let fanout = self.nodes.fanout() as usize;
        let mut slots = Large::of(TaggedSlot::default(), self.at.len() * fanout);
        sums.install(self.at.len() * BLOCK_BYTES, |parallel| {
            let portion = NODES_A_PORTION * fanout;
            if parallel {
                let portions = slots.par_chunks_mut(portion).zip(self.at.par_chunks(NODES_A_PORTION));
                portions.try_for_each(|(slots, nodes)| self.read_portion(nodes, slots))
            } else {
                let mut portions = slots.chunks_mut(portion).zip(self.at.chunks(NODES_A_PORTION));
                portions.try_for_each(|(slots, nodes)| self.read_portion(nodes, slots))
            }
        })?;
        Ok(slots)
    }

    fn read_portion(&self, mut nodes: &[(u64, Slot)], mut slots: &mut [TaggedSlot]) -> Result<(), Fault> {
        let fanout = self.nodes.fanout() as usize;
        while let Some((_, first)) = nodes.first() {
            let follows =
                |(i, (_, slot)): &(usize, &(u64, Slot))| slot.block.get() == first.block.get().wrapping_add(*i as u32);
            let run = nodes.iter().enumerate().take_while(follows).count();
            let (now, rest) = slots.split_at_mut(run * fanout);
            self.read_run(&nodes[..run], now)?;
            (nodes, slots) = (&nodes[run..], rest);
        }
        Ok(())
    }

    /// Reads neighbours.
    fn read_run(&self, nodes: &[(u64, Slot)], slots: &mut [TaggedSlot]) -> Result<(), Fault> {
        let offset_bytes = offset_of(nodes[0].1.block.get());
        let fanout = self.nodes.fanout() as usize;
        match self.nodes {
            Nodes::Tagged => {
                self.forest.source.read(offset_bytes, slots.as_mut_bytes()).map_err(io("read"))?;
                let blocks = slots.as_bytes().chunks_exact(BLOCK_BYTES);
                nodes.iter().zip(blocks).try_for_each(|(node, block)| self.check(node, block))
            }
            Nodes::Plain => {
                let mut blocks = vec![[0; BLOCK_BYTES]; nodes.len()];
                self.forest.source.read(offset_bytes, blocks.as_flattened_mut()).map_err(io("read"))?;
                for ((node, block), slots) in nodes.iter().zip(&blocks).zip(slots.chunks_exact_mut(fanout)) {
                    self.check(node, block)?;
                    slots.copy_from_slice(&self.nodes.parse(block));
                }
                Ok(())
            }
        }
    }

    fn check(&self, (first, slot): &(u64, Slot), block: &[u8]) -> Result<(), Fault> {
        if crc32c::crc32c(block) == slot.crc.get() {
            return Ok(());
        }
        let (level, last) = (self.depth, first + self.span() - 1);
        let what = format!("block {}: checksum does not match", slot.block);
        Err(Fault::Corrupt(format!("map node of level {level} for {first} to {last}, {what}")))
    }

    fn below(self, slots: &[TaggedSlot]) -> Self {
        let Self { forest, nodes, depth, at } = self;
        let span = u64::from(nodes.fanout()).pow(depth - 1);
        let children = at.iter().zip(slots.chunks(nodes.fanout() as usize)).flat_map(|((first, _), slots)| {
            let there = slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
            there.map(move |(i, slot)| (first + i as u64 * span, slot.slot))
        });
        Self { forest, nodes, depth: depth - 1, at: children.collect() }
    }
}
