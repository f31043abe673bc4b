//! Pages against a plain model: what frozen pages hold, what is dirty, what is copied, and when memory comes back.

use super::{FrozenPages, PageId, Pages, Pool};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const PAGE_BYTES: usize = 512;

type Image = BTreeMap<PageId, Vec<u8>>;

fn image(pages: &Pages) -> Image {
    (0..pages.count()).filter(|&id| pages.is_live(id)).map(|id| (id, pages.read(id).to_vec())).collect()
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
    assert_eq!((frozen.changed[0].1[0], pages.read(id)[0]), (1, 3));
    drop(frozen);
    assert_eq!(pool.in_use(), 1);
    pages.durable();
    drop(pages.freeze());
    let address = pages.read(id).as_ptr();
    pages.write(id).unwrap()[0] = 4;
    assert_eq!((pages.copies(), pages.read(id).as_ptr()), (1, address), "taken back without a copy");
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
    Restore,
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
        1 => Just(Op::Restore),
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
                    pages.forget();
                    (durable, undecided) = (Image::new(), None);
                }
                Op::DropOldest if !held.is_empty() => drop(held.remove(0)),
                Op::Restore if !durable.is_empty() => {
                    let from = durable.iter().map(|(&id, page)| (id, page.as_slice()));
                    pages = Pages::restore(&pool, from).unwrap();
                    (model, undecided) = (durable.clone(), None);
                }
                _ => {}
            }
            for (image, frozen) in &held {
                prop_assert!(frozen.changed.iter().all(|(id, page)| image[id] == **page), "a frozen page changed");
            }
            prop_assert_eq!(&image(&pages), &model);
        }
        drop((pages, held));
        prop_assert_eq!(pool.in_use(), 0);
    }
}
