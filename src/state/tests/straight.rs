//! Batches that go straight into tables which lie in the cache, or just not any more: with panics, errors and exhausted pools in
//! their midst, with freezes, views and restores in between, against a plain map.

use super::model::{Bytes, Make, absent, part};
use crate::page::{FrozenPages, Pool};
use crate::record::to_bytes;
use crate::state::{FrozenTable, HashRange, Hasher, StateError, Table, Value, Window, mirror_of, range_of};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Make for () {
    fn make(_: u32) {}
    fn change(&mut self, _: u32) {}
}

/// With a key of eight bytes: a group that fills a page of 512 bytes.
impl Make for [u8; 54] {
    fn make(number: u32) -> Self {
        std::array::from_fn(|at| (number as usize + at) as u8)
    }
    fn change(&mut self, number: u32) {
        let at = number as usize % 54;
        self[at] = self[at].wrapping_add((number % 2) as u8);
        self[53] = self[53].wrapping_mul(3).wrapping_add(number as u8);
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    /// First, count, step, how, where.
    Batch(u32, u32, u32, u8, u32),
    /// The same, of records that look at values, set and take them.
    Modify(u32, u32, u32, u8, u32),
    Remove(u32, u32, u32),
    Freeze,
    Durable,
    Abandon,
    DropOldest,
    View,
    ViewStep(u32),
    /// Another size of pages, another range, all absent.
    Restore(u32, u32, bool),
    Hydrate(u32),
}

fn op(keys: u32) -> impl Strategy<Value = Op> {
    let count = 1..(keys / 4).max(2);
    prop_oneof![
        5 => (0..keys, count.clone(), 1..5u32, 0..9u8, any::<u32>()).prop_map(|(a, b, c, d, e)| Op::Batch(a, b, c, d, e)),
        4 => (0..keys, count.clone(), 1..5u32, 0..9u8, any::<u32>()).prop_map(|(a, b, c, d, e)| Op::Modify(a, b, c, d, e)),
        4 => (0..keys, count, 1..3u32).prop_map(|(a, b, c)| Op::Remove(a, b, c)),
        2 => Just(Op::Freeze),
        1 => Just(Op::Durable),
        1 => Just(Op::Abandon),
        1 => Just(Op::DropOldest),
        1 => Just(Op::View),
        3 => (1..2000u32).prop_map(Op::ViewStep),
        2 => (0..9u32, 0..6u32, any::<bool>()).prop_map(|(a, b, c)| Op::Restore(a, b, c)),
        1 => (1..300u32).prop_map(Op::Hydrate),
    ]
}

enum Stop {
    State(StateError),
    Each,
}

impl From<StateError> for Stop {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

type Model<V> = BTreeMap<u32, V>;
type Stored<V> = (Bytes, Model<V>, HashRange, usize);

struct World<K, V> {
    pool: Pool,
    hasher: Hasher,
    keys: u32,
    limit_bytes: usize,
    table: Table<K, V>,
    model: Model<V>,
    disk: Option<Stored<V>>,
    undecided: Option<Stored<V>>,
    held: Vec<(Vec<Vec<u8>>, FrozenPages)>,
    view: Option<(Vec<u8>, Model<V>)>,
    straight: u32,
}

impl<K: Make, V: Make> World<K, V> {
    fn new(page_bytes: usize, limit_bytes: usize, hasher: Hasher, range: HashRange, keys: u32) -> Self {
        let pool = Pool::new(page_bytes, limit_bytes);
        let table = Table::new(&pool, hasher, range).unwrap();
        let (disk, undecided, held, view) = (None, None, Vec::new(), None);
        Self { pool, hasher, keys, limit_bytes, table, model: Model::new(), disk, undecided, held, view, straight: 0 }
    }

    fn hash(&self, number: u32) -> u64 {
        self.hasher.hash(&K::make(number), &mut Vec::new())
    }

    fn ours(&self, first: u32, count: u32, step: u32) -> Vec<u32> {
        let numbers = (0..count).map(|at| (first + at * step) % self.keys);
        numbers.filter(|&number| self.table.range().contains(self.hash(number))).collect()
    }

    fn run(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Batch(first, count, step, how, at) => return self.batch(first, count, step, how, at),
            Op::Modify(first, count, step, how, at) => return self.modify(first, count, step, how, at),
            Op::Remove(first, count, step) => {
                for number in self.ours(first, count, step) {
                    let hash = self.hash(number);
                    match self.table.discard(hash, &K::make(number)) {
                        Ok(was) => prop_assert_eq!(was, self.model.remove(&number).is_some()),
                        Err(StateError::Exhausted(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            Op::Freeze => {
                let (root, frozen) = self.table.freeze();
                let mut pages = BTreeMap::new();
                if !frozen.full {
                    pages = self.disk.as_ref().expect("not full, so something is durable").0.1.clone();
                    frozen.freed.iter().for_each(|id| drop(pages.remove(id)));
                }
                pages.extend(frozen.changed.iter().map(|(id, page)| (*id, page.to_vec())));
                let size = self.pool.page_bytes();
                self.undecided = Some(((root, pages), self.model.clone(), self.table.range(), size));
                self.held.push((frozen.changed.iter().map(|(_, page)| page.to_vec()).collect(), frozen));
            }
            Op::Durable => {
                self.table.durable();
                self.disk = self.undecided.take().or(self.disk.take());
            }
            Op::Abandon => {
                self.table.abandon();
                self.undecided = None;
            }
            Op::DropOldest if !self.held.is_empty() => drop(self.held.remove(0)),
            Op::View => self.view = Some((self.table.begin_view(), self.model.clone())),
            Op::ViewStep(pages) => match self.table.view_step(pages) {
                Ok(Some(cut)) => {
                    let whole = cut.hand_over().expect("nobody takes a page in between");
                    let (root, model) = self.view.take().unwrap();
                    let view = FrozenTable::new(&root, whole);
                    let mut found = BTreeMap::new();
                    view.unwrap()
                        .each(|key, value| {
                            assert!(found.insert(key.to_vec(), value.to_vec()).is_none());
                            Ok::<_, StateError>(())
                        })
                        .unwrap();
                    let expected = model.iter().map(|(&number, value)| (to_bytes(&K::make(number)), to_bytes(value)));
                    prop_assert_eq!(found, expected.collect());
                }
                Ok(None) => {}
                Err(_) => self.view = None,
            },
            Op::Restore(size, task, here) => self.restore(size, task, here),
            Op::Hydrate(pages) => drop(self.table.hydrate(pages)),
            _ => {}
        }
        Ok(())
    }

    fn restore(&mut self, size: u32, task: u32, here: bool) {
        let Some((bytes, model, range, page_bytes)) = self.disk.clone() else { return };
        let (mut to, mut to_range) = (page_bytes, range);
        if size < 4 {
            // Absent pages are of the size that they are.
            to = if here { 512 << (2 * size) } else { page_bytes };
            // A part of the range, if it has one of this kind.
            let inner = range_of(task % 3, 3 + task);
            to_range =
                if range.start <= inner.start && inner.end_inclusive <= range.end_inclusive { inner } else { range };
        }
        self.view = None;
        self.table.drop_view();
        self.held.clear();
        let pool = Pool::new(to, self.limit_bytes);
        let table = if here {
            Table::restore(&pool, self.hasher, to_range, &[part(&bytes)])
        } else {
            absent(&pool, self.hasher, to_range, &bytes)
        };
        let table = match table {
            Ok(table) => table,
            Err(StateError::Exhausted(_)) => return,
            Err(error) => panic!("{error}"),
        };
        (self.pool, self.table) = (pool, table);
        (self.model, self.undecided) = (model, None);
        let hasher = self.hasher;
        let hash = |number: u32| hasher.hash(&K::make(number), &mut Vec::new());
        self.model.retain(|&number, _| to_range.contains(hash(number)));
        if (to, to_range) != (page_bytes, range) {
            self.disk = None;
        }
    }

    fn batch(&mut self, first: u32, count: u32, step: u32, how: u8, at: u32) -> Result<(), TestCaseError> {
        let numbers = self.ours(first, count, step);
        let at = at as usize % numbers.len().max(1);
        let mut window = Window::new(self.hasher, 0);
        let is_straight = self.table.takes_straight();
        if is_straight {
            self.straight += 1;
        } else {
            for &number in &numbers {
                window.key(&K::make(number));
                window.push((number, number));
            }
        }
        let (calls, seen) = (Cell::new(0), RefCell::new(Vec::new()));
        let records = numbers.iter().enumerate().map(|(index, &number)| {
            assert!(how != 1 || index != at, "the key's");
            (mirror_of(&K::make(number)), (number, number))
        });
        let change = |value: &mut V, number: u32| {
            value.change(number);
            assert!(how != 2 || calls.replace(calls.get() + 1) != at, "the user's");
        };
        let mut each = |number: u32, value: V| {
            seen.borrow_mut().push((number, value));
            if how == 3 && seen.borrow().len() == at + 1 { Err(Stop::Each) } else { Ok(()) }
        };
        let first = |number| {
            let mut value = V::make(1);
            change(&mut value, number);
            value
        };
        let table = &mut self.table;
        let result = catch_unwind(AssertUnwindSafe(|| {
            if is_straight {
                table.update_straight(records, first, change, V::clone, each)
            } else if how == 4 {
                // One by one: none has another behind it.
                window.drain().try_for_each(|record| {
                    table.update_batch(std::iter::once(record), first, change, V::clone, &mut each)
                })
            } else {
                table.update_batch(window.drain(), first, change, V::clone, each)
            }
        }));
        // Whatever happened, what is seen is done, and nothing else.
        let seen = seen.into_inner();
        match result {
            Ok(Ok(())) => prop_assert_eq!(seen.len(), numbers.len()),
            Ok(Err(Stop::Each)) => prop_assert!(how == 3 && seen.len() == at + 1),
            Ok(Err(Stop::State(StateError::Exhausted(_)))) => prop_assert!(seen.len() < numbers.len()),
            Ok(Err(Stop::State(error))) => panic!("{error}"),
            Err(_) => prop_assert!((how == 1 && is_straight || how == 2) && seen.len() == at),
        }
        for (number, (of, value)) in numbers.into_iter().zip(seen) {
            let expected = self.model.entry(number).or_insert_with(|| V::make(1));
            expected.change(number);
            prop_assert_eq!((of, &value), (number, &*expected));
        }
        Ok(())
    }

    fn modify(&mut self, first: u32, count: u32, step: u32, how: u8, at: u32) -> Result<(), TestCaseError> {
        let numbers = self.ours(first, count, step);
        let at = at as usize % numbers.len().max(1);
        if !self.table.takes_straight() {
            return Ok(());
        }
        self.straight += 1;
        // What the last one has changed, until that is in the table.
        let (model, last, calls) = (RefCell::new(std::mem::take(&mut self.model)), RefCell::new(None), Cell::new(0));
        let records = numbers.iter().enumerate().map(|(index, &number)| {
            last.take();
            assert!(how != 1 || index != at, "the key's");
            (K::make(number), number)
        });
        let act = |_: &K, number: u32, value: &mut Value<V>| {
            let (mut model, index) = (model.borrow_mut(), calls.replace(calls.get() + 1));
            let before = model.get(&number).cloned();
            assert_eq!(value.get(), before.as_ref());
            last.replace(Some((number, before)));
            match (number + u32::from(how)) % 5 {
                0 => assert_eq!(value.take(), model.remove(&number)),
                1 => {}
                2 => {
                    value.set(V::make(number));
                    model.insert(number, V::make(number));
                }
                _ => {
                    value.get_or_insert_with(|| V::make(1)).change(number);
                    model.entry(number).or_insert_with(|| V::make(1)).change(number);
                }
            }
            assert!(how != 2 || index != at, "the user's");
            if how == 3 && index == at { Err(Stop::Each) } else { Ok(()) }
        };
        let table = &mut self.table;
        let result = catch_unwind(AssertUnwindSafe(|| table.modify_straight(records, act)));
        let has_failed = match result {
            Ok(Ok(())) => false,
            Ok(Err(Stop::State(StateError::Exhausted(_)))) => true,
            Ok(Err(Stop::State(error))) => panic!("{error}"),
            Ok(Err(Stop::Each)) => how == 3,
            Err(_) => how == 2,
        };
        self.model = model.into_inner();
        if let (true, Some((number, before))) = (has_failed, last.into_inner()) {
            match before {
                Some(value) => drop(self.model.insert(number, value)),
                None => drop(self.model.remove(&number)),
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        for (bytes, frozen) in &self.held {
            let mut pages = frozen.changed.iter().zip(bytes);
            prop_assert!(pages.all(|((_, page), bytes)| **page == **bytes), "a frozen page changed");
        }
        prop_assert_eq!(self.table.len(), self.model.len() as u64);
        if self.table.absent_pages() > 0 && self.limit_bytes < 1 << 20 {
            return Ok(());
        }
        for (&number, value) in &self.model {
            let found = self.table.get(self.hash(number), &K::make(number)).unwrap();
            prop_assert_eq!(found.as_ref(), Some(value), "key {}", number);
        }
        let (mut from, mut count) = (Some(self.table.range().start), 0);
        while let Some(start) = from {
            let count = |_, _: K, _: V| {
                count += 1;
                Ok::<_, StateError>(())
            };
            from = self.table.scan(start, count).unwrap();
        }
        prop_assert_eq!(count, self.model.len(), "each exactly once");
        Ok(())
    }
}

fn run<K: Make, V: Make>(
    page_bytes: usize,
    limit_bytes: usize,
    mask: u64,
    task: u32,
    keys: u32,
    ops: Vec<Op>,
) -> Result<u32, TestCaseError> {
    let mut hasher = Hasher::default();
    hasher.mask = mask;
    let range = if task < 3 { range_of(0, 1) } else { range_of(task % 3, 3) };
    let mut world = World::<K, V>::new(page_bytes, limit_bytes, hasher, range, keys);
    for op in ops {
        world.run(op)?;
        world.check()?;
    }
    world.view = None;
    world.table.drop_view();
    let (straight, pool) = (world.straight, world.pool.clone());
    drop(world);
    prop_assert_eq!(pool.in_use(), 0);
    Ok(straight)
}

fn sizes() -> impl Strategy<Value = usize> {
    (0..8u32).prop_map(|power| 512 << power)
}

/// All hashes, and such that are alike.
fn masks() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(u64::MAX), 1 => Just(0xFFFF_0000_0000_000F), 1 => Just(0xFFFF_FFFF), 1 => Just(0)]
}

const ROOM: usize = 1 << 28;

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn about_a_mebibyte(size in sizes(), task in 0..6u32, ops in prop::collection::vec(op(50_000), 1..40)) {
        run::<u64, u64>(size, ROOM, u64::MAX, task, 50_000, ops)?;
    }

    #[test]
    fn keys_that_collide(size in sizes(), mask in masks(), task in 0..6u32, ops in prop::collection::vec(op(400), 1..120)) {
        run::<u64, u64>(size, ROOM, mask, task, 400, ops)?;
    }

    #[test]
    fn a_pool_that_is_exhausted(
        size in sizes(), room in 3..60usize, mask in masks(), ops in prop::collection::vec(op(600), 1..120)
    ) {
        run::<u64, u64>(size, room * size, mask, 0, 600, ops)?;
    }

    #[test]
    fn slots_as_large_as_pages(size in sizes(), room in 8..2000usize, task in 0..6u32, ops in prop::collection::vec(op(900), 1..80)) {
        run::<u64, [u8; 54]>(size, room * size, u64::MAX, task, 900, ops)?;
    }

    #[test]
    fn words_of_all_lengths(size in sizes(), mask in masks(), task in 0..6u32, ops in prop::collection::vec(op(600), 1..100)) {
        run::<String, u64>(size, ROOM, mask, task, 600, ops.clone())?;
        run::<String, ()>(size, ROOM, mask, task, 600, ops.clone())?;
        run::<String, String>(size, ROOM, mask, task, 600, ops)?;
    }

    #[test]
    fn words_in_a_pool_that_is_exhausted(
        size in sizes(), room in 3..60usize, mask in masks(), ops in prop::collection::vec(op(600), 1..100)
    ) {
        run::<String, u8>(size, room * size, mask, 0, 600, ops)?;
    }

    #[test]
    fn a_mebibyte_of_words(size in sizes(), task in 0..6u32, ops in prop::collection::vec(op(20_000), 1..30)) {
        run::<String, [u8; 54]>(size, ROOM, u64::MAX, task, 20_000, ops)?;
    }

    #[test]
    fn slots_of_one_byte_and_of_none(size in sizes(), mask in masks(), ops in prop::collection::vec(op(256), 1..80)) {
        run::<u8, ()>(size, ROOM, mask, 0, 256, ops.clone())?;
        run::<(), u8>(size, ROOM, mask, 0, 1, ops.clone())?;
        run::<(), ()>(size, ROOM, mask, 0, 1, ops)?;
    }
}
