//! Going back, and what the system may refuse to the state folder.

use crate::plain::{check_routes, route_totals, some_flights};
use crate::support::{Room, end, run, snapring, wait_for};
use serde_json::Value;
use std::process::Command;

fn epochs(room: &Room) -> Vec<Value> {
    let listed = run(["inspect", "ls", &room.at("S"), "--json"]).ok();
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    listed["epochs"].as_array().expect("a list").clone()
}

#[test]
fn an_older_checkpoint_is_taken_if_asked_for() {
    let csv = some_flights(0, 3000);
    let room = Room::new();
    let input = room.file("f.csv", &csv);
    let args = |more: &[&str]| room.stateful("routes", &[&input], more);
    let mut child = snapring(args(&["--rate", "2000", "--checkpoint-interval", "20ms"])).spawn().unwrap();
    wait_for(|| room.has_checkpoint() && epochs(&room).len() == 3 && !room.committed().is_empty());
    child.kill().unwrap();
    end(child);
    let kept = epochs(&room);
    assert!(kept.iter().all(|epoch| epoch["job"] == "routes" && epoch["went_back"].is_null()));
    let oldest = kept[0]["epoch"].to_string();
    run(args(&["--epoch", "999999"])).exits(2, &["no epoch 999999 here", &oldest]);
    run(args(&["--epoch", &oldest])).exits(0, &["going on from epoch"]);
    check_routes(&room.committed(), &route_totals(&csv));
    // Forth again: what was done since then is done anew.
    let newest = epochs(&room).last().expect("some")["epoch"].to_string();
    run(args(&["--epoch", &newest])).exits(0, &["nothing is left to do"]);
    let middle = epochs(&room)[1]["epoch"].to_string();
    run(args(&["--epoch", &middle])).ok();
    check_routes(&room.committed(), &route_totals(&csv));
    let listed = run(["inspect", "ls", &room.at("S")]).ok();
    assert!(listed.stdout.contains("routes (went back to epoch"), "{listed:?}");
}

#[test]
fn flags_of_going_back_go_together() {
    run(["run", "routes", "--epoch", "3"]).exits(2, &["--state"]);
    run(Room::new().stateful("routes", &[], &["--epoch", "3"])).exits(2, &["no epoch 3 here; no checkpoint is kept"]);
    run(["run", "routes", "--state", "S", "--accept-duplicates"]).exits(2, &["--epoch"]);
}

#[test]
fn a_limit_of_the_file_size_is_an_error_and_no_signal() {
    let room = Room::new();
    let state = room.at("S");
    let words = ["run", "keyed-count", "--keys", "1000000", "--events", "2000000", "--checkpoint-interval", "50ms"];
    let command = words.join(" ");
    let limited = format!("ulimit -f 12288; exec {} {command} --state {state} --json", env!("CARGO_BIN_EXE_snapring"));
    let output = Command::new("sh").args(["-c", &limited]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("no space for") && said.contains("free some"), "{said}");
    // With room it comes to its end.
    run(words.into_iter().chain(["--state", &state, "--json"])).ok();
}
