//! Going on from a checkpoint without reading the state first: how soon, with how much memory, and what damage in it does.

use crate::support::{Room, copy_dir, end, run, snapring, wait_for};
use serde_json::Value;
use snapring::snapshot::{STORE_FILE, Store, StoreOptions};
use std::fs;
use std::path::Path;

/// About 8 MiB of state.
const JOB: [&str; 7] = ["run", "keyed-count", "--keys", "200000", "--events", "2000000", "--json"];

/// A job that was killed with a checkpoint of all keys.
fn killed() -> Room {
    let room = Room::new();
    let state = room.at("S");
    let more = ["--state", &state, "--checkpoint-interval", "300ms", "--rate", "1500000"];
    let mut child = snapring(JOB.iter().chain(&more)).spawn().unwrap();
    let has_most = || {
        let listed = run(["inspect", "ls", &state, "--json"]);
        let epochs = serde_json::from_str::<Value>(&listed.stdout).unwrap_or_default();
        let pages: Vec<_> =
            epochs["epochs"].as_array().into_iter().flatten().filter_map(|epoch| epoch["pages"].as_u64()).collect();
        // And another one to go back to.
        pages.len() > 1 && pages.iter().any(|&pages| pages > 300)
    };
    wait_for(has_most);
    child.kill().unwrap();
    end(child);
    room
}

/// Changes a bit in every page of state.
fn damage(dir: &Path) {
    let store = Store::open(dir, StoreOptions::default()).unwrap();
    let restored = store.restore(store.newest().unwrap()).unwrap();
    let offsets: Vec<_> =
        restored.entries.iter().flat_map(|entry| entry.places().map(|(_, offset, ..)| offset)).collect();
    drop(store);
    let path = dir.join(STORE_FILE);
    let mut bytes = fs::read(&path).unwrap();
    offsets.into_iter().for_each(|offset| bytes[offset as usize + 77] ^= 1);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_job_goes_on_before_its_state_is_read() {
    let room = killed();
    copy_dir(&room.path("S"), &room.path("verified"));
    for (state, more) in [("S", None), ("verified", Some("--verify"))] {
        let state = room.at(state);
        let ran = run(JOB.into_iter().chain(["--state", &state]).chain(more)).ok();
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert!(report["restored_epoch"].as_u64() > Some(0) && report["records"].as_u64() > Some(0), "{report}");
        assert!(report["resident_bytes_at_first_record"].as_u64() > Some(0), "{report}");
        assert!(report["start_to_first_record_ns"].as_u64() > Some(0), "{report}");
    }
}

#[test]
fn damage_that_is_met_late_is_as_plain_as_damage_that_is_looked_for() {
    let room = killed();
    damage(&room.path("S"));
    let state = room.at("S");
    let names = ["corrupt", STORE_FILE, "epoch", "operator `count`", "state `table`", "page", "--epoch", "kept"];
    let hint = format!("snapring inspect verify {}", room.at("S"));
    let late = run(JOB.into_iter().chain(["--state", &state])).exits(3, &names);
    assert!(late.stderr.contains("going on from epoch") && late.stderr.contains(&hint), "{late:?}");
    let early = run(JOB.into_iter().chain(["--state", &state, "--verify"])).exits(3, &names);
    assert!(!early.stderr.contains("going on from epoch"), "{early:?}");
    run(["run", "keyed-count", "--verify"]).exits(2, &["--state"]);
}
