//! `inspect`: state folders, finished, running and broken.

use crate::plain::some_flights;
use crate::support::{Room, run, snapring};
use serde_json::Value;

fn finished() -> Room {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 1500));
    run(room.stateful("routes", &[&input], &["--checkpoint-interval", "50ms", "--rate", "3000", "--keep", "2"])).ok();
    room
}

fn json(args: &[&str]) -> Value {
    let ran = run(args).ok();
    assert_eq!(ran.stdout.lines().count(), 1);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn ls_lists_what_is_kept() {
    let room = finished();
    let listed = run(["inspect", "ls", &room.at("S")]).ok();
    assert_eq!(listed.lines().len(), 3, "a header and two epochs: {listed:#?}");
    let object = json(&["inspect", "ls", &room.at("S"), "--json"]);
    let epochs = object["epochs"].as_array().expect("a list");
    assert_eq!(epochs.len(), 2);
    assert!(epochs[0]["epoch"].as_u64() < epochs[1]["epoch"].as_u64());
    assert!(epochs.iter().all(|epoch| epoch["pages"].as_u64() > Some(0) && epoch["bytes"].as_u64() > Some(0)));
    assert_eq!(object["store"].as_str().map(str::len), Some(32));
}

#[test]
fn verify_reads_everything() {
    let room = finished();
    let state = room.at("S");
    let newest = json(&["inspect", "ls", &state, "--json"])["epochs"][1]["epoch"].to_string();
    let verified = run(["inspect", "verify", &state]).ok();
    assert_eq!(verified.lines().len(), 2);
    assert!(verified.lines().iter().all(|line| line.contains("sound")), "{verified:#?}");
    let one = json(&["inspect", "verify", &state, "--epoch", &newest, "--json"]);
    assert_eq!(one.as_array().map(Vec::len), Some(1));
    assert_eq!((one[0]["epoch"].to_string(), &one[0]["sound"]), (newest.clone(), &Value::Bool(true)));
    run(["inspect", "verify", &state, "--epoch", "999999"]).exits(2, &["999999", &newest]);
}

#[test]
fn a_running_job_can_be_inspected() {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 3000));
    let args = room.stateful("routes", &[&input], &["--checkpoint-interval", "5ms", "--rate", "2500"]);
    let mut job = snapring(args).spawn().unwrap();
    while room.committed().is_empty() {
        assert_eq!(job.try_wait().unwrap(), None);
    }
    let mut looked = 0;
    while job.try_wait().unwrap().is_none() {
        run(["inspect", "ls", &room.at("S")]).ok();
        run(["inspect", "verify", &room.at("S")]).ok();
        run(["inspect", "channels", &room.at("S")]).ok();
        looked += 1;
    }
    assert!(looked > 3, "{looked}");
}

#[test]
fn what_is_no_store_is_named() {
    let room = Room::new();
    let file = room.file("file", "text");
    for path in [room.at("nothing"), file.clone(), room.dir.path().to_str().unwrap().to_owned()] {
        for command in ["ls", "verify", "channels"] {
            let what = if path == file { "not a snapring store" } else { "no store here" };
            run(["inspect", command, &path]).exits(5, &[&path, what]);
        }
    }
}
