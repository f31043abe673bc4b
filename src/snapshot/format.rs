//! The bytes of a store file: superblock, metas, slots of map nodes. Described in `crate::docs::format`.
//! It must not know how they get into the file.

use super::fault::Fault;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The unit of addresses: map nodes and small things have one block each, pages one or more.
pub const BLOCK_BYTES: usize = 4096;
/// What a disk writes whole or not at all.
pub(super) const SECTOR_BYTES: usize = 512;
/// Superblock and metas lie below, segments above; the mapping begins here.
pub(super) const HEAD_BYTES: u64 = 65536;
/// The two metas. Both copies of one lie side by side.
pub(super) const META_OFFSETS: [u64; 2] = [16384, 32768];
/// Copies of each meta, so that one damaged bit does not lose the newest epoch.
pub(super) const META_COPIES: usize = 2;
/// Levels of nodes that reach every u32 page id.
pub(super) const DEPTH_MAX: u32 = 4;
/// The version that is written. Older ones stay readable.
pub(super) const VERSION: u32 = 2;
/// The smallest segment, and the granule of segments.
pub(super) const SEGMENT_BYTES_MIN: u64 = 65536;

const MAGIC: [u8; 8] = *b"SNAPRING";
const META_MAGIC: [u8; 8] = *b"SNAPMETA";

/// Where a block is and what it must add up to. Block 0 (the superblock) says: nothing here.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Slot {
    pub block: U32,
    pub crc: U32,
}

impl Slot {
    pub fn new(block: u32, crc: u32) -> Self {
        Self { block: U32::new(block), crc: U32::new(crc) }
    }
    pub fn is_some(self) -> bool {
        self.block.get() != 0
    }
}

/// A slot of a page map: a page has a tag, which is its owner's.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct TaggedSlot {
    pub slot: Slot,
    pub tag: U64,
}

impl TaggedSlot {
    pub fn new(block: u32, crc: u32, tag: u64) -> Self {
        Self { slot: Slot::new(block, crc), tag: U64::new(tag) }
    }
    pub fn is_some(self) -> bool {
        self.slot.is_some()
    }
    pub fn block(self) -> u32 {
        self.slot.block.get()
    }
    pub fn crc(self) -> u32 {
        self.slot.crc.get()
    }
}

/// What the slots of a node are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nodes {
    /// Slots without tags: those of blobs, and of page maps in version 1.
    Plain,
    /// Slots with tags: those of page maps from version 2 on.
    Tagged,
}

impl Nodes {
    /// Slots in a node.
    pub fn fanout(self) -> u32 {
        let slot_bytes = match self {
            Self::Plain => size_of::<Slot>(),
            Self::Tagged => size_of::<TaggedSlot>(),
        };
        (BLOCK_BYTES / slot_bytes) as u32
    }

    /// The slots of a node, out of its block.
    pub fn parse(self, block: &[u8; BLOCK_BYTES]) -> Box<[TaggedSlot]> {
        match self {
            Self::Plain => {
                let slots: &[Slot; BLOCK_BYTES / size_of::<Slot>()] = zerocopy::transmute_ref!(block);
                slots.iter().map(|slot| TaggedSlot { slot: *slot, tag: U64::ZERO }).collect()
            }
            Self::Tagged => {
                let slots: &[TaggedSlot; BLOCK_BYTES / size_of::<TaggedSlot>()] = zerocopy::transmute_ref!(block);
                Box::from(&slots[..])
            }
        }
    }

    /// The block of a node.
    pub fn block(self, slots: &[TaggedSlot]) -> Box<[u8; BLOCK_BYTES]> {
        let mut block = Box::new([0; BLOCK_BYTES]);
        match self {
            Self::Plain => {
                let places = block.chunks_exact_mut(size_of::<Slot>());
                places.zip(slots).for_each(|(place, slot)| place.copy_from_slice(slot.slot.as_bytes()));
            }
            Self::Tagged => block.copy_from_slice(slots.as_bytes()),
        }
        block
    }
}

/// The root of a tree of blocks that together hold `bytes` bytes.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct BlobRef {
    pub root: Slot,
    pub depth: U32,
    reserved: U32,
    pub bytes: U64,
}

impl BlobRef {
    pub fn new(root: Slot, depth: u32, bytes: u64) -> Self {
        Self { root, depth: U32::new(depth), reserved: U32::new(0), bytes: U64::new(bytes) }
    }
}

/// The root of a page map.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct MapRef {
    pub root: Slot,
    pub depth: U32,
    /// All page ids are below.
    pub count: U32,
    /// Pages there are.
    pub pages: U64,
}

/// One kept epoch.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct TableEntry {
    pub epoch: U64,
    pub record: BlobRef,
    pub pages: U64,
    pub entries: U32,
    pub reserved: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Superblock {
    magic: [u8; 8],
    pub version: U32,
    pub page_bytes: U32,
    block_bytes: U32,
    generation: U32,
    pub segment_bytes: U64,
    pub id: [u8; 16],
    /// The newest durable epoch when this generation was begun: later ones of earlier generations do not count.
    pub follows: U64,
    rest: [u8; 452],
    crc: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Meta {
    magic: [u8; 8],
    id: [u8; 16],
    pub sequence: U64,
    pub newest: U64,
    pub segments: U32,
    epochs: U32,
    pub table: BlobRef,
    rest: [u8; 436],
    crc: U32,
}

const _: () = assert!(size_of::<Superblock>() == SECTOR_BYTES && size_of::<Meta>() == SECTOR_BYTES);
const _: () = assert!(size_of::<TableEntry>() == 48 && size_of::<TaggedSlot>() == 16);

/// The checksum of everything but itself, which comes last.
fn sector_crc(sector: &[u8; SECTOR_BYTES]) -> u32 {
    crc32c::crc32c(&sector[..SECTOR_BYTES - 4])
}

impl Superblock {
    /// Of generation 1, which follows nothing.
    pub fn new(id: [u8; 16], page_bytes: u32, segment_bytes: u64) -> Self {
        let geometry = Geometry { version: VERSION, page_bytes, segment_bytes, segments: 0 };
        Self::of_generation(1, 0, id, geometry)
    }

    /// Of the version and the sizes of those before it.
    pub fn of_generation(generation: u32, follows: u64, id: [u8; 16], geometry: Geometry) -> Self {
        let Geometry { version, page_bytes, segment_bytes, .. } = geometry;
        let mut block = Self::new_zeroed();
        block.magic = MAGIC;
        block.version = U32::new(version);
        block.page_bytes = U32::new(page_bytes);
        block.block_bytes = U32::new(BLOCK_BYTES as u32);
        block.generation = U32::new(generation);
        block.segment_bytes = U64::new(segment_bytes);
        block.id = id;
        block.follows = U64::new(follows);
        block.crc = U32::new(sector_crc(&zerocopy::transmute!(block)));
        block
    }

    /// Magic, checksum and version stay where they are in all versions; the rest is this version's.
    pub fn parse(sector: &[u8; SECTOR_BYTES]) -> Result<Self, Fault> {
        let block: Self = zerocopy::transmute!(*sector);
        if block.magic != MAGIC {
            return Err(Fault::Foreign("not a snapring store: another program's file; name another folder".into()));
        }
        if block.crc.get() != sector_crc(sector) {
            return Err(Fault::Corrupt("superblock: checksum does not match".into()));
        }
        let version = block.version.get();
        if version > VERSION {
            let reason = format!("written by a newer snapring: file version {version}, this one reads up to {VERSION}");
            return Err(Fault::Foreign(reason));
        }
        let (page, segment) = (block.page_bytes.get(), block.segment_bytes.get());
        if version == 0 || block.block_bytes.get() as usize != BLOCK_BYTES || !sizes_fit(page, segment) {
            return Err(Fault::Corrupt(format!(
                "superblock: version {version}, pages of {page}, segments of {segment} bytes"
            )));
        }
        Ok(block)
    }
}

/// Pages are powers of two from a block to 64 KiB; segments whole granules of 64 KiB, up to 1 GiB.
pub(super) fn sizes_fit(page_bytes: u32, segment_bytes: u64) -> bool {
    let page_fits = page_bytes.is_power_of_two() && (BLOCK_BYTES as u32..=65536).contains(&page_bytes);
    page_fits
        && segment_bytes.is_multiple_of(SEGMENT_BYTES_MIN)
        && (SEGMENT_BYTES_MIN..=1 << 30).contains(&segment_bytes)
}

impl Meta {
    pub fn new(id: [u8; 16], sequence: u64, newest: u64, segments: u32, epochs: u32, table: BlobRef) -> Self {
        let mut meta = Self::new_zeroed();
        meta.magic = META_MAGIC;
        meta.id = id;
        meta.sequence = U64::new(sequence);
        meta.newest = U64::new(newest);
        meta.segments = U32::new(segments);
        meta.epochs = U32::new(epochs);
        meta.table = table;
        meta.crc = U32::new(sector_crc(&zerocopy::transmute!(meta)));
        meta
    }

    /// The meta in this sector, if it is whole and of this store.
    pub fn parse(sector: &[u8; SECTOR_BYTES], id: [u8; 16]) -> Option<Self> {
        let meta: Self = zerocopy::transmute!(*sector);
        (meta.magic == META_MAGIC && meta.id == id && meta.crc.get() == sector_crc(sector)).then_some(meta)
    }

    /// Where the meta of this sequence number lies: the two take turns, so it overwrites the older one.
    pub fn offset(sequence: u64) -> u64 {
        META_OFFSETS[(sequence % 2) as usize]
    }
}

/// The version and the sizes of a store, and what follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Of the file's format; a file keeps the one that it was made with.
    pub version: u32,
    pub page_bytes: u32,
    pub segment_bytes: u64,
    pub segments: u32,
}

impl Geometry {
    pub const FIRST_BLOCK: u32 = (HEAD_BYTES / BLOCK_BYTES as u64) as u32;

    /// What the nodes of page maps are.
    pub fn map_nodes(self) -> Nodes {
        if self.version == 1 { Nodes::Plain } else { Nodes::Tagged }
    }
    pub fn file_bytes(self) -> u64 {
        HEAD_BYTES + u64::from(self.segments) * self.segment_bytes
    }
    /// One past the last block. All block numbers fit u32: `segments_max` sees to it.
    pub fn end_block(self) -> u32 {
        (self.file_bytes() / BLOCK_BYTES as u64) as u32
    }
    pub fn segments_max(self) -> u32 {
        (((u64::from(u32::MAX) * BLOCK_BYTES as u64) - HEAD_BYTES) / self.segment_bytes) as u32
    }
    pub fn blocks_per_page(self) -> u32 {
        self.page_bytes / BLOCK_BYTES as u32
    }
    pub fn frames(self) -> u32 {
        (self.end_block() - Self::FIRST_BLOCK) / self.blocks_per_page()
    }
    pub fn holds_node(self, block: u32) -> bool {
        (Self::FIRST_BLOCK..self.end_block()).contains(&block)
    }
    pub fn holds_page(self, block: u32) -> bool {
        self.pages_held()(block)
    }
    /// The same for many blocks: what is to be worked out is so once.
    pub fn pages_held(self) -> impl Fn(u32) -> bool {
        let (blocks, within) = (self.end_block() - Self::FIRST_BLOCK, self.blocks_per_page() - 1);
        move |block| {
            let at = block.wrapping_sub(Self::FIRST_BLOCK);
            at < blocks && at & within == 0
        }
    }
}

/// The offset of a block in the file.
pub(super) fn offset_of(block: u32) -> u64 {
    u64::from(block) * BLOCK_BYTES as u64
}
