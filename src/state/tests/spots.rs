//! Batches into tables of a heap, where keys are looked for ahead of their turn: what was found is no longer true when other
//! keys of the batch have come, grown or gone.

use super::modify::mix;
use crate::page::Pool;
use crate::record::Record;
use crate::state::entry::{Entry, is_of_key};
use crate::state::{Encoding, Hasher, StateError, Table, Window, range_of};
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

/// So long that its length does not fit where lengths are.
#[test]
fn a_key_of_more_than_64_kib_is_no_other_key() {
    let mut both = Both::<u8>::new(4096, u64::MAX);
    both.update((0..60).map(|number| (format!("{number:012}"), number)), 1, |value| *value = value.wrapping_add(1));
    for letter in b'a'..=b'z' {
        let long = String::from_utf8(vec![letter; 65536 + 12]).unwrap();
        both.update(std::iter::once((long, 1)), 1, |value| *value = value.wrapping_add(1));
    }
    both.agree();
}

#[test]
fn a_window_tells_the_hash_whenever_it_is_asked() {
    let hasher = Hasher::new(7);
    let mut window = Window::<String, u64>::new(hasher, 8);
    let keys = ["longer than twelve bytes", "short", "", "twelve bytes", "as long as others are", "abc"];
    for round in 0..3 {
        for (number, key) in (0..).zip(keys) {
            // One whose record never comes, perhaps.
            if number % 3 == round {
                window.key(&"a key that is replaced by another one".to_owned());
            }
            window.key(&key.to_owned());
            assert_eq!(window.hashes().len(), number as usize);
            window.push(number);
        }
        for (number, (hash, encoded, record)) in (0..).zip(window.drain()) {
            let key = keys[number as usize].to_owned();
            assert_eq!((hash, record), (hasher.hash(&key, &mut Vec::new()), number));
            assert_eq!(encoded, crate::record::to_bytes(&key));
        }
    }
}

#[test]
fn an_entry_is_known_by_its_sizes_its_flags_and_its_bytes() {
    let text = "twelve bytes".to_owned();
    let key = crate::record::to_bytes(&text);
    let short = Encoding::Short(text.short().unwrap().padded());
    for flags in 0..4 {
        // With much behind it, and right at the end of the page.
        for at in [100, 512 - 8 - 16 - 1] {
            let mut page = [0; 512];
            Entry { key: &key, value: &[7], value_room: 1, flags }.store(&mut page, at);
            for encoding in [short, Encoding::Long(&key)] {
                assert_eq!(is_of_key(&page, at, encoding, 1), flags == 0, "flags {flags} at {at}");
                assert!(!is_of_key(&page, at, encoding, 2));
                page[at + 8 + 15] ^= 1;
                assert!(!is_of_key(&page, at, encoding, 1));
                page[at + 8 + 15] ^= 1;
            }
        }
    }
    // So short that key and value end where the page does.
    let (text, mut page) = ("abc".to_owned(), [0; 512]);
    let key = crate::record::to_bytes(&text);
    Entry { key: &key, value: &[7], value_room: 1, flags: 0 }.store(&mut page, 512 - 16);
    let short = |text: &str| Encoding::Short(text.to_owned().short().unwrap().padded());
    assert!(is_of_key(&page, 512 - 16, short("abc"), 1) && !is_of_key(&page, 512 - 16, short("abd"), 1));
}

/// Such as come again and again within one batch.
#[test]
fn words_of_few_letters_and_of_many() {
    let word = |number: u64| -> String {
        let (len, letter) = (number % 18, char::from(b'a' + (number / 18 % 3) as u8));
        std::iter::repeat_n(letter, len as usize).collect()
    };
    for mask in [u64::MAX, 0xFFFF_0000_0000_000F, 0] {
        let mut both = Both::<u64>::new(512, mask);
        for round in 0..40 {
            let numbers = (0..200).map(|at| mix(round << 32 | at));
            both.update(numbers.map(|number| (word(number), number)), 5, |value| *value += 1);
            both.agree();
        }
    }
}
