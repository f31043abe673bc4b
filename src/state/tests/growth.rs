//! What happens as a table of fixed layout grows: splits lose nothing, the directory is ready in time, and running out of pages
//! changes nothing.

use super::super::directory::Directory;
use super::super::room::Region;
use super::super::{HashRange, Hasher, StateError, Table, Window, range_of};
use crate::page::Pool;
use crate::record::to_bytes;

#[test]
fn a_directory_knows_every_bucket_while_it_grows() {
    for (task, tasks) in [(0, 1), (2, 3), (4095, 4096)] {
        let range = range_of(task, tasks);
        let mut directory = Directory::new(range, 1);
        let mut buckets: Vec<Region> = Vec::new();
        for (prefix, depth) in directory.holes() {
            assert!(directory.point(prefix, depth, buckets.len() as u32));
            buckets.push(Region { prefix, depth });
        }
        let mut random = 7_u64;
        for _ in 0..4000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let at = (random >> 33) as usize % buckets.len();
            let depth = buckets[at].depth + 1;
            let halves =
                [buckets[at].prefix, buckets[at].prefix | 1 << (64 - depth)].map(|prefix| Region { prefix, depth });
            let mut ours = halves.into_iter().filter(|half| half.hashes().meets(&range));
            if !directory.make_way(halves[0], buckets.len() as u64) {
                continue;
            }
            buckets[at] = ours.next().expect("a bucket meets the range");
            assert!(!directory.point(buckets[at].prefix, depth, at as u32));
            if let Some(half) = ours.next() {
                assert!(!directory.point(half.prefix, depth, buckets.len() as u32));
                buckets.push(half);
            }
            for id in [at, buckets.len() - 1, (random >> 20) as usize % buckets.len()] {
                let HashRange { start, end_inclusive } = buckets[id].hashes();
                for hash in [start, end_inclusive, start + (end_inclusive - start) / 3] {
                    assert!(
                        !range.contains(hash) || directory.bucket_of(hash) == id as u32,
                        "bucket {id} of {}",
                        buckets.len()
                    );
                }
            }
        }
        let holes = directory.holes();
        assert!(buckets.len() > 1000 && holes.is_empty(), "{} buckets, {holes:?}", buckets.len());
    }
}

/// In any order, of all depths, at the edges of ranges, and some so deep that they lie below the directory.
#[test]
fn a_directory_out_of_a_list_is_that_list() {
    for (task, tasks, deep) in [(0, 1, 0), (2, 3, 0), (1, 3, 8), (4095, 4096, 3)] {
        let range = range_of(task, tasks);
        let holes = Directory::new(range, 1).holes();
        let mut buckets: Vec<Region> = holes.iter().map(|&(prefix, depth)| Region { prefix, depth }).collect();
        let mut random = 7_u64;
        // The higher of the two, so that no bucket comes to lie too deep.
        let mut split = |one: usize, other: usize| {
            let at = if buckets[one].depth <= buckets[other].depth { one } else { other };
            let depth = buckets[at].depth + 1;
            let halves = [0, 1].map(|half| Region { prefix: buckets[at].prefix | half << (64 - depth), depth });
            let mut ours = halves.into_iter().filter(|half| half.hashes().meets(&range));
            buckets[at] = ours.next().expect("a bucket meets the range");
            buckets.extend(ours);
            buckets.len()
        };
        let mut len = 1;
        for step in 0..2000 + deep {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let [one, other] = [33, 13].map(|shift| (random >> shift) as usize % len);
            len = if step < 2000 { split(one, other) } else { split(0, 0) };
        }
        let shuffled = |at: usize| (at * 7919 % buckets.len(), buckets[at * 7919 % buckets.len()]);
        let list: Vec<_> = (0..buckets.len()).map(shuffled).map(|(id, region)| (id as u32, region)).collect();
        let (directory, count) = Directory::of(range, &list.iter().copied()).unwrap();
        assert_eq!(count, buckets.len() as u64);
        for (id, region) in &list {
            let HashRange { start, end_inclusive } = region.hashes();
            for hash in [start, start + (end_inclusive - start) / 3, end_inclusive] {
                assert!(!range.contains(hash) || directory.bucket_of(hash) == *id, "bucket {id} for {hash:#x}");
            }
        }
        let refused = |list: &[_]| Directory::of(range, &list.iter().copied()).err().expect("it is wrong").to_string();
        for at in (0..list.len()).step_by(37) {
            let (id, region) = list[at];
            let mut wrong = list.clone();
            wrong.remove(at);
            assert!(refused(&wrong).contains("no page has the prefix"), "{region:?} is missing");
            wrong.extend([(id, region), (5000, Region { depth: region.depth + 1, ..region })]);
            assert!(refused(&wrong).contains("another page has too"), "half of {region:?} is there twice");
            wrong.reverse();
            assert!(refused(&wrong).contains("another page has too"), "{region:?} covers another");
        }
    }
}

/// Large enough that places are fetched ahead, through windows of all lengths.
#[test]
fn every_record_of_a_large_table_counts_once() {
    const KEYS: u64 = 200_000;
    let (pool, hasher) = (Pool::new(4096, 1 << 30), Hasher::default());
    let mut table = Table::<u64, u64>::new(&pool, hasher, range_of(0, 1)).unwrap();
    let mut window = Window::new(hasher, 0);
    let mut next = 0;
    while next < 2 * KEYS {
        let end = (next + 1 + next % 77).min(2 * KEYS);
        for number in next..end {
            let key = number.wrapping_mul(7919) % KEYS;
            window.key(&key);
            window.push((1, number));
        }
        next = end;
        let each = |number: u64, count: u64| {
            assert_eq!(count, 1 + number / KEYS);
            Ok::<_, StateError>(())
        };
        table.update_batch(window.drain(), |one| one, |count, one| *count += one, |&count| count, each).unwrap();
    }
    assert!(table.bytes() > 1 << 20);
    assert_eq!(table.len(), KEYS);
    for key in 0..KEYS {
        let hash = table.hash(&key);
        assert_eq!(table.get(hash, &key).unwrap(), Some(2));
    }
}

#[test]
fn a_split_that_finds_no_page_changes_nothing_and_may_come_later() {
    let pool = Pool::new(512, 8 * 512);
    let mut table = Table::<u64, [u64; 2]>::new(&pool, Hasher::default(), range_of(0, 1)).unwrap();
    let put = |table: &mut Table<u64, [u64; 2]>, key: u64| {
        let hash = table.hash(&key);
        table.insert(hash, &key, [key, !key])
    };
    let mut kept: u64 = 0;
    while put(&mut table, kept).is_ok() {
        kept += 1;
    }
    assert!(kept > 30 && pool.in_use() >= 7, "{kept} keys in {} pages", pool.in_use());
    for _ in 0..3 {
        assert!(matches!(put(&mut table, kept), Err(StateError::Exhausted(_))));
    }
    assert_eq!(table.len(), kept);
    for key in 0..=kept {
        let hash = table.hash(&key);
        assert_eq!(table.get(hash, &key).unwrap(), (key < kept).then_some([key, !key]));
    }
}

/// A deeper directory whose buckets have all become one is one entry when the directory above becomes deeper.
#[test]
fn what_was_deeper_and_is_one_bucket_again_stays_where_it_is() {
    let mut directory = Directory::new(range_of(0, 1), 1);
    let quarter = |number: u64| number << 62;
    for (number, bucket) in (0..4).zip([10, 11, 12, 13]) {
        directory.point(quarter(number), 2, bucket);
    }
    directory.point(quarter(1), 2, 10);
    directory.halve_in_time(Region { prefix: quarter(1), depth: 2 }, 3);
    let looked_up = |directory: &Directory| [0, 1, 2, 3].map(|number| directory.bucket_of(quarter(number)));
    assert_eq!(looked_up(&directory), [10, 10, 12, 13]);
    for depth in 2..6 {
        directory.grow(depth, 100);
        assert_eq!(looked_up(&directory), [10, 10, 12, 13], "at {depth} bits");
    }
}

/// A deeper directory that has gone says nothing about how deep buckets lie.
#[test]
fn what_was_deeper_and_has_gone_keeps_no_buckets_from_merging() {
    let mut directory = Directory::new(range_of(0, 1), 1);
    directory.point(0, 1, 10);
    directory.point(1 << 63, 2, 11);
    directory.point(3 << 62, 2, 12);
    assert!(directory.may_merge(2));
    directory.point(1 << 63, 1, 11);
    assert!(directory.may_merge(1));
}

#[test]
fn a_key_whose_record_never_came_leaves_nothing_behind() {
    let hasher = Hasher::default();
    let mut window = Window::new(hasher, 1);
    for round in 0..3 {
        // Short ones and others, in turns.
        let keys: Vec<String> = (0..15 + round).map(|number| "k".repeat(number * 7 % 23)).collect();
        for (number, key) in keys.iter().enumerate() {
            window.key(&"longer than the others".to_owned());
            window.key(key);
            window.push(number);
            // Now and then they are asked for on the way.
            if number % 3 == 1 {
                assert_eq!(window.hashes().len(), number + 1);
            }
        }
        window.key(&String::new());
        let taken: Vec<_> = window.drain().collect();
        assert_eq!(taken.len(), keys.len());
        for (number, (hash, key, record)) in taken.into_iter().enumerate() {
            assert_eq!((key.to_vec(), record), (to_bytes(&keys[number]), number));
            assert_eq!(hash, hasher.hash(&keys[number], &mut Vec::new()));
        }
    }
}
