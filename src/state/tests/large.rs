//! Tables beyond the cache, where places are fetched ahead, with slots of one line and of many, up to the last bytes of a page.

use super::model::{Bytes, absent};
use crate::page::Pool;
use crate::state::{Hasher, StateError, Table, Window, range_of};
use std::collections::{BTreeMap, HashMap};

/// Above the size from which on places are fetched.
const TABLE_BYTES_MIN: usize = 3 << 20;

/// Changes keys of a table in batches, new ones among them, and the same in a map; each sees what the other does.
fn update<const N: usize>(table: &mut Table<u64, [u64; N]>, map: &mut HashMap<u64, [u64; N]>, keys: u64, seed: u64) {
    let mut window = Window::new(Hasher::default(), 64);
    // Each number comes once, in no order that is one of hashes.
    for batch in (0..keys).map(|number| number * 7919 % keys).collect::<Vec<_>>().chunks(101) {
        for &number in batch {
            window.key(&number);
            window.push((number ^ seed, number));
        }
        let next = |value: &mut [u64; N], by: u64| value.iter_mut().for_each(|item| *item = item.rotate_left(7) ^ by);
        let each = |number, seen: [u64; N]| {
            let by = number ^ seed;
            let expected = map.entry(number).and_modify(|value| next(value, by)).or_insert([by; N]);
            assert_eq!(seen, *expected, "key {number}");
            Ok::<_, StateError>(())
        };
        table.update_batch(window.drain(), |by| [by; N], next, |value| *value, each).unwrap();
    }
}

fn against_a_map<const N: usize>(page_bytes: usize, keys: u64) {
    let pool = Pool::new(page_bytes, usize::MAX);
    let (hasher, range) = (Hasher::default(), range_of(0, 1));
    let (mut table, mut map) = (Table::new(&pool, hasher, range).unwrap(), HashMap::new());
    update::<N>(&mut table, &mut map, keys / 2, 1);
    update(&mut table, &mut map, keys, 2);
    assert!(table.bytes() > TABLE_BYTES_MIN, "{} bytes are in the cache", table.bytes());
    let (root, frozen) = table.freeze();
    table.durable();
    // While the pages are frozen, and by single looks.
    update(&mut table, &mut map, keys / 3, 3);
    table
        .prefetch_hashes((0..keys).map(|number| hasher.hash(&number, &mut Vec::new())).collect::<Vec<_>>().into_iter());
    for (number, value) in &map {
        let hash = table.hash(number);
        assert_eq!(table.get(hash, number).unwrap().as_ref(), Some(value));
    }
    // What was frozen, of which nothing has been read: nor does it come by being fetched ahead.
    let pages: BTreeMap<_, _> = frozen.changed.iter().map(|(id, page)| (*id, page.to_vec())).collect();
    let stored: Bytes = (root, pages);
    let mut restored = absent::<u64, [u64; N]>(&pool, hasher, range, &stored).unwrap();
    let before = restored.absent_pages();
    restored
        .prefetch_hashes((0..keys).map(|number| hasher.hash(&number, &mut Vec::new())).collect::<Vec<_>>().into_iter());
    assert_eq!(restored.absent_pages(), before);
    let mut then = HashMap::new();
    let mut again = Table::new(&pool, hasher, range).unwrap();
    update(&mut again, &mut then, keys / 2, 1);
    update(&mut again, &mut then, keys, 2);
    update(&mut restored, &mut then, keys, 4);
}

#[test]
fn slots_of_less_than_a_line_agree_with_a_map() {
    against_a_map::<1>(16 << 10, 200_000);
    against_a_map::<2>(1024, 100_000);
}

#[test]
fn slots_of_many_lines_agree_with_a_map() {
    against_a_map::<8>(4096, 50_000); // 72 bytes
    against_a_map::<15>(16 << 10, 30_000); // 128 bytes, the end of the last group 56 bytes before that of the page
    against_a_map::<17>(2048, 30_000); // one group a page
}

#[test]
fn groups_of_a_whole_page_and_slots_too_large_for_any_agree_with_a_map() {
    against_a_map::<60>(4096, 8_000);
    against_a_map::<70>(4096, 8_000); // as in a heap
}
