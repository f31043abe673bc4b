//! How deep the buckets of a table that comes from a snapshot may lie: so that keys which agree in a long prefix, by chance or by
//! malice, make no huge directory.

use super::{BUCKETS_FREE, DEPTH_MAX, Directory, ENTRIES_PER_BUCKET, EachBucket};
use crate::state::range::HashRange;
use crate::state::room::Region;
use std::collections::HashMap;

/// How deep the buckets of a whole table may lie, given where all of them are.
pub(in crate::state) struct Depths {
    /// That of the directory, apart from deeper ones.
    pub depth: u32,
    /// Buckets that lie deeper, by their prefix of that length.
    deeper: HashMap<u64, u64>,
}

impl Depths {
    pub fn of(range: HashRange, buckets: &impl EachBucket) -> Self {
        let (count, deepest) = buckets.extent();
        let admits = |depth: &u32| Directory::admits(range, *depth, count);
        let depth = (1..=deepest.min(DEPTH_MAX)).rev().find(admits).unwrap_or(1);
        let mut deeper = HashMap::new();
        if deepest > depth {
            buckets.each(|_, region| {
                if region.depth > depth {
                    *deeper.entry(region.prefix >> (64 - depth)).or_default() += 1;
                }
            });
        }
        Self { depth, deeper }
    }

    /// Whether one of these buckets can be taken in without bringing a directory out of proportion.
    pub fn admit(&self, region: Region) -> bool {
        let Some(bits) = region.depth.checked_sub(self.depth).filter(|&bits| bits > 0) else { return true };
        let count: u64 = self.deeper.get(&(region.prefix >> (64 - self.depth))).copied().unwrap_or(0);
        region.depth <= DEPTH_MAX && 1 << bits <= ENTRIES_PER_BUCKET * (count + BUCKETS_FREE)
    }
}
