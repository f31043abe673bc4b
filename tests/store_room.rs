//! Pruning and compacting: what goes, what stays, and that neither a failure nor a crash at any call loses what should stay.

mod store_support;

use snapring::error::StoreError;
use snapring::snapshot::sim::{Incident, SimDisk};
use snapring::snapshot::{Compacted, Generations, Held, Pruned, Reader, SinkKind, Store, StoreOptions};
use std::fs;
use store_support::{Model, Rng, entry, in_use, options, written_in};

fn keeping(keep: u32) -> StoreOptions {
    StoreOptions { keep, ..options() }
}

fn open(disk: &SimDisk) -> Result<Store, StoreError> {
    Store::open_on(Box::new(disk.clone()), keeping(5))
}

fn epochs(store: &Store) -> Vec<u64> {
    store.epochs().iter().map(|info| info.epoch).collect()
}

/// A disk with a store that keeps five epochs of a model.
fn five(seed: u64) -> (SimDisk, Store, Model) {
    let (disk, mut model) = (SimDisk::new(), Model::new(seed));
    let mut store = open(&disk).unwrap();
    for _ in 0..9 {
        model.step();
        store.commit(&model.checkpoint()).unwrap();
        model.durable();
    }
    (disk, store, model)
}

fn go_on(disk: &SimDisk, store: &mut Store, model: &mut Model) {
    for _ in 0..3 {
        model.step();
        disk.guard(in_use(store));
        store.commit(&model.checkpoint()).unwrap();
        model.durable();
        model.check(store);
        assert!(store.audit().unwrap().exact);
    }
}

#[test]
fn pruning_keeps_the_newest_and_frees_the_rest() {
    for keep in 0..7 {
        let (disk, mut store, mut model) = five(u64::from(keep));
        let (kept, free) = (epochs(&store), store.audit().unwrap().free);
        disk.guard(in_use(&store));
        let Pruned { gone, held, kept: left, freed_bytes } = store.prune(keep).unwrap();
        let at = 5 - (keep.clamp(1, 5) as usize);
        assert_eq!((&gone[..], held, &left[..]), (&kept[..at], vec![], &kept[at..]));
        assert_eq!(epochs(&store), left);
        let audit = store.audit().unwrap();
        assert!(audit.exact);
        assert_eq!(u64::from(audit.free - free) * 4096, freed_bytes);
        assert!(freed_bytes > 0 || at == 0);
        model.check(&store);
        drop(store);
        let mut store = open(&disk).unwrap();
        assert_eq!(epochs(&store), left);
        go_on(&disk, &mut store, &mut model);
    }
}

#[test]
fn single_epochs_can_be_given_up_but_the_newest() {
    let (disk, mut store, mut model) = five(3);
    let kept = epochs(&store);
    assert!(matches!(store.forget(&[kept[1], 9999]), Err(StoreError::NoEpoch { epoch: 9999, .. })));
    assert!(matches!(store.forget(&[kept[1], kept[4]]), Err(StoreError::Refused { .. })));
    assert_eq!(epochs(&store), kept);
    let pruned = store.forget(&[kept[1], kept[3]]).unwrap();
    assert_eq!((&pruned.gone[..], &pruned.kept[..]), (&[kept[1], kept[3]][..], &[kept[0], kept[2], kept[4]][..]));
    assert!(store.audit().unwrap().exact);
    model.check(&store);
    go_on(&disk, &mut store, &mut model);
}

#[test]
fn what_is_read_or_built_on_is_not_pruned() {
    let (disk, mut store, model) = five(4);
    let kept = epochs(&store);
    let reader = Reader::open_on(Box::new(disk.clone())).unwrap();
    let held = reader.hold(kept[1]).unwrap();
    store.base_on(kept[2]).unwrap();
    let pruned = store.prune(1).unwrap();
    assert_eq!((&pruned.gone[..], &pruned.held[..]), (&[kept[0], kept[3]][..], &kept[1..3]));
    model.check_restored(&reader.read(kept[1]).unwrap());
    drop(held);
    let pruned = store.prune(1).unwrap();
    assert_eq!((&pruned.gone[..], &pruned.held[..]), (&[kept[1]][..], &[kept[2]][..]));
    model.check_kept(&store);
}

#[test]
fn compacting_makes_the_file_as_small_as_what_is_in_it() {
    for sink in [SinkKind::Mapped, SinkKind::Pwrite] {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path(), StoreOptions { sink, ..keeping(3) }).unwrap();
        let many: Vec<u32> = (0..700).collect();
        store.commit(&entry(1, &many, 700, true)).unwrap();
        for epoch in 2..8 {
            store.commit(&entry(epoch, &many[..300], 700, false)).unwrap();
        }
        store.prune(2).unwrap();
        let Compacted { epochs: kept, bytes_before, bytes_after } = store.compact().unwrap();
        // 700 pages and 300 more, their nodes, the records: shared pages are there once.
        assert!(
            kept == 2 && bytes_after < 1100 * 4096 && bytes_before > 2 * bytes_after,
            "{bytes_before} {bytes_after}"
        );
        let files: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert!(
            files.contains(&"generation-2.snap".into()) && !files.contains(&"generation-1.snap".into()),
            "{files:?}"
        );
        assert!(store.audit().unwrap().exact);
        for round in 0..2 {
            for epoch in [6, 7] {
                let restored = store.read(epoch).unwrap();
                let pages: Vec<u64> = restored.entries[0].pages().unwrap().map(|(_, page)| written_in(page)).collect();
                assert!(
                    pages[..300].iter().all(|written| *written == epoch) && pages[300..].iter().all(|one| *one == 1)
                );
            }
            if round == 0 {
                drop(store);
                store = Store::open(dir.path(), StoreOptions { sink, ..keeping(3) }).unwrap();
            }
        }
        store.commit(&entry(8, &many[..10], 700, false)).unwrap();
        assert_eq!(epochs(&store), [6, 7, 8]);
        assert_eq!(Reader::open(dir.path()).unwrap().read(8).unwrap().epoch, 8);
    }
}

#[test]
fn compacting_takes_the_epochs_of_all_files() {
    let (disk, mut store, mut model) = five(5);
    // The next write fails: a new file is begun, and holds one epoch beside those of the first.
    disk.at(disk.calls() + 1, Incident::Fail);
    model.step();
    assert!(store.commit(&model.checkpoint()).is_err());
    model.step();
    store.commit(&model.checkpoint()).unwrap();
    model.durable();
    let kept = epochs(&store);
    assert_eq!((disk.list().unwrap().len(), kept.len()), (2, 6));
    let reader = Reader::open_on(Box::new(disk.clone())).unwrap();
    assert_eq!(store.compact().unwrap().epochs, 6);
    assert_eq!((disk.list().unwrap(), epochs(&store)), (vec![3], kept.clone()));
    // Who had the old files open has them still.
    kept.iter().for_each(|epoch| model.check_restored(&reader.read(*epoch).unwrap()));
    model.check(&store);
    go_on(&disk, &mut store, &mut model);
    drop(store);
    model.check(&open(&disk).unwrap());
}

/// What is done to a store.
#[derive(Clone, Copy, Debug)]
enum Act {
    Prune,
    Forget,
    Compact,
}

impl Act {
    fn run(self, store: &mut Store, kept: &[u64]) -> Result<(), StoreError> {
        match self {
            Self::Prune => store.prune(2).map(drop),
            Self::Forget => store.forget(&kept[1..3]).map(drop),
            Self::Compact => store.compact().map(drop),
        }
    }

    /// What stays of five epochs whatever happens.
    fn stays(self, kept: &[u64]) -> Vec<u64> {
        match self {
            Self::Prune => kept[3..].to_vec(),
            Self::Forget => vec![kept[0], kept[3], kept[4]],
            Self::Compact => kept.to_vec(),
        }
    }
}

/// Everything that should be there is, and nothing else.
fn check_stayed(store: &Store, model: &Model, act: Act, kept: &[u64], held: u64) {
    let found = epochs(store);
    assert!(act.stays(kept).iter().all(|epoch| found.contains(epoch)), "{act:?}: {found:?} of {kept:?}");
    assert!(found.contains(&held) && found.iter().all(|epoch| kept.contains(epoch)), "{act:?}: {found:?} of {kept:?}");
    model.check_kept(store);
}

/// Five epochs, the second of which somebody reads.
fn five_and_a_reader(seed: u64) -> (SimDisk, Store, Model, Vec<u64>, Held) {
    let (disk, store, model) = five(seed);
    let kept = epochs(&store);
    let held = Reader::open_on(Box::new(disk.clone())).unwrap().hold(kept[1]).unwrap();
    (disk, store, model, kept, held)
}

#[test]
fn a_failure_at_any_call_loses_nothing_that_stays() {
    for act in [Act::Prune, Act::Forget, Act::Compact] {
        for (incident, lasting) in [(Incident::Fail, 1), (Incident::Full, 1), (Incident::Fail, 5)] {
            for call in 0.. {
                let (disk, mut store, mut model, kept, held) = five_and_a_reader(call);
                let first = disk.calls();
                (call..call + lasting).for_each(|call| disk.at(first + call, incident));
                disk.guard(in_use(&store));
                let ran = act.run(&mut store, &kept);
                let is_over = disk.calls() <= first + call;
                check_stayed(&store, &model, act, &kept, kept[1]);
                // A loss of power right now, on a copy.
                let mut rng = Rng(call);
                let after = disk.fork();
                after.crash(|_| rng.below(2) == 0);
                let mut reopened = open(&after).unwrap();
                check_stayed(&reopened, &model, act, &kept, kept[1]);
                go_on(&after, &mut reopened, &mut model.clone());
                // It goes on, at the latest with the second try.
                while disk.calls() <= first + call + lasting {
                    model.step();
                    if store.commit(&model.checkpoint()).is_ok() {
                        model.durable();
                    }
                }
                drop(held);
                go_on(&disk, &mut store, &mut model);
                if is_over {
                    ran.unwrap();
                    break;
                }
            }
        }
    }
}

#[test]
fn a_crash_at_any_call_with_any_subset_loses_nothing_that_stays() {
    for act in [Act::Prune, Act::Forget, Act::Compact] {
        for call in 0.. {
            let (disk, mut store, model, kept, held) = five_and_a_reader(call);
            disk.at(disk.calls() + call, Incident::Crash);
            let ran = act.run(&mut store, &kept);
            drop(store);
            for subset in 0..8 {
                let (disk, mut model, mut rng) = (disk.fork(), model.clone(), Rng(subset));
                disk.crash(|_| rng.below(8) < subset + 1 && subset > 0);
                let mut store = open(&disk).unwrap();
                check_stayed(&store, &model, act, &kept, kept[1]);
                assert!(store.audit().unwrap().exact);
                // Once more, and a second crash in the middle of it.
                disk.at(disk.calls() + call / 2, Incident::Crash);
                let _ = act.run(&mut store, &kept);
                drop(store);
                disk.crash(|_| rng.below(2) == 0);
                let mut store = open(&disk).unwrap();
                assert!(act.stays(&kept).iter().all(|epoch| epochs(&store).contains(epoch)), "{act:?}, call {call}");
                go_on(&disk, &mut store, &mut model);
                assert!(epochs(&store).len() <= 8);
            }
            drop(held);
            if ran.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn commits_through_crashes_and_failures_keep_what_is_held() {
    for (seed, incident) in [(1, Incident::Crash), (2, Incident::Fail)] {
        for call in 0.. {
            let (disk, mut store, mut model, kept, held) = five_and_a_reader(seed);
            disk.at(disk.calls() + call, incident);
            let mut failed = false;
            for _ in 0..6 {
                model.step();
                disk.guard(in_use(&store));
                match store.commit(&model.checkpoint()) {
                    Ok(_) => model.durable(),
                    Err(_) => failed = true,
                }
                if failed && incident == Incident::Crash {
                    break;
                }
                assert!(epochs(&store).contains(&kept[1]), "call {call}");
                model.check_kept(&store);
            }
            if !failed {
                break;
            }
            if incident == Incident::Crash {
                let mut rng = Rng(call);
                disk.crash(|_| rng.below(2) == 0);
                let store = open(&disk).unwrap();
                assert!(epochs(&store).contains(&kept[1]), "call {call}");
                model.check_kept(&store);
            }
            drop(held);
        }
    }
}
