//! Which bucket holds a hash: one page id for each prefix of the current length within the task's range. Kept in memory
//! only. It knows neither pages nor entries.

use super::StateError;
use super::range::HashRange;
use super::room::Region;
use crate::page::PageId;

/// Bits that a prefix may have at most: the other half of the hash finds the slot within a page.
pub(super) const DEPTH_MAX: u32 = 32;
/// How many entries per bucket the directory may have: so that keys which agree in a long prefix (by chance or by malice)
/// make a chain, not a huge directory.
const ENTRIES_PER_BUCKET: u64 = 16;
/// A few more buckets count than there are, so that small tables split freely.
const BUCKETS_FREE: u64 = 64;
/// No bucket.
const HOLE: PageId = PageId::MAX;

pub(super) struct Directory {
    range: HashRange,
    /// 64 - bits of a prefix; at most 63.
    shift: u32,
    /// The prefix of the first entry.
    first: u64,
    buckets: Vec<PageId>,
}

impl Directory {
    /// All holes, for prefixes of so many bits (at least one).
    pub fn new(range: HashRange, depth: u32) -> Self {
        let shift = 64 - depth.max(1);
        let first = range.start >> shift;
        let len = (range.end_inclusive >> shift) - first + 1;
        Self { range, shift, first, buckets: vec![HOLE; len as usize] }
    }

    /// Of these buckets and no others.
    pub fn of(range: HashRange, buckets: &[(PageId, Region)]) -> Result<Self, StateError> {
        let mut this = Self::new(range, 1);
        for &(id, Region { prefix, depth }) in buckets {
            if !Self::admits(range, depth, buckets.len() as u64) {
                return Err(StateError::corrupt(format!("page {id} has a prefix of {depth} bits")));
            }
            if !this.point(prefix, depth, id) {
                return Err(StateError::corrupt(format!("page {id} has a prefix that another page has too")));
            }
        }
        match this.holes().first() {
            Some((prefix, depth)) => {
                Err(StateError::corrupt(format!("no page has the prefix {prefix:#x} of {depth} bits")))
            }
            None => Ok(this),
        }
    }

    /// Whether a directory for prefixes of `depth` bits is in proportion to the number of buckets.
    pub fn admits(range: HashRange, depth: u32, buckets: u64) -> bool {
        let shift = 64 - depth.clamp(1, DEPTH_MAX);
        let len = (range.end_inclusive >> shift) - (range.start >> shift) + 1;
        depth <= DEPTH_MAX && len <= ENTRIES_PER_BUCKET * (buckets + BUCKETS_FREE)
    }

    /// The bucket of a hash.
    ///
    /// # Panics
    /// The hash is outside of the range: a record came to the wrong task.
    #[inline]
    pub fn bucket_of(&self, hash: u64) -> PageId {
        let at = (hash >> self.shift).wrapping_sub(self.first) as usize;
        self.buckets.get(at).copied().unwrap_or_else(wrong_task)
    }

    /// Points all hashes of a prefix to a bucket. Says whether there were only holes before.
    pub fn point(&mut self, prefix: u64, depth: u32, bucket: PageId) -> bool {
        while 64 - self.shift < depth {
            self.deepen();
        }
        let region = HashRange::of_prefix(prefix, depth);
        let from = (region.start.max(self.range.start) >> self.shift) - self.first;
        let to = (region.end_inclusive.min(self.range.end_inclusive) >> self.shift) - self.first;
        let entries = &mut self.buckets[from as usize..=to as usize];
        let was_free = entries.iter().all(|&entry| entry == HOLE);
        entries.fill(bucket);
        was_free
    }

    /// One bit more.
    fn deepen(&mut self) {
        let mut next = Self::new(self.range, 64 - self.shift + 1);
        for (prefix, entry) in (next.first..).zip(&mut next.buckets) {
            *entry = self.buckets[(prefix / 2 - self.first) as usize];
        }
        *self = next;
    }

    /// The longest prefix regions within the range that hold nothing but holes.
    pub fn holes(&self) -> Vec<(u64, u32)> {
        let mut holes = Vec::new();
        let depth = (self.range.start ^ self.range.end_inclusive).leading_zeros().min(DEPTH_MAX);
        self.holes_in(self.range.start, depth, &mut holes);
        holes
    }

    fn holes_in(&self, prefix: u64, depth: u32, holes: &mut Vec<(u64, u32)>) {
        let region = HashRange::of_prefix(prefix, depth);
        if !region.meets(&self.range) {
            return;
        }
        let from = (region.start.max(self.range.start) >> self.shift) - self.first;
        let to = (region.end_inclusive.min(self.range.end_inclusive) >> self.shift) - self.first;
        let entries = &self.buckets[from as usize..=to as usize];
        if entries.iter().all(|&entry| entry == HOLE) {
            holes.push((region.start, depth));
        } else if entries.contains(&HOLE) {
            self.holes_in(region.start, depth + 1, holes);
            self.holes_in(region.start | 1 << (63 - depth), depth + 1, holes);
        }
    }
}

/// The task was chosen by the key of a record, and the key was another one when the record arrived.
#[cold]
#[inline(never)]
fn wrong_task() -> PageId {
    panic!("a record came to the wrong task: its key must follow from the record alone, every time it is asked for")
}
