//! Which bucket holds a hash: one page id for each prefix of the current length within the task's range. Kept in memory
//! only. It knows neither pages nor entries.
//!
//! Hashes are spread evenly, and then all buckets lie about equally deep. Not so where many entries must share a prefix: the
//! elements of one key's list or map all belong to the key group of that key. There buckets lie deeper than elsewhere, and
//! the entry of the region names a *deeper* directory, for that region alone.

mod deeper;
mod depths;
mod filling;

use super::range::HashRange;
use super::room::Region;
use crate::page::{Large, PageId};
use deeper::{Deeper, is_time};
pub(super) use depths::Depths;
pub(super) use filling::EachBucket;

/// Bits that a prefix may have at most: the other half of the hash finds the slot within a page.
pub(super) const DEPTH_MAX: u32 = 32;
/// How many entries per bucket the directory may have: so that keys which agree in a long prefix (by chance or by malice)
/// make a chain, not a huge directory. The same holds for each deeper one.
const ENTRIES_PER_BUCKET: u64 = 16;
/// Above so many entries per bucket it is to become smaller.
const ENTRIES_PER_BUCKET_TOO_MANY: u64 = 32;
/// So many entries are got ready for one bit more whenever a bucket changes: far more than one, so that it is done in time.
const GOT_READY: usize = 64;
/// By so many bits a bucket may lie deeper than a directory in proportion, whatever else there is: see [`Depths::admit`].
const DEEPER_BITS: u32 = 10;
/// A few more buckets count than there are, so that small tables split freely.
const BUCKETS_FREE: u64 = 64;
/// No bucket.
const HOLE: PageId = PageId::MAX;
/// Plus its number: a deeper directory. Page ids are lower.
const DEEPER: PageId = 1 << 31;

pub(super) struct Directory {
    range: HashRange,
    /// 64 - bits of a prefix; at most 63.
    shift: u32,
    /// The prefix of the first entry.
    first: u64,
    buckets: Large<PageId>,
    /// By number. One without buckets is not in use.
    deeper: Vec<Deeper>,
    /// Merges since it was last looked at whether it can be halved.
    merges: usize,
    /// See [`Directory::changes`].
    changes: u64,
    /// What the entries will be with one bit more, as far as that has been got ready: a bit of it whenever a bucket changes, so
    /// that it is no step in anybody's latency when it is needed.
    next: Vec<PageId>,
}

const _: () = assert!(1 << DEEPER_BITS <= ENTRIES_PER_BUCKET * BUCKETS_FREE);

impl Directory {
    /// All holes, for prefixes of so many bits (at least one).
    pub fn new(range: HashRange, depth: u32) -> Self {
        let shift = 64 - depth.max(1);
        let first = range.start >> shift;
        let len = (range.end_inclusive >> shift) - first + 1;
        let buckets = Large::of(HOLE, len as usize);
        Self { range, shift, first, buckets, deeper: Vec::new(), merges: 0, changes: 0, next: Vec::new() }
    }

    /// Whether prefixes of `depth` bits throughout are in proportion to the number of buckets.
    fn admits(range: HashRange, depth: u32, buckets: u64) -> bool {
        let shift = 64 - depth.clamp(1, DEPTH_MAX);
        let len = (range.end_inclusive >> shift) - (range.start >> shift) + 1;
        depth <= DEPTH_MAX && len <= ENTRIES_PER_BUCKET * (buckets + BUCKETS_FREE)
    }

    fn depth(&self) -> u32 {
        64 - self.shift
    }

    /// The bucket of a hash.
    ///
    /// # Panics
    /// The hash is outside of the range: a record came to the wrong task.
    #[inline]
    pub fn bucket_of(&self, hash: u64) -> PageId {
        let entry = self.buckets.get(self.index_of(hash)).copied().unwrap_or_else(wrong_task);
        if entry < DEEPER { entry } else { self.bucket_below(entry, hash) }
    }

    /// Where in [`Directory::list`] its bucket stands, if not in a deeper directory. The hash may be outside of the range, and
    /// the place outside of the list.
    #[inline(always)]
    pub fn index_of(&self, hash: u64) -> usize {
        (hash >> self.shift).wrapping_sub(self.first) as usize
    }

    /// The buckets, region by region. What stands for others is no page's id.
    pub fn list(&self) -> &[PageId] {
        &self.buckets
    }

    /// A number that is another one after each change.
    #[inline(always)]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    #[cold]
    #[inline(never)]
    fn bucket_below(&self, entry: PageId, hash: u64) -> PageId {
        self.below(entry).map_or(HOLE, |deeper| deeper.buckets[deeper.at(hash)])
    }

    fn below(&self, entry: PageId) -> Option<&Deeper> {
        number(entry).map(|number| &self.deeper[number])
    }

    /// The last hash of the run of hashes around this one that have the same bucket.
    pub fn end_of(&self, hash: u64) -> u64 {
        let (bucket, mut at) = (self.bucket_of(hash), hash);
        loop {
            let entry = self.buckets[((at >> self.shift) - self.first) as usize];
            let shift = self.below(entry).map_or(self.shift, |deeper| deeper.shift);
            let end = (at | ((1 << shift) - 1)).min(self.range.end_inclusive);
            if end == self.range.end_inclusive || self.bucket_of(end + 1) != bucket {
                return end;
            }
            at = end + 1;
        }
    }

    /// Becomes deeper, up to `depth`, as far as is in proportion to so many buckets.
    pub fn grow(&mut self, depth: u32, buckets: u64) {
        while self.depth() < depth && Self::admits(self.range, self.depth() + 1, buckets) {
            self.deepen();
        }
    }

    /// Makes ready for a bucket of a region, beside so many others in the table. False if some directory would come out of
    /// proportion by it.
    pub fn make_way(&mut self, Region { prefix, depth }: Region, buckets: u64) -> bool {
        self.grow(depth, buckets);
        if depth <= self.depth() {
            return true;
        }
        let (at, _) = self.entries(prefix, depth);
        let count = self.below(self.buckets[at]).map_or(1, Deeper::count);
        depth <= DEPTH_MAX && 1 << (depth - self.depth()) <= ENTRIES_PER_BUCKET * count
    }

    /// Whether two buckets may become one, so that so many are left: a restore must be able to take in all of them, wherever
    /// they are.
    pub fn may_merge(&self, left: u64) -> bool {
        let in_use = self.deeper.iter().filter(|deeper| !deeper.buckets.is_empty());
        let deepest = in_use.map(|deeper| 64 - deeper.shift).fold(self.depth(), u32::max);
        Self::admits(self.range, deepest.saturating_sub(DEEPER_BITS), left)
    }

    /// Two buckets have become one of this prefix, or should have, and so many are left. A directory that is far too large for
    /// them is halved, as [`Deeper::halve_in_time`] does.
    pub fn halve_in_time(&mut self, Region { prefix, depth }: Region, left: u64) {
        if depth >= self.depth() {
            let (at, _) = self.entries(prefix, depth);
            if let Some(number) = number(self.buckets[at]) {
                self.deeper[number].halve_in_time();
            }
        }
        let is_too_large = self.buckets.len() as u64 > ENTRIES_PER_BUCKET_TOO_MANY * (left + BUCKETS_FREE);
        if is_time(&mut self.merges, self.buckets.len()) && is_too_large {
            self.halve();
        }
    }

    /// One bit less, if both entries of each pair are the same bucket.
    fn halve(&mut self) {
        let mut less = Self::new(self.range, self.depth() - 1);
        for (prefix, &bucket) in (self.first..).zip(&*self.buckets) {
            let entry = &mut less.buckets[(prefix / 2 - less.first) as usize];
            if bucket >= DEEPER || (*entry != HOLE && *entry != bucket) {
                return;
            }
            *entry = bucket;
        }
        *self = Self { changes: self.changes + 1, ..less };
    }

    /// How many entries it has.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Points all hashes of a prefix to a bucket. Says whether there were only holes before.
    pub fn point(&mut self, prefix: u64, depth: u32, bucket: PageId) -> bool {
        self.changes += 1;
        let was_free = self.put(prefix, depth, bucket);
        if depth <= self.depth() {
            let (from, to) = self.entries(prefix, depth);
            let ready = self.next.len();
            self.next[ready.min(2 * from)..ready.min(2 * to + 2)].fill(bucket);
            self.get_ready(GOT_READY);
        }
        was_free
    }

    /// The same, with nothing got ready.
    fn put(&mut self, prefix: u64, depth: u32, bucket: PageId) -> bool {
        let (from, to) = self.entries(prefix, depth);
        if depth > self.depth() {
            return self.put_below(from, prefix, depth, bucket);
        }
        let was_free = self.buckets[from..=to].iter().all(|&entry| entry == HOLE);
        for at in from..=to {
            if let Some(number) = number(std::mem::replace(&mut self.buckets[at], bucket)) {
                self.deeper[number] = Deeper::default();
            }
        }
        was_free
    }

    /// Gets so many further entries ready for one bit more. Not where there are deeper directories, or where an entry on the edge
    /// of the range is only half.
    fn get_ready(&mut self, entries: usize) {
        let is_whole =
            self.shift > 0 && (self.first << self.shift, self.last()) == (self.range.start, self.range.end_inclusive);
        if is_whole && self.deeper.is_empty() {
            self.next.reserve_exact(2 * self.buckets.len() - self.next.len());
            let from = self.next.len() / 2;
            let entries = &self.buckets[from..self.buckets.len().min(from + entries)];
            self.next.extend(entries.iter().flat_map(|&bucket| [bucket; 2]));
        }
    }

    /// The last hash that has an entry.
    fn last(&self) -> u64 {
        ((self.first + self.buckets.len() as u64 - 1) << self.shift) | ((1 << self.shift) - 1)
    }

    /// The same where a prefix is longer than those of this directory.
    fn put_below(&mut self, at: usize, prefix: u64, depth: u32, bucket: PageId) -> bool {
        self.next = Vec::new();
        let entry = self.buckets[at];
        let number = number(entry).unwrap_or_else(|| {
            self.buckets[at] = self.add(Deeper { shift: self.shift, buckets: vec![entry], merges: 0 });
            (self.buckets[at] - DEEPER) as usize
        });
        let deeper = &mut self.deeper[number];
        while 64 - deeper.shift < depth {
            deeper.shift -= 1;
            deeper.buckets = deeper.buckets.iter().flat_map(|&bucket| [bucket, bucket]).collect();
        }
        let from = deeper.at(prefix);
        let entries = &mut deeper.buckets[from..from + (1 << (64 - depth - deeper.shift))];
        let was_free = entries.iter().all(|&entry| entry == HOLE);
        entries.fill(bucket);
        was_free
    }

    /// Takes a directory in, and says how an entry names it.
    fn add(&mut self, deeper: Deeper) -> PageId {
        let number = self.deeper.iter().position(|deeper| deeper.buckets.is_empty()).unwrap_or(self.deeper.len());
        if number == self.deeper.len() {
            self.deeper.push(deeper);
        } else {
            self.deeper[number] = deeper;
        }
        DEEPER + number as PageId
    }

    /// The first and the last entry of the hashes that begin with a prefix.
    #[inline(always)]
    fn entries(&self, prefix: u64, depth: u32) -> (usize, usize) {
        let region = HashRange::of_prefix(prefix, depth);
        let from = (region.start.max(self.range.start) >> self.shift) - self.first;
        let to = (region.end_inclusive.min(self.range.end_inclusive) >> self.shift) - self.first;
        (from as usize, to as usize)
    }

    /// One bit more.
    fn deepen(&mut self) {
        self.get_ready(self.buckets.len());
        if self.next.len() == 2 * self.buckets.len() {
            self.buckets = std::mem::take(&mut self.next).into();
            (self.shift, self.first) = (self.shift - 1, 2 * self.first);
            self.changes += 1;
            return;
        }
        let mut next = Self::new(self.range, self.depth() + 1);
        for (prefix, &entry) in (self.first..).zip(&*self.buckets) {
            let halves = match number(entry) {
                Some(number) => next.halves(std::mem::take(&mut self.deeper[number])),
                None => [entry; 2],
            };
            for (prefix, half) in (2 * prefix..).zip(halves) {
                // On the edge of the range one half may lie outside.
                let at = prefix.checked_sub(next.first).map(|at| at as usize);
                if let Some(place) = at.and_then(|at| next.buckets.get_mut(at)) {
                    *place = half;
                }
            }
        }
        *self = Self { changes: self.changes + 1, ..next };
    }

    /// Takes in what becomes of a deeper directory when this one has become a bit deeper itself.
    fn halves(&mut self, deeper: Deeper) -> [PageId; 2] {
        // All of its buckets have become one.
        if let [bucket] = *deeper.buckets {
            return [bucket; 2];
        }
        let (low, high) = deeper.buckets.split_at(deeper.buckets.len() / 2);
        [low, high].map(|half| match *half {
            [bucket] => bucket,
            _ => self.add(Deeper { shift: deeper.shift, buckets: half.to_vec(), merges: 0 }),
        })
    }

    /// The longest prefix regions within the range that hold nothing but holes.
    pub fn holes(&self) -> Vec<(u64, u32)> {
        let mut holes = Vec::new();
        let mut below = self.deeper.iter().map(|deeper| &deeper.buckets);
        if !self.buckets.contains(&HOLE) && !below.any(|buckets| buckets.contains(&HOLE)) {
            return holes;
        }
        let depth = (self.range.start ^ self.range.end_inclusive).leading_zeros().min(DEPTH_MAX);
        self.holes_in(self.range.start, depth, &mut holes);
        holes
    }

    fn holes_in(&self, prefix: u64, depth: u32, holes: &mut Vec<(u64, u32)>) {
        let region = HashRange::of_prefix(prefix, depth);
        if !region.meets(&self.range) {
            return;
        }
        let (mut all, mut any) = (true, false);
        let mut look = |entry: PageId| {
            all &= entry == HOLE;
            any |= entry == HOLE;
        };
        let (from, to) = self.entries(prefix, depth);
        for &entry in &self.buckets[from..=to] {
            match self.below(entry) {
                Some(deeper) if depth <= self.depth() => deeper.buckets.iter().for_each(|&entry| look(entry)),
                Some(deeper) => {
                    let from = deeper.at(region.start);
                    deeper.buckets[from..=deeper.at(region.end_inclusive)].iter().for_each(|&entry| look(entry));
                }
                None => look(entry),
            }
        }
        if all {
            holes.push((region.start, depth));
        } else if any {
            self.holes_in(region.start, depth + 1, holes);
            self.holes_in(region.start | 1 << (63 - depth), depth + 1, holes);
        }
    }
}

/// The number of the deeper directory that an entry names.
fn number(entry: PageId) -> Option<usize> {
    (entry >= DEEPER && entry != HOLE).then(|| (entry - DEEPER) as usize)
}

/// The task was chosen by the key of a record, and the key was another one when the record arrived.
#[cold]
#[inline(never)]
fn wrong_task() -> PageId {
    panic!("a record came to the wrong task: its key must follow from the record alone, every time it is asked for")
}
