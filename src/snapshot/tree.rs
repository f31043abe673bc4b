//! Trees of blocks: reading page maps, reading and laying out blobs. A tree of depth 0 is its only leaf; each level of
//! nodes above multiplies by the number of their slots. It must not know who keeps a tree, nor write one.

use super::fault::{Fault, io};
use super::format::{BLOCK_BYTES, BlobRef, DEPTH_MAX, Geometry, MapRef, Nodes, Slot, TaggedSlot, offset_of};
use super::sink::ReadAt;
use super::space::Space;
use std::collections::HashSet;
use zerocopy::{FromZeros, IntoBytes};

/// Slots in a node of a blob.
const BLOB_FANOUT: usize = BLOCK_BYTES / size_of::<Slot>();

/// Where in a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// Levels from here to the leaves.
    pub depth: u32,
    /// The first leaf below.
    pub first: u64,
    /// What the nodes are.
    pub nodes: Nodes,
}

impl At {
    /// Leaves below.
    pub fn span(self) -> u64 {
        u64::from(self.nodes.fanout()).pow(self.depth)
    }
}

/// What a walk tells.
pub(super) trait Visit {
    /// A node is about to be read; `false` leaves out what is below it.
    fn enter(&mut self, at: At, block: u32) -> Result<bool, Fault>;
    /// A node has been read and its checksum is right.
    fn node(&mut self, _at: At, _block: u32, _slots: &[TaggedSlot]) -> Result<(), Fault> {
        Ok(())
    }
    /// A leaf, not yet read.
    fn leaf(&mut self, index: u64, slot: TaggedSlot) -> Result<(), Fault>;
    /// A node is damaged; `Ok` goes on beside it.
    fn damaged(&mut self, _at: At, fault: Fault) -> Result<(), Fault> {
        Err(fault)
    }
}

/// A file to walk in.
#[derive(Clone, Copy)]
pub(super) struct Forest<'a> {
    pub source: &'a dyn ReadAt,
    pub geometry: Geometry,
}

impl Forest<'_> {
    /// Visits all nodes of a page map before what is below them, and all pages in their order.
    pub fn walk_map(&self, map: &MapRef, visit: &mut dyn Visit) -> Result<(), Fault> {
        self.walk(map.root, map.depth.get(), self.geometry.map_nodes(), visit)
    }

    fn walk(&self, root: Slot, depth: u32, nodes: Nodes, visit: &mut dyn Visit) -> Result<(), Fault> {
        if !root.is_some() {
            return Ok(());
        }
        if depth > DEPTH_MAX {
            return Err(Fault::Corrupt(format!("a tree of depth {depth}")));
        }
        let root = TaggedSlot { slot: root, ..TaggedSlot::default() };
        self.descend(root, At { depth, first: 0, nodes }, visit)
    }

    fn descend(&self, slot: TaggedSlot, at: At, visit: &mut dyn Visit) -> Result<(), Fault> {
        let block = slot.block();
        if at.depth == 0 {
            return visit.leaf(at.first, slot);
        }
        if !visit.enter(at, block)? {
            return Ok(());
        }
        let mut bytes = [0; BLOCK_BYTES];
        if let Err(fault) = self.read_block(slot.slot, &mut bytes) {
            let place = || format!("map node of level {} for {} to {}", at.depth, at.first, at.first + at.span() - 1);
            return visit.damaged(at, fault.within(place));
        }
        let slots = at.nodes.parse(&bytes);
        visit.node(at, block, &slots)?;
        for (i, child) in slots.iter().enumerate().filter(|(_, child)| child.is_some()) {
            let depth = at.depth - 1;
            let first = at.first + i as u64 * At { depth, ..at }.span();
            self.descend(*child, At { depth, first, ..at }, visit)?;
        }
        Ok(())
    }

    /// Reads the block of a slot and checks it.
    pub fn read_block(&self, slot: Slot, into: &mut [u8]) -> Result<(), Fault> {
        let block = slot.block.get();
        if !self.geometry.holds_node(block) {
            return Err(Fault::Corrupt(format!("block {block} is not in the file")));
        }
        self.source.read(offset_of(block), into).map_err(io("read"))?;
        if crc32c::crc32c(into) != slot.crc.get() {
            return Err(Fault::Corrupt(format!("block {block}: checksum does not match")));
        }
        Ok(())
    }

    /// Reads and checks a blob; every one of its blocks goes through `claim` first.
    pub fn read_blob(&self, blob: &BlobRef, claim: &mut dyn FnMut(u32) -> Result<(), Fault>) -> Result<Vec<u8>, Fault> {
        let len = blob.bytes.get();
        if len > self.geometry.file_bytes() {
            return Err(Fault::Corrupt(format!("{len} bytes, more than the file has")));
        }
        let mut reading = BlobVisit { forest: *self, len, bytes: Vec::new(), seen: HashSet::new(), claim };
        self.walk(blob.root, blob.depth.get(), Nodes::Plain, &mut reading)?;
        let mut bytes = reading.bytes;
        if (bytes.len() as u64) < len {
            return Err(Fault::Corrupt(format!("{} of {len} bytes", bytes.len())));
        }
        bytes.truncate(len as usize);
        Ok(bytes)
    }
}

struct BlobVisit<'a> {
    forest: Forest<'a>,
    len: u64,
    bytes: Vec<u8>,
    seen: HashSet<u32>,
    claim: &'a mut dyn FnMut(u32) -> Result<(), Fault>,
}

impl BlobVisit<'_> {
    /// A file that is made to hurt could refer to one block very often.
    fn once(&mut self, block: u32) -> Result<(), Fault> {
        if self.seen.insert(block) { (self.claim)(block) } else { Err(used_twice(block)) }
    }
}

pub(super) fn used_twice(block: u32) -> Fault {
    Fault::Corrupt(format!("block {block} is used twice"))
}

impl Visit for BlobVisit<'_> {
    fn enter(&mut self, _: At, block: u32) -> Result<bool, Fault> {
        self.once(block).map(|()| true)
    }
    fn leaf(&mut self, index: u64, slot: TaggedSlot) -> Result<(), Fault> {
        let at = self.bytes.len();
        if index * BLOCK_BYTES as u64 != at as u64 || at as u64 >= self.len {
            return Err(Fault::Corrupt(format!("block {index} of a blob of {} bytes is out of order", self.len)));
        }
        self.once(slot.block())?;
        self.bytes.resize(at + BLOCK_BYTES, 0);
        self.forest.read_block(slot.slot, &mut self.bytes[at..])
    }
}

/// A block to be written.
pub(super) type NewBlock = (u32, Box<[u8; BLOCK_BYTES]>);

/// How many blocks a blob of so many bytes takes, with the nodes above.
pub(super) fn blob_blocks(bytes: usize) -> u64 {
    let mut level = bytes.div_ceil(BLOCK_BYTES);
    let mut sum = level as u64;
    while level > 1 {
        level = level.div_ceil(BLOB_FANOUT);
        sum += level as u64;
    }
    sum
}

/// Puts a blob into free blocks.
pub(super) fn lay_out_blob(bytes: &[u8], space: &mut Space, out: &mut Vec<NewBlock>) -> BlobRef {
    let mut place = |bytes: &[u8]| {
        let mut block = Box::new([0; BLOCK_BYTES]);
        block[..bytes.len()].copy_from_slice(bytes);
        let slot = Slot::new(space.take_node(), crc32c::crc32c(&block[..]));
        out.push((slot.block.get(), block));
        slot
    };
    let mut level: Vec<Slot> = bytes.chunks(BLOCK_BYTES).map(&mut place).collect();
    let mut depth = 0;
    while level.len() > 1 {
        level = level.chunks(BLOB_FANOUT).map(|slots| place(slots.as_bytes())).collect();
        depth += 1;
    }
    BlobRef::new(level.first().copied().unwrap_or_else(Slot::new_zeroed), depth, bytes.len() as u64)
}
