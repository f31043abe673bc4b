//! The machine stops at every call by which a store begins with a savepoint: then there is no store, or a whole one.

use super::flips::{check, commit, options};
use crate::snapshot::home::Generations;
use crate::snapshot::savepoint::Saved;
use crate::snapshot::sim::{Incident, SimDisk};
use crate::snapshot::{Store, StoreOptions};
use std::path::Path;

/// A disk that holds a savepoint of this epoch.
fn saved(epoch: u64) -> SimDisk {
    let disk = SimDisk::new();
    let mut store = Store::open_on(Box::new(disk.clone()), options()).unwrap();
    (1..=epoch).for_each(|epoch| commit(&mut store, epoch));
    store.prune(1).unwrap();
    store.compact().unwrap();
    disk
}

fn begin(from: &SimDisk, to: &SimDisk, options: StoreOptions) -> Result<Store, crate::error::StoreError> {
    let file = from.open(*from.list().unwrap().last().unwrap()).unwrap();
    let saved = Saved::read(Path::new("saved"), file).unwrap();
    Store::begin_on(Box::new(to.clone()), &saved, options)
}

#[test]
fn it_is_there_whole_or_not_at_all() {
    let from = saved(3);
    let (mut nothing, mut whole) = (0, 0);
    for call in 0.. {
        let to = SimDisk::new();
        to.at(call, Incident::Crash);
        let begun = begin(&from, &to, options());
        let is_done = to.calls() <= call;
        for survivors in 0..4 {
            let to = to.fork();
            to.crash(|at| survivors == 3 || survivors > 0 && at % 3 == survivors);
            match &to.list().unwrap()[..] {
                [] => {
                    assert!(begun.is_err());
                    nothing += 1;
                    begin(&from, &to, options()).unwrap();
                }
                _ => whole += 1,
            }
            let mut store = Store::open_on(Box::new(to.clone()), options()).unwrap();
            assert_eq!(store.newest(), Some(3));
            check(&store.read(3).unwrap()).unwrap();
            commit(&mut store, 4);
            assert!(store.audit().unwrap().exact);
        }
        if is_done {
            break;
        }
    }
    assert!(nothing > 0 && whole > 0);
}

#[test]
fn it_can_begin_again_until_something_has_come_of_it() {
    let (from, to) = (saved(3), SimDisk::new());
    for _ in 0..2 {
        let store = begin(&from, &to, options()).unwrap();
        check(&store.read(3).unwrap()).unwrap();
    }
    assert!(begin(&saved(2), &to, options()).unwrap_err().to_string().contains("leave out the savepoint"));
    commit(&mut Store::open_on(Box::new(to.clone()), options()).unwrap(), 4);
    assert!(begin(&from, &to, options()).unwrap_err().to_string().contains("leave out the savepoint"));
}

#[test]
fn a_failing_or_full_disk_leaves_none() {
    let from = saved(2);
    for incident in [Incident::Fail, Incident::Full] {
        for call in 0.. {
            let to = SimDisk::new();
            to.at(call, incident);
            let begun = begin(&from, &to, options());
            if to.calls() <= call {
                break;
            }
            // The removal of what was made may fail as well, and what was published may be there.
            if begun.is_err() && to.list().unwrap().is_empty() {
                begin(&from, &to, options()).unwrap();
            }
            check(&Store::open_on(Box::new(to), options()).unwrap().read(2).unwrap()).unwrap();
        }
    }
}
