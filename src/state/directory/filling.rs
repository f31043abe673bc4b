//! A directory of buckets that come from a snapshot, in whatever order they lie there. There may be very many: no list is made of
//! them, and what is done for each is little.

use super::{Depths, Directory, HOLE};
use crate::page::{PageId, fetch_ahead};
use crate::state::StateError;
use crate::state::range::HashRange;
use crate::state::room::Region;
use zerocopy::IntoBytes;

/// The places of so many are fetched before the first of them is filled in: they lie all over the directory, and each would be
/// waited for.
const FETCHED: usize = 64;

/// Buckets that can be gone through as often as one likes.
pub(in crate::state) trait EachBucket {
    /// Shows each.
    fn each(&self, visit: impl FnMut(PageId, Region));

    /// How many there are, and how many bits the longest prefix has.
    fn extent(&self) -> (u64, u32) {
        let (mut count, mut deepest) = (0, 0);
        self.each(|_, region| (count, deepest) = (count + 1, region.depth.max(deepest)));
        (count, deepest)
    }
}

impl<I: Iterator<Item = (PageId, Region)> + Clone> EachBucket for I {
    fn each(&self, mut visit: impl FnMut(PageId, Region)) {
        self.clone().for_each(|(id, region)| visit(id, region));
    }
}

impl Directory {
    /// Of these buckets and no others; and how many they are.
    pub fn of(range: HashRange, buckets: &impl EachBucket) -> Result<(Self, u64), StateError> {
        let depths = Depths::of(range, buckets);
        let mut this = Self::new(range, depths.depth);
        let (mut fetched, mut wrong) = (Vec::with_capacity(FETCHED), None);
        buckets.each(|id, region| {
            if region.depth > this.depth() {
                // After the first that is wrong nothing is as it should be.
                if wrong.is_none() {
                    wrong = this.put_deeper(region, id, &depths).err();
                }
                return;
            }
            let (from, to) = this.entries(region.prefix, region.depth);
            fetch_ahead(this.buckets.as_bytes(), from * size_of::<PageId>());
            fetched.push((from, to, id));
            if fetched.len() == FETCHED {
                wrong = wrong.take().or(this.fill_in_all(&mut fetched).err());
            }
        });
        wrong.map_or(Ok(()), Err)?;
        this.fill_in_all(&mut fetched)?;
        match this.holes().first() {
            Some((prefix, depth)) => {
                Err(StateError::corrupt(format!("no page has the prefix {prefix:#x} of {depth} bits")))
            }
            None => Ok((this, buckets.extent().0)),
        }
    }

    /// Points runs of entries, from the first to the last, to buckets, if there were only holes.
    #[inline(always)]
    fn fill_in_all(&mut self, runs: &mut Vec<(usize, usize, PageId)>) -> Result<(), StateError> {
        match runs.drain(..).find(|&(from, to, bucket)| !self.fill_in(from, to, bucket)) {
            Some((.., bucket)) => Err(found_twice(bucket)),
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn fill_in(&mut self, from: usize, to: usize, bucket: PageId) -> bool {
        // Most have one entry or two, nobody knows which: no branch is to guess.
        let ends = self.buckets[from] & self.buckets[to];
        (self.buckets[from], self.buckets[to]) = (bucket, bucket);
        ends == HOLE && (to - from < 2 || self.fill_in_between(from, to, bucket))
    }

    fn fill_in_between(&mut self, from: usize, to: usize, bucket: PageId) -> bool {
        let entries = &mut self.buckets[from + 1..to];
        let was_free = entries.iter().all(|entry| *entry == HOLE);
        entries.fill(bucket);
        was_free
    }

    /// The same with all hashes of a region whose prefix is longer than those here, if it brings no directory out of proportion.
    #[cold]
    #[inline(never)]
    fn put_deeper(&mut self, region: Region, bucket: PageId, depths: &Depths) -> Result<(), StateError> {
        if !depths.admit(region) {
            return Err(StateError::corrupt(format!("page {bucket} has a prefix of {} bits", region.depth)));
        }
        if self.put(region.prefix, region.depth, bucket) { Ok(()) } else { Err(found_twice(bucket)) }
    }
}

#[cold]
fn found_twice(bucket: PageId) -> StateError {
    StateError::corrupt(format!("page {bucket} has a prefix that another page has too"))
}
