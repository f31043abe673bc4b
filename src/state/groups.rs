//! The hash table inside a page: groups of seven slots. It knows where slots are and which may hold a hash, not what is
//! in them.
//!
//! A group is a word of eight bytes and seven slots. The low seven bytes of the word are the slots' tags: 0 for an empty
//! slot, else 128 + 7 bits of the hash. The highest byte counts the entries that wanted this group, or passed it,
//! and stand in a later one (255: so many or more): where it is 0 a look-up may stop, and nothing needs a tombstone. The
//! idea of that count is from F14 (Bronson and Shi, Facebook, 2019).

use super::head::HEAD_BYTES;

/// Slots of a group.
pub(super) const LANES: usize = 7;
const WORD_BYTES: usize = 8;
const ONES: u64 = 0x0001_0101_0101_0101;
const HIGHS: u64 = ONES << 7;
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

    /// Bytes of groups that so many entries take in a page that is used up.
    pub const fn bytes_of(&self, entries: usize) -> usize {
        entries * Self::stride(self.slot_bytes) / (LANES - 1)
    }

    /// Whether so many groups (at least one) fit in a page.
    pub const fn is_within(&self, page_bytes: usize) -> bool {
        self.groups > 0 && self.end() <= page_bytes
    }

    /// Where the groups end.
    pub const fn end(&self) -> usize {
        HEAD_BYTES + self.groups * Self::stride(self.slot_bytes)
    }

    /// Where the group begins that a hash wants.
    #[inline(always)]
    pub fn home(&self, hash: u64) -> usize {
        // The low half of the hash: the directory uses the high one.
        let group = (u64::from(hash as u32) * self.groups as u64) >> 32;
        HEAD_BYTES + group as usize * Self::stride(self.slot_bytes)
    }

    #[inline(always)]
    fn following(&self, group: usize) -> usize {
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
        let mut search = self.search(page, hash);
        loop {
            let slot = search.next(page)?;
            if is_key(slot) {
                return Some(slot);
            }
        }
    }

    /// Goes through the slots that may hold the hash.
    #[inline(always)]
    pub fn search(&self, page: &[u8], hash: u64) -> Search {
        let group = self.home(hash);
        let word = word_at(page, group);
        Search { shape: *self, hash, group, word, hits: hits(word, hash), left: self.groups }
    }

    /// The first slot of the group at `home` that may hold the hash.
    #[inline(always)]
    pub fn first_at(&self, page: &[u8], home: usize, hash: u64) -> Option<usize> {
        let hits = hits(word_at(page, home), hash);
        (hits != 0).then(|| self.slot(home, hits.trailing_zeros() / 8))
    }

    /// Takes a free slot for a hash. The page has one: it holds fewer entries than [`Shape::limit`].
    pub fn claim(&self, page: &mut [u8], hash: u64) -> usize {
        let mut group = self.home(hash);
        for _ in 0..self.groups {
            let word = word_at(page, group);
            let free = !word & HIGHS;
            if free != 0 {
                let lane = free.trailing_zeros() / 8;
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
    pub fn release(&self, page: &mut [u8], hash: u64, slot: usize) {
        let stride = Self::stride(self.slot_bytes);
        let index = (slot - HEAD_BYTES) / stride;
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

    fn lane(&self, in_group: usize) -> usize {
        // Slots of no bytes all stand in one place; only a table of one key has them.
        (in_group - WORD_BYTES).checked_div(self.slot_bytes).unwrap_or(0)
    }

    /// The slots that are taken.
    pub fn taken(self, page: &[u8]) -> impl Iterator<Item = usize> {
        (0..self.groups).flat_map(move |index| {
            let group = HEAD_BYTES + index * Self::stride(self.slot_bytes);
            let word = word_at(page, group);
            (0..LANES as u32).filter(move |lane| word >> (8 * lane) & 0x80 != 0).map(move |lane| self.slot(group, lane))
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
    hits: u64,
    /// Groups that are left.
    left: usize,
}

impl Search {
    /// The next slot. `page` is always the same.
    #[inline(always)]
    pub fn next(&mut self, page: &[u8]) -> Option<usize> {
        while self.hits == 0 {
            self.left -= 1;
            if self.word >> PASSED_SHIFT == 0 || self.left == 0 {
                return None;
            }
            self.group = self.shape.following(self.group);
            self.word = word_at(page, self.group);
            self.hits = hits(self.word, self.hash);
        }
        let slot = self.shape.slot(self.group, self.hits.trailing_zeros() / 8);
        self.hits &= self.hits - 1;
        Some(slot)
    }
}

/// The highest bits of the bytes of a group's word that are the tag of a hash; above one that is, a byte that differs in the
/// lowest bit may look so too, and the key will tell.
#[inline(always)]
fn hits(word: u64, hash: u64) -> u64 {
    let differ = word ^ (u64::from(tag(hash)) * ONES);
    differ.wrapping_sub(ONES) & !differ & HIGHS
}

#[inline]
fn tag(hash: u64) -> u8 {
    hash as u8 | 0x80
}

#[inline]
fn word_at(page: &[u8], group: usize) -> u64 {
    u64::from_le_bytes(page[group..group + WORD_BYTES].try_into().expect("eight bytes"))
}
