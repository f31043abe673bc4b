//! Random operations on the tables of an operator, with freezes that become durable or not, and restores at the same and
//! at other parallelisms, against a plain map and plain copies of it.

use super::rows::rows;
use crate::page::{FrozenPages, PageError, PageId, PageSource, Pool};
use crate::record::{Record, to_bytes};
use crate::state::{HashRange, Hasher, Part, PartPages, StateError, Table, Window, mirror_of, range_of, task_of};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Keys and values out of small numbers.
pub(super) trait Make: Record + Clone + Debug + PartialEq {
    fn make(number: u32) -> Self;
    fn change(&mut self, number: u32);
}

impl Make for u64 {
    fn make(number: u32) -> Self {
        u64::from(number) * 0x1_0000_0001
    }
    fn change(&mut self, number: u32) {
        *self = self.wrapping_mul(3) + u64::from(number);
    }
}

impl Make for u8 {
    fn make(number: u32) -> Self {
        number as u8
    }
    fn change(&mut self, number: u32) {
        *self = self.wrapping_add(number as u8);
    }
}

impl Make for u128 {
    fn make(number: u32) -> Self {
        u128::from(number) << 77 | 5
    }
    fn change(&mut self, number: u32) {
        *self ^= u128::from(number) << 50;
    }
}

/// A slot of many lines; of a page of 512 bytes, too large.
impl Make for [u64; 15] {
    fn make(number: u32) -> Self {
        std::array::from_fn(|item| u64::make(number.wrapping_add(item as u32)))
    }
    fn change(&mut self, number: u32) {
        self[number as usize % 15].change(number);
    }
}

impl Make for String {
    fn make(number: u32) -> Self {
        // Mostly short; some too long for a page of 512 bytes, some for several.
        let len = match number % 16 {
            0 => 90,
            1 => 1500,
            few => few,
        };
        format!("{number}-{}", "x".repeat(len as usize))
    }
    fn change(&mut self, number: u32) {
        match number % 8 {
            0 => self.clear(),
            1 => self.push_str(&"grown ".repeat(40)),
            2 => self.truncate(self.len() / 2),
            _ => self.push('+'),
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Update(u32, u32),
    Insert(u32, u32),
    Remove(u32),
    /// Every key in turn but each so manieth.
    RemoveAllBut(u32),
    Batch(u32, u32),
    Freeze,
    Durable,
    Abandon,
    DropOldest,
    /// At any parallelism; the pages where they are stored, or all together.
    Restore(u32, bool),
    /// At the old parallelism, all pages absent.
    RestoreAbsent,
    Hydrate(u32),
    Renew,
    Scan,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (0..400u32, any::<u32>()).prop_map(|(key, by)| Op::Update(key, by)),
        8 => (0..400u32, any::<u32>()).prop_map(|(key, by)| Op::Insert(key, by)),
        8 => (0..400u32).prop_map(Op::Remove),
        1 => (2..60u32).prop_map(Op::RemoveAllBut),
        2 => (0..400u32, 1..100u32).prop_map(|(key, count)| Op::Batch(key, count)),
        2 => Just(Op::Freeze),
        1 => Just(Op::Durable),
        1 => Just(Op::Abandon),
        1 => Just(Op::DropOldest),
        2 => (1..8u32, any::<bool>()).prop_map(|(tasks, absent)| Op::Restore(tasks, absent)),
        2 => Just(Op::RestoreAbsent),
        2 => (1..9u32).prop_map(Op::Hydrate),
        1 => Just(Op::Renew),
        1 => Just(Op::Scan),
    ]
}

pub(super) type Bytes = (Vec<u8>, BTreeMap<PageId, Vec<u8>>);
type Model<V> = BTreeMap<u32, V>;

/// The tables of one operator, a plain map, and a plain store.
pub(super) struct World<K, V> {
    pool: Pool,
    hasher: Hasher,
    tables: Vec<Table<K, V>>,
    model: Model<V>,
    durable: Option<(Vec<Bytes>, Model<V>)>,
    undecided: Option<(Vec<Bytes>, Model<V>)>,
    held: Vec<(Vec<Vec<u8>>, Vec<FrozenPages>)>,
}

impl<K: Make, V: Make> World<K, V> {
    pub fn new(page_bytes: usize, hasher: Hasher, tasks: u32) -> Self {
        let pool = Pool::new(page_bytes, 1 << 28);
        let tables = (0..tasks).map(|task| Table::new(&pool, hasher, range_of(task, tasks)).unwrap()).collect();
        Self { pool, hasher, tables, model: Model::new(), durable: None, undecided: None, held: Vec::new() }
    }

    fn hash(&self, key: &K) -> (u64, usize) {
        let hash = self.hasher.hash(key, &mut Vec::new());
        (hash, task_of(hash, self.tables.len() as u32) as usize)
    }

    fn run(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Update(number, by) => self.update(number, by)?,
            Op::Insert(number, by) => {
                let key = K::make(number);
                let (hash, task) = self.hash(&key);
                let had = self.tables[task].insert(hash, &key, V::make(by)).unwrap();
                prop_assert_eq!(had, self.model.insert(number, V::make(by)).is_some());
            }
            Op::Remove(number) => self.remove(number)?,
            Op::RemoveAllBut(each) => {
                (0..400).filter(|number| number % each != 0).try_for_each(|number| self.remove(number))?
            }
            Op::Batch(first, count) => self.batch(first, count)?,
            Op::Freeze => self.freeze(),
            Op::Durable => {
                self.tables.iter_mut().for_each(Table::durable);
                self.durable = self.undecided.take().or(self.durable.take());
            }
            Op::Abandon => {
                self.tables.iter_mut().for_each(Table::abandon);
                self.undecided = None;
            }
            Op::DropOldest if !self.held.is_empty() => {
                self.check_frozen()?;
                self.held.remove(0);
            }
            Op::Restore(tasks, absent) => self.restore_from(tasks, if absent { absent_part } else { part }),
            Op::RestoreAbsent => self.restore_absent(),
            Op::Renew => {
                self.tables.iter_mut().try_for_each(Table::renew).unwrap();
                (self.durable, self.undecided) = (None, None);
            }
            Op::Hydrate(pages) => {
                for table in &mut self.tables {
                    let done = table.hydrate(pages).unwrap();
                    prop_assert_eq!(done, table.absent_pages() == 0);
                }
            }
            _ => self.check_all()?,
        }
        Ok(())
    }

    pub fn update(&mut self, number: u32, by: u32) -> Result<(), TestCaseError> {
        let key = K::make(number);
        let (hash, task) = self.hash(&key);
        let change = |value: &mut V| {
            value.change(by);
            value.clone()
        };
        let value = self.tables[task].update(hash, &key, || V::make(by), change).unwrap();
        let expected = self.model.entry(number).or_insert_with(|| V::make(by));
        expected.change(by);
        prop_assert_eq!(&value, expected);
        Ok(())
    }

    fn remove(&mut self, number: u32) -> Result<(), TestCaseError> {
        let key = K::make(number);
        let (hash, task) = self.hash(&key);
        prop_assert_eq!(self.tables[task].get(hash, &key).unwrap(), self.model.get(&number).cloned());
        if number.is_multiple_of(3) {
            prop_assert_eq!(self.tables[task].discard(hash, &key).unwrap(), self.model.remove(&number).is_some());
        } else {
            prop_assert_eq!(self.tables[task].remove(hash, &key).unwrap(), self.model.remove(&number));
        }
        Ok(())
    }

    fn batch(&mut self, first: u32, count: u32) -> Result<(), TestCaseError> {
        let mut windows: Vec<_> = self.tables.iter().map(|_| Window::new(self.hasher, 0)).collect();
        let mut numbers: Vec<_> = self.tables.iter().map(|_| Vec::new()).collect();
        for number in (0..count).map(|index| (first + index * 7) % 400) {
            let key = K::make(number);
            let (hash, task) = self.hash(&key);
            windows[task].key(&key);
            windows[task].push((number, ()));
            assert_eq!(windows[task].hashes().last(), Some(hash));
            numbers[task].push(number);
            self.model.entry(number).or_insert_with(|| V::make(1)).change(number);
        }
        for ((table, window), numbers) in self.tables.iter_mut().zip(&mut windows).zip(numbers) {
            let first = |number| {
                let mut value = V::make(1);
                value.change(number);
                value
            };
            let each = |(), ()| Ok::<_, StateError>(());
            if !count.is_multiple_of(3) && table.takes_straight() {
                let records = numbers.into_iter().map(|number| (mirror_of(&K::make(number)), (number, ())));
                table.update_straight(records, first, V::change, |_| (), each).unwrap();
            } else {
                table.update_batch(window.drain(), first, V::change, |_| (), each).unwrap();
            }
        }
        Ok(())
    }

    pub fn freeze(&mut self) {
        let (roots, frozen): (Vec<_>, Vec<_>) = self.tables.iter_mut().map(Table::freeze).unzip();
        let mut stored = Vec::new();
        for (task, (root, frozen)) in roots.into_iter().zip(&frozen).enumerate() {
            let mut pages = BTreeMap::new();
            if !frozen.full {
                pages = self.durable.as_ref().expect("not full, so something is durable").0[task].1.clone();
                frozen.freed.iter().for_each(|id| drop(pages.remove(id)));
            }
            pages.extend(frozen.changed.iter().map(|(id, page)| (*id, page.to_vec())));
            stored.push((root, pages));
        }
        let bytes = frozen.iter().flat_map(|frozen| &frozen.changed).map(|(_, page)| page.to_vec()).collect();
        self.held.push((bytes, frozen));
        self.check_rows(&stored);
        self.undecided = Some((stored, self.model.clone()));
    }

    /// Who reads a snapshot row by row finds what the tables hold.
    fn check_rows(&self, stored: &[Bytes]) {
        let rows = stored.iter().flat_map(|part| rows::<K, V>(self.hasher, part).unwrap());
        let found: BTreeMap<_, _> = rows.map(|(key, value)| (to_bytes(&key), value)).collect();
        let model = self.model.iter().map(|(&number, value)| (to_bytes(&K::make(number)), value.clone()));
        assert_eq!(found, model.collect());
    }

    /// What a store would hold now.
    pub fn stored(&mut self) -> Vec<Bytes> {
        self.freeze();
        self.undecided.take().expect("just frozen").0
    }

    pub fn restore(&mut self, tasks: u32) {
        self.restore_from(tasks, part);
    }

    fn restore_from(&mut self, tasks: u32, part: fn(&Bytes) -> Part<'_>) {
        let Some((stored, model)) = &self.durable else { return };
        let parts: Vec<Part<'_>> = stored.iter().map(part).collect();
        let restored = |task| Table::restore(&self.pool, self.hasher, range_of(task, tasks), &parts).unwrap();
        self.tables = (0..tasks).map(restored).collect();
        self.model = model.clone();
        self.undecided = None;
        if tasks as usize != stored.len() {
            self.durable = None;
        }
    }

    fn restore_absent(&mut self) {
        let Some((stored, model)) = &self.durable else { return };
        let tasks = stored.len() as u32;
        let restored =
            |(task, bytes): (usize, &Bytes)| absent(&self.pool, self.hasher, range_of(task as u32, tasks), bytes);
        self.tables = stored.iter().enumerate().map(restored).collect::<Result<_, _>>().unwrap();
        (self.model, self.undecided) = (model.clone(), None);
    }

    fn check_frozen(&self) -> Result<(), TestCaseError> {
        for (bytes, frozen) in &self.held {
            let pages = frozen.iter().flat_map(|frozen| &frozen.changed);
            prop_assert!(pages.zip(bytes).all(|((_, page), bytes)| **page == **bytes), "a frozen page changed");
        }
        Ok(())
    }

    pub fn check_all(&self) -> Result<(), TestCaseError> {
        self.check_frozen()?;
        let mut found = Vec::new();
        for table in &self.tables {
            let (mut from, mut low) = (Some(table.range().start), 0);
            while let Some(start) = from {
                prop_assert!(start >= low);
                let next = table.scan(start, |hash, key: K, value: V| {
                    assert!(hash >= start && self.hash(&key).0 == hash);
                    found.push((key, value));
                    Ok::<_, StateError>(())
                });
                (from, low) = (next.unwrap(), start);
            }
        }
        prop_assert_eq!(found.len(), self.model.len(), "each exactly once");
        prop_assert_eq!(self.tables.iter().map(Table::len).sum::<u64>(), self.model.len() as u64);
        for (&number, value) in &self.model {
            let key = K::make(number);
            let (hash, task) = self.hash(&key);
            let found = self.tables[task].get(hash, &key).unwrap();
            prop_assert_eq!(found.as_ref(), Some(value));
        }
        Ok(())
    }
}

/// Pages as a store has them: with the tags that go with them.
pub(super) struct Stored {
    pub pages: BTreeMap<PageId, Vec<u8>>,
    pub tags: BTreeMap<PageId, u64>,
}

impl Stored {
    pub fn new(pages: &BTreeMap<PageId, Vec<u8>>) -> Self {
        let tags = pages.iter().map(|(&id, page)| (id, crate::state::head::Head::load(page).tag())).collect();
        Self { pages: pages.clone(), tags }
    }
}

impl PageSource for Stored {
    fn pages(&self) -> Box<dyn Iterator<Item = (PageId, u64)> + '_> {
        Box::new(self.tags.iter().map(|(&id, &tag)| (id, tag)))
    }
    fn read(&self, id: PageId, into: &mut [u8]) -> Result<u64, PageError> {
        into.copy_from_slice(&self.pages[&id]);
        Ok(self.tags[&id])
    }
    fn name(&self, id: PageId) -> String {
        format!("the test's page {id}")
    }
}

/// A table of which nothing has been read but its root and the tags of its pages.
pub(super) fn absent<K: Record, V: Record>(
    pool: &Pool,
    hasher: Hasher,
    range: HashRange,
    bytes: &Bytes,
) -> Result<Table<K, V>, StateError> {
    Table::restore(pool, hasher, range, &[absent_part(bytes)])
}

/// A stored table whose pages stay where they are.
fn absent_part((root, pages): &Bytes) -> Part<'_> {
    Part { root, pages: PartPages::Absent(Arc::new(Stored::new(pages))) }
}

/// A stored table as `restore` wants it.
pub(super) fn part((root, pages): &Bytes) -> Part<'_> {
    Part { root, pages: PartPages::Here(pages.iter().map(|(&id, page)| (id, page.as_slice())).collect()) }
}

fn run<K: Make, V: Make>(page_bytes: usize, mask: u64, tasks: u32, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut hasher = Hasher::default();
    hasher.mask = mask;
    let mut world = World::<K, V>::new(page_bytes, hasher, tasks);
    for op in ops {
        world.run(op)?;
    }
    world.check_all()?;
    world.freeze();
    world.run(Op::Durable)?;
    world.restore(world.tables.len() as u32 % 5 + 1);
    world.check_all()?;
    (0..400).try_for_each(|number| world.remove(number))?;
    for table in &world.tables {
        // What was empty already, for its buddy had not been read, has become as few as there can be by the restore.
        prop_assert!(table.is_empty() && table.buckets.pages.live() <= 16, "{} pages", table.buckets.pages.live());
    }
    let pool = world.pool.clone();
    drop(world);
    prop_assert_eq!(pool.in_use(), 0);
    Ok(())
}

/// All hashes, hashes with few different beginnings, and all alike.
fn masks() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(u64::MAX), 1 => Just(0xC000_0000_0000_00FF), 1 => Just(0xFFFF_0000_0000_0000), 1 => Just(0)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers(mask in masks(), tasks in 1..6u32, ops in prop::collection::vec(op(), 1..1200)) {
        run::<u64, u64>(512, mask, tasks, ops)?;
    }

    #[test]
    fn small_and_wide_numbers(mask in masks(), tasks in 1..6u32, ops in prop::collection::vec(op(), 1..800)) {
        run::<u128, u8>(512, mask, tasks, ops)?;
    }

    #[test]
    fn numbers_to_long_values(page_bytes in prop_oneof![Just(512usize), Just(1024), Just(4096)], mask in masks(),
                              tasks in 1..6u32, ops in prop::collection::vec(op(), 1..800)) {
        run::<u64, [u64; 15]>(page_bytes, mask, tasks, ops)?;
    }

    #[test]
    fn text_to_numbers(mask in masks(), tasks in 1..6u32, ops in prop::collection::vec(op(), 1..800)) {
        run::<String, u64>(512, mask, tasks, ops)?;
    }

    #[test]
    fn numbers_to_text(mask in masks(), tasks in 1..6u32, ops in prop::collection::vec(op(), 1..800)) {
        run::<u64, String>(512, mask, tasks, ops)?;
    }

    #[test]
    fn text_to_text(page_bytes in prop_oneof![Just(512usize), Just(4096)], mask in masks(), tasks in 1..6u32,
                    ops in prop::collection::vec(op(), 1..800)) {
        run::<String, String>(page_bytes, mask, tasks, ops)?;
    }
}
