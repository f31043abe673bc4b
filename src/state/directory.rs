//! Which bucket holds a hash: one page id for each prefix of the current length within the task's range. Kept in memory
//! only. It knows neither pages nor entries.
//!
//! One bit more doubles it. So that this is no step in anybody's latency, the longer one begins empty, and takes over what the
//! shorter one says bit by bit; until that is done, what is not in the one is in the other.

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
/// So many entries of the shorter table are taken over whenever a bucket changes: much more than one, so that it is done long
/// before the next bit.
const TAKEN_OVER: usize = 64;

pub(super) struct Directory {
    range: HashRange,
    now: Level,
    /// What was there before one bit was added, as long as some of it has not been taken over: from `next` on.
    before: Option<Level>,
    next: usize,
}

/// One entry for each prefix of a length.
struct Level {
    /// 64 - bits of a prefix; at most 63.
    shift: u32,
    /// The prefix of the first entry.
    first: u64,
    /// Page ids plus 1; 0: none, or not here yet. The system gives memory that is zero as it is touched.
    buckets: Vec<u32>,
}

impl Level {
    fn new(range: HashRange, depth: u32) -> Self {
        let shift = 64 - depth.max(1);
        let first = range.start >> shift;
        let len = (range.end_inclusive >> shift) - first + 1;
        Self { shift, first, buckets: vec![0; len as usize] }
    }

    #[inline(always)]
    fn bucket_of(&self, hash: u64) -> Option<PageId> {
        let at = (hash >> self.shift).wrapping_sub(self.first) as usize;
        self.buckets.get(at).and_then(|id| id.checked_sub(1))
    }

    /// The entries of a region that meets the range.
    fn entries(&self, region: HashRange, range: HashRange) -> std::ops::RangeInclusive<usize> {
        let at = |hash: u64| ((hash >> self.shift) - self.first) as usize;
        at(region.start.max(range.start))..=at(region.end_inclusive.min(range.end_inclusive))
    }

    /// Takes over what a level that is one bit shorter has for an entry, if this one has nothing.
    fn take_over(&mut self, at: usize, before: &Self) {
        if self.buckets[at] == 0 {
            self.buckets[at] = before.buckets[((self.first + at as u64) / 2 - before.first) as usize];
        }
    }
}

impl Directory {
    /// All holes, for prefixes of so many bits (at least one).
    pub fn new(range: HashRange, depth: u32) -> Self {
        Self { range, now: Level::new(range, depth), before: None, next: 0 }
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
    #[inline(always)]
    pub fn bucket_of(&self, hash: u64) -> PageId {
        match self.now.bucket_of(hash) {
            Some(bucket) => bucket,
            None => self.bucket_before(hash),
        }
    }

    #[cold]
    #[inline(never)]
    fn bucket_before(&self, hash: u64) -> PageId {
        let bucket = self.before.as_ref().and_then(|before| before.bucket_of(hash));
        bucket.expect("a record came to the wrong task: its key must follow from the record alone, every time it is asked for")
    }

    /// Points all hashes of a prefix to a bucket. Says whether there were only holes before.
    pub fn point(&mut self, prefix: u64, depth: u32, bucket: PageId) -> bool {
        while 64 - self.now.shift < depth {
            self.deepen();
        }
        self.go_on(TAKEN_OVER);
        let entries = self.now.entries(HashRange::of_prefix(prefix, depth), self.range);
        if let Some(before) = &self.before {
            entries.clone().for_each(|at| self.now.take_over(at, before));
        }
        let entries = &mut self.now.buckets[entries];
        let was_free = entries.iter().all(|&entry| entry == 0);
        entries.fill(bucket + 1);
        was_free
    }

    /// One bit more.
    fn deepen(&mut self) {
        self.finish();
        let longer = Level::new(self.range, 64 - self.now.shift + 1);
        self.before = Some(std::mem::replace(&mut self.now, longer));
        self.next = 0;
    }

    /// Takes over up to so many entries of the shorter level.
    fn go_on(&mut self, entries: usize) {
        let Some(before) = &self.before else { return };
        let stop = self.now.buckets.len().min(self.next + 2 * entries);
        (self.next..stop).for_each(|at| self.now.take_over(at, before));
        self.next = stop;
        if stop == self.now.buckets.len() {
            self.before = None;
        }
    }

    /// Takes over all that is left.
    fn finish(&mut self) {
        self.go_on(self.now.buckets.len());
    }

    /// The longest prefix regions within the range that hold nothing but holes.
    pub fn holes(&mut self) -> Vec<(u64, u32)> {
        self.finish();
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
        let entries = &self.now.buckets[self.now.entries(region, self.range)];
        if entries.iter().all(|&entry| entry == 0) {
            holes.push((region.start, depth));
        } else if entries.contains(&0) {
            self.holes_in(region.start, depth + 1, holes);
            self.holes_in(region.start | 1 << (63 - depth), depth + 1, holes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::range_of;
    use super::*;

    /// Splits buckets at random, and asks for the bucket of many hashes after each.
    #[test]
    fn it_knows_every_bucket_while_it_grows() {
        for (task, tasks) in [(0, 1), (2, 3), (4095, 4096)] {
            let range = range_of(task, tasks);
            let mut directory = Directory::new(range, 1);
            let holes = directory.holes();
            let mut buckets: Vec<(u64, u32)> = Vec::new();
            for (prefix, depth) in holes {
                assert!(directory.point(prefix, depth, buckets.len() as u32));
                buckets.push((prefix, depth));
            }
            let mut random = 7_u64;
            for _ in 0..3000 {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let split = (random >> 33) as usize % buckets.len();
                let (prefix, depth) = buckets[split];
                if !Directory::admits(range, depth + 1, buckets.len() as u64) {
                    continue;
                }
                let new = (prefix | 1 << (63 - depth), depth + 1);
                assert!(!directory.point(prefix, depth + 1, split as u32));
                assert!(!directory.point(new.0, new.1, buckets.len() as u32));
                buckets[split].1 += 1;
                buckets.push(new);
                for at in [split, buckets.len() - 1, (random >> 20) as usize % buckets.len()] {
                    let region = HashRange::of_prefix(buckets[at].0, buckets[at].1);
                    for hash in [region.start, region.end_inclusive, region.start + (region.end_inclusive - region.start) / 3] {
                        assert_eq!(directory.bucket_of(hash), at as u32);
                    }
                }
            }
            assert!(buckets.len() > 1000 && directory.holes().is_empty());
        }
    }

    #[test]
    #[should_panic(expected = "a record came to the wrong task")]
    fn a_hash_of_another_task_is_told() {
        let range = range_of(1, 4);
        let mut directory = Directory::new(range, 1);
        directory.point(range.start, 2, 0);
        directory.bucket_of(range.end_inclusive + 1);
    }
}
