//! The file levels off: however long a store is written to, whoever reads it meanwhile, it takes the room that it took when
//! its load had become steady. `SNAPRING_LONG=1` makes it a long run.

mod store_support;

use snapring::page::{FrozenPages, PageId};
use snapring::snapshot::sim::SimDisk;
use snapring::snapshot::{Checkpoint, Entry, Reader, Store, StoreOptions};
use std::collections::BTreeSet;
use store_support::{PAGE_BYTES, Rng, frozen, in_use, options, tag_of, written_in};

const PAGES: u32 = 500;

/// Commits after the load has become steady.
fn commits() -> u64 {
    if std::env::var_os("SNAPRING_LONG").is_some() { 20_000 } else { 400 }
}

/// A store, and the epoch in which each page was written.
struct Load {
    disk: SimDisk,
    store: Store,
    rng: Rng,
    written: Vec<u64>,
    epoch: u64,
}

impl Load {
    fn new(keep: u32, seed: u64) -> Self {
        let disk = SimDisk::new();
        let store = Store::open_on(Box::new(disk.clone()), StoreOptions { keep, ..options() }).unwrap();
        let mut load = Self { disk, store, rng: Rng(seed), written: vec![0; PAGES as usize], epoch: 0 };
        load.commit(&(0..PAGES).collect());
        load
    }

    fn commit(&mut self, ids: &BTreeSet<PageId>) {
        self.epoch += 1;
        let epoch = self.epoch;
        // Cheaper than random bytes: the sum covers the number all the same.
        let page = |id: &PageId| {
            let mut bytes = vec![*id as u8; PAGE_BYTES as usize];
            bytes[..8].copy_from_slice(&epoch.to_le_bytes());
            (*id, frozen(&bytes))
        };
        let changed = ids.iter().map(page).collect();
        let full = epoch == 1;
        let mut pages = FrozenPages::of(changed, Vec::new(), PAGE_BYTES, PAGES, full);
        pages.tag_of = tag_of;
        let entry = Entry {
            operator: "count".into(),
            state: "table".into(),
            task: 0,
            tasks: 1,
            schema: Vec::new(),
            root: vec![1; self.rng.below(9000) as usize],
            pages: Some(pages),
        };
        self.disk.guard(if epoch.is_multiple_of(16) { in_use(&self.store) } else { Vec::new() });
        self.store.commit(&Checkpoint { epoch, header: Vec::new(), entries: vec![entry] }).unwrap();
        ids.iter().for_each(|id| self.written[*id as usize] = epoch);
    }

    /// Changes so many pages, drawn evenly.
    fn step(&mut self, pages: u64) {
        let ids = (0..pages).map(|_| self.rng.below(u64::from(PAGES)) as PageId).collect();
        self.commit(&ids);
    }

    fn check(&self) {
        let restored = self.store.read(self.epoch).unwrap();
        let found: Vec<u64> = restored.entries[0].pages().unwrap().map(|(_, page)| written_in(page)).collect();
        assert_eq!(found, self.written);
        let audit = self.store.audit().unwrap();
        assert!(audit.exact, "{audit:?}");
    }
}

#[test]
fn a_steady_load_stops_growing() {
    for (keep, pages) in [(2, 5), (3, 60), (5, 400)] {
        let mut load = Load::new(keep, pages);
        (0..60).for_each(|_| load.step(pages));
        let settled = load.disk.used_bytes();
        for _ in 0..commits() {
            load.step(pages);
            assert_eq!(load.disk.used_bytes(), settled, "epoch {}", load.epoch);
        }
        load.check();
        // And it is not more than twice what was in use at most, with a segment and the head.
        let most = u64::from(PAGES) + (u64::from(keep) + 1) * pages.min(u64::from(PAGES)) + 40;
        assert!(settled <= 2 * most * u64::from(PAGE_BYTES) + 3 * 65536, "{settled} for {most} pages");
    }
}

#[test]
fn readers_that_come_and_go_do_not_make_it_grow_for_ever() {
    let mut load = Load::new(2, 8);
    let mut reader = Reader::open_on(Box::new(load.disk.clone())).unwrap();
    let mut held = Vec::new();
    for round in 0..commits() {
        load.step(20);
        if load.rng.below(4) == 0 && held.len() < 3 {
            reader.refresh().unwrap();
            let kept = reader.epochs();
            let epoch = kept[load.rng.below(kept.len() as u64) as usize].epoch;
            held.push((epoch, reader.hold(epoch).unwrap()));
        }
        if load.rng.below(5) == 0 && !held.is_empty() {
            let at = load.rng.below(held.len() as u64) as usize;
            // It can be read to the last.
            assert_eq!(reader.read(held[at].0).unwrap().epoch, held[at].0);
            held.swap_remove(at);
        }
        // Three that are held, each with all pages of its own, and what is to spare: after however many commits.
        assert!(load.disk.used_bytes() <= u64::from(2 * (4 * PAGES + 3 * 20 + 40) * PAGE_BYTES), "round {round}");
        assert!(load.store.epochs().len() <= 2 + 3);
    }
    drop(held);
    load.step(1);
    load.step(1);
    load.check();
}

#[test]
fn one_that_is_held_for_ever_costs_what_it_holds_and_no_more() {
    let mut load = Load::new(2, 9);
    let reader = Reader::open_on(Box::new(load.disk.clone())).unwrap();
    let held = reader.hold(1).unwrap();
    (0..100).for_each(|_| load.step(30));
    let at_first = load.disk.used_bytes();
    (0..commits() / 2).for_each(|_| load.step(30));
    // In a long run the free blocks, which are fewer for the one that is held, once lie so that one more step is taken.
    let settled = load.disk.used_bytes();
    assert!(settled <= at_first * 5 / 4, "{at_first}, then {settled}");
    (0..commits() / 2).for_each(|_| load.step(30));
    assert_eq!(load.disk.used_bytes(), settled);
    let audit = load.store.audit().unwrap();
    assert!(audit.pages <= 2 * PAGES + 3 * 30, "{audit:?}");
    let restored = reader.read(1).unwrap();
    assert!(restored.entries[0].pages().unwrap().all(|(_, page)| written_in(page) == 1));
    drop(held);
    load.step(1);
    load.check();
    assert!(load.store.audit().unwrap().pages <= PAGES + 2 * 30);
}

#[test]
fn after_a_burst_it_does_not_grow_again() {
    let mut load = Load::new(2, 10);
    (0..60).for_each(|_| load.step(10));
    for _ in 0..4 {
        load.commit(&(0..PAGES).collect());
    }
    let burst = load.disk.used_bytes();
    for round in 0..commits() {
        load.step(if round % 50 == 49 { 400 } else { 10 });
        assert_eq!(load.disk.used_bytes(), burst, "round {round}");
    }
    load.check();
}
