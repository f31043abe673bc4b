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
use super::layout::Layout;
use super::{Encoding, Hasher};
use crate::page::PageId;
use crate::record::{SHORT, quarters};

/// Bytes in front of an entry's parts.
pub(super) const ENTRY_BYTES: usize = 8;
/// The key lies in pages of its own.
pub(super) const KEY_LONG: u16 = 1;
/// The value lies in pages of its own.
pub(super) const VALUE_LONG: u16 = 2;

/// The numbers in front of an entry's parts.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// Bytes of the key part, of the value part, and of the room for that.
    pub key: usize,
    pub value: usize,
    pub room: usize,
    pub flags: u16,
}

impl Sizes {
    /// Those of the entry at an offset of the heap.
    #[inline(always)]
    pub fn load(page: &[u8], at: usize) -> Self {
        Self::of_word(word_at(page, at))
    }

    #[inline(always)]
    fn of_word(word: u64) -> Self {
        let field = |index: u32| usize::from((word >> (16 * index)) as u16);
        Self { key: field(0), value: field(1), room: field(2), flags: (word >> 48) as u16 }
    }
}

/// The numbers in front of the parts of the entry at an offset of the heap, in one access.
#[inline(always)]
fn word_at(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*page[at..].first_chunk().expect("an entry lies within its page"))
}

/// Where the entry of a key may be in a page: by its tag. True until something moves.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    /// Offset of its slot.
    slot: usize,
    /// Its own offset.
    pub at: usize,
}

impl Spot {
    /// The first in the group that a hash wants, which begins at `home`.
    #[inline(always)]
    pub fn first(page: &[u8], home: usize, hash: u64) -> Option<Self> {
        let slot = Layout::Heap.shape_of(page).first_at(page, home, hash)?;
        Some(Self { slot, at: usize::from(u16_at(page, slot)) })
    }

    /// The entry, if it is that of a key which lies in this page.
    #[inline(always)]
    pub fn of_key(self, page: &[u8], key: &[u8]) -> Option<Found> {
        let Self { slot, at } = self;
        let word = word_at(page, at);
        // The key part is as long, and not that of a long key.
        let may_be = word & (0xffff | u64::from(KEY_LONG) << 48) == key.len() as u64;
        let is_it = may_be && are_equal(&page[at + ENTRY_BYTES..][..key.len()], key);
        is_it.then(|| Found { slot, at, sizes: Sizes::of_word(word) })
    }
}

/// An entry of the heap that was found by its key.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// Offset of its slot.
    pub slot: usize,
    /// Its own offset.
    pub at: usize,
    pub sizes: Sizes,
}

impl Found {
    /// The offset of the value part.
    #[inline(always)]
    pub fn value_at(&self) -> usize {
        self.at + ENTRY_BYTES + self.sizes.key
    }

    /// The value part.
    #[inline(always)]
    pub fn value<'a>(&self, page: &'a [u8]) -> &'a [u8] {
        &page[self.value_at()..][..self.sizes.value]
    }

    /// Sets the value part, for which there is room.
    #[inline(always)]
    pub fn overwrite(&self, page: &mut [u8], value: &[u8]) {
        page[self.at + 2..self.at + 4].copy_from_slice(&(value.len() as u16).to_le_bytes());
        page[self.value_at()..][..value.len()].copy_from_slice(value);
    }
}

/// The entry of a key that lies in its page, if it is in this one. As a rule it is where it was looked for ahead.
#[inline(always)]
pub(super) fn find_at(page: &[u8], spot: Option<Spot>, hash: u64, key: &[u8]) -> Option<Found> {
    if let Some(spot) = spot
        && let Some(found) = spot.of_key(page, key)
    {
        return Some(found);
    }
    find_short(page, hash, key)
}

/// The same wherever it is.
#[inline(always)]
pub(super) fn find_short(page: &[u8], hash: u64, key: &[u8]) -> Option<Found> {
    let mut search = Layout::Heap.shape_of(page).search(page, hash);
    loop {
        let slot = search.next(page)?;
        let spot = Spot { slot, at: usize::from(u16_at(page, slot)) };
        if let Some(found) = spot.of_key(page, key) {
            return Some(found);
        }
    }
}

/// Whether two byte strings of the same length are equal: without a call if they are as short as words are.
#[inline(always)]
fn are_equal(a: &[u8], b: &[u8]) -> bool {
    if SHORT.contains(&a.len()) { quarters(a) == quarters(b) } else { a == b }
}

/// Whether the entry at an offset of the heap is that of a key which lies in its page, with a value of so many bytes there.
#[inline(always)]
pub(super) fn is_of_key(page: &[u8], at: usize, key: Encoding<'_>, value_bytes: usize) -> bool {
    let differ = |len| (word_at(page, at) ^ (len as u64 | (value_bytes as u64) << 16)) & !(0xffff << 32);
    let there = &page[at + ENTRY_BYTES..];
    match (key, there.first_chunk()) {
        // Without a branch between sizes and bytes.
        (Encoding::Short(key), Some(there)) => differ(key.len()) | key.differs_from(*there) == 0,
        // Right at the end of the page.
        (Encoding::Short(key), None) => differ(key.len()) == 0 && there.starts_with(key.bytes()),
        // One that is longer than a length can say is none that lies in its page.
        (Encoding::Long(key), _) => key.len() < 1 << 16 && differ(key.len()) == 0 && there.starts_with(key),
    }
}

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
        let sizes = Sizes::load(page, at);
        let (key, rest) = page[at + ENTRY_BYTES..].split_at(sizes.key);
        Self { key, value: &rest[..sizes.value], value_room: sizes.room, flags: sizes.flags }
    }

    /// Bytes that it takes in the heap.
    pub fn bytes(&self) -> usize {
        ENTRY_BYTES + self.key.len() + self.value_room
    }

    /// The same without room to spare.
    pub fn trimmed(self) -> Self {
        Self { value_room: self.value.len(), ..self }
    }

    /// The hash of its key.
    pub fn hash(&self, hasher: &Hasher) -> u64 {
        self.long_key_hash().unwrap_or_else(|| hasher.hash_bytes(self.key))
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
