//! Tables whose values change their type from start to start, against plain maps: random operations with cuts that become
//! durable or not, and restores in between, also of what was migrated in part, and at other parallelisms.

use super::model::{Make, Stored};
use crate::page::{FrozenPages, PageId, Pages, Pool};
use crate::record::{Evolution, Record, Schema, from_bytes, to_bytes};
use crate::state::{HashRange, Hasher, Migrating, OldPart, Part, PartPages, StateError, Window, range_of, task_of};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The value type of each version: of fixed layout and not, of text that is long at times.
mod versions {
    use super::Make;
    use crate::record::Record;

    macro_rules! version {
        ($name:ident { $($field:ident: $ty:ty = $make:expr),* }, $n:ident) => {
            #[derive(Record, Clone, Debug, PartialEq)]
            pub struct $name { $(pub $field: $ty),* }
            impl Make for $name {
                fn make($n: u32) -> Self {
                    Self { $($field: $make),* }
                }
                fn change(&mut self, $n: u32) {
                    // What is not in all versions is made anew, so that any of it may be met by a migration.
                    let sum = self.n.wrapping_mul(3).wrapping_add($n.into());
                    *self = Self { n: sum, ..Self::make($n) };
                }
            }
        };
    }
    version!(First { n: u32 = n, flag: bool = n.is_multiple_of(2) }, n);
    version!(Second { flag: bool = n.is_multiple_of(3), n: u64 = n.into(), text: String = String::make(n) }, n);
    version!(Third { text: Option<String> = (!n.is_multiple_of(4)).then(|| String::make(n)), n: u64 = n.into(), extra: [u16; 3] = [n as u16; 3] }, n);
    version!(Fourth { n: i128 = n.into(), extra: Vec<u32> = vec![n; n as usize % 5] }, n);
}
use versions::{First, Fourth, Second, Third};

/// What a store holds of one task: by name, schemas, root and pages.
type Kept = BTreeMap<String, (Vec<Schema>, Vec<u8>, BTreeMap<PageId, Vec<u8>>)>;
type Frozen = Vec<(String, Vec<Schema>, Vec<u8>, FrozenPages)>;

/// The tables of an operator, whatever their values are; these go in and out encoded.
trait Tables {
    fn tasks(&self) -> u32;
    fn schema(&self) -> Schema;
    /// By one of several ways, and what comes of it.
    fn write(&mut self, task: usize, hash: u64, number: u32, by: u32) -> Vec<u8>;
    fn remove(&mut self, task: usize, hash: u64, number: u32, quietly: bool) -> Option<Vec<u8>>;
    fn get(&self, task: usize, hash: u64, number: u32) -> Option<Vec<u8>>;
    fn written(&self, before: Option<&[u8]>, by: u32) -> Vec<u8>;
    fn scan(&self, hasher: Hasher) -> BTreeMap<Vec<u8>, Vec<u8>>;
    fn len(&self) -> u64;
    fn outdated(&mut self) -> usize;
    fn hydrate(&mut self, pages: u32);
    fn renew(&mut self);
    fn settle(&mut self, durable: bool);
    fn freeze(&mut self) -> Vec<Frozen>;
}

impl<K: Make, V: Make> Tables for Vec<Migrating<K, V>> {
    fn tasks(&self) -> u32 {
        Vec::len(self) as u32
    }
    fn schema(&self) -> Schema {
        <(K, V)>::schema()
    }
    fn write(&mut self, task: usize, hash: u64, number: u32, by: u32) -> Vec<u8> {
        let (table, key) = (&mut self[task], K::make(number));
        let change = |value: &mut V| {
            value.change(by);
            to_bytes(value)
        };
        let made = || {
            let mut value = V::make(by);
            let bytes = change(&mut value);
            (value, bytes)
        };
        match by % 5 {
            0 => table.update(hash, &key, || V::make(by), change).unwrap(),
            1 => {
                let modified = table
                    .modify::<_, StateError>(hash, &key, |value| Ok(change(value.get_or_insert_with(|| V::make(by)))));
                modified.unwrap()
            }
            2 => {
                let value = table.get(hash, &key).unwrap();
                let mut value = value.unwrap_or_else(|| V::make(by));
                let bytes = change(&mut value);
                table.insert(hash, &key, value).unwrap();
                bytes
            }
            3 => {
                let mut window = Window::new(table.table().buckets.hasher, 1);
                window.key(&key);
                window.push((by, ()));
                let mut bytes = Vec::new();
                let each = |(), seen| {
                    bytes = seen;
                    Ok::<_, StateError>(())
                };
                table.update_batch(window.drain(), |_| made().0, |value, by| value.change(by), to_bytes, each).unwrap();
                bytes
            }
            _ => {
                let mut window = Window::new(table.table().buckets.hasher, 1);
                window.key(&key);
                window.push(by);
                let mut bytes = Vec::new();
                let modified = table.modify_batch::<_, StateError>(window.drain(), |_, by, value| {
                    bytes = change(value.get_or_insert_with(|| V::make(by)));
                    Ok(())
                });
                modified.unwrap();
                bytes
            }
        }
    }
    fn remove(&mut self, task: usize, hash: u64, number: u32, quietly: bool) -> Option<Vec<u8>> {
        let (table, key) = (&mut self[task], K::make(number));
        if quietly {
            let before = table.get(hash, &key).unwrap();
            assert_eq!(table.discard(hash, &key).unwrap(), before.is_some());
            return before.map(|value| to_bytes(&value));
        }
        table.remove(hash, &key).unwrap().map(|value| to_bytes(&value))
    }
    fn get(&self, task: usize, hash: u64, number: u32) -> Option<Vec<u8>> {
        self[task].get(hash, &K::make(number)).unwrap().map(|value| to_bytes(&value))
    }
    fn written(&self, before: Option<&[u8]>, by: u32) -> Vec<u8> {
        let mut value = before.map_or_else(|| V::make(by), |bytes| from_bytes(bytes).unwrap());
        value.change(by);
        to_bytes(&value)
    }
    fn scan(&self, hasher: Hasher) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut found = BTreeMap::new();
        for table in self {
            let mut from = Some(table.range().start);
            while let Some(start) = from {
                let next = table.scan(start, |hash, key: K, value: V| {
                    assert!(hash >= start && hasher.hash(&key, &mut Vec::new()) == hash);
                    assert!(found.insert(to_bytes(&key), to_bytes(&value)).is_none(), "each once");
                    Ok::<_, StateError>(())
                });
                from = next.unwrap();
                assert!(from.is_none_or(|from| from > start));
            }
        }
        found
    }
    fn len(&self) -> u64 {
        self.iter().map(Migrating::len).sum()
    }
    fn outdated(&mut self) -> usize {
        self.iter_mut().map(|table| table.outdated().len()).sum()
    }
    fn hydrate(&mut self, pages: u32) {
        for table in self {
            let done = table.hydrate(pages).unwrap();
            assert_eq!(done, table.absent_pages() == 0 && table.outdated().is_empty());
        }
    }
    fn renew(&mut self) {
        self.iter_mut().try_for_each(Migrating::renew).unwrap();
    }
    fn settle(&mut self, durable: bool) {
        self.iter_mut().for_each(if durable { Migrating::durable } else { Migrating::abandon });
    }
    fn freeze(&mut self) -> Vec<Frozen> {
        let frozen = |table: &mut Migrating<K, V>| {
            let (root, pages) = table.table().freeze();
            let mut frozen = vec![("table".to_owned(), vec![<(K, V)>::schema()], root, pages)];
            for part in table.outdated() {
                let (root, pages) = part.freeze();
                assert!(pages.full || pages.changed.is_empty(), "what is outdated is not written again");
                frozen.push((part.name().to_owned(), part.schemas().to_vec(), root, pages));
            }
            frozen
        };
        self.iter_mut().map(frozen).collect()
    }
}

/// How a store is opened.
#[derive(Clone, Copy)]
struct Opening<'a> {
    pool: &'a Pool,
    hasher: Hasher,
    tasks: u32,
    stored: &'a [Kept],
    absent: bool,
    /// What is outdated from now on is called so.
    fresh: &'a str,
}

/// How the values of a table get from one type to another.
fn evolution(then: &Schema, now: &Schema) -> Evolution {
    use crate::record::Type::Tuple;
    let (Tuple(then), Tuple(now)) = (&then.ty, &now.ty) else { unreachable!() };
    Evolution::between(&then[1], &now[1]).unwrap()
}

fn open<K: Make, V: Make>(opening: Opening<'_>) -> Box<dyn Tables> {
    let Opening { pool, hasher, tasks, stored, absent, fresh } = opening;
    let is_same = stored.len() == tasks as usize;
    let now = <(K, V)>::schema();
    let table = |task: u32| {
        let (mut parts, mut old) = (Vec::new(), Vec::new());
        let ours = stored.iter().enumerate().filter(|(at, _)| !is_same || *at == task as usize);
        for (name, (schemas, root, pages)) in ours.flat_map(|(_, kept)| kept) {
            let here = || pages.iter().map(|(&id, page)| (id, page.as_slice())).collect();
            let pages = if is_same && absent {
                PartPages::Absent(Arc::new(Stored::new(pages)))
            } else {
                PartPages::Here(here())
            };
            let part = Part { root, pages };
            let mut schemas = schemas.clone();
            schemas.push(now.clone());
            let steps = schemas.windows(2).map(|pair| evolution(&pair[0], &pair[1]));
            let evolution = steps.reduce(Evolution::then).unwrap();
            schemas.dedup();
            if name == "table" && evolution.is_identity() {
                parts.push(part);
            } else {
                let name = if name == "table" { fresh } else { name }.to_owned();
                old.push(OldPart { name, schemas, evolution, part });
            }
        }
        Migrating::<K, V>::restore(pool, hasher, range_of(task, tasks), &parts, old).unwrap()
    };
    Box::new((0..tasks).map(table).collect::<Vec<_>>())
}

fn open_version<K: Make>(version: u32, opening: Opening<'_>) -> Box<dyn Tables> {
    match version {
        0 => open::<K, First>(opening),
        1 => open::<K, Second>(opening),
        2 => open::<K, Third>(opening),
        _ => open::<K, Fourth>(opening),
    }
}

type Model = BTreeMap<u32, Vec<u8>>;

struct World {
    pool: Pool,
    hasher: Hasher,
    version: u32,
    tables: Box<dyn Tables>,
    model: Model,
    durable: Option<(Vec<Kept>, Model, Schema)>,
    undecided: Option<(Vec<Kept>, Model, Schema)>,
    held: Vec<Vec<Frozen>>,
    /// What is outdated since the last start is called so, and builds on what was the table.
    fresh: String,
    /// How often something outdated was there at a cut.
    seen_outdated: usize,
}

#[derive(Clone, Debug)]
enum Op {
    Write(u32, u32),
    Remove(u32, bool),
    Get(u32),
    Freeze,
    Settle(bool),
    DropOldest,
    /// Another version, other tasks, pages absent or not.
    Restore(u32, Option<u32>, bool),
    Hydrate(u32),
    Renew,
    Check,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        30 => (0..300u32, any::<u32>()).prop_map(|(key, by)| Op::Write(key, by)),
        6 => (0..300u32, any::<bool>()).prop_map(|(key, quietly)| Op::Remove(key, quietly)),
        6 => (0..300u32).prop_map(Op::Get),
        3 => Just(Op::Freeze),
        3 => prop_oneof![3 => Just(true), 1 => Just(false)].prop_map(Op::Settle),
        1 => Just(Op::DropOldest),
        2 => (0..2u32, prop_oneof![5 => Just(None), 1 => (1..6u32).prop_map(Some)], any::<bool>())
            .prop_map(|(by, tasks, absent)| Op::Restore(by, tasks, absent)),
        2 => (1..4u32).prop_map(Op::Hydrate),
        1 => Just(Op::Renew),
        1 => Just(Op::Check),
    ]
}

impl World {
    fn new<K: Make>(page_bytes: usize, hasher: Hasher, tasks: u32) -> Self {
        let pool = Pool::new(page_bytes, 1 << 28);
        let opening = Opening { pool: &pool, hasher, tasks, stored: &[], absent: false, fresh: "" };
        let tables = open_version::<K>(0, opening);
        Self {
            tables,
            pool,
            hasher,
            version: 0,
            model: Model::new(),
            durable: None,
            undecided: None,
            held: Vec::new(),
            fresh: String::new(),
            seen_outdated: 0,
        }
    }

    fn place<K: Make>(&self, number: u32) -> (usize, u64) {
        let hash = self.hasher.hash(&K::make(number), &mut Vec::new());
        (task_of(hash, self.tables.tasks()) as usize, hash)
    }

    fn run<K: Make>(&mut self, op: &Op) {
        match *op {
            Op::Write(number, by) => {
                let (task, hash) = self.place::<K>(number);
                let expected = self.tables.written(self.model.get(&number).map(Vec::as_slice), by);
                assert_eq!(self.tables.write(task, hash, number, by), expected);
                self.model.insert(number, expected);
            }
            Op::Remove(number, quietly) => {
                let (task, hash) = self.place::<K>(number);
                assert_eq!(self.tables.remove(task, hash, number, quietly), self.model.remove(&number));
            }
            Op::Get(number) => {
                let (task, hash) = self.place::<K>(number);
                assert_eq!(self.tables.get(task, hash, number), self.model.get(&number).cloned());
            }
            Op::Freeze => self.freeze(),
            Op::Settle(durable) => {
                self.tables.settle(durable);
                let undecided = self.undecided.take();
                self.durable = undecided.filter(|_| durable).or(self.durable.take());
            }
            Op::DropOldest => drop(self.held.drain(..self.held.len().min(1))),
            Op::Restore(by, tasks, absent) => self.restore::<K>(by, tasks, absent),
            Op::Hydrate(pages) => self.tables.hydrate(pages),
            Op::Renew => {
                self.tables.renew();
                (self.durable, self.undecided) = (None, None);
            }
            Op::Check => self.check::<K>(),
        }
        assert_eq!(self.tables.len(), self.model.len() as u64);
    }

    fn freeze(&mut self) {
        let frozen = self.tables.freeze();
        let mut stored = Vec::new();
        for (task, parts) in frozen.iter().enumerate() {
            let mut kept = Kept::new();
            for (name, schemas, root, frozen) in parts {
                let mut pages = BTreeMap::new();
                if !frozen.full {
                    let before = &self.durable.as_ref().expect("not full, so something is durable").0[task];
                    let before = before.get(name).or_else(|| before.get("table").filter(|_| *name == self.fresh));
                    pages = before.expect("what it builds on").2.clone();
                    frozen.freed.iter().for_each(|id| drop(pages.remove(id)));
                }
                pages.extend(frozen.changed.iter().map(|(id, page)| (*id, page.to_vec())));
                kept.insert(name.clone(), (schemas.clone(), root.clone(), pages));
            }
            stored.push(kept);
        }
        self.held.push(frozen);
        self.seen_outdated += self.tables.outdated();
        self.undecided = Some((stored, self.model.clone(), self.tables.schema()));
    }

    fn restore<K: Make>(&mut self, by: u32, tasks: Option<u32>, absent: bool) {
        let Some((stored, model, schema)) = self.durable.clone() else { return };
        let is_taken = |name: &String| stored.iter().any(|kept| kept.contains_key(name));
        let mut names = (1..).map(|number| format!("table@outdated-{number}"));
        self.fresh = names.find(|name| !is_taken(name)).expect("numbers do not end");
        self.version += by;
        let tasks = tasks.unwrap_or(stored.len() as u32);
        let opening =
            Opening { pool: &self.pool, hasher: self.hasher, tasks, stored: &stored, absent, fresh: &self.fresh };
        self.tables = open_version::<K>(self.version, opening);
        let evolution = evolution(&schema, &self.tables.schema());
        let migrated = |bytes: &Vec<u8>| {
            let mut new = Vec::new();
            evolution.apply(bytes, &mut new).unwrap();
            new
        };
        self.model = model.iter().map(|(&number, value)| (number, migrated(value))).collect();
        self.undecided = None;
        if tasks as usize != stored.len() {
            self.durable = None;
        }
    }

    fn check<K: Make>(&self) {
        let model = self.model.iter().map(|(&number, value)| (to_bytes(&K::make(number)), value.clone()));
        assert_eq!(self.tables.scan(self.hasher), model.collect());
        for number in 0..300 {
            let (task, hash) = self.place::<K>(number);
            assert_eq!(self.tables.get(task, hash, number), self.model.get(&number).cloned());
        }
    }
}

fn run<K: Make>(page_bytes: usize, mask: u64, tasks: u32, ops: &[Op]) -> usize {
    let mut hasher = Hasher::default();
    hasher.mask = mask;
    let mut world = World::new::<K>(page_bytes, hasher, tasks);
    for op in ops {
        world.run::<K>(op);
    }
    world.check::<K>();
    let last = [Op::Freeze, Op::Settle(true), Op::Restore(1, None, true), Op::Check, Op::Restore(1, Some(3), false)];
    last.iter().for_each(|op| world.run::<K>(op));
    world.check::<K>();
    let (pool, seen) = (world.pool.clone(), world.seen_outdated);
    drop(world);
    assert_eq!(pool.in_use(), 0);
    seen
}

/// All hashes, hashes with few different beginnings, and all alike.
fn masks() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(u64::MAX), 1 => Just(0xC000_0000_0000_00FF), 1 => Just(0)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers(mask in masks(), tasks in 1..5u32, ops in prop::collection::vec(op(), 1..600)) {
        run::<u64>(512, mask, tasks, &ops);
    }

    #[test]
    fn texts(page_bytes in prop_oneof![Just(512usize), Just(4096)], mask in masks(), tasks in 1..5u32,
             ops in prop::collection::vec(op(), 1..600)) {
        run::<String>(page_bytes, mask, tasks, &ops);
    }
}

/// The versions after each other, each left off half-way: several outdated parts at a time.
#[test]
fn a_table_may_be_outdated_in_several_ways_at_once() {
    let start = [Op::Freeze, Op::Settle(true), Op::Restore(1, None, true)];
    let mut ops: Vec<Op> = (0..300).map(|number| Op::Write(number, number * 7)).collect();
    for version in 0..3 {
        ops.extend(start.clone());
        ops.extend([Op::Check, Op::Hydrate(2)]);
        ops.extend((0..4).map(|number| Op::Write(number * 70 + version, number)));
        ops.extend([Op::Freeze, Op::Settle(false), Op::Hydrate(1), Op::Freeze, Op::Settle(true), Op::Check]);
    }
    let seen = run::<u64>(512, u64::MAX, 1, &ops);
    assert!(seen > 3 * 2, "of three versions at once, at two cuts: {seen}");
    ops.extend([Op::Hydrate(1000), Op::Check, Op::Freeze]);
    run::<String>(512, u64::MAX, 2, &ops);
}

/// An outdated table, all of it absent.
fn outdated(pool: &Pool, keys: u64) -> Migrating<u64, Second> {
    let (hasher, range) = (Hasher::default(), range_of(0, 1));
    let mut table = Migrating::<u64, First>::restore(pool, hasher, range, &[], Vec::new()).unwrap();
    for key in 0..keys {
        let hash = table.hash(&key);
        table.insert(hash, &key, First { n: key as u32, flag: true }).unwrap();
    }
    let (root, frozen) = table.table().freeze();
    let pages = frozen.changed.iter().map(|(id, page)| (*id, page.to_vec())).collect();
    old(pool, hasher, range, &root, &pages).unwrap()
}

fn old(
    pool: &Pool,
    hasher: Hasher,
    range: HashRange,
    root: &[u8],
    pages: &BTreeMap<PageId, Vec<u8>>,
) -> Result<Migrating<u64, Second>, StateError> {
    let schema = <(u64, First)>::schema();
    let evolution = evolution(&schema, &<(u64, Second)>::schema());
    let part = Part { root, pages: PartPages::Absent(Arc::new(Stored::new(pages))) };
    Migrating::restore(
        pool,
        hasher,
        range,
        &[],
        vec![OldPart { name: "old".into(), schemas: vec![schema], evolution, part }],
    )
}

fn check_all(table: &mut Migrating<u64, Second>, keys: u64) {
    assert_eq!(table.len(), keys);
    for key in 0..keys {
        let hash = table.hash(&key);
        let expected = Second { flag: true, n: key, text: String::new() };
        assert_eq!(table.get(hash, &key).unwrap(), Some(expected));
    }
    let (mut from, mut count) = (Some(table.range().start), 0);
    while let Some(start) = from {
        let next = table.scan(start, |_, _: u64, _: Second| {
            count += 1;
            Ok::<_, StateError>(())
        });
        from = next.unwrap();
    }
    assert_eq!(count, keys);
}

#[test]
fn when_pages_run_out_nothing_has_changed_and_it_goes_on_when_there_are_some() {
    let pool = Pool::new(512, 800 * 512);
    let mut table = outdated(&pool, 1000);
    check_all(&mut table, 1000);
    let mut failed = 0;
    for step in 0.. {
        // All pages are taken but some few.
        let mut others = Pages::new(&pool);
        while others.allocate().is_ok() {}
        for id in 0..(step % 30).min(others.count()) {
            others.free(id);
        }
        match table.hydrate(1) {
            Ok(true) => break,
            Ok(false) => {}
            Err(StateError::Exhausted(_)) => failed += 1,
            Err(error) => panic!("{error}"),
        }
        drop(others);
        check_all(&mut table, 1000);
    }
    assert!(failed > 5, "{failed} times");
    assert!(table.outdated().is_empty());
    check_all(&mut table, 1000);
}

#[test]
fn what_cannot_be_migrated_or_belongs_elsewhere_is_an_error_and_nothing_has_changed() {
    let pool = Pool::new(512, 1 << 24);
    let (hasher, range) = (Hasher::default(), range_of(0, 1));
    let mut table = Migrating::<u64, First>::restore(&pool, hasher, range, &[], Vec::new()).unwrap();
    for key in 0..200u64 {
        let hash = table.hash(&key);
        table.insert(hash, &key, First { n: 7, flag: true }).unwrap();
    }
    let (root, frozen) = table.table().freeze();
    let pages: BTreeMap<PageId, Vec<u8>> = frozen.changed.iter().map(|(id, page)| (*id, page.to_vec())).collect();
    // A flag that is neither true nor false, in the last entry of a page.
    let (&id, page) = pages.iter().next().unwrap();
    let at = page.windows(5).rposition(|bytes| bytes == [7, 0, 0, 0, 1]).unwrap();
    let mut damaged = pages.clone();
    damaged.get_mut(&id).unwrap()[at + 4] = 2;
    let mut migrating = old(&pool, hasher, range, &root, &damaged).unwrap();
    let error = (0..1000).find_map(|_| migrating.hydrate(1).err()).unwrap();
    assert!(matches!(error, StateError::Corrupt { .. }), "{error}");
    assert_eq!(migrating.len(), 200);
    // A bucket that claims hashes that are not its entries', and one that stands twice.
    let mut elsewhere = pages.clone();
    let page = elsewhere.get_mut(&id).unwrap();
    page[15] ^= 0x80;
    assert!(matches!(old(&pool, hasher, range, &root, &elsewhere), Err(StateError::Corrupt { .. })));
    elsewhere.retain(|other, _| *other == id);
    let mut migrating = old(&pool, hasher, range, &root, &elsewhere).unwrap();
    assert!(matches!(migrating.hydrate(1), Err(StateError::Corrupt { .. })));
}
