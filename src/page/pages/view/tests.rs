//! Cuts of all pages against copies of a plain model, with all that may happen while one is being taken.

use super::super::{NEVER, SOURCE};
use super::*;
use crate::page::{PageSource, Pool};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE_BYTES: usize = 512;

type Image = BTreeMap<PageId, u8>;

struct Stored(Image);

impl PageSource for Stored {
    fn pages(&self) -> Box<dyn Iterator<Item = (PageId, u64)> + '_> {
        Box::new(self.0.keys().map(|&id| (id, 0)))
    }
    fn read(&self, id: PageId, into: &mut [u8]) -> Result<u64, PageError> {
        into.fill(self.0[&id]);
        Ok(0)
    }
    fn name(&self, id: PageId) -> String {
        format!("page {id}")
    }
}

#[derive(Clone, Debug)]
enum Op {
    Allocate(u8),
    Free(usize),
    Write(usize, u8),
    Freeze,
    Abandon,
    Begin,
    Step(u32),
    DropOldest,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => any::<u8>().prop_map(Op::Allocate),
        2 => any::<usize>().prop_map(Op::Free),
        8 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Op::Write(at, byte)),
        2 => Just(Op::Freeze),
        1 => Just(Op::Abandon),
        2 => Just(Op::Begin),
        6 => (1..5u32).prop_map(Op::Step),
        1 => Just(Op::DropOldest),
    ]
}

fn image(pages: &WholePages) -> Image {
    pages.pages.iter().map(|(id, page)| (*id, page[0])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_view_is_what_there_was_when_it_began(absent in 0..20u32, ops in prop::collection::vec(op(), 1..150)) {
        let pool = Pool::new(PAGE_BYTES, 1 << 22);
        let mut model: Image = (0..absent).map(|id| (id, id as u8)).collect();
        let mut pages = Pages::restore_absent(&pool, Arc::new(Stored(model.clone())));
        let (mut begun, mut views, mut frozen) = (None, Vec::new(), Vec::new());
        for op in ops {
            let ids: Vec<PageId> = model.keys().copied().collect();
            match op {
                Op::Allocate(byte) => {
                    let id = pages.allocate().unwrap();
                    pages.write(id).unwrap().fill(byte);
                    model.insert(id, byte);
                }
                Op::Free(at) if !ids.is_empty() => {
                    pages.free(ids[at % ids.len()]);
                    model.remove(&ids[at % ids.len()]);
                }
                Op::Write(at, byte) if !ids.is_empty() => {
                    pages.write(ids[at % ids.len()]).unwrap().fill(byte);
                    model.insert(ids[at % ids.len()], byte);
                }
                Op::Freeze => frozen.push(pages.freeze()),
                Op::Abandon => pages.abandon(),
                Op::Begin => {
                    pages.begin_view();
                    begun = Some(model.clone());
                }
                Op::Step(ids) => {
                    if let Some(whole) = pages.view_step(ids).unwrap() {
                        let then: Image = begun.take().expect("one was begun");
                        prop_assert_eq!(image(&whole), then.clone());
                        views.push((then, whole));
                    }
                }
                Op::DropOldest => {
                    frozen.truncate(frozen.len().saturating_sub(1));
                    views.truncate(views.len().saturating_sub(1));
                }
                _ => {}
            }
            for (then, whole) in &views {
                prop_assert!(whole.pages.iter().all(|(_, page)| page.iter().all(|byte| *byte == page[0])));
                prop_assert_eq!(&image(whole), then, "a view changed");
            }
        }
        pages.drop_view();
        drop((pages, views, frozen));
        prop_assert_eq!(pool.in_use(), 0);
    }
}

/// Pages that no write has been to have no epoch that could be taken for a later one.
#[test]
fn absent_pages_stay_absent_at_the_turn_of_epochs() {
    let pool = Pool::new(PAGE_BYTES, 1 << 20);
    let model: Image = (0..4).map(|id| (id, id as u8)).collect();
    let mut pages = Pages::restore_absent(&pool, Arc::new(Stored(model)));
    pages.now = u32::MAX;
    pages.write(1).unwrap().fill(10);
    pages.read(2).unwrap();
    let before = pages.freeze();
    assert!(pages.now > NEVER && pages.now != SOURCE && pages.written(0).is_none() && pages.written(1).is_none());
    assert_eq!((pages.absent(), pages.is_absent(0), pages.is_absent(2)), (2, true, false));
    pages.write(1).unwrap().fill(11);
    assert_eq!((before.changed.len(), before.changed[0].1[0], pages.read(1).unwrap()[0]), (1, 10, 11));
    pages.begin_view();
    pages.write(3).unwrap().fill(30);
    let whole = pages.view_step(u32::MAX).unwrap().expect("all in one step");
    assert_eq!(image(&whole), [(0, 0), (1, 11), (2, 2), (3, 3)].into());
}

#[test]
fn beginning_does_not_depend_on_how_many_pages_there_are() {
    let pool = Pool::new(PAGE_BYTES, 1 << 24);
    let mut pages = Pages::new(&pool);
    for _ in 0..10_000 {
        pages.allocate().unwrap();
    }
    pages.begin_view();
    assert!(pages.cut.as_ref().unwrap().whole.pages.is_empty());
    assert_eq!(pool.in_use(), 10_000);
}

#[test]
fn who_would_have_to_go_on_with_a_cut_does_not_wait_for_it_for_ever() {
    let pool = Pool::new(PAGE_BYTES, 8 * PAGE_BYTES);
    pool.wait_when_exhausted(true);
    let mut pages = Pages::new(&pool);
    let ids: Vec<_> = std::iter::from_fn(|| pages.allocate().ok()).collect();
    let (half, rest) = ids.split_at(ids.len() / 2);
    rest.iter().for_each(|&id| pages.free(id));
    pages.begin_view();
    // Copies go into what is free, and then nothing is.
    half.iter().for_each(|&id| pages.write(id).unwrap()[0] = 1);
    let others: Vec<_> = std::iter::from_fn(|| pages.allocate().ok()).collect();
    assert!(pool.shortage().stalls > 0, "{others:?}");
    // Complete, but not handed over: some other part of the view might still be under way.
    let mut whole = pages.view_step(u32::MAX).unwrap().expect("it is complete");
    assert!(pages.allocate().is_err());
    // From here on it is waited for until it goes.
    whole.hand_over();
    let holder = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(1500));
        drop(whole);
    });
    pages.allocate().unwrap();
    holder.join().unwrap();
}
