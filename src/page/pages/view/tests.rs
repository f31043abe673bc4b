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
    Recall,
    HandOver,
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
        8 => (1..5u32).prop_map(Op::Step),
        1 => Just(Op::Recall),
        3 => Just(Op::HandOver),
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
        let (mut begun, mut complete, mut views, mut frozen) = (None, Vec::new(), Vec::new(), Vec::new());
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
                Op::Step(ids) => match pages.view_step(ids) {
                    Ok(Some(cut)) => complete.push((begun.take().expect("one was begun"), cut)),
                    Ok(None) => {}
                    Err(error) => {
                        prop_assert!(matches!(error, PageError::Exhausted(_)), "{}", error);
                        prop_assert_eq!((begun.take(), pages.is_viewed()), (None, false), "it was not called back");
                    }
                },
                // One that is complete is handed over at the next chance, which may be too late.
                Op::Recall => {
                    let any = pool.recall();
                    prop_assert_eq!(any, begun.take().is_some() || !complete.is_empty());
                    prop_assert!(complete.drain(..).all(|(_, cut): (Image, CutPages)| cut.hand_over().is_none()));
                }
                Op::HandOver => {
                    for (then, cut) in complete.drain(..) {
                        let whole = cut.hand_over().expect("nobody has called it back");
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
        drop((pages, complete, views, frozen));
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
    let whole = pages.view_step(u32::MAX).unwrap().and_then(CutPages::hand_over).expect("all in one step");
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
    assert!(pages.cut.as_ref().unwrap().whole.get().as_ref().unwrap().pages.is_empty());
    assert_eq!(pool.in_use(), 10_000);
}

/// Half of so many pages, none of which is left, and a cut of them that is not complete.
fn short() -> (Pool, Pages, Vec<PageId>) {
    let pool = Pool::new(PAGE_BYTES, 8 * PAGE_BYTES);
    pool.wait_when_exhausted(true);
    let mut pages = Pages::new(&pool);
    let ids: Vec<_> = std::iter::from_fn(|| pages.allocate().ok()).collect();
    let (half, rest) = ids.split_at(ids.len() / 2);
    rest.iter().for_each(|&id| pages.free(id));
    pages.begin_view();
    // Copies go into what is free, and then nothing is.
    half.iter().for_each(|&id| pages.write(id).unwrap()[0] = 1);
    assert_eq!((pool.in_use(), pool.shortage().stalls), (ids.len(), 0));
    (pool, pages, half.to_vec())
}

#[test]
fn who_would_have_to_go_on_with_a_cut_waits_for_a_while_and_then_has_it_let_go_of() {
    let (pool, mut pages, half) = short();
    let more = pages.allocate().unwrap();
    assert!(pool.shortage().stalls == 1 && half.iter().all(|&id| pages.read(id).unwrap()[0] == 1));
    assert!(matches!(pages.view_step(u32::MAX), Err(PageError::Exhausted(_))), "its pages are gone");
    assert!(matches!(pages.view_step(u32::MAX), Ok(None)));
    // The next one may find pages enough.
    pages.free(more);
    pages.begin_view();
    let whole = pages.view_step(u32::MAX).unwrap().and_then(CutPages::hand_over).expect("nobody needs its pages");
    assert_eq!(whole.pages.len(), half.len());
}

#[test]
fn a_complete_cut_is_let_go_of_until_it_is_handed_over() {
    let (pool, mut pages, _) = short();
    let cut = pages.view_step(u32::MAX).unwrap().expect("it is complete");
    // Some other part of the view may still be under way.
    pages.allocate().unwrap();
    assert!(cut.hand_over().is_none() && pool.shortage().stalls == 1);

    let (_, mut pages, _) = short();
    let whole = pages.view_step(u32::MAX).unwrap().and_then(CutPages::hand_over).expect("it is complete");
    // From here on it is waited for until it goes.
    let holder = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(600));
        drop(whole);
    });
    pages.allocate().unwrap();
    holder.join().unwrap();
}
