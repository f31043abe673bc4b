//! The page map of one state, in memory: what the newest epoch has in the file, as the tree it is there. Changing it
//! says which blocks are superseded; laying it out gives new blocks to the nodes that changed, and to no others.
//! It must not know what is in the pages, nor read or write the file.

use super::fault::Fault;
use super::format::{DEPTH_MAX, MapRef, Nodes, Slot, TaggedSlot};
use super::space::{Blocks, Space};
use super::tree::{At, NewBlock};
use crate::page::PageId;
use std::collections::BTreeMap;

struct Node {
    slots: Box<[TaggedSlot]>,
    used: u32,
    /// Its place in the file; 0 before the first time.
    block: u32,
    dirty: bool,
}

impl Node {
    fn empty(nodes: Nodes) -> Self {
        let slots = vec![TaggedSlot::default(); nodes.fanout() as usize].into();
        Self { slots, used: 0, block: 0, dirty: false }
    }
}

#[derive(Default)]
struct Level {
    /// By place in the level. No vector: the ids of a file that is made to hurt may lie far apart.
    nodes: BTreeMap<u32, Node>,
    dirty: Vec<u32>,
}

pub(super) struct PageMap {
    /// What its nodes are.
    kind: Nodes,
    /// From the leaves up; none while there is no page.
    levels: Vec<Level>,
    /// The top node as the file has it.
    root: Slot,
    pages: u64,
    count: u32,
}

impl PageMap {
    pub fn new(nodes: Nodes) -> Self {
        Self { kind: nodes, levels: Vec::new(), root: Slot::default(), pages: 0, count: 0 }
    }

    /// The pages there are from `first` on: none, unless the count shrinks.
    pub fn ids_from(&self, first: PageId) -> impl Iterator<Item = PageId> + '_ {
        let fanout = self.kind.fanout();
        let leaves = self.levels.first().into_iter().flat_map(move |leaves| leaves.nodes.range(first / fanout..));
        leaves.flat_map(move |(at, leaf)| {
            let slots = leaf.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
            slots.map(move |(within, _)| at * fanout + within as u32).filter(move |id| *id >= first)
        })
    }

    /// All pages and where they are, by ascending id.
    pub fn slots(&self) -> impl Iterator<Item = (PageId, TaggedSlot)> + '_ {
        let fanout = self.kind.fanout();
        self.levels.first().into_iter().flat_map(|leaves| &leaves.nodes).flat_map(move |(at, leaf)| {
            let slots = leaf.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
            slots.map(move |(within, slot)| (at * fanout + within as u32, *slot))
        })
    }

    pub fn set_count(&mut self, count: u32) {
        self.count = count;
    }

    /// Levels of nodes for ids below `count`.
    fn depth_for(&self, count: u32) -> usize {
        (1..DEPTH_MAX).find(|depth| u64::from(count) <= self.span(*depth)).unwrap_or(DEPTH_MAX) as usize
    }

    /// Pages below a node `depth` levels above them.
    fn span(&self, depth: u32) -> u64 {
        u64::from(self.kind.fanout()).pow(depth)
    }

    /// The most nodes that changing these ids (ascending) lays out.
    pub fn nodes_touched(&self, ids: &[PageId], count: u32) -> u64 {
        let depth = self.depth_for(count).max(self.levels.len());
        let distinct = |level: usize| {
            let nodes = ids.iter().map(|id| u64::from(*id) / self.span(level as u32 + 1));
            let mut last = None;
            nodes.filter(|node| last.replace(*node) != Some(*node)).count() as u64
        };
        // One more a level: those that are put on top of an old root count even where no id lies below it.
        (0..depth).map(|level| distinct(level) + 1).sum()
    }

    /// Puts a page in, and gives back the block that it had.
    pub fn set(&mut self, id: PageId, slot: TaggedSlot) -> Option<u32> {
        self.deepen(self.depth_for(id.saturating_add(1)));
        let old = self.put(0, id, slot);
        self.pages = self.pages + 1 - u64::from(old.is_some());
        old
    }

    /// Takes a page out, and gives back the block that it had.
    pub fn clear(&mut self, id: PageId) -> Option<u32> {
        let fanout = self.kind.fanout();
        let leaf = self.levels.first()?.nodes.get(&(id / fanout))?;
        if !leaf.slots[(id % fanout) as usize].is_some() {
            return None;
        }
        self.pages -= 1;
        self.put(0, id, TaggedSlot::default())
    }

    /// Everything that the map has in the file.
    pub fn blocks(&self) -> Blocks {
        let mut blocks = Blocks::default();
        for (depth, level) in self.levels.iter().enumerate() {
            for node in level.nodes.values() {
                blocks.nodes.extend((node.block != 0).then_some(node.block));
                if depth == 0 {
                    blocks.pages.extend(node.slots.iter().filter(|slot| slot.is_some()).map(|slot| slot.block()));
                }
            }
        }
        blocks
    }

    /// Gives the nodes that have changed new blocks; their old ones go to `dead`.
    pub fn lay_out(&mut self, space: &mut Space, dead: &mut Blocks, out: &mut Vec<NewBlock>) -> MapRef {
        for depth in 0..self.levels.len() {
            let mut dirty = std::mem::take(&mut self.levels[depth].dirty);
            dirty.sort_unstable();
            for at in dirty {
                let level = &mut self.levels[depth];
                let node = level.nodes.get_mut(&at).expect("dirty nodes are there");
                dead.nodes.extend((node.block != 0).then_some(node.block));
                let slot = if node.used == 0 {
                    level.nodes.remove(&at);
                    Slot::default()
                } else {
                    let bytes = self.kind.block(&node.slots);
                    node.block = space.take_node();
                    node.dirty = false;
                    let slot = Slot::new(node.block, crc32c::crc32c(&bytes[..]));
                    out.push((node.block, bytes));
                    slot
                };
                self.hang(depth, at, slot);
            }
        }
        MapRef {
            root: self.root,
            depth: (self.levels.len() as u32).into(),
            count: self.count.into(),
            pages: self.pages.into(),
        }
    }

    /// Takes over a node as it was read from the file.
    pub fn adopt(&mut self, at: At, block: u32, slots: &[TaggedSlot]) {
        let level = at.depth as usize - 1;
        while self.levels.len() <= level {
            self.levels.push(Level::default());
        }
        let used = slots.iter().filter(|slot| slot.is_some()).count() as u32;
        let node = Node { slots: slots.into(), used, block, dirty: false };
        self.levels[level].nodes.insert((at.first / at.span()) as u32, node);
        self.pages += if level == 0 { u64::from(used) } else { 0 };
    }

    /// Finishes taking over: the root, and whether it fits what was read.
    pub fn adopt_root(&mut self, map: &MapRef) -> Result<(), Fault> {
        (self.root, self.count) = (map.root, map.count.get());
        if self.pages != map.pages.get() {
            return Err(Fault::Corrupt(format!("the map holds {} pages and not {}", self.pages, map.pages)));
        }
        Ok(())
    }

    /// Puts levels on top, the old root below their first slot.
    fn deepen(&mut self, depth: usize) {
        while self.levels.len() < depth {
            self.levels.push(Level::default());
            let old = std::mem::take(&mut self.root);
            if old.is_some() {
                self.put(self.levels.len() - 1, 0, TaggedSlot { slot: old, ..TaggedSlot::default() });
            }
        }
    }

    fn put(&mut self, level: usize, index: u32, slot: TaggedSlot) -> Option<u32> {
        let (kind, level) = (self.kind, &mut self.levels[level]);
        let (at, within) = (index / kind.fanout(), index % kind.fanout());
        if !slot.is_some() && !level.nodes.contains_key(&at) {
            return None;
        }
        let node = level.nodes.entry(at).or_insert_with(|| Node::empty(kind));
        let old = std::mem::replace(&mut node.slots[within as usize], slot);
        node.used = node.used + u32::from(slot.is_some()) - u32::from(old.is_some());
        if !std::mem::replace(&mut node.dirty, true) {
            level.dirty.push(at);
        }
        old.is_some().then_some(old.block())
    }

    /// Tells the node above, or the root, where a node lies now.
    fn hang(&mut self, level: usize, at: u32, slot: Slot) {
        if level + 1 < self.levels.len() {
            self.put(level + 1, at, TaggedSlot { slot, ..TaggedSlot::default() });
        } else {
            self.root = slot;
        }
    }
}
