//! Batches into tables of a heap, where keys are looked for ahead of their turn: what was found is no longer true when other
//! keys of the batch have come, grown or gone.

use super::modify::mix;
use crate::page::Pool;
use crate::record::Record;
use crate::state::{Hasher, StateError, Table, Window, range_of};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// A table and the map that it has to agree with.
struct Both<V> {
    table: Table<String, V>,
    map: BTreeMap<String, V>,
    window: Window<String, u64>,
}

impl<V: Record + Clone + PartialEq + Debug> Both<V> {
    fn new(page_bytes: usize, mask: u64) -> Self {
        let mut hasher = Hasher::new(7);
        hasher.mask = mask;
        let table = Table::new(&Pool::new(page_bytes, usize::MAX), hasher, range_of(0, 1)).unwrap();
        Self { table, map: BTreeMap::new(), window: Window::new(hasher, 8) }
    }

    /// A batch of records, each with a key and what it does: one in `takes` takes the value.
    fn batch(&mut self, records: impl Iterator<Item = (String, u64)>, takes: u64, make: impl Fn(u64) -> V) {
        for (key, record) in records {
            self.window.key(&key);
            self.window.push(record);
        }
        let map = &mut self.map;
        let changed = self.table.modify_batch(self.window.drain(), |key, record, value| {
            assert_eq!(value.get(), map.get(key), "{key}");
            if record.is_multiple_of(takes) {
                assert_eq!(value.take(), map.remove(key));
            } else {
                let made = make(record);
                value.set(made.clone());
                map.insert(key.clone(), made);
            }
            Ok::<_, StateError>(())
        });
        changed.unwrap();
    }

    /// Each record counts one for its key, or adds a letter.
    fn update(&mut self, records: impl Iterator<Item = (String, u64)>, first: V, next: impl Fn(&mut V)) {
        let Self { table, map, .. } = self;
        let mut window = Window::new(table.buckets.hasher, 8);
        for (key, record) in records {
            window.key(&key);
            window.push((record, key));
        }
        let each = |key: String, seen: V| {
            let value = map.entry(key).and_modify(|value| next(value)).or_insert_with(|| first.clone());
            assert_eq!(seen, *value);
            Ok::<_, StateError>(())
        };
        table.update_batch(window.drain(), |_| first.clone(), |value, _| next(value), V::clone, each).unwrap();
    }

    fn agree(&mut self) {
        assert_eq!(self.table.len(), self.map.len() as u64);
        for (key, value) in &self.map {
            let hash = self.table.hash(key);
            assert_eq!(self.table.get(hash, key).unwrap().as_ref(), Some(value), "{key}");
        }
    }
}

/// A key of 3 to 42 letters, so that its encoding is short, longer, and now and then long.
fn key(number: u64) -> String {
    let letters = if number.is_multiple_of(97) { 300 } else { (number % 40) as usize };
    format!("{number:03}{}", "k".repeat(letters))
}

fn against_a_map<V: Record + Clone + PartialEq + Debug>(
    (page_bytes, mask): (usize, u64),
    (keys, batches): (u64, u64),
    first: V,
    next: impl Fn(&mut V),
    make: impl Fn(u64) -> V,
) {
    let mut both = Both::new(page_bytes, mask);
    for batch in 0..batches {
        // Of all lengths, around those of a step; many keys come more than once.
        let records = |seed: u64| (0..mix(seed) % 200).map(move |number| mix(seed << 20 | number));
        both.batch(records(2 * batch).map(|record| (key(record % keys), record >> 8)), 5, &make);
        both.update(records(2 * batch + 1).map(|record| (key(record % keys), record)), first.clone(), &next);
        if batch % 50 == 0 {
            both.agree();
            both.table.freeze();
            if batch % 100 == 0 { both.table.durable() } else { both.table.abandon() }
        }
    }
    both.agree();
}

#[test]
fn words_to_numbers_agree_with_a_map() {
    for mask in [u64::MAX, 0xC000_0000_0000_00FF] {
        against_a_map((1024, mask), (300, 600), 1u64, |count| *count += 1, |record| record);
        against_a_map((4096, mask), (60, 300), 1u64, |count| *count += 1, |record| record);
    }
}

#[test]
fn words_to_texts_that_grow_agree_with_a_map() {
    let make = |record: u64| "v".repeat((record % 90) as usize);
    for mask in [u64::MAX, 0xC000_0000_0000_00FF] {
        against_a_map((1024, mask), (200, 600), "a".to_owned(), |text| text.push('x'), make);
    }
}

/// Beyond the cache, where places are fetched in stages.
#[test]
fn many_words_agree_with_a_map() {
    let mut both = Both::new(16 << 10, u64::MAX);
    for number in 0..400 {
        both.batch((0..200).map(|record| (key(mix(number << 8 | record) % 40_000), record)), 7, |record| record);
        both.update((0..200).map(|record| (key(mix(number << 9 | record) % 40_000), record)), 1, |count| *count += 1);
    }
    assert!(both.table.bytes() > 1 << 20, "{}", both.table.bytes());
    both.agree();
}
