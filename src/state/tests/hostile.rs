//! Damaged snapshots: an error or a table that works, never a panic, an endless loop or a huge allocation.

use super::model::{Bytes, Stored, World, absent, part};
use super::rows::rows;
use crate::page::Pool;
use crate::record::Record;
use crate::state::{Hasher, Part, PartPages, StateError, Table, range_of};
use proptest::prelude::*;
use std::sync::Arc;

/// A stored table with long keys and values and chains in it.
fn stored() -> Bytes {
    let mut hasher = Hasher::default();
    hasher.mask = 0xC000_0000_0000_00FF;
    let mut world = World::<String, String>::new(512, hasher, 1);
    (0..300).for_each(|number| world.update(number, number).unwrap());
    world.stored().remove(0)
}

fn restore<K: Record, V: Record>(bytes: &Bytes, tasks: u32) -> Result<Table<K, V>, StateError> {
    let mut hasher = Hasher::default();
    hasher.mask = 0xC000_0000_0000_00FF;
    Table::restore(&Pool::new(512, 1 << 24), hasher, range_of(0, tasks), &[part(bytes)])
}

fn restore_absent(bytes: &Bytes) -> Result<Table<String, String>, StateError> {
    let mut hasher = Hasher::default();
    hasher.mask = 0xC000_0000_0000_00FF;
    absent(&Pool::new(512, 1 << 24), hasher, range_of(0, 1), bytes)
}

/// Uses all of a table.
fn use_up(mut table: Table<String, String>) {
    let mut from = Some(table.range().start);
    let mut keys = Vec::new();
    while let Some(start) = from {
        let next = table.scan(start, |hash, key: String, _: String| {
            keys.push((hash, key));
            Ok::<_, StateError>(())
        });
        let Ok(next) = next else { return };
        from = next;
    }
    for (hash, key) in keys {
        let _ = table.update(hash, &key, String::new, |value| value.push_str("more"));
        let _ = table.remove(hash, &key);
    }
}

#[test]
fn what_is_missing_doubled_or_cut_is_corrupt() {
    let (root, pages) = stored();
    assert_eq!(restore::<String, String>(&(root.clone(), pages.clone()), 1).unwrap().len(), 300);
    for &id in pages.keys() {
        let mut fewer = pages.clone();
        fewer.remove(&id);
        let error = restore::<String, String>(&(root.clone(), fewer), 1).err().expect("a page is missing");
        assert!(matches!(error, StateError::Corrupt { .. }), "{error}");
    }
    let whole = (root.clone(), pages);
    let twice = whole.1.iter().chain(&whole.1).map(|(&id, page)| (id, page.as_slice())).collect();
    let twice = Part { pages: PartPages::Here(twice), root: &root };
    let restored =
        Table::<String, String>::restore(&Pool::new(512, 1 << 24), Hasher::default(), range_of(0, 1), &[twice]);
    assert!(matches!(restored.err(), Some(StateError::Corrupt { .. })));
    for len in 0..root.len() {
        let cut = (root[..len].to_vec(), whole.1.clone());
        assert!(matches!(restore::<String, String>(&cut, 1).err(), Some(StateError::Corrupt { .. })));
    }
}

#[test]
fn a_table_of_other_types_or_another_seed_does_not_fit() {
    let bytes = stored();
    assert!(matches!(restore::<u64, String>(&bytes, 1).err(), Some(StateError::Mismatch { .. })));
    assert!(matches!(restore::<String, u64>(&bytes, 1).err(), Some(StateError::Mismatch { .. })));
    let restored =
        Table::<String, String>::restore(&Pool::new(512, 1 << 24), Hasher::new(1), range_of(0, 1), &[part(&bytes)]);
    assert!(matches!(restored.err(), Some(StateError::Mismatch { .. })));
}

/// Absent pages that are other than the map says: told when they come, by name.
#[test]
fn a_page_that_is_not_what_its_tag_says_is_corrupt() {
    let (root, pages) = stored();
    for &id in pages.keys() {
        let mut swapped = Stored::new(&pages);
        let other = swapped.tags.iter().find(|(_, tag)| **tag != swapped.tags[&id]).map(|(other, _)| *other).unwrap();
        swapped.pages.insert(id, pages[&other].clone());
        let mut hasher = Hasher::default();
        hasher.mask = 0xC000_0000_0000_00FF;
        let part = Part { root: &root, pages: PartPages::Absent(Arc::new(swapped)) };
        let mut table =
            Table::<String, String>::restore(&Pool::new(512, 1 << 24), hasher, range_of(0, 1), &[part]).unwrap();
        let error = table.hydrate(u32::MAX).unwrap_err();
        let StateError::Corrupt { what } = error else { panic!("{error}") };
        assert!(what.starts_with(&format!("the test's page {id} ")), "{what}");
    }
}

/// What tags say must make a directory.
#[test]
fn tags_that_contradict_each_other_are_refused_before_any_page_is_read() {
    let (root, pages) = stored();
    let is_refused = |change: &dyn Fn(&mut Stored)| {
        let mut wrong = Stored::new(&pages);
        change(&mut wrong);
        let part = Part { root: &root, pages: PartPages::Absent(Arc::new(wrong)) };
        let mut hasher = Hasher::default();
        hasher.mask = 0xC000_0000_0000_00FF;
        let table = Table::<String, String>::restore(&Pool::new(512, 1 << 24), hasher, range_of(0, 1), &[part]);
        matches!(table.err(), Some(StateError::Corrupt { .. }))
    };
    assert!(!is_refused(&|_| ()));
    let buckets: Vec<_> = Stored::new(&pages).tags.into_iter().filter(|(_, tag)| tag & 0xFF == 1).collect();
    for &(id, tag) in &buckets {
        assert!(is_refused(&|stored| _ = stored.tags.remove(&id)), "a bucket is missing");
        assert!(is_refused(&|stored| _ = stored.tags.insert(1000, tag)), "two buckets have a prefix");
        for wrong in [0, 4, 1 | 33 << 8, tag | 1 << 16, tag ^ 1 << 32] {
            assert!(is_refused(&|stored| _ = stored.tags.insert(id, wrong)), "{wrong:#x} instead of {tag:#x}");
        }
    }
    assert!(is_refused(&|stored| _ = stored.tags.insert(1 << 28, 3)), "an id that would take much memory");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_do_no_harm(damage in prop::collection::vec((any::<usize>(), 0..96usize, any::<u8>()), 40),
                                in_root in any::<bool>(), tasks in 1..4u32) {
        let whole = stored();
        // One at a time, so that later checks are reached too; mostly in headers and first groups.
        for (at, offset, byte) in damage {
            let mut bytes = whole.clone();
            if in_root {
                let len = bytes.0.len();
                bytes.0[at % len] = byte;
            } else {
                let index = at % bytes.1.len();
                let page = bytes.1.values_mut().nth(index).unwrap();
                let offset = if at % 5 == 0 { at % 512 } else { offset };
                page[offset] = byte;
            }
            if let Ok(table) = restore::<String, String>(&bytes, tasks) {
                use_up(table);
            }
            if let Ok(table) = restore_absent(&bytes) {
                use_up(table);
            }
            let mut hasher = Hasher::default();
            hasher.mask = 0xC000_0000_0000_00FF;
            let _ = rows::<String, String>(hasher, &bytes);
        }
    }
}
