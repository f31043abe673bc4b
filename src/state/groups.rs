//! The hash table inside a page: groups of seven slots. It knows where slots are and which may hold a hash, not what is
//! in them.
//!
//! A group is a word of eight bytes and seven slots. The low seven bytes of the word are the slots' tags: 0 for an empty
//! slot, else 128 + 7 bits of the hash. The highest byte counts the entries that wanted this group, or passed it,
//! and stand in a later one (255: so many or more): where it is 0 a look-up may stop, and nothing needs a tombstone. The
//! idea of that count is from F14 (Bronson and Shi, Facebook, 2019).

use super::head::HEAD_BYTES;
use crate::page::{equal_bytes, high_bits};

/// Slots of a group.
pub(super) const LANES: usize = 7;
pub(super) const WORD_BYTES: usize = 8;
/// So many slots of a group are used in a page whose heap is used up. They are small, and a key that is not in its first group
/// takes the processor by surprise.
pub(super) const USED_LANES: usize = 4;
/// A bit for each.
const ALL_LANES: u32 = (1 << LANES) - 1;
/// The bit of a tag that is set if the slot is taken.
const TAKEN: u64 = 0x80;
const PASSED_SHIFT: u32 = 56;
/// A count that has reached this stays until the page is built anew.
const PASSED_MAX: u64 = 255;

/// How the groups of a page lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub groups: usize,
    pub slot_bytes: usize,
}

impl Shape {
    /// Bytes from one group to the next: rounded up to whole cache lines where that wastes at most an eighth.
    #[inline(always)]
    pub const fn stride(slot_bytes: usize) -> usize {
        let bytes = WORD_BYTES + LANES * slot_bytes;
        let lines = bytes.next_multiple_of(64);
        if lines - bytes <= bytes / 8 { lines } else { bytes.next_multiple_of(8) }
    }

    /// As many groups as a page takes.
    pub const fn filling(page_bytes: usize, slot_bytes: usize) -> Self {
        Self { groups: (page_bytes - HEAD_BYTES) / Self::stride(slot_bytes), slot_bytes }
    }

    /// How many entries a page takes before look-ups get long.
    pub const fn limit(&self) -> usize {
        let slots = self.groups * LANES;
        slots - slots / 8
    }

    /// Bytes of groups that so many entries of a heap take.
    pub const fn bytes_of(&self, entries: usize) -> usize {
        entries * Self::stride(self.slot_bytes) / USED_LANES
    }

    /// Whether so many groups (at least one) fit in a page.
    pub const fn is_within(&self, page_bytes: usize) -> bool {
        self.groups > 0 && self.end() <= page_bytes
    }

    /// Where the groups end.
    #[inline(always)]
    pub const fn end(&self) -> usize {
        HEAD_BYTES + self.groups * Self::stride(self.slot_bytes)
    }

    /// The number of the group that a hash wants.
    #[inline(always)]
    pub fn wanted(&self, hash: u64) -> u32 {
        // The low half of the hash: the directory uses the high one.
        ((u64::from(hash as u32) * self.groups as u64) >> 32) as u32
    }

    /// Where the group begins that a hash wants.
    #[inline(always)]
    pub fn home(&self, hash: u64) -> usize {
        HEAD_BYTES + self.wanted(hash) as usize * Self::stride(self.slot_bytes)
    }

    #[inline(always)]
    pub fn following(&self, group: usize) -> usize {
        let next = group + Self::stride(self.slot_bytes);
        if next >= self.end() { HEAD_BYTES } else { next }
    }

    #[inline(always)]
    fn slot(&self, group: usize, lane: u32) -> usize {
        group + WORD_BYTES + lane as usize * self.slot_bytes
    }

    /// The slot (by its offset in the page) for which `is_key` says so, among those that may hold the hash.
    #[inline(always)] // So that sizes which the caller knows at compile time stay known.
    pub fn find(&self, page: &[u8], hash: u64, mut is_key: impl FnMut(usize) -> bool) -> Option<usize> {
        let mut group = self.home(hash);
        for _ in 0..self.groups {
            let word = word_at(page, group);
            for lane in Lanes::of(word, hash) {
                let slot = self.slot(group, lane);
                if is_key(slot) {
                    return Some(slot);
                }
            }
            if is_last(word) {
                return None;
            }
            group = self.following(group);
        }
        None
    }

    /// Goes through the slots that may hold the hash.
    #[inline(always)]
    pub fn search(&self, page: &[u8], hash: u64) -> Search {
        let group = self.home(hash);
        let word = word_at(page, group);
        Search { shape: *self, hash, group, word, hits: Lanes::of(word, hash), left: self.groups }
    }

    /// The first slot of the group at `home` that may hold the hash.
    #[inline(always)]
    pub fn first_at(&self, page: &[u8], home: usize, hash: u64) -> Option<usize> {
        Lanes::of(word_at(page, home), hash).next().map(|lane| self.slot(home, lane))
    }

    /// Takes a free slot for a hash. The page has one: it holds fewer entries than [`Shape::limit`].
    #[inline(always)]
    pub fn claim(&self, page: &mut [u8], hash: u64) -> usize {
        let mut group = self.home(hash);
        for _ in 0..self.groups {
            let word = word_at(page, group);
            if let Some(lane) = Lanes::free(word).first() {
                page[group + lane as usize] = tag(hash);
                return self.slot(group, lane);
            }
            if word >> PASSED_SHIFT < PASSED_MAX {
                page[group + LANES] += 1;
            }
            group = self.following(group);
        }
        unreachable!("a page with all slots taken was asked for one more")
    }

    /// Empties the slot that `find` or `claim` gave for this hash.
    #[inline(always)]
    pub fn release(&self, page: &mut [u8], hash: u64, slot: usize) {
        let stride = Self::stride(self.slot_bytes);
        let index = (slot - WORD_BYTES - HEAD_BYTES) / stride;
        let group = HEAD_BYTES + index * stride;
        page[group + self.lane(slot - group)] = 0;
        let mut passed = self.home(hash);
        while passed != group {
            let count = &mut page[passed + LANES];
            if u64::from(*count) < PASSED_MAX {
                *count = count.saturating_sub(1);
            }
            passed = self.following(passed);
        }
    }

    #[inline(always)]
    fn lane(&self, in_group: usize) -> usize {
        // Slots of no bytes all stand in one place; only a table of one key has them.
        (in_group - WORD_BYTES).checked_div(self.slot_bytes).unwrap_or(0)
    }

    /// The slots that are taken.
    #[inline]
    pub fn taken(self, page: &[u8]) -> impl Iterator<Item = usize> {
        (0..self.groups).flat_map(move |index| {
            let group = HEAD_BYTES + index * Self::stride(self.slot_bytes);
            Lanes::taken(word_at(page, group)).map(move |lane| self.slot(group, lane))
        })
    }
}

/// A walk through the slots of a page that may hold a hash. For those whose comparing is so long that the compiler would make
/// a function of it if it were a closure.
pub(super) struct Search {
    shape: Shape,
    hash: u64,
    group: usize,
    word: u64,
    /// Those slots of the group that are still to be looked at.
    hits: Lanes,
    /// Groups that are left.
    left: usize,
}

impl Search {
    /// The next slot. `page` is always the same.
    #[inline(always)]
    pub fn next(&mut self, page: &[u8]) -> Option<usize> {
        loop {
            if let Some(lane) = self.hits.next() {
                return Some(self.shape.slot(self.group, lane));
            }
            self.left -= 1;
            if is_last(self.word) || self.left == 0 {
                return None;
            }
            self.group = self.shape.following(self.group);
            self.word = word_at(page, self.group);
            self.hits = Lanes::of(self.word, self.hash);
        }
    }
}

/// Lanes of a group, the lowest first: a bit for each.
#[derive(Clone, Copy)]
pub(super) struct Lanes(u32);

impl Lanes {
    /// Those whose tag is that of a hash.
    #[inline(always)]
    pub fn of(word: u64, hash: u64) -> Self {
        Self(equal_bytes(word, hash | TAKEN) & ALL_LANES)
    }

    /// The lowest.
    #[inline(always)]
    pub fn first(self) -> Option<u32> {
        (self.0 != 0).then(|| self.0.trailing_zeros())
    }

    /// All but the lowest, of which there is one.
    #[inline(always)]
    pub fn without_first(self) -> Self {
        Self(self.0 & (self.0 - 1))
    }

    /// Those that are taken.
    #[inline(always)]
    pub fn taken(word: u64) -> Self {
        Self(high_bits(word) & ALL_LANES)
    }

    /// Those that are free.
    #[inline(always)]
    fn free(word: u64) -> Self {
        Self::taken(!word)
    }
}

impl Iterator for Lanes {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        let lane = self.first()?;
        *self = self.without_first();
        Some(lane)
    }
}

/// Whether nothing that wanted the group of this word, or passed it, stands in a later one.
#[inline(always)]
pub(super) fn is_last(word: u64) -> bool {
    word >> PASSED_SHIFT == 0
}

#[inline(always)]
fn tag(hash: u64) -> u8 {
    (hash | TAKEN) as u8
}

#[inline(always)]
fn word_at(page: &[u8], group: usize) -> u64 {
    u64::from_le_bytes(page[group..group + WORD_BYTES].try_into().expect("eight bytes"))
}
