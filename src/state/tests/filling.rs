//! Directories out of lists of buckets, right ones and wrong ones: taken if and only if the buckets tile the task's range.

use crate::state::directory::Directory;
use crate::state::room::Region;
use crate::state::{HashRange, StateError, range_of};
use proptest::prelude::*;

/// Regions that tile a range: those of a tree of which `choose` splits the nodes.
fn tiles(range: &HashRange, count: usize, depth_max: u32, choose: &mut impl FnMut() -> u64) -> Vec<Region> {
    let mut regions = vec![Region { prefix: 0, depth: 0 }];
    for _ in 0..count * 3 {
        let at = choose() as usize % regions.len();
        let Region { prefix, depth } = regions[at];
        if regions.len() >= count || depth >= depth_max {
            continue;
        }
        regions.swap_remove(at);
        let halves = [prefix, prefix | 1 << (63 - depth)].map(|prefix| Region { prefix, depth: depth + 1 });
        regions.extend(halves.into_iter().filter(|half| half.is_within(range)));
    }
    regions
}

/// The slow way: sorted, one begins where the one before ends.
fn do_tile(range: &HashRange, regions: &[Region]) -> bool {
    let mut ends: Vec<_> = regions.iter().map(|region| region.hashes()).collect();
    ends.sort_by_key(|hashes| hashes.start);
    let mut next = u128::from(range.start);
    for hashes in ends {
        if u128::from(hashes.start.max(range.start)) != next {
            return false;
        }
        next = u128::from(hashes.end_inclusive.min(range.end_inclusive)) + 1;
    }
    next == u128::from(range.end_inclusive) + 1
}

fn damage(regions: &mut Vec<Region>, how: u8, by: u64) {
    if regions.is_empty() {
        return;
    }
    let at = by as usize % regions.len();
    let Region { prefix, depth } = regions[at];
    match how {
        1 => drop(regions.swap_remove(at)),
        2 => regions.push(regions[at]),
        3 if depth < 32 => regions[at] = Region { depth: depth + 1, ..regions[at] },
        4 if depth < 32 => regions[at] = Region { prefix: prefix | 1 << (63 - depth), depth: depth + 1 },
        5 if depth > 0 => regions[at] = Region { prefix: prefix & !(1 << (64 - depth)), depth: depth - 1 },
        6 if depth > 0 => regions.push(Region { prefix: prefix & !(1 << (64 - depth)), depth: depth - 1 }),
        7 => regions[at].prefix ^= 1 << (63 - by % 32),
        8 if depth < 32 => regions.push(Region { prefix: prefix | 1 << 32, depth: 32 }),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn buckets_are_taken_if_they_tile_the_range(
        tasks in prop_oneof![1..9u32, 1..4097u32], task: u32, count in 1..300usize, depth_max in 1..24u32,
        hows in prop::collection::vec((0..9u8, any::<u64>()), 0..3), seed: u64,
    ) {
        let range = range_of(task % tasks, tasks);
        let mut state = seed;
        let mut choose = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state >> 20
        };
        let mut regions = tiles(&range, count, depth_max, &mut choose);
        hows.iter().for_each(|&(how, by)| damage(&mut regions, how, by));
        // Others have been refused before a directory is made.
        regions.retain(|region| region.is_within(&range));
        for at in (1..regions.len()).rev() {
            let other = choose() as usize % (at + 1);
            regions.swap(at, other);
        }
        let buckets: Vec<_> = (7..).zip(regions.iter().copied()).collect();
        match Directory::of(range, &buckets.iter().copied()) {
            Ok((directory, found)) => {
                prop_assert!(do_tile(&range, &regions), "taken: {:?}", regions);
                prop_assert_eq!(found, regions.len() as u64);
                for &(id, region) in &buckets {
                    let HashRange { start, end_inclusive } = region.hashes();
                    let (start, end) = (start.max(range.start), end_inclusive.min(range.end_inclusive));
                    for hash in [start, end, start + (end - start) / 3] {
                        prop_assert_eq!(directory.bucket_of(hash), id);
                    }
                    prop_assert_eq!(directory.end_of(start), end);
                }
            }
            Err(StateError::Corrupt { what }) => {
                let deepest = regions.iter().map(|region| region.depth).max().unwrap_or(0);
                let out_of_proportion = what.contains("has a prefix of") && deepest > 10;
                prop_assert!(!do_tile(&range, &regions) || out_of_proportion, "refused: {}; {:?}", what, regions);
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}
