//! The store from without: what is committed comes back, incrementally, and space is used again.

mod store_support;

use snapring::error::StoreError;
use snapring::page::FrozenPages;
use snapring::snapshot::sim::SimDisk;
use snapring::snapshot::{Durability, Reader, SinkKind, Store, StoreOptions};
use store_support::{Model, PAGE_BYTES, Rng, entry, frozen, options, page};

#[test]
fn what_is_committed_comes_back() {
    for sink in [SinkKind::Mapped, SinkKind::Pwrite] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("a/b/state");
        let mut model = Model::new(7);
        let mut store = Store::open(&dir, StoreOptions { sink, ..options() }).unwrap();
        for _ in 0..12 {
            model.step();
            store.commit(&model.checkpoint()).unwrap();
            model.durable();
            model.check(&store);
        }
        let id = store.id();
        drop(store);
        let mut store = Store::open(&dir, StoreOptions { sink, ..options() }).unwrap();
        assert_eq!(store.id(), id);
        model.check(&store);
        model.step();
        store.commit(&model.checkpoint()).unwrap();
        model.durable();
        model.check(&store);
        let reader = Reader::open(&dir).unwrap();
        assert_eq!(reader.epochs(), store.epochs());
        model.check_restored(&reader.read(model.epoch).unwrap());
        let report = reader.verify(model.epoch).unwrap();
        assert!(report.damage.is_empty(), "{:?}", report.damage);
        assert_eq!(report.pages_good, model.pages_total());
    }
}

#[test]
fn random_histories_come_back_and_account_for_every_block() {
    for seed in 0..24 {
        let disk = SimDisk::new();
        let mut rng = Rng(seed);
        let page_bytes = [4096, 8192, 16384, 65536][rng.below(4) as usize];
        let keep = 2 + rng.below(3) as u32;
        let options = StoreOptions { keep, page_bytes, ..options() };
        let mut model = Model::with_page_bytes(seed, page_bytes);
        let mut store = Store::open_on(Box::new(disk.clone()), options.clone()).unwrap();
        for _ in 0..25 {
            model.step();
            disk.guard(store_support::in_use(&store));
            store.commit(&model.checkpoint()).unwrap();
            model.durable();
            let audit = store.audit().unwrap();
            assert!(audit.exact, "seed {seed}: {audit:?}");
            assert_eq!(audit.free + audit.pages + audit.split, audit.frames);
            if rng.below(4) == 0 {
                drop(store);
                store = Store::open_on(Box::new(disk.clone()), options.clone()).unwrap();
                assert!(store.audit().unwrap().exact);
            }
            model.check(&store);
            assert!(store.epochs().len() <= keep as usize);
        }
    }
}

#[test]
fn an_unchanged_page_is_never_written_again() {
    let disk = SimDisk::new();
    // Enough bytes for the threads that make checksums.
    let mut store = Store::open_on(Box::new(disk), StoreOptions { writer_threads: 3, ..options() }).unwrap();
    let all: Vec<u32> = (0..2000).collect();
    let first = store.commit(&entry(1, &all, 2000, true)).unwrap();
    assert_eq!(first.pages_written, 2000);
    let second = store.commit(&entry(2, &[77], 2000, false)).unwrap();
    assert_eq!(second.pages_written, 1);
    // A leaf, a node above it, the record, the table.
    assert_eq!(second.nodes_written, 4);
    let third = store.commit(&entry(3, &[], 2000, false)).unwrap();
    assert_eq!((third.pages_written, third.nodes_written), (0, 2));
    assert_eq!(store.read(3).unwrap().entries[0].pages().unwrap().len(), 2000);
}

#[test]
fn a_store_in_steady_state_does_not_grow() {
    let disk = SimDisk::new();
    let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    let all: Vec<u32> = (0..100).collect();
    store.commit(&entry(1, &all, 100, true)).unwrap();
    let mut rng = Rng(3);
    let mut settled_bytes = 0;
    for epoch in 2..200 {
        let mut ids: Vec<u32> = (0..30).map(|_| rng.below(100) as u32).collect();
        ids.sort_unstable();
        ids.dedup();
        store.commit(&entry(epoch, &ids, 100, false)).unwrap();
        if epoch == 20 {
            settled_bytes = disk.image().len();
        }
    }
    assert_eq!(disk.image().len(), settled_bytes);
}

#[test]
fn going_back_to_an_older_epoch_builds_on_it() {
    let disk = SimDisk::new();
    let options = StoreOptions { keep: 3, ..options() };
    let mut store = Store::open_on(Box::new(disk.clone()), options.clone()).unwrap();
    store.commit(&entry(1, &[0, 1, 2], 3, true)).unwrap();
    store.commit(&entry(2, &[0], 3, false)).unwrap();
    store.commit(&entry(3, &[1], 3, false)).unwrap();
    store.base_on(2).unwrap();
    store.commit(&entry(4, &[2], 3, false)).unwrap();
    let pages = |store: &Store, epoch| -> Vec<u64> {
        let restored = store.read(epoch).unwrap();
        restored.entries[0].pages().unwrap().map(|(_, bytes)| store_support::written_in(bytes)).collect()
    };
    assert_eq!(pages(&store, 4), [2, 1, 4]);
    assert_eq!(pages(&store, 3), [2, 3, 1]);
    for epoch in 5..20 {
        disk.guard(store_support::in_use(&store));
        store.commit(&entry(epoch, &[(epoch % 3) as u32], 3, false)).unwrap();
        let newest = pages(&store, epoch);
        assert_eq!(newest[(epoch % 3) as usize], epoch);
    }
    assert!(store.audit().unwrap().exact);
    assert!(matches!(store.base_on(2), Err(StoreError::NoEpoch { .. })));
}

#[test]
fn a_checkpoint_that_would_not_come_back_is_refused_and_changes_nothing() {
    let disk = SimDisk::new();
    let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    store.commit(&entry(5, &[0, 1], 2, true)).unwrap();
    let before = (disk.image(), disk.calls());
    let mut twice = entry(6, &[0], 2, false);
    twice.entries.extend(entry(6, &[0], 2, false).entries);
    let mut small = entry(6, &[0], 2, false);
    small.entries[0].pages.as_mut().unwrap().changed[0].1 = frozen(&[1; 512]);
    let mut other = entry(6, &[0], 2, false);
    other.entries[0].tasks = 4;
    for wrong in [twice, small, other, entry(5, &[0], 2, false), entry(6, &[1, 1], 2, false), entry(6, &[2], 2, false)]
    {
        assert!(matches!(store.commit(&wrong), Err(StoreError::Refused { .. })), "{wrong:?}");
    }
    assert_eq!((disk.image(), disk.calls()), before);
    store.commit(&entry(6, &[1], 2, false)).unwrap();
}

#[test]
fn large_headers_and_many_epochs_come_back() {
    let disk = SimDisk::new();
    let options = StoreOptions { keep: 200, ..options() };
    let mut store = Store::open_on(Box::new(disk.clone()), options.clone()).unwrap();
    let header: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(i) >> 5) as u8).collect();
    for epoch in 1..=220 {
        let mut checkpoint = entry(epoch, &[0], 1, epoch == 1);
        if epoch == 220 {
            checkpoint.header.clone_from(&header);
            checkpoint.entries[0].root.clone_from(&header);
        }
        store.commit(&checkpoint).unwrap();
    }
    let store = Store::open_on(Box::new(disk), options).unwrap();
    assert_eq!(store.epochs().len(), 200);
    let restored = store.read(220).unwrap();
    assert_eq!((restored.header, &restored.entries[0].root), (header.clone(), &header));
}

#[test]
fn ids_far_apart_and_shrinking_counts_work() {
    let disk = SimDisk::new();
    let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    store.commit(&entry(1, &[0], 1, true)).unwrap();
    let far = [511, 512, 262_143, 262_144, 134_217_728, u32::MAX - 1];
    store.commit(&entry(2, &far, u32::MAX, false)).unwrap();
    let ids = |store: &Store, epoch| -> Vec<u32> {
        store.read(epoch).unwrap().entries[0].pages().unwrap().map(|(id, _)| id).collect()
    };
    assert_eq!(ids(&store, 2), [0, 511, 512, 262_143, 262_144, 134_217_728, u32::MAX - 1]);
    let mut less = entry(3, &[], u32::MAX, false);
    less.entries[0].pages.as_mut().unwrap().freed = vec![512, 134_217_728, u32::MAX - 1, 5];
    store.commit(&less).unwrap();
    assert_eq!(ids(&store, 3), [0, 511, 262_143, 262_144]);
    let mut none = entry(4, &[], 0, false);
    none.entries[0].pages.as_mut().unwrap().count = 0;
    store.commit(&none).unwrap();
    assert_eq!(ids(&store, 4), [0; 0]);
    assert!(store.audit().unwrap().exact);
    let store = Store::open_on(Box::new(disk), options()).unwrap();
    assert!(store.read(4).unwrap().entries[0].paged);
}

#[test]
fn process_crash_durability_does_not_sync() {
    let disk = SimDisk::new();
    let fast = StoreOptions { durability: Durability::ProcessCrash, ..options() };
    let mut store = Store::open_on(Box::new(disk.clone()), fast).unwrap();
    let before = disk.calls();
    let stats = store.commit(&entry(1, &[0], 1, true)).unwrap();
    assert_eq!(disk.calls() - before, stats.runs_written + 1);
    assert!(disk.undecided() > 0);
}

#[test]
fn a_state_may_come_and_go() {
    let disk = SimDisk::new();
    let mut store = Store::open_on(Box::new(disk), StoreOptions { keep: 2, ..options() }).unwrap();
    store.commit(&entry(1, &[0, 1], 2, true)).unwrap();
    let mut without = entry(2, &[], 0, true);
    without.entries.clear();
    store.commit(&without).unwrap();
    assert!(matches!(store.commit(&entry(3, &[0], 2, false)), Err(StoreError::Refused { .. })));
    let mut unpaged = entry(3, &[], 0, true);
    unpaged.entries[0].pages = None;
    store.commit(&unpaged).unwrap();
    assert!(!store.read(3).unwrap().entries[0].paged);
    let mut again = FrozenPages::of(vec![(0, page(4, 0, PAGE_BYTES))], vec![], PAGE_BYTES, 1, true);
    again.tag_of = store_support::tag_of;
    let mut full = entry(4, &[], 0, true);
    full.entries[0].pages = Some(again);
    store.commit(&full).unwrap();
    let audit = store.audit().unwrap();
    assert!(audit.exact && audit.pages == 1, "{audit:?}");
}

#[test]
fn a_pinned_epoch_outlives_its_time_and_leaves_nothing_behind() {
    let disk = SimDisk::new();
    let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    store.commit(&entry(1, &[0, 1, 2, 3], 4, true)).unwrap();
    let mut pins = Vec::new();
    for epoch in 2..40 {
        disk.guard(store_support::in_use(&store));
        store.commit(&entry(epoch, &[(epoch % 4) as u32], 4, false)).unwrap();
        if [5, 6, 13].contains(&epoch) {
            pins.extend([store.pin(epoch).unwrap(), store.pin(epoch).unwrap()]);
        }
        let audit = store.audit().unwrap();
        assert!(audit.exact, "epoch {epoch}: {audit:?}");
        // What of the epochs between has expired is free: the pinned ones and the newest two have a few pages each.
        assert!(audit.pages <= 4 + 3 * 4 + 2, "epoch {epoch}: {audit:?}");
        match epoch {
            20 => drop(pins.remove(0)),
            25 => drop(pins.remove(0)),
            30 => pins.clear(),
            _ => {}
        }
    }
    assert!(store.audit().unwrap().exact);
    assert_eq!(store.epochs().iter().map(|info| info.epoch).collect::<Vec<_>>(), [38, 39]);
    assert!(matches!(store.pin(5), Err(StoreError::NoEpoch { .. })));
}

#[test]
fn pinned_epochs_stay_whole_over_random_histories() {
    for seed in 0..16 {
        let disk = SimDisk::new();
        let mut rng = Rng(seed);
        let mut model = Model::new(seed);
        let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
        let mut pins = Vec::new();
        for _ in 0..40 {
            model.step();
            disk.guard(store_support::in_use(&store));
            store.commit(&model.checkpoint()).unwrap();
            model.durable();
            match rng.below(6) {
                0 | 1 => {
                    let kept = store.epochs();
                    pins.push(store.pin(kept[rng.below(kept.len() as u64) as usize].epoch).unwrap());
                }
                2 if !pins.is_empty() => drop(pins.swap_remove(rng.below(pins.len() as u64) as usize)),
                // The process is killed: its pins with it, and what they kept expires.
                3 if rng.below(3) == 0 => {
                    drop(store);
                    store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
                    pins.clear();
                }
                _ => {}
            }
            assert!(store.audit().unwrap().exact, "seed {seed}");
            model.check(&store);
            pins.iter().for_each(|pin| model.check_restored(&store.read(pin.epoch()).unwrap()));
        }
    }
}
