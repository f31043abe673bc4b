//! `doctor`: whatever the machine is like, it says so within seconds, changes nothing, and fails for an unusable folder only.

use crate::plain::some_flights;
use crate::support::{Room, run, shell};
use serde_json::Value;
use std::fs;

fn findings(args: &[&str]) -> Vec<Value> {
    let ran = run(["doctor", "--json"].iter().chain(args));
    let object: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let levels = ["ok", "note", "warning", "error"];
    let findings = object["findings"].as_array().unwrap().clone();
    let rank = |level: &Value| levels.iter().position(|one| level == one).expect("a level");
    assert_eq!(rank(&object["worst"]), findings.iter().map(|finding| rank(&finding["level"])).max().unwrap());
    assert_eq!(ran.code, Some(if object["worst"] == "error" { 5 } else { 0 }), "{ran:?}");
    // Whatever is not as it should be says what to do, or that nothing is known.
    assert!(findings.iter().all(|finding| finding["level"] != "warning" || finding["advice"].is_string()), "{object}");
    findings
}

fn of<'a>(findings: &'a [Value], about: &str) -> &'a Value {
    findings.iter().find(|finding| finding["about"] == about).unwrap_or_else(|| panic!("{about}: {findings:?}"))
}

#[test]
fn it_looks_at_everything() {
    let room = Room::new();
    fs::create_dir(room.path("S")).unwrap();
    let state = room.at("S");
    let found = findings(&["--state", &state]);
    let cores = &of(&found, "cores")["facts"];
    assert!(!cores["allowed"].as_array().unwrap().is_empty() && cores["workers"].as_u64() > Some(0), "{cores}");
    assert!(of(&found, "clock")["facts"]["read_ns"].as_u64() > Some(0));
    assert!(of(&found, "disk space")["facts"]["free_bytes"].as_u64() > Some(0));
    assert!(of(&found, "disk sync")["facts"]["p50_ns"].as_u64() > Some(0));
    for about in
        ["siblings", "isolation", "round trip", "memory", "huge pages", "open files", "file size", "file system"]
    {
        assert!(!of(&found, about)["says"].as_str().unwrap().is_empty());
    }
    assert_eq!(fs::read_dir(&state).unwrap().count(), 0, "it leaves nothing");
    let text = run(["doctor", "--state", &state]).ok().stdout;
    assert!(found.iter().all(|finding| text.contains(finding["about"].as_str().unwrap())), "{text}");
}

#[test]
fn a_folder_is_new_or_empty_or_holds_checkpoints() {
    let room = Room::new();
    let says = |state: &str| of(&findings(&["--state", state]), "folder")["says"].as_str().unwrap().to_owned();
    assert!(says(&room.at("new/folder")).contains("`run` makes it"));
    assert!(!room.path("new").exists(), "it makes nothing");
    run(room.stateful("routes", &[&room.file("f.csv", some_flights(0, 300))], &[])).ok();
    assert!(says(&room.at("S")).contains("checkpoints of `routes`, the newest of epoch"));
    let without = findings(&[]);
    assert!(of(&without, "folder")["says"].as_str().unwrap().contains("--state"));
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error() {
    let room = Room::new();
    let unusable = |state: &str, what: &str| {
        let ran = run(["doctor", "--state", state]).exits(5, &[]);
        let line = ran.lines().into_iter().find(|line| line.starts_with("error")).unwrap_or_else(|| panic!("{ran:?}"));
        assert!(line.contains(what) && line.contains(state), "{line}");
        assert_eq!(of(&findings(&["--state", state]), "folder")["level"], "error");
    };
    unusable(&room.file("file", "precious"), "not a folder");
    fs::create_dir(room.path("mine")).unwrap();
    room.file("mine/thesis.txt", "precious");
    unusable(&room.at("mine"), "");
    fs::create_dir(room.path("damaged")).unwrap();
    room.file("damaged/generation-1.snap", [0x5a; 70_000]);
    unusable(&room.at("damaged"), "generation-1.snap");
    // Nobody can make a file there, not even root.
    unusable("/proc/snapring", "cannot");
}

#[test]
fn narrow_limits_are_warnings_and_no_failure() {
    let room = Room::new();
    let (binary, state) = (env!("CARGO_BIN_EXE_snapring"), room.at("S"));
    let ran = shell(&format!("ulimit -n 100; ulimit -f 40; exec {binary} doctor --state {state} --json"));
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stdout));
    let object: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let found = object["findings"].as_array().unwrap();
    assert!(["open files", "file size"].iter().all(|about| of(found, about)["level"] == "warning"), "{object}");
}
