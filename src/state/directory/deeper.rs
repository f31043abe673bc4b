//! A directory below an entry of another: of a region in which buckets lie deeper than elsewhere.

use crate::page::PageId;

/// So many entries are looked at for each merge, on average.
const LOOKED_AT: usize = 64;
/// A directory of at most so many is looked at each time: a merge moves more.
const ALWAYS_LOOKED_AT: usize = 4096;

/// The buckets of a region that is one entry of the directory above.
#[derive(Default)]
pub(super) struct Deeper {
    pub shift: u32,
    /// A power of two of them.
    pub buckets: Vec<PageId>,
    /// As above.
    pub merges: usize,
}

impl Deeper {
    pub fn at(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize & (self.buckets.len() - 1)
    }

    /// Two buckets have become one: it is halved, if both entries of each pair agree, as often as that goes. All of it is looked
    /// at only every so many merges, so that a merge costs the same whatever its size.
    pub fn halve_in_time(&mut self) {
        if !is_time(&mut self.merges, self.buckets.len()) {
            return;
        }
        while self.buckets.len() > 1 && self.buckets.chunks(2).all(|pair| pair[0] == pair[1]) {
            self.buckets = self.buckets.iter().step_by(2).copied().collect();
            self.shift += 1;
        }
    }

    /// How many buckets there are: each is a run of entries.
    pub fn count(&self) -> u64 {
        1 + self.buckets.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
    }
}

/// One more merge: whether so many entries are to be looked at for whether they can be half as many.
pub(super) fn is_time(merges: &mut usize, entries: usize) -> bool {
    *merges += 1;
    let is_time = entries <= ALWAYS_LOOKED_AT || *merges * LOOKED_AT >= entries;
    if is_time {
        *merges = 0;
    }
    is_time
}
