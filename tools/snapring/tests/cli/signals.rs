//! SIGINT and SIGTERM: a last checkpoint, the code that says so, and nothing lost; and readers that go away.

use crate::plain::{check_routes, route_totals, some_flights};
use crate::support::{Ran, Room, end, run, shell, snapring, wait_for};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Starts a paced job with a long interval, waits until it runs, and sends it a signal.
fn stopped(room: &Room, input: &str, signal: Signal) -> Ran {
    let args = room.stateful("routes", &[input], &["--rate", "1000", "--checkpoint-interval", "1h", "--json"]);
    let child = snapring(args).spawn().unwrap();
    wait_for(|| room.path("O").exists());
    std::thread::sleep(Duration::from_millis(400));
    send(&child, signal);
    end(child)
}

#[test]
fn the_first_takes_a_last_checkpoint() {
    let csv = some_flights(0, 3000);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let room = Room::new();
        let input = room.file("f.csv", &csv);
        let said = ["takes a last checkpoint", "a second signal leaves at once", "stopped after checkpoint 1"];
        let ran = stopped(&room, &input, signal).exits(code, &said);
        let summary: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one object");
        let read = summary["records"].as_u64().unwrap();
        assert!((1..3000).contains(&read), "{summary}");
        // The checkpoint covers all that was read when it was asked for, and has been committed.
        let committed = room.committed().len() as u64;
        assert!(committed > 0 && committed <= read, "{committed} of {read}");
        run(room.stateful("routes", &[&input], &[])).exits(0, &["going on from epoch 1"]);
        check_routes(&room.committed(), &route_totals(&csv));
    }
}

#[test]
fn without_checkpoints_it_stops_where_it_stands() {
    let room = Room::new();
    let results = fs::File::create(room.path("results")).unwrap();
    let child = snapring(["run", "routes", "--rate", "100"]).stdout(results).spawn().unwrap();
    let lines = || fs::read_to_string(room.path("results")).unwrap().lines().count();
    wait_for(|| lines() > 0);
    send(&child, Signal::INT);
    end(child).exits(130, &["without checkpoints"]);
    assert!(lines() < 27_004);
}

/// As `timeout` sends them: one to the process, one to its group.
#[test]
fn two_that_come_together_are_one() {
    let room = Room::new();
    let child =
        snapring(room.stateful("keyed-count", &[], &["--events", "100000000000", "--checkpoint-interval", "1h"]));
    let child = { child }.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    (0..2).for_each(|_| send(&child, Signal::TERM));
    end(child).exits(143, &["takes a last checkpoint", "stopped after checkpoint 1"]);
}

/// Sends a second signal to a process that has not ended after the first.
#[track_caller]
fn leaves_at_once(mut child: Child, signal: Signal, code: i32) -> Ran {
    // Two that come together are one.
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(child.try_wait().unwrap(), None, "it has nothing to wait for");
    send(&child, signal);
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(10), "it does not leave");
        std::thread::sleep(Duration::from_millis(2));
    }
    let ran = end(child);
    assert_eq!(ran.code, Some(code), "{ran:?}");
    ran
}

/// Nobody reads what the job prints, so it cannot end in order: the pipe is full, and the sink waits. With checkpoints, no
/// barrier comes behind it, and the last one is never made.
#[test]
fn the_second_leaves_at_once() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for has_state in [false, true] {
            let room = Room::new();
            let state = room.at("S");
            let more = ["--state", &state, "--checkpoint-interval", "1h"];
            let more = if has_state { &more[..] } else { &[] };
            let mut child = snapring(["run", "routes"].iter().chain(more)).spawn().unwrap();
            let pipe = child.stdout.take().unwrap();
            let waiting_bytes = || ioctl_fionread(&pipe).unwrap();
            wait_for(|| {
                let before = waiting_bytes();
                std::thread::sleep(Duration::from_millis(200));
                before > 0 && before == waiting_bytes()
            });
            send(&child, signal);
            let ran = leaves_at_once(child, signal, code);
            assert_eq!(ran.stderr.contains("takes a last checkpoint"), has_state, "{ran:?}");
        }
    }
}

/// A job that fails at its last line, again and again.
fn failing(room: &Room, restarts: &str) -> Child {
    let input = room.file("f.csv", some_flights(0, 200) + "no flight\n");
    let more = ["--restarts", restarts, "--rate", "1000", "--checkpoint-interval", "1h"];
    snapring(room.stateful("routes", &[&input], &more)).spawn().unwrap()
}

#[test]
fn the_second_leaves_at_once_between_two_attempts_too() {
    let room = Room::new();
    let mut child = failing(&room, "20");
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    // A wait that is longer than this test.
    let is_long = |line: io::Result<String>| line.unwrap().contains("goes on from its newest checkpoint in 1.6s");
    assert!(said.any(is_long));
    send(&child, Signal::INT);
    leaves_at_once(child, Signal::INT, 130);
}

#[test]
fn the_first_ends_a_job_that_fails_again_and_again() {
    let room = Room::new();
    let child = failing(&room, "1000");
    std::thread::sleep(Duration::from_millis(1200));
    let began = Instant::now();
    send(&child, Signal::TERM);
    let ran = end(child);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}: {ran:?}", began.elapsed());
    // Either the next attempt came to the checkpoint first, or to the failure.
    assert!([Some(143), Some(1)].contains(&ran.code), "{ran:?}");
    assert!(ran.stderr.contains("SIGTERM: takes a last checkpoint"), "{ran:?}");
}

#[test]
fn a_last_checkpoint_that_finds_no_room_is_an_error_that_says_so() {
    let room = Room::new();
    let state = room.at("S");
    let binary = env!("CARGO_BIN_EXE_snapring");
    let command = "run keyed-count --events 1000000000 --keys 30000000 --checkpoint-interval 20ms --json";
    let script = format!("ulimit -f 262144; exec {binary} {command} --state {state}");
    let mut shell = std::process::Command::new("sh");
    let child = shell.args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(|| room.has_checkpoint());
    std::thread::sleep(Duration::from_millis(1500));
    send(&child, Signal::INT);
    let ran = end(child).exits(
        1,
        &[
            "was given up, the job runs on",
            "the last checkpoint could not be made",
            "no space for",
            "to go on from epoch",
        ],
    );
    assert_eq!(ran.stdout, "", "JSON or nothing");
    assert!(ran.stderr.lines().count() < 20, "nobody reads that much: {ran:?}");
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let binary = env!("CARGO_BIN_EXE_snapring");
    for command in ["run routes", "run keyed-count --events 1000000 --keys 10"] {
        let script = format!("{{ {binary} {command}; echo code $? >&2; }} | head -n 3");
        let ran = shell(&script);
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(String::from_utf8(ran.stdout).unwrap().lines().count(), 3);
        assert!(stderr.contains("code 0") && !stderr.contains("error") && !stderr.contains("panic"), "{stderr}");
    }
}
