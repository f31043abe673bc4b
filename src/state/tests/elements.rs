//! Tables of elements: what belongs to one key lies in one key group, however much it is.

use super::model::Bytes;
use crate::page::Pool;
use crate::state::chain::chain;
use crate::state::{GROUP_MASK, HashRange, Hasher, Part, PartPages, Rows, Table, key_group, range_of, task_of};
use std::collections::{BTreeMap, BTreeSet};

type Elements = Table<(u64, u64), u64>;

const SMALL: u64 = 1 << 52 | 3;
const LARGE: u64 = 0x7ff << 52 | 1;
const OTHER: u64 = 0xabc << 52 | 2;

fn hasher() -> Hasher {
    Hasher::default().of_elements()
}

fn insert(table: &mut Elements, id: u64, index: u64) {
    let hash = table.hash(&(id, index));
    assert_eq!(key_group(hash), (id >> 52) as u32);
    table.insert(hash, &(id, index), index).unwrap();
}

/// A large collection among small ones, in a table of `tasks`; whose hashes are not the task's is left out.
fn filled(pool: &Pool, range: HashRange, large: u64) -> Elements {
    let mut table = Elements::new(pool, hasher(), range).unwrap();
    for (id, len) in [(SMALL, 10), (LARGE, large), (OTHER, 200)] {
        if range.contains(id & GROUP_MASK) {
            (0..len).for_each(|index| insert(&mut table, id, index));
        }
    }
    table
}

fn content(tables: &[Elements]) -> BTreeMap<(u64, u64), u64> {
    let mut content = BTreeMap::new();
    for table in tables {
        let mut next = Some(table.range().start);
        while let Some(from) = next {
            next = table
                .scan(from, |_, key, value| {
                    assert!(content.insert(key, value).is_none(), "{key:?} comes twice");
                    Ok::<(), crate::state::StateError>(())
                })
                .unwrap();
        }
    }
    content
}

fn bytes(table: &mut Elements) -> Bytes {
    let (root, pages) = table.freeze();
    (root, pages.changed.iter().map(|(id, page)| (*id, page.to_vec())).collect())
}

fn part(bytes: &Bytes) -> Part<'_> {
    Part { root: &bytes.0, pages: PartPages::Here(bytes.1.iter().map(|(&id, page)| (id, &page[..])).collect()) }
}

/// The longest chain of any bucket, and the number of buckets.
fn chains(table: &Elements) -> (usize, usize) {
    let buckets = &table.buckets;
    let (mut at, mut seen, mut longest) = (Some(table.range().start), BTreeSet::new(), 0);
    while let Some(hash) = at {
        let bucket = buckets.directory.bucket_of(hash);
        assert!(seen.insert(bucket), "bucket {bucket} is met twice");
        longest = longest.max(chain(&buckets.pages, bucket).unwrap().len());
        let end = buckets.directory.end_of(hash);
        at = (end < table.range().end_inclusive).then(|| end + 1);
    }
    (longest, seen.len())
}

#[test]
fn a_collection_of_any_length_has_short_chains() {
    for page_bytes in [512, 4096] {
        let pool = Pool::new(page_bytes, 1 << 28);
        let table = filled(&pool, range_of(0, 1), 60_000);
        let (longest, buckets) = chains(&table);
        assert_eq!((longest, buckets as u64), (1, table.buckets.buckets), "pages of {page_bytes} bytes");
    }
}

#[test]
fn collections_go_on_at_the_same_and_at_another_parallelism() {
    const LEN: u64 = 20_000;
    let pool = Pool::new(512, 1 << 28);
    let mut tables: Vec<_> = (0..3).map(|task| filled(&pool, range_of(task, 3), LEN)).collect();
    let all = content(&tables);
    assert_eq!(all.len() as u64, LEN + 210);
    let kept: Vec<_> = tables.iter_mut().map(bytes).collect();
    for tasks in [3, 1, 5, 4096] {
        let parts: Vec<_> = kept.iter().map(part).collect();
        let ours =
            (0..tasks).filter(|&task| tasks < 10 || [SMALL, LARGE, OTHER].iter().any(|&id| task_of(id, tasks) == task));
        let mut restored: Vec<_> =
            ours.map(|task| Elements::restore(&pool, hasher(), range_of(task, tasks), &parts).unwrap()).collect();
        assert_eq!(content(&restored), all, "at parallelism {tasks}");
        for table in &mut restored {
            assert_eq!(chains(table).0, 1, "at parallelism {tasks}");
            if table.range().contains(LARGE & GROUP_MASK) {
                (LEN..LEN + 5000).for_each(|index| insert(table, LARGE, index));
                assert_eq!(chains(table).0, 1);
            }
        }
    }
    // Nothing but tags is read, and what is there is found all the same.
    let absent =
        |(task, bytes): (usize, &Bytes)| super::model::absent(&pool, hasher(), range_of(task as u32, 3), bytes);
    let absent: Vec<Elements> = kept.iter().enumerate().map(|part| absent(part).unwrap()).collect();
    assert_eq!(content(&absent), all);
    // Whoever has no types reads them too, and nobody takes one kind of table for the other.
    let rows: u64 = kept.iter().map(|bytes| Rows::new(&part(bytes)).unwrap().iter().count() as u64).sum();
    assert_eq!(rows, LEN + 210);
    let parts: Vec<_> = kept.iter().map(part).collect();
    let error = Elements::restore(&pool, Hasher::default(), range_of(0, 3), &parts).err().unwrap();
    assert!(error.to_string().contains("elements true"), "{error}");
}

/// Most of a large collection goes again: what the directory has become stays right.
#[test]
fn a_table_shrinks_and_grows() {
    let pool = Pool::new(512, 1 << 28);
    let mut table = filled(&pool, range_of(0, 1), 10_000);
    for index in 5..10_000 {
        let hash = table.hash(&(LARGE, index));
        assert_eq!(table.remove(hash, &(LARGE, index)).unwrap(), Some(index));
    }
    let kept = bytes(&mut table);
    let mut table = Elements::restore(&pool, hasher(), range_of(0, 1), &[part(&kept)]).unwrap();
    // Now everything else grows, so that the directory becomes deep throughout.
    for id in 0..4096u64 {
        (0..20).for_each(|index| insert(&mut table, id << 52 | 9, index));
    }
    let (longest, buckets) = chains(&table);
    assert_eq!((longest, buckets as u64), (1, table.buckets.buckets));
    assert_eq!(content(&[table]).len(), 4096 * 20 + 5 + 10 + 200);
}

#[test]
fn stale_values_are_found_without_touching_others() {
    let pool = Pool::new(512, 1 << 24);
    let mut table = Table::<String, (u64, String)>::new(&pool, Hasher::default(), range_of(0, 1)).unwrap();
    for number in 0..300u64 {
        // Some keys and values lie on pages of their own.
        let key = format!("{number}{}", "k".repeat(if number % 7 == 0 { 600 } else { 1 }));
        let hash = table.hash(&key);
        table.insert(hash, &key, (number, "v".repeat(if number % 5 == 0 { 2000 } else { 3 }))).unwrap();
    }
    let look = |table: &Table<String, (u64, String)>| {
        let (mut found, mut entries, mut dirty, mut next) = (Vec::new(), 0, 0, Some(0));
        while let Some(from) = next {
            let looked = table.stale(from, 99, &mut found).unwrap();
            (next, entries, dirty) = (looked.next, entries + looked.entries, dirty + u64::from(looked.is_dirty));
        }
        (found, entries, dirty)
    };
    let (found, entries, dirty) = look(&table);
    assert_eq!((found.len(), entries), (100, 300));
    assert!(dirty > 10);
    let frozen = table.freeze();
    assert_eq!(look(&table).2, 0);
    table.abandon();
    assert_eq!(look(&table).2, dirty);
    drop(frozen);
    for (hash, key) in found {
        assert!(table.remove(hash, &key).unwrap().unwrap().0 < 100);
    }
    assert_eq!((look(&table).0.len(), table.len()), (0, 200));
}
