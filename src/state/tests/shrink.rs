//! Tables that have lost keys: as small as if they had never had them, and still right.

use super::model::part;
use crate::page::Pool;
use crate::record::Record;
use crate::state::{HashRange, Hasher, KEY_GROUPS, StateError, Table, key_group, range_of};
use std::collections::{BTreeMap, BTreeSet};

fn table_of<K: Record, V: Record>(page_bytes: usize, hasher: Hasher, range: HashRange) -> Table<K, V> {
    Table::new(&Pool::new(page_bytes, 1 << 30), hasher, range).unwrap()
}

fn pages<K: Record, V: Record>(table: &Table<K, V>) -> usize {
    table.buckets.pages.live() as usize
}

/// Numbers without a pattern.
fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (mixed >> 32)
}

fn insert<K: Record>(table: &mut Table<K, u64>, key: &K, value: u64) {
    let hash = table.hash(key);
    table.insert(hash, key, value).unwrap();
}

fn discard<K: Record, V: Record>(table: &mut Table<K, V>, key: &K) {
    let hash = table.hash(key);
    assert!(table.discard(hash, key).unwrap());
    assert!(!table.discard(hash, key).unwrap());
}

/// In the order of `rank`, all keys go but the last ones.
fn loses_all_but<K: Record + Clone>(
    page_bytes: usize,
    range: HashRange,
    keys: &[K],
    left: usize,
    rank: impl Fn(u64, usize) -> u64,
) {
    let mut table = table_of::<K, u64>(page_bytes, Hasher::default(), range);
    let mut ours: Vec<_> =
        keys.iter().map(|key| (table.hash(key), key)).filter(|(hash, _)| range.contains(*hash)).collect();
    ours.iter().for_each(|(hash, key)| _ = table.insert(*hash, key, *hash).unwrap());
    let most = pages(&table);
    let mut at = 0..;
    ours.sort_by_cached_key(|(hash, _)| rank(*hash, at.next().unwrap()));
    let (gone, kept) = ours.split_at(ours.len() - left);
    for (hash, key) in gone {
        assert_eq!(table.remove(*hash, key).unwrap(), Some(*hash));
    }
    let mut fresh = table_of::<K, u64>(page_bytes, Hasher::default(), range);
    kept.iter().for_each(|(hash, key)| _ = fresh.insert(*hash, key, *hash).unwrap());
    // In small pages chance says more, and on the edges of a range there are a few small regions.
    let bound = 2 * pages(&fresh) + if page_bytes < 4096 { pages(&fresh) / 2 + 2 } else { 0 };
    assert!(pages(&table) <= bound, "{} of {most} pages are left, {} needed", pages(&table), pages(&fresh));
    for (hash, key) in kept {
        assert_eq!(table.get(*hash, key).unwrap(), Some(*hash));
    }
    for (hash, key) in gone {
        assert_eq!(table.get(*hash, key).unwrap(), None);
    }
    kept.iter().for_each(|(_, key)| discard(&mut table, *key));
    assert_eq!((pages(&table), table.len()), (1, 0));
}

#[test]
fn a_million_keys_go_and_so_do_their_pages() {
    let keys: Vec<u64> = (0..1_000_000).collect();
    loses_all_but(16 << 10, range_of(0, 1), &keys, 1000, |hash, _| mix(hash));
}

#[test]
fn whatever_the_order_and_the_layout_a_table_shrinks() {
    let numbers: Vec<u64> = (0..60_000).collect();
    let words: Vec<String> =
        (0..30_000).map(|number| format!("{}{}", mix(number), "x".repeat(number as usize % 40))).collect();
    for range in [range_of(0, 1), range_of(1, 3), range_of(0, 7)] {
        let left = 100;
        loses_all_but(1024, range, &numbers, left, |_, at| at as u64);
        loses_all_but(1024, range, &numbers, left, |hash, _| hash);
        loses_all_but(1024, range, &words, left, |hash, _| mix(hash));
        loses_all_but(1024, range, &words, left, |hash, _| u64::MAX - hash);
    }
}

#[test]
fn a_chain_shrinks() {
    let mut hasher = Hasher::default();
    hasher.mask = 0;
    let mut table = table_of::<u64, u64>(512, hasher, range_of(0, 1));
    (0..1000).for_each(|key| insert(&mut table, &key, key));
    let most = pages(&table);
    assert!(most > 30);
    let order: BTreeSet<_> = (0..1000).map(|key| (mix(key), key)).collect();
    for (index, (_, key)) in order.iter().enumerate() {
        discard(&mut table, key);
        let left = 999 - index;
        // Two that follow each other have 6 or more; others are empty since splitting has ended in the chain.
        assert!(pages(&table) <= 18 + left / 3, "{} pages of up to 19 hold {left} keys", pages(&table));
    }
    assert_eq!(pages(&table), 1);
}

#[test]
fn pages_neither_split_nor_merge_at_each_step() {
    let mut table = table_of::<u64, u64>(1024, Hasher::default(), range_of(0, 1));
    (0..5000).for_each(|key| insert(&mut table, &key, key));
    let mut number = pages(&table);
    let mut changes = 0;
    for key in 0..4000 {
        discard(&mut table, &key);
        // Whatever the fill, a key that comes and goes makes no pages and frees none.
        if key % 100 == 0 {
            let before = pages(&table);
            for _ in 0..20 {
                insert(&mut table, &key, key);
                discard(&mut table, &key);
            }
            assert!(before - pages(&table) <= 1, "it may have been due");
        }
        changes += usize::from(pages(&table) != number);
        number = pages(&table);
    }
    assert!((50..200).contains(&changes), "{changes}");
}

#[test]
fn who_goes_through_the_table_while_it_shrinks_and_grows_sees_each_key_that_stays_once() {
    for round in 0..6u64 {
        let mut table = table_of::<u64, u64>(512, Hasher::default(), range_of(0, 1));
        let stays = |key: u64| key.is_multiple_of(16);
        (0..8000).for_each(|key| insert(&mut table, &key, key));
        let mut seen = BTreeMap::<u64, u32>::new();
        let (mut from, mut step) = (Some(0), 0);
        let mut there: BTreeSet<u64> = (0..8000).collect();
        while let Some(start) = from {
            from = table
                .scan(start, |_, key, value| {
                    assert_eq!(key, value);
                    *seen.entry(key).or_default() += 1;
                    Ok::<_, StateError>(())
                })
                .unwrap();
            // Keys go in waves and come again: behind and before the cursor pages merge and split.
            for index in 0..300 {
                let key = mix(step * 300 + index + round) % 8000;
                let goes = (step / (10 + round)) % 2 == 0;
                if !stays(key) && goes && there.remove(&key) {
                    discard(&mut table, &key);
                } else if !goes && there.insert(key) {
                    insert(&mut table, &key, key);
                }
            }
            step += 1;
        }
        assert!(step > 20, "{step}");
        assert!(seen.values().all(|&times| times == 1), "none twice");
        assert!((0..8000).filter(|&key| stays(key)).all(|key| seen.contains_key(&key)), "none left out");
    }
}

#[test]
fn the_key_groups_together_are_the_table() {
    for (keys, tasks) in [(100u64, 1), (30_000, 1), (30_000, 3)] {
        let range = range_of(tasks - 1, tasks);
        let mut table = table_of::<u64, u64>(512, Hasher::default(), range);
        let ours: Vec<_> =
            (0..keys).filter(|key| range.contains(Hasher::default().hash(key, &mut Vec::new()))).collect();
        ours.iter().for_each(|key| insert(&mut table, key, *key));
        let mut found = Vec::new();
        for group in (0..KEY_GROUPS).filter(|group| range.contains(u64::from(*group) << 52)) {
            let each = |hash, key, value: u64| {
                assert_eq!((key_group(hash), key), (group, value));
                found.push(key);
                Ok::<_, StateError>(())
            };
            table.scan_group(group, each).unwrap();
        }
        found.sort_unstable();
        assert_eq!(found, ours);
    }
}

/// Values of all lengths that grow and shrink, and keys that come and go: pages are compacted, not spent.
#[test]
fn a_steady_state_of_texts_levels_off() {
    let mut table = table_of::<u64, String>(4096, Hasher::default(), range_of(0, 1));
    let mut bytes = 0;
    let mut round = |table: &mut Table<u64, String>, number: u64| {
        bytes = 0;
        for index in 0..2000 {
            let key = mix(number * 2000 + index) % 1000;
            let hash = table.hash(&key);
            let len = mix(key + number) as usize % 400;
            bytes += len;
            if len < 40 {
                table.remove(hash, &key).unwrap();
            } else {
                table.insert(hash, &key, "t".repeat(len)).unwrap();
            }
        }
        pages(table)
    };
    let early = (0..20).map(|number| round(&mut table, number)).max().unwrap();
    let late = (20..200).map(|number| round(&mut table, number)).max().unwrap();
    // 900 keys with values of 220 bytes on average, in pages that are half full.
    let needed = 900 * 240 / 2048;
    assert!(late <= early * 21 / 20 && late <= needed * 3 / 2, "{early} pages, then {late}; {needed} are usual");
}

/// Values that have been long once do not keep what they had.
#[test]
fn what_values_no_longer_use_is_used_by_others() {
    let mut table = table_of::<u64, String>(4096, Hasher::default(), range_of(0, 1));
    let set = |table: &mut Table<u64, String>, key: u64, len: usize| {
        let hash = table.hash(&key);
        table.update(hash, &key, String::new, |value| *value = "v".repeat(len)).unwrap();
    };
    (0..20).for_each(|key| set(&mut table, key, 8));
    for key in 0..20 {
        for len in [100, 900, 8] {
            set(&mut table, key, len);
        }
    }
    let before = pages(&table);
    (20..60).for_each(|key| set(&mut table, key, 8));
    assert_eq!(pages(&table), before, "60 short values");
    assert!(before <= 8, "{before}");
}

/// Few buckets under a deep directory: what a restore is asked to accept.
#[test]
fn a_table_of_which_a_dense_part_is_left_can_be_restored() {
    let mut table = table_of::<u64, u64>(512, Hasher::default(), range_of(0, 1));
    (0..200_000).for_each(|key| insert(&mut table, &key, key));
    let most = pages(&table);
    let (dense, gone): (Vec<u64>, Vec<u64>) =
        (0..200_000).partition(|key| Hasher::default().hash(key, &mut Vec::new()) >> 58 == 5);
    gone.iter().for_each(|key| discard(&mut table, key));
    assert!(pages(&table) * 20 < most, "{} of {most}", pages(&table));
    let (root, frozen) = table.freeze();
    let stored = (root, frozen.changed.iter().map(|(id, page)| (*id, page.to_vec())).collect());
    let pool = Pool::new(512, 1 << 30);
    let restored = Table::<u64, u64>::restore(&pool, Hasher::default(), range_of(0, 1), &[part(&stored)]).unwrap();
    let absent = super::model::absent::<u64, u64>(&pool, Hasher::default(), range_of(0, 1), &stored).unwrap();
    for key in dense {
        let hash = Hasher::default().hash(&key, &mut Vec::new());
        assert_eq!(restored.get(hash, &key).unwrap(), Some(key));
        assert_eq!(absent.get(hash, &key).unwrap(), Some(key));
    }
}

/// The directory too: the buckets of what is left have no long prefixes.
#[test]
fn the_directory_becomes_small_again() {
    let mut table = table_of::<u64, u64>(512, Hasher::default(), range_of(0, 1));
    (0..300_000).for_each(|key| insert(&mut table, &key, key));
    let most = table.buckets.directory.len();
    (100..300_000).for_each(|key| discard(&mut table, &key));
    let least = table.buckets.directory.len();
    assert!(most >= 16_384 && least <= 4096, "{most}, then {least}");
    (0..300_000).for_each(|key| insert(&mut table, &key, key));
    let each = (0..300_000).all(|key| {
        let hash = Hasher::default().hash(&key, &mut Vec::new());
        table.get(hash, &key).unwrap() == Some(key)
    });
    assert!(each);
}
