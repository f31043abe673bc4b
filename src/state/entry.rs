//! Entries in a page's heap, for keys or values of variable length. Part of the format.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | bytes of the key part |
//! | 2..4 | bytes of the value part |
//! | 4..6 | bytes that there are for the value part: it may grow to so many in place |
//! | 6..8 | 1: the key is long, 2: the value is long |
//!
//! then the key part and the room for the value part. A part is the encoding, or for a long one: the first page's id (u32)
//! and the length (u32); for a key the hash (u64) follows.

use super::head::u16_at;
use crate::page::PageId;

/// Bytes in front of an entry's parts.
pub(super) const ENTRY_BYTES: usize = 8;
/// The key lies in pages of its own.
pub(super) const KEY_LONG: u16 = 1;
/// The value lies in pages of its own.
pub(super) const VALUE_LONG: u16 = 2;

/// An entry on its way into a page, or as it lies there.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    /// At least the length of `value`.
    pub value_room: usize,
    pub flags: u16,
}

impl<'a> Entry<'a> {
    /// Parts of a fixed layout.
    pub fn fixed(key: &'a [u8], value: &'a [u8]) -> Self {
        Self { key, value, value_room: value.len(), flags: 0 }
    }

    /// The entry at an offset of the heap.
    #[inline]
    pub fn load(page: &'a [u8], at: usize) -> Self {
        let key_end = at + ENTRY_BYTES + usize::from(u16_at(page, at));
        Self {
            key: &page[at + ENTRY_BYTES..key_end],
            value: &page[key_end..key_end + usize::from(u16_at(page, at + 2))],
            value_room: usize::from(u16_at(page, at + 4)),
            flags: u16_at(page, at + 6),
        }
    }

    /// Bytes that it takes in the heap.
    pub fn bytes(&self) -> usize {
        ENTRY_BYTES + self.key.len() + self.value_room
    }

    /// Writes it at an offset of the heap.
    pub fn store(&self, page: &mut [u8], at: usize) {
        let numbers = [self.key.len(), self.value.len(), self.value_room, usize::from(self.flags)];
        for (field, number) in page[at..at + ENTRY_BYTES].chunks_exact_mut(2).zip(numbers) {
            field.copy_from_slice(&(number as u16).to_le_bytes());
        }
        let key_at = at + ENTRY_BYTES;
        let value_at = key_at + self.key.len();
        page[key_at..value_at].copy_from_slice(self.key);
        page[value_at..value_at + self.value.len()].copy_from_slice(self.value);
    }

    /// The reference to a long key, if it is long.
    pub fn long_key(&self) -> Option<LongRef> {
        (self.flags & KEY_LONG != 0).then(|| LongRef::load(self.key))
    }

    /// The reference to a long value, if it is long.
    pub fn long_value(&self) -> Option<LongRef> {
        (self.flags & VALUE_LONG != 0).then(|| LongRef::load(self.value))
    }

    /// The hash that stands with a long key.
    pub fn long_key_hash(&self) -> Option<u64> {
        self.long_key().map(|_| u64::from_le_bytes(self.key[8..16].try_into().expect("eight bytes")))
    }
}

/// Where the bytes of a long key or value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongRef {
    pub first: PageId,
    pub len: u32,
}

impl LongRef {
    /// Bytes of a long value's part.
    pub const VALUE_BYTES: usize = 8;
    /// Bytes of a long key's part.
    pub const KEY_BYTES: usize = 16;

    fn load(part: &[u8]) -> Self {
        Self { first: super::head::u32_at(part, 0), len: super::head::u32_at(part, 4) }
    }

    /// The part of an entry that says so.
    pub fn part(&self) -> [u8; Self::VALUE_BYTES] {
        (u64::from(self.first) | u64::from(self.len) << 32).to_le_bytes()
    }

    /// The part of an entry that says so of a key.
    pub fn key_part(&self, hash: u64) -> [u8; Self::KEY_BYTES] {
        (u128::from(self.first) | u128::from(self.len) << 32 | u128::from(hash) << 64).to_le_bytes()
    }
}
