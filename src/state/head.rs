//! The first 64 bytes of every page of a table. Part of the format.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | kind: 1 bucket, 2 further page of a bucket, 3 part of a long key or value |
//! | 1 | depth: bits of the prefix |
//! | 2..4 | number of groups |
//! | 4..8 | number of entries |
//! | 8..16 | prefix, in the top bits |
//! | 16..20 | id of the next page of the chain, plus 1; 0: none |
//! | 20..24 | lowest offset that the heap uses |
//! | 24..28 | bytes of the heap that nothing refers to |
//! | 28..32 | entries whose key or value is long |
//! | 32..64 | zero |
//!
//! A page of kind 3 uses kind and next only; its bytes follow.
//!
//! A page's *tag*, which the store keeps beside the page's place, is what a directory is made of: kind in the lowest eight
//! bits, depth in the next eight, and the first 32 bits of the prefix in the highest 32. Bits 16 to 31 are zero.

use crate::page::PageId;

/// Bytes of the header.
pub(super) const HEAD_BYTES: usize = 64;

/// The first page of a bucket: the directory points to it.
pub(super) const BUCKET: u8 = 1;
/// A further page of a bucket.
pub(super) const CHAINED: u8 = 2;
/// Bytes of a long key or value.
pub(super) const LONG: u8 = 3;

/// A page's header, unpacked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    pub kind: u8,
    pub depth: u8,
    pub groups: u16,
    pub count: u32,
    pub prefix: u64,
    pub next: Option<PageId>,
    pub heap_low: u32,
    pub heap_dead: u32,
    pub long_entries: u32,
}

impl Head {
    #[inline]
    pub fn load(page: &[u8]) -> Self {
        let page: &[u8; HEAD_BYTES] = page.first_chunk().expect("a page is longer than its header");
        Self {
            kind: page[0],
            depth: page[1],
            groups: u16_at(page, 2),
            count: u32_at(page, 4),
            prefix: u64::from_le_bytes(page[8..16].try_into().expect("eight bytes")),
            next: next_of(page),
            heap_low: u32_at(page, 20),
            heap_dead: u32_at(page, 24),
            long_entries: u32_at(page, 28),
        }
    }

    #[inline]
    pub fn store(&self, page: &mut [u8]) {
        let page: &mut [u8; HEAD_BYTES] = page.first_chunk_mut().expect("a page is longer than its header");
        page[0] = self.kind;
        page[1] = self.depth;
        page[2..4].copy_from_slice(&self.groups.to_le_bytes());
        page[4..8].copy_from_slice(&self.count.to_le_bytes());
        page[8..16].copy_from_slice(&self.prefix.to_le_bytes());
        page[16..20].copy_from_slice(&self.next.map_or(0, |id| id + 1).to_le_bytes());
        page[20..24].copy_from_slice(&self.heap_low.to_le_bytes());
        page[24..28].copy_from_slice(&self.heap_dead.to_le_bytes());
        page[28..32].copy_from_slice(&self.long_entries.to_le_bytes());
    }

    /// The tag of a page with this header. A prefix has at most 32 bits.
    pub fn tag(&self) -> u64 {
        u64::from(self.kind) | u64::from(self.depth) << 8 | self.prefix >> 32 << 32
    }

    /// What a tag says: kind, depth, prefix.
    pub fn of_tag(tag: u64) -> Self {
        Self { kind: tag as u8, depth: (tag >> 8) as u8, prefix: tag >> 32 << 32, ..Self::default() }
    }

    /// Bytes of the heap that entries use, with what they have to spare.
    pub fn heap_live(&self, page_bytes: usize) -> usize {
        page_bytes - self.heap_low as usize - self.heap_dead as usize
    }
}

/// The next page of the chain.
#[inline]
pub(super) fn next_of(page: &[u8]) -> Option<PageId> {
    u32_at(page, 16).checked_sub(1)
}

/// A number below 64 that the prefix decides, without a pattern.
#[inline]
pub(super) fn spread(page: &[u8]) -> usize {
    let prefix = u64::from_le_bytes(page[8..16].try_into().expect("eight bytes"));
    (prefix.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

/// The number of entries.
#[inline]
pub(super) fn count_of(page: &[u8]) -> u32 {
    u32_at(page, 4)
}

/// Sets the number of entries.
#[inline]
pub(super) fn set_count(page: &mut [u8], count: u32) {
    page[4..8].copy_from_slice(&count.to_le_bytes());
}

#[inline]
pub(super) fn u16_at(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(page[at..at + 2].try_into().expect("two bytes"))
}

#[inline]
pub(super) fn u32_at(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"))
}
