//! The machine stops at every write and every sync, with many subsets of what was not synced, also while it recovers:
//! the store opens with the last acknowledged epoch or the one that was under way, whole.

mod store_support;

use snapring::snapshot::sim::{Incident, SimDisk};
use snapring::snapshot::{Durability, Store, StoreOptions};
use store_support::{Model, Rng, in_use, options};

const COMMITS: usize = 7;

fn open(disk: &SimDisk, options: &StoreOptions) -> Result<Store, snapring::error::StoreError> {
    Store::open_on(Box::new(disk.clone()), options.clone())
}

/// Runs until the crash at `call`; gives back the model and the last acknowledged epoch, or `None` at its end.
fn run_until(disk: &SimDisk, options: &StoreOptions, seed: u64, call: u64) -> Option<(Model, u64)> {
    disk.at(call, Incident::Crash);
    let mut model = Model::new(seed);
    let mut acknowledged = 0;
    let Ok(mut store) = open(disk, options) else { return Some((model, 0)) };
    let mut pins = Vec::new();
    for commit in 0..COMMITS {
        model.step();
        disk.guard(in_use(&store));
        if store.commit(&model.checkpoint()).is_err() {
            return Some((model, acknowledged));
        }
        acknowledged = model.epoch;
        model.durable();
        // Some epochs are kept beyond their time, and let go of later.
        match commit {
            0 | 3 => pins.push(store.pin(acknowledged).unwrap()),
            5 => drop(pins.remove(0)),
            _ => {}
        }
    }
    None
}

/// Opens after a crash, checks, and commits once more. Gives back the epoch that was found.
fn reopen(disk: &SimDisk, options: &StoreOptions, model: &mut Model, acknowledged: u64, what: &str) -> u64 {
    let mut store = open(disk, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = store.newest().unwrap_or(0);
    assert!(
        found == acknowledged || found == model.epoch,
        "{what}: {found}, neither {acknowledged} nor {}",
        model.epoch
    );
    model.check_kept(&store);
    assert!(store.audit().unwrap().exact, "{what}");
    model.restore(found);
    model.step();
    disk.guard(in_use(&store));
    store.commit(&model.checkpoint()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(store.audit().unwrap().exact, "{what}, and a commit");
    model.check(&store);
    found
}

/// Which of the undecided changes survive: none, all, random ones; all subsets if there are few.
fn subsets(undecided: usize, rng: &mut Rng, random: usize) -> Vec<Vec<bool>> {
    if undecided <= 4 {
        return (0..1 << undecided).map(|bits: u32| (0..undecided).map(|i| bits & 1 << i != 0).collect()).collect();
    }
    let mut subsets = vec![vec![false; undecided], vec![true; undecided]];
    for _ in 0..random {
        let survivors_of_8 = 1 + rng.below(7);
        subsets.push((0..undecided).map(|_| rng.below(8) < survivors_of_8).collect());
    }
    subsets
}

#[test]
fn a_crash_at_any_call_with_any_subset_loses_nothing_acknowledged() {
    let mut found_early = 0;
    for seed in 0..4 {
        let mut rng = Rng(seed);
        for call in 0.. {
            let disk = SimDisk::new();
            let Some((model, acknowledged)) = run_until(&disk, &options(), seed, call) else { break };
            for subset in subsets(disk.undecided(), &mut rng, 6) {
                let disk = disk.fork();
                disk.crash(|i| subset[i]);
                let mut model = model.clone();
                let found = reopen(&disk, &options(), &mut model, acknowledged, &format!("seed {seed}, call {call}"));
                found_early += u32::from(found > acknowledged);
            }
        }
    }
    // Otherwise the crashes in the second sync were not there.
    assert!(found_early > 0);
}

#[test]
fn a_second_crash_while_recovering_loses_nothing_either() {
    for call in 0.. {
        let mut rng = Rng(call);
        let disk = SimDisk::new();
        let Some((model, acknowledged)) = run_until(&disk, &options(), 11, call) else { break };
        for second in 0..12 {
            let (disk, mut model) = (disk.fork(), model.clone());
            disk.crash(|_| rng.below(2) == 0);
            disk.at(disk.calls() + second, Incident::Crash);
            let mut acknowledged = acknowledged;
            if let Ok(mut store) = open(&disk, &options()) {
                // What was found is relied on from here on.
                acknowledged = store.newest().unwrap_or(0);
                model.restore(acknowledged);
                model.step();
                if store.commit(&model.checkpoint()).is_ok() {
                    acknowledged = model.epoch;
                }
            }
            disk.crash(|_| rng.below(2) == 0);
            reopen(&disk, &options(), &mut model, acknowledged, &format!("call {call}, then {second}"));
        }
    }
}

#[test]
fn the_end_of_the_process_loses_nothing_without_syncs() {
    let fast = StoreOptions { durability: Durability::ProcessCrash, ..options() };
    for call in 0.. {
        let disk = SimDisk::new();
        let Some((mut model, acknowledged)) = run_until(&disk, &fast, 5, call) else { break };
        // The page cache is still there: whatever was written, and the last write in part.
        let undecided = disk.undecided();
        disk.crash(|i| i + 1 < undecided || call % 2 == 0);
        reopen(&disk, &fast, &mut model, acknowledged, &format!("call {call}"));
    }
}

#[test]
fn what_a_restarted_process_relies_on_survives_a_later_loss_of_power() {
    for call in 0.. {
        let disk = SimDisk::new();
        let Some((mut model, acknowledged)) = run_until(&disk, &options(), 3, call) else { break };
        // First only the process dies, perhaps between the two syncs of a commit …
        disk.kill();
        let found = open(&disk, &options()).unwrap().newest().unwrap_or(0);
        assert!(found == acknowledged || found == model.epoch);
        // … and when the next one has committed the output of what it found, the power goes.
        disk.crash(|_| false);
        let still = open(&disk, &options()).unwrap().newest().unwrap_or(0);
        assert_eq!(still, found, "call {call}");
        model.restore(found);
        model.check_kept(&open(&disk, &options()).unwrap());
    }
}
