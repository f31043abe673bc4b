//! Values that come, change and go record by record, against a plain map, with freezes in between.

use crate::page::Pool;
use crate::record::Record;
use crate::state::{Hasher, StateError, Table, Value, range_of};
use std::collections::BTreeMap;
use std::fmt::Debug;

pub(super) fn mix(value: u64) -> u64 {
    let mixed = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (mixed >> 32)
}

/// What a record does: mostly changes the value; now and then looks, takes it, sets it, or fails.
fn act<V: Clone>(what: u64, number: u64, value: &mut Value<V>, make: impl Fn(u64) -> V) -> Result<(), StateError> {
    match what {
        0 => drop(value.take()),
        1 => assert_eq!(value.get().is_none(), value.is_none()),
        2 => {
            value.set(make(0));
            return Err(StateError::corrupt("the operator failed"));
        }
        3 => {
            value.take();
            value.set(make(number));
        }
        4 => {
            if let Some(there) = value.get_mut() {
                *there = make(number);
            }
        }
        _ => *value.get_or_insert_with(|| make(1)) = make(number),
    }
    Ok(())
}

fn against_a_map<K: Record + Ord + Clone + Debug, V: Record + Clone + PartialEq + Debug>(
    key: impl Fn(u64) -> K,
    make: impl Fn(u64) -> V + Copy,
) {
    let pool = Pool::new(1024, usize::MAX);
    let mut table = Table::<K, V>::new(&pool, Hasher::new(7), range_of(0, 1)).unwrap();
    let mut map = BTreeMap::<K, V>::new();
    for number in 0..20_000 {
        let (key, what) = (key(mix(number) % 300), mix(number + 1) % 13);
        let hash = table.hash(&key);
        let mut plain = Value::new(map.get(&key).cloned());
        let expected = act(what, number, &mut plain, make);
        assert_eq!(table.modify(hash, &key, |value| act(what, number, value, make)), expected);
        if let (Ok(()), (value, true)) = (expected, plain.into_parts()) {
            match value {
                Some(value) => drop(map.insert(key.clone(), value)),
                None => drop(map.remove(&key)),
            }
        }
        assert_eq!(table.get(hash, &key).unwrap().as_ref(), map.get(&key), "{number}");
        if number % 500 == 0 {
            table.freeze();
            if number % 1000 == 0 { table.durable() } else { table.abandon() }
        }
    }
    assert_eq!(table.len(), map.len() as u64);
}

#[test]
fn values_come_change_and_go() {
    against_a_map(|key| key, |number| number);
    against_a_map(|key| [key; 9], |number| (number, true));
    // In a heap, growing, shrinking, and beyond a quarter page.
    against_a_map(|key| key, |number| "v".repeat((mix(number) % 700) as usize));
    against_a_map(|key| format!("key {}", "k".repeat(key as usize)), |number| number);
}

#[test]
fn what_is_only_looked_at_is_not_written() {
    let pool = Pool::new(1024, usize::MAX);
    let mut fixed = Table::<u64, u64>::new(&pool, Hasher::new(7), range_of(0, 1)).unwrap();
    let mut heap = Table::<u64, String>::new(&pool, Hasher::new(7), range_of(0, 1)).unwrap();
    let look = |value: Option<u64>| assert_eq!(value, Some(5));
    for round in 0..3 {
        let hash = fixed.hash(&1);
        fixed
            .modify(hash, &1, |value| {
                if round == 0 {
                    value.set(5)
                } else {
                    look(value.get().copied())
                }
                Ok::<(), StateError>(())
            })
            .unwrap();
        heap.modify(hash, &1, |value| {
            if round == 0 {
                value.set("5".into())
            } else {
                look(value.get().and_then(|text| text.parse().ok()))
            }
            Ok::<(), StateError>(())
        })
        .unwrap();
        let changed = [fixed.freeze().1.changed.len(), heap.freeze().1.changed.len()];
        assert_eq!(changed, if round == 0 { [1, 1] } else { [0, 0] });
        fixed.durable();
        heap.durable();
    }
}
