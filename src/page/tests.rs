//! Pages against a plain model: what frozen pages hold, what is dirty, what is copied, and when memory comes back.

use super::{FrozenPages, Large, PageError, PageId, PageSource, Pages, Pool};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const PAGE_BYTES: usize = 512;

type Image = BTreeMap<PageId, Vec<u8>>;

fn image(pages: &Pages) -> Image {
    (0..pages.count()).filter(|&id| pages.is_live(id)).map(|id| (id, pages.read(id).unwrap().to_vec())).collect()
}

/// Where absent pages are, in a test.
#[derive(Default)]
struct Stored {
    pages: Image,
    /// These cannot be read for now.
    bad: Mutex<BTreeSet<PageId>>,
    reads: AtomicU32,
}

impl PageSource for Stored {
    fn pages(&self) -> Box<dyn Iterator<Item = (PageId, u64)> + '_> {
        Box::new(self.pages.keys().map(|&id| (id, u64::from(id))))
    }
    fn read(&self, id: PageId, into: &mut [u8]) -> Result<u64, PageError> {
        if self.bad.lock().unwrap().contains(&id) {
            return Err(PageError::Unreadable { what: self.name(id) });
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        into.copy_from_slice(&self.pages[&id]);
        Ok(u64::from(id))
    }
    fn name(&self, id: PageId) -> String {
        format!("the test's page {id}")
    }
}

fn stored(count: u32) -> Arc<Stored> {
    let pages = (0..count).map(|id| (id, vec![id as u8; PAGE_BYTES])).collect();
    Arc::new(Stored { pages, ..Stored::default() })
}

#[test]
fn a_page_is_written_only_in_its_epoch() {
    let mut pages = Pages::new(&Pool::new(PAGE_BYTES, 1 << 20));
    let id = pages.allocate().unwrap();
    assert!(pages.written(id + 1).is_none());
    pages.written(id).unwrap()[0] = 1;
    let frozen = pages.freeze();
    assert!(pages.written(id).is_none());
    pages.write(id).unwrap()[0] = 2;
    assert_eq!((pages.written(id).unwrap()[0], frozen.changed[0].1[0]), (2, 1));
    pages.free(id);
    assert!(pages.written(id).is_none());
}

#[test]
fn an_absent_page_comes_at_its_first_touch_and_only_once() {
    let pool = Pool::new(PAGE_BYTES, 1 << 20);
    let stored = stored(10);
    let mut pages = Pages::restore_absent(&pool, stored.clone());
    let reads = || stored.reads.load(Ordering::Relaxed);
    assert_eq!((pages.live(), pages.absent(), pool.in_use(), reads()), (10, 10, 0, 0));
    for _ in 0..3 {
        assert_eq!(pages.read(4).unwrap()[0], 4);
        pages.write(5).unwrap()[0] = 50;
        pages.prefetch(6, 0);
    }
    assert_eq!((pages.absent(), pool.in_use(), reads()), (8, 2, 2));
    let frozen = pages.freeze();
    assert_eq!((frozen.full, frozen.changed.len(), frozen.changed[0].0), (false, 1, 5));
    pages.free(7);
    assert_eq!((pages.live(), pages.absent()), (9, 7));
    let id = pages.allocate().unwrap();
    assert_eq!((id, pages.read(id).unwrap()[0]), (7, 0), "the id is used again, the page is not");
    assert!(!pages.hydrate(6).unwrap());
    assert_eq!(Arc::strong_count(&stored), 2);
    assert!(pages.hydrate(1).unwrap());
    assert_eq!((pages.absent(), reads()), (0, 9));
    assert_eq!(Arc::strong_count(&stored), 1, "the source is let go of");
}

#[test]
fn a_page_that_cannot_be_read_changes_nothing_and_may_come_later() {
    let pool = Pool::new(PAGE_BYTES, 3 * PAGE_BYTES);
    let stored = stored(4);
    let mut pages = Pages::restore_absent(&pool, stored.clone());
    stored.bad.lock().unwrap().insert(1);
    for error in [pages.read(1).unwrap_err(), pages.write(1).unwrap_err(), pages.hydrate(4).unwrap_err()] {
        assert_eq!(error.to_string(), "the test's page 1");
    }
    assert_eq!((pages.absent(), pool.in_use()), (3, 1));
    stored.bad.lock().unwrap().clear();
    assert_eq!(pages.read(1).unwrap()[0], 1);
    assert!(matches!(pages.hydrate(4), Err(PageError::Exhausted(_))));
    assert_eq!((pages.absent(), pool.in_use()), (1, 3));
}

#[test]
fn ids_without_an_absent_page_are_free_and_come_from_the_lowest_on() {
    let ids = [2, 3, 6, 700];
    let pages = ids.map(|id| (id, vec![id as u8; PAGE_BYTES])).into();
    let stored = Arc::new(Stored { pages, ..Stored::default() });
    let mut pages = Pages::restore_absent(&Pool::new(PAGE_BYTES, 1 << 20), stored);
    assert_eq!((pages.live(), pages.absent(), pages.count()), (4, 4, 701));
    assert!((0..800).all(|id| pages.is_absent(id) == ids.contains(&id) && pages.is_live(id) == ids.contains(&id)));
    let taken: Vec<PageId> = (0..5).map(|_| pages.allocate().unwrap()).collect();
    assert_eq!(taken, [0, 1, 4, 5, 7]);
    assert_eq!((pages.read(6).unwrap()[0], pages.read(700).unwrap()[0]), (6, 700_u32 as u8));
    assert!(pages.hydrate(u32::MAX).unwrap());
    assert_eq!(image(&pages).len(), 9);
}

/// Ids beyond those are not read as pages, whatever memory lies there.
#[test]
fn what_a_source_does_not_have_is_not_there() {
    let mut pages = Pages::restore_absent(&Pool::new(PAGE_BYTES, 1 << 20), stored(3));
    assert!(!pages.is_live(3) && !pages.is_absent(3));
    assert_eq!(pages.allocate().unwrap(), 3);
    assert_eq!((pages.count(), pages.absent(), pages.read(3).unwrap()[0]), (4, 3, 0));
    let none = Pages::restore_absent(&Pool::new(PAGE_BYTES, 1 << 20), stored(0));
    assert_eq!((none.count(), none.absent(), none.is_live(0)), (0, 0, false));
}

/// As one that is made to hurt might, if what reads it let that pass.
struct Twice;

impl PageSource for Twice {
    fn pages(&self) -> Box<dyn Iterator<Item = (PageId, u64)> + '_> {
        Box::new([0, 3, 3, 4].map(|id| (id, 0)).into_iter())
    }
    fn read(&self, _: PageId, _: &mut [u8]) -> Result<u64, PageError> {
        Ok(0)
    }
    fn name(&self, _: PageId) -> String {
        String::new()
    }
}

#[test]
#[should_panic(expected = "page 3 comes twice")]
fn a_source_names_each_page_once() {
    Pages::restore_absent(&Pool::new(PAGE_BYTES, 1 << 20), Arc::new(Twice));
}

#[test]
fn many_values_lie_side_by_side_in_huge_pages() {
    for len in [0, 1, 1000, (1 << 18) + 1, 3 << 18] {
        let mut values = Large::of(7_u32, len);
        assert!(values.len() == len && values.iter().all(|value| *value == 7));
        assert!(len <= 1 << 18 || values.as_ptr().addr().is_multiple_of(2 << 20), "{len} lie across");
        (0..).zip(values.iter_mut()).for_each(|(at, value)| *value = at);
        let sum = std::thread::spawn(move || values.iter().map(|value| u64::from(*value)).sum::<u64>()).join().unwrap();
        assert_eq!(sum, (0..len as u64).sum::<u64>());
    }
    let mut values = Vec::with_capacity(100);
    values.extend([1, 2, 3]);
    assert_eq!(*Large::from(values), [1, 2, 3]);
    assert!(Large::<u64>::default().is_empty());
}

/// What a store does with a freeze.
fn apply(durable: &mut Image, frozen: &FrozenPages) {
    if frozen.full {
        durable.clear();
    }
    for id in &frozen.freed {
        durable.remove(id);
    }
    for (id, page) in &frozen.changed {
        durable.insert(*id, page.to_vec());
    }
}

#[test]
fn a_page_is_copied_once_an_epoch_and_only_while_somebody_has_it() {
    let pool = Pool::new(PAGE_BYTES, 1 << 20);
    let mut pages = Pages::new(&pool);
    let id = pages.allocate().unwrap();
    pages.write(id).unwrap()[0] = 1;
    let frozen = pages.freeze();
    assert_eq!(pages.copies(), 0);
    pages.write(id).unwrap()[0] = 2;
    pages.write(id).unwrap()[0] = 3;
    assert_eq!((pages.copies(), pool.in_use()), (1, 2));
    assert_eq!((frozen.changed[0].1[0], pages.read(id).unwrap()[0]), (1, 3));
    drop(frozen);
    assert_eq!(pool.in_use(), 1);
    pages.durable();
    drop(pages.freeze());
    let address = pages.read(id).unwrap().as_ptr();
    pages.write(id).unwrap()[0] = 4;
    assert_eq!((pages.copies(), pages.read(id).unwrap().as_ptr()), (1, address), "taken back without a copy");
}

#[test]
fn a_page_given_up_is_dirty_again_but_not_written_in_place_while_somebody_has_it() {
    let pool = Pool::new(PAGE_BYTES, 1 << 20);
    let mut pages = Pages::new(&pool);
    let id = pages.allocate().unwrap();
    let first = pages.freeze();
    pages.abandon();
    pages.write(id).unwrap()[0] = 9;
    assert_eq!(first.changed[0].1[0], 0);
    let second = pages.freeze();
    assert!(second.full);
    assert_eq!(second.changed.len(), 1);
    assert_eq!(second.changed[0].1[0], 9);
}

#[test]
fn exhaustion_names_the_limit_and_changes_nothing() {
    let pool = Pool::new(PAGE_BYTES, 2 * PAGE_BYTES);
    let mut pages = Pages::new(&pool);
    let id = pages.allocate().unwrap();
    pages.allocate().unwrap();
    let error = pages.allocate().unwrap_err();
    assert!(error.to_string().contains("1024 bytes"), "{error}");
    let frozen = pages.freeze();
    assert!(pages.write(id).is_err(), "the copy does not fit");
    drop(frozen);
    pages.write(id).unwrap()[0] = 1;
}

#[test]
fn frozen_pages_may_outlive_everything_and_be_dropped_elsewhere() {
    let pool = Pool::new(PAGE_BYTES, 1 << 20);
    let mut pages = Pages::new(&pool);
    for byte in 0..10 {
        let id = pages.allocate().unwrap();
        pages.write(id).unwrap().fill(byte);
    }
    let frozen = pages.freeze();
    drop((pages, pool));
    std::thread::spawn(move || {
        for (id, page) in frozen.changed {
            assert!(page.iter().all(|&byte| u32::from(byte) == id));
        }
    })
    .join()
    .unwrap();
}

#[test]
fn owner_and_writer_on_two_threads_never_see_each_others_bytes() {
    let pool = Pool::new(PAGE_BYTES, 1 << 20);
    let mut pages = Pages::new(&pool);
    let ids: Vec<_> = (0..8).map(|_| pages.allocate().unwrap()).collect();
    let (sender, receiver) = std::sync::mpsc::channel::<(u8, FrozenPages)>();
    let writer = std::thread::spawn(move || {
        for (epoch, frozen) in receiver {
            for (_, page) in frozen.changed {
                assert!(page.iter().all(|&byte| byte == epoch));
            }
        }
    });
    for epoch in 0..200 {
        for &id in &ids {
            pages.write(id).unwrap().fill(epoch);
        }
        sender.send((epoch, pages.freeze())).unwrap();
    }
    drop(sender);
    writer.join().unwrap();
    assert_eq!(pool.in_use(), 8);
}

/// What is durable once a freeze has become so: all there is, if the freeze has all that changed.
fn after(frozen: &FrozenPages, durable: &Image, model: &Image) -> Result<Image, TestCaseError> {
    let changed: BTreeSet<_> = frozen.changed.iter().map(|(id, _)| *id).collect();
    prop_assert_eq!(changed.len(), frozen.changed.len(), "each once");
    prop_assert!(frozen.freed.iter().all(|id| !model.contains_key(id)));
    let mut next = durable.clone();
    apply(&mut next, frozen);
    prop_assert_eq!(&next, model, "the dirty pages are all that changed");
    Ok(next)
}

#[derive(Clone, Debug)]
enum Op {
    Allocate,
    Free(usize),
    Write(usize, u8),
    Freeze,
    Durable,
    Abandon,
    Forget,
    DropOldest,
    Restore { absent: bool },
    Hydrate(u32),
    Renew,
    Check,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => Just(Op::Allocate),
        2 => any::<usize>().prop_map(Op::Free),
        8 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Op::Write(at, byte)),
        2 => Just(Op::Freeze),
        1 => Just(Op::Durable),
        1 => Just(Op::Abandon),
        1 => Just(Op::Forget),
        2 => Just(Op::DropOldest),
        1 => any::<bool>().prop_map(|absent| Op::Restore { absent }),
        2 => (0..4u32).prop_map(Op::Hydrate),
        1 => Just(Op::Renew),
        1 => Just(Op::Check),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_keeps_frozen_bytes_and_loses_no_change(ops in prop::collection::vec(op(), 1..120)) {
        let pool = Pool::new(PAGE_BYTES, 1 << 22);
        let mut pages = Pages::new(&pool);
        let mut model = Image::new();
        // What is durable; what would be if the last freeze became so; all freezes still in somebody's hands.
        let mut durable = Image::new();
        let mut undecided: Option<Image> = None;
        let mut held: Vec<(Image, FrozenPages)> = Vec::new();
        for op in ops {
            let ids: Vec<PageId> = model.keys().copied().collect();
            match op {
                Op::Allocate => drop(model.insert(pages.allocate().unwrap(), vec![0; PAGE_BYTES])),
                Op::Free(at) if !ids.is_empty() => {
                    pages.free(ids[at % ids.len()]);
                    model.remove(&ids[at % ids.len()]);
                }
                Op::Write(at, byte) if !ids.is_empty() => {
                    let id = ids[at % ids.len()];
                    pages.write(id).unwrap()[at % PAGE_BYTES] = byte;
                    model.get_mut(&id).unwrap()[at % PAGE_BYTES] = byte;
                }
                Op::Freeze => {
                    let frozen = pages.freeze();
                    let next = after(&frozen, &durable, &model)?;
                    undecided = Some(next);
                    held.push((frozen.changed.iter().map(|(id, page)| (*id, page.to_vec())).collect(), frozen));
                }
                Op::Durable => {
                    pages.durable();
                    durable = undecided.take().unwrap_or(durable);
                }
                Op::Abandon => {
                    pages.abandon();
                    undecided = None;
                }
                Op::Forget => {
                    pages.renew().unwrap();
                    (durable, undecided) = (Image::new(), None);
                }
                Op::DropOldest if !held.is_empty() => drop(held.remove(0)),
                Op::Restore { absent: false } if !durable.is_empty() => {
                    let from = durable.iter().map(|(&id, page)| (id, page.as_slice()));
                    pages = Pages::restore(&pool, from).unwrap();
                    (model, undecided) = (durable.clone(), None);
                }
                Op::Restore { absent: true } if !durable.is_empty() => {
                    let stored = Stored { pages: durable.clone(), ..Stored::default() };
                    pages = Pages::restore_absent(&pool, Arc::new(stored));
                    (model, undecided) = (durable.clone(), None);
                }
                Op::Hydrate(count) => {
                    let before = pages.absent();
                    prop_assert_eq!(pages.hydrate(count).unwrap(), pages.absent() == 0);
                    prop_assert_eq!(pages.absent(), before.saturating_sub(count));
                }
                Op::Renew => {
                    pages.renew().unwrap();
                    (durable, undecided) = (Image::new(), None);
                }
                Op::Check => prop_assert_eq!(&image(&pages), &model),
                _ => {}
            }
            for (image, frozen) in &held {
                prop_assert!(frozen.changed.iter().all(|(id, page)| image[id] == **page), "a frozen page changed");
            }
            // Without reading them: absent ones stay so.
            let live: Vec<PageId> = (0..pages.count()).filter(|&id| pages.is_live(id)).collect();
            prop_assert!(live.iter().eq(model.keys()));
            prop_assert_eq!(pages.live(), live.len() as u32);
        }
        prop_assert_eq!(&image(&pages), &model);
        drop((pages, held));
        prop_assert_eq!(pool.in_use(), 0);
    }
}
