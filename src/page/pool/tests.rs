//! The pool at its limit: who waits, for how long, and what comes of it; and memory that is touched ahead.

use super::{Buffer, CHUNK_BYTES, HEADER_BYTES, Pool, Shortage};
use crate::page::{FrozenPages, PageId, Pages};
use std::collections::BTreeSet;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const PAGE_BYTES: usize = 512;

/// A pool of so many pages, at which one waits, and as many pages, each filled with its id.
fn used_up(pages: u32) -> (Pool, Pages) {
    let pool = Pool::new(PAGE_BYTES, pages as usize * PAGE_BYTES);
    pool.wait_when_exhausted(true);
    let mut all = Pages::new(&pool);
    for id in 0..pages {
        assert_eq!(all.allocate().unwrap(), id);
        all.write(id).unwrap().fill(id as u8);
    }
    (pool, all)
}

fn has_its_bytes(frozen: &FrozenPages, id: PageId) -> bool {
    frozen.changed.iter().any(|(other, page)| *other == id && page.iter().all(|&byte| byte == id as u8))
}

/// Waits until so many threads wait for a page.
fn until_waiting(pool: &Pool, threads: usize) {
    let start = Instant::now();
    while pool.shortage().waiting != threads {
        assert!(start.elapsed() < Duration::from_secs(60), "nobody came to wait: {:?}", pool.shortage());
        thread::yield_now();
    }
}

#[test]
fn who_finds_no_page_waits_until_a_freeze_gives_pages_back() {
    let (pool, mut pages) = used_up(4);
    let frozen = pages.freeze();
    pages.free(0);
    let waiter = thread::spawn(move || {
        let id = pages.allocate().unwrap();
        (pages.read(id).unwrap().to_vec(), pages)
    });
    until_waiting(&pool, 1);
    thread::sleep(Duration::from_millis(20));
    assert!((0..4).all(|id| has_its_bytes(&frozen, id)));
    assert_eq!(pool.shortage(), Shortage { waiting: 1, stalls: 1, stalled_ns: 0 });
    drop(frozen);
    assert_eq!(waiter.join().unwrap().0, [0; PAGE_BYTES]);
    let Shortage { waiting, stalls, stalled_ns } = pool.shortage();
    assert_eq!((waiting, stalls, pool.in_use()), (0, 1, 0));
    assert!(stalled_ns >= 20_000_000, "{stalled_ns}");
}

#[test]
fn a_page_that_is_let_go_of_while_its_copy_is_waited_for_is_written_in_place() {
    let (pool, mut pages) = used_up(2);
    // Another state's freeze, which stays: the wait is not over because nothing is left to wait for.
    let mut others = Pages::new(&pool);
    pages.free(1);
    others.allocate().unwrap();
    let kept = others.freeze();
    let frozen = pages.freeze();
    let address = pages.read(0).unwrap().as_ptr() as usize;
    let waiter = thread::spawn(move || {
        pages.write(0).unwrap()[0] = 7;
        (pages.read(0).unwrap().as_ptr() as usize, pages.copies())
    });
    until_waiting(&pool, 1);
    assert!(has_its_bytes(&frozen, 0));
    drop(frozen);
    assert_eq!(waiter.join().unwrap(), (address, 0));
    assert_eq!(kept.changed.len(), 1);
}

#[test]
fn with_no_freeze_left_an_exhausted_pool_is_an_error_at_once() {
    let (pool, mut pages) = used_up(2);
    assert!(pages.allocate().is_err());
    let frozen = pages.freeze();
    // Neither a freeze of nothing nor what was put together by hand can give a page back.
    let nothing = pages.freeze();
    let by_hand = FrozenPages::of(Vec::new(), Vec::new(), PAGE_BYTES as u32, 0, true);
    assert_eq!((frozen.changed.len(), nothing.changed.len()), (2, 2), "the first was given up");
    drop((frozen, nothing));
    pages.durable();
    let empty = pages.freeze();
    assert_eq!(empty.changed.len(), 0);
    assert!(pages.allocate().is_err());
    pool.wait_when_exhausted(false);
    pages.write(0).unwrap()[0] = 9;
    let frozen = pages.freeze();
    assert!(pages.write(0).is_err(), "a copy does not fit, and nobody is to wait");
    assert_eq!(frozen.changed[0].1[0], 9);
    assert_eq!(pool.shortage(), Shortage::default());
    drop((by_hand, empty));
}

#[test]
fn a_waiter_is_released_when_waits_are_abandoned_and_nobody_waits_again() {
    let (pool, mut pages) = used_up(2);
    let frozen = pages.freeze();
    let waiter = thread::spawn(move || {
        let failed = pages.write(1).is_err();
        (failed, pages)
    });
    until_waiting(&pool, 1);
    pool.abandon_waits();
    let (failed, mut pages) = waiter.join().unwrap();
    assert!(failed && has_its_bytes(&frozen, 1));
    assert!(pages.allocate().is_err(), "at once");
    assert_eq!((pool.shortage().waiting, pool.shortage().stalls), (0, 1));
    drop(frozen);
    pages.write(1).unwrap()[0] = 3;
}

#[test]
fn owners_at_the_limit_wait_for_the_writer_and_frozen_bytes_never_change() {
    const OWNERS: u32 = 3;
    let pool = Pool::new(PAGE_BYTES, (8 * OWNERS as usize + 2) * PAGE_BYTES);
    pool.wait_when_exhausted(true);
    let (sender, receiver) = channel::<(u8, FrozenPages)>();
    let owner = |sender: std::sync::mpsc::Sender<(u8, FrozenPages)>| {
        let mut pages = Pages::new(&pool);
        move || {
            let ids: Vec<_> = (0..8).map(|_| pages.allocate().unwrap()).collect();
            for epoch in 0..100 {
                ids.iter().for_each(|&id| pages.write(id).unwrap().fill(epoch));
                sender.send((epoch, pages.freeze())).unwrap();
            }
        }
    };
    let owners: Vec<_> = (0..OWNERS).map(|_| thread::spawn(owner(sender.clone()))).collect();
    drop(sender);
    for (epoch, frozen) in receiver {
        assert!(frozen.changed.iter().all(|(_, page)| page.iter().all(|&byte| byte == epoch)));
    }
    owners.into_iter().for_each(|owner| owner.join().unwrap());
    assert_eq!((pool.in_use(), pool.shortage().waiting), (0, 0));
    assert!(pool.shortage().stalls > 0);
}

#[test]
fn buffers_lie_apart_in_aligned_chunks_and_the_warmest_comes_first() {
    let pool = Pool::new(65536, usize::MAX);
    let per_chunk = CHUNK_BYTES / (65536 + 128);
    let buffers: Vec<_> = (0..3 * per_chunk).map(|_| pool.take().unwrap()).collect();
    let addresses: BTreeSet<_> = buffers.iter().map(|buffer| buffer.start().addr().get()).collect();
    assert!(addresses.iter().zip(addresses.iter().skip(1)).all(|(one, next)| one + 65536 <= *next));
    let chunks: BTreeSet<_> = addresses.iter().map(|address| address / CHUNK_BYTES).collect();
    assert_eq!(chunks.len(), 3, "none reaches into another chunk");
    assert!(chunks.iter().all(|chunk| addresses.contains(&(chunk * CHUNK_BYTES + HEADER_BYTES))));
    let last = buffers.last().unwrap().start();
    drop(buffers);
    assert_eq!((pool.take().unwrap().start(), pool.shared.shelf().chunks.len()), (last, 3));
}

#[test]
fn as_much_is_touched_ahead_as_is_in_use_within_window_and_limit() {
    let per_chunk = CHUNK_BYTES / (65536 + 128);
    let pool = Pool::new(65536, 65536 * (5 * per_chunk + 1));
    let toucher = pool.keep_touched(2 * CHUNK_BYTES);
    let until_chunks = |count: usize| {
        let start = Instant::now();
        while pool.shared.shelf().chunks.len() < count {
            assert!(start.elapsed() < Duration::from_secs(60), "memory is not touched ahead");
            thread::yield_now();
        }
        // A moment for one too many.
        thread::sleep(Duration::from_millis(5));
        assert_eq!(pool.shared.shelf().chunks.len(), count);
    };
    until_chunks(0);
    let mut buffers = Vec::new();
    let mut take = |count: usize| buffers.extend((0..count).map(|_| pool.take().unwrap()));
    // In use and ahead: 1 + 1, 2 + 2, 3 + 2, and 4 + 2, the last of which has room for one page only.
    for chunks in [2, 4, 5, 6, 6] {
        take(per_chunk);
        until_chunks(chunks);
    }
    drop(toucher);
    take(1);
    assert!(pool.take().is_err());
    assert_eq!(pool.shared.shelf().chunks.len(), 6);
}

/// Lent pages that take their time to come back.
struct Slow(Vec<Buffer>, Sender<()>);

impl Drop for Slow {
    fn drop(&mut self) {
        self.1.send(()).unwrap();
        thread::sleep(Duration::from_millis(100));
        self.0.clear();
    }
}

#[test]
fn who_comes_second_waits_for_what_somebody_else_calls_back() {
    let pool = Pool::new(PAGE_BYTES, 8 * PAGE_BYTES);
    let buffers: Vec<_> = (0..8).map(|_| pool.take().unwrap()).collect();
    let (sender, begins) = channel();
    let lent = pool.lend(Slow(buffers, sender));
    let first = thread::spawn({
        let pool = pool.clone();
        move || pool.take().is_ok()
    });
    begins.recv().unwrap();
    assert!(pool.take().is_ok(), "eight pages come back, of which one is taken");
    assert!(first.join().unwrap() && lent.get().is_none());
    let _all = (0..8).map(|_| pool.take().unwrap()).collect::<Vec<_>>();
    assert!(pool.take().is_err(), "nothing is lent any more");
}

#[test]
fn what_is_lent_is_called_back_though_something_else_may_come_back_too() {
    let pool = Pool::new(PAGE_BYTES, 2 * PAGE_BYTES);
    pool.wait_when_exhausted(true);
    let buffers: Vec<_> = (0..2).map(|_| pool.take().unwrap()).collect();
    let held = pool.outstanding();
    let lent = pool.lend((buffers, pool.outstanding().under_way()));
    let (done, is_done) = channel();
    let taker = thread::spawn({
        let pool = pool.clone();
        move || done.send(pool.take().is_ok()).unwrap()
    });
    until_waiting(&pool, 1);
    assert!(lent.get().is_some(), "not at once");
    assert_eq!(is_done.recv_timeout(Duration::from_secs(60)), Ok(true));
    drop((held, lent));
    taker.join().unwrap();
}
