//! Single cases worth their names.

use super::model::World;
use crate::page::Pool;
use crate::state::{HashRange, Hasher, KEY_GROUPS, StateError, Table, key_group, range_of, task_of};
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use std::collections::HashMap;

fn table<K: crate::record::Record, V: crate::record::Record>(limit_bytes: usize) -> Table<K, V> {
    Table::new(&Pool::new(16 << 10, limit_bytes), Hasher::default(), range_of(0, 1)).unwrap()
}

#[test]
fn ranges_are_whole_key_groups_and_agree_with_the_routing() {
    for tasks in [1, 2, 3, 5, 7, 64, 1000, KEY_GROUPS] {
        let mut next = 0u128;
        for task in 0..tasks {
            let HashRange { start, end_inclusive } = range_of(task, tasks);
            assert_eq!(u128::from(start), next, "no gap, no overlap");
            assert_eq!((task_of(start, tasks), task_of(end_inclusive, tasks)), (task, task));
            assert!(start == 0 || key_group(start) == key_group(start - 1) + 1, "whole groups");
            next = u128::from(end_inclusive) + 1;
        }
        assert_eq!(next, 1 << 64);
    }
}

#[test]
fn the_hash_never_changes() {
    let hasher = Hasher::default();
    // These stand in snapshots: a change of the function or of the default seed must not go unseen.
    let mut scratch = Vec::new();
    let hashes = [
        hasher.hash(&1u64, &mut scratch),
        hasher.hash(&String::from("word"), &mut scratch),
        hasher.hash_bytes(&[7; 100]),
    ];
    assert_eq!(hashes, [13_361_580_131_759_387_815, 6_326_301_624_204_864_796, 16_298_000_537_233_159_269]);
    assert_eq!(hasher.hash(&1u64, &mut scratch), hasher.hash_bytes(&1u64.to_le_bytes()));
}

/// Short keys take a way of their own.
#[test]
fn the_hash_is_that_of_its_name_at_every_length() {
    for seed in [0, 7, u64::MAX] {
        let (hasher, secrets) = (Hasher::new(seed), RapidSecrets::seed_cpp(seed));
        for len in 0..300 {
            let key: Vec<u8> = (0..len).map(|at: u64| (at.wrapping_mul(seed | 0x9e37) >> 3) as u8 ^ 0xa5).collect();
            assert_eq!(hasher.hash_bytes(&key), rapidhash_v3_seeded(&key, &secrets), "{len} bytes");
        }
    }
}

#[test]
fn a_value_of_a_megabyte_grows_and_shrinks() {
    let mut table = table::<u64, String>(64 << 20);
    let hash = table.hash(&1);
    for step in 0..200 {
        let len = table.update(hash, &1, String::new, |value| {
            value.push_str(&"0123456789".repeat(1 << 10));
            value.len()
        });
        assert_eq!(len.unwrap(), (step + 1) * 10_240);
    }
    let most = table.bytes();
    assert_eq!(table.get(hash, &1).unwrap().unwrap().len(), 2_048_000);
    table.update(hash, &1, String::new, |value| value.truncate(3)).unwrap();
    assert_eq!(table.get(hash, &1).unwrap().unwrap(), "012");
    assert!(most > 2_048_000 && table.bytes() < 100_000, "{most} {}", table.bytes());
    assert_eq!(table.remove(hash, &1).unwrap().unwrap(), "012");
    assert!(table.is_empty());
}

#[test]
fn nothing_is_lost_when_pages_run_out() {
    for mask in [u64::MAX, 0] {
        let mut hasher = Hasher::default();
        hasher.mask = mask;
        let pool = Pool::new(512, 40 * 512);
        let mut table = Table::<String, String>::new(&pool, hasher, range_of(0, 1)).unwrap();
        let mut model = HashMap::new();
        let mut errors = 0;
        for step in 0..2000u32 {
            let key = format!("{}", step % 97);
            let hash = table.hash(&key);
            let grow = "x".repeat(step as usize % 300);
            match table.insert(hash, &key, grow.clone()) {
                Ok(_) => drop(model.insert(key, grow)),
                Err(StateError::Exhausted(_)) => errors += 1,
                Err(error) => panic!("{error}"),
            }
            // Frozen pages take room too, now and then.
            let frozen = (step % 50 == 0).then(|| table.freeze());
            if step % 3 == 0 {
                let key = format!("{}", step % 89);
                let hash = table.hash(&key);
                if let Ok(value) = table.remove(hash, &key) {
                    assert_eq!(value, model.remove(&key));
                }
            }
            drop(frozen);
        }
        assert!(errors > 100, "{errors}");
        assert_eq!(table.len(), model.len() as u64);
        for (key, value) in &model {
            let hash = table.hash(key);
            assert_eq!(table.get(hash, key).unwrap().as_ref(), Some(value));
        }
        drop(table);
        assert_eq!(pool.in_use(), 0);
    }
}

#[test]
fn a_thousand_equal_hashes_make_a_chain_and_no_directory() {
    let mut hasher = Hasher::default();
    hasher.mask = 0;
    let mut world = World::<u64, u64>::new(512, hasher, 2);
    (0..1000).for_each(|number| world.update(number, 1).unwrap());
    world.check_all().unwrap();
}

#[test]
fn a_freeze_hands_over_what_changed_and_no_more() {
    let mut table = table::<u64, u64>(256 << 20);
    let add = |table: &mut Table<u64, u64>, key: u64| {
        let hash = table.hash(&key);
        table.update(hash, &key, || 0, |count| *count += 1).unwrap();
    };
    (0..200_000).for_each(|key| add(&mut table, key));
    let all = table.freeze().1;
    assert!(all.full && all.changed.len() > 200);
    table.durable();
    add(&mut table, 5);
    add(&mut table, 5);
    let (_, one) = table.freeze();
    assert_eq!((one.full, one.changed.len(), one.freed.len()), (false, 1, 0));
    table.abandon();
    add(&mut table, 5);
    assert_eq!(table.freeze().1.changed.len(), 1);
    table.durable();
    assert_eq!(table.freeze().1.changed.len(), 0);
}

#[test]
fn an_update_that_panics_changes_nothing() {
    let mut table = table::<String, String>(16 << 20);
    let key = String::from("key");
    let hash = table.hash(&key);
    table.insert(hash, &key, String::from("before")).unwrap();
    let update = std::panic::AssertUnwindSafe(|| {
        table.update(hash, &key, String::new, |value| {
            value.push_str(" and after");
            panic!("the user's");
        })
    });
    assert!(std::panic::catch_unwind(update).is_err());
    assert_eq!(table.get(hash, &key).unwrap().unwrap(), "before");
}

#[test]
fn a_steady_state_of_words_makes_no_pages() {
    let mut table = table::<String, u64>(64 << 20);
    let words: Vec<String> = (0..20_000).map(|number| format!("word{number}")).collect();
    let count_all = |table: &mut Table<String, u64>| {
        for word in &words {
            let hash = table.hash(word);
            table.update(hash, word, || 0, |count| *count += 1).unwrap();
        }
    };
    count_all(&mut table);
    let bytes = table.bytes();
    (0..5).for_each(|_| count_all(&mut table));
    assert_eq!((table.bytes(), table.len()), (bytes, 20_000));
    // 9 letters, a length, a count, and what it takes to find them.
    assert!(bytes < 20_000 * 70, "{bytes}");
}
