//! `inspect prune` and `compact`, and readers in other processes, beside jobs that run and that have been killed.

use crate::plain::{check_routes, route_totals, some_flights};
use crate::support::{Room, end, run, snapring, wait_for};
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&run(args).ok().stdout).expect("JSON")
}

fn epochs(room: &Room) -> Vec<u64> {
    let listed = json(&["inspect", "ls", &room.at("S"), "--json"]);
    listed["epochs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|epoch| epoch["epoch"].as_u64().expect("a number"))
        .collect()
}

#[test]
fn a_state_is_pruned_and_compacted_once_its_job_has_ended_and_goes_on() {
    let csv = some_flights(0, 3000);
    let room = Room::new();
    let (input, state) = (room.file("f.csv", &csv), room.at("S"));
    let args = |more: &[&str]| room.stateful("routes", &[&input], more);
    let slow = args(&["--rate", "2000", "--checkpoint-interval", "20ms", "--keep", "4"]);
    let mut child = snapring(slow).spawn().unwrap();
    wait_for(|| room.has_checkpoint() && epochs(&room).len() == 4);
    for command in ["prune", "compact"] {
        run(["inspect", command, &state]).exits(5, &["in use by another process"]);
    }
    // Reading is another matter.
    run(["inspect", "verify", &state]).ok();
    child.kill().unwrap();
    end(child);
    let kept = epochs(&room);
    run(["inspect", "prune", &state, "--epoch", "99999"]).exits(2, &["--epoch 99999: the store keeps"]);
    run(["inspect", "prune", &state, "--epoch", &kept[3].to_string()]).exits(2, &["cannot be given up", "newest"]);
    let pruned = json(&["inspect", "prune", &state, "--epoch", &kept[1].to_string(), "--json"]);
    assert_eq!(pruned["gone"], serde_json::json!([kept[1]]));
    let said = run(["inspect", "prune", &state, "--keep", "2"]).ok().stdout;
    assert!(said.contains(&format!("gave up epoch {}", kept[0])), "{said}");
    assert!(said.ends_with(&format!("kept: epochs {} and {}\n", kept[2], kept[3])), "{said}");
    assert_eq!(epochs(&room), kept[2..]);
    let compacted = json(&["inspect", "compact", &state, "--json"]);
    assert!(compacted["bytes_after"].as_u64() <= compacted["bytes_before"].as_u64(), "{compacted}");
    assert_eq!((compacted["checkpoints"].as_u64(), epochs(&room)), (Some(2), kept[2..].to_vec()));
    run(["inspect", "verify", &state]).ok();
    run(args(&["--writer-threads", "2", "--writer-bandwidth", "500MiB"])).exits(0, &["going on from epoch"]);
    check_routes(&room.committed(), &route_totals(&csv));
}

#[test]
fn pruning_and_compacting_need_a_store() {
    let room = Room::new();
    let nothing = room.at("S");
    for command in ["prune", "compact"] {
        run(["inspect", command, &nothing]).exits(5, &["no store here"]);
    }
    assert!(!room.path("S").exists());
    run(["inspect", "prune", &nothing, "--keep", "0"]).exits(2, &["--keep"]);
    run(["inspect", "prune", &nothing, "--keep", "2", "--epoch", "3"]).exits(2, &["--epoch"]);
    run(["run", "keyed-count", "--state", &nothing, "--writer-bandwidth", "5mb"]).exits(2, &["is no size"]);
    run(["run", "keyed-count", "--state", &nothing, "--writer-bandwidth", "1B"]).exits(2, &["at least 64KiB"]);
    run(["run", "keyed-count", "--writer-threads", "2"]).exits(2, &["--state"]);
}
