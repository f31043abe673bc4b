//! SIGINT and SIGTERM: a last checkpoint, the code that says so, and nothing lost; and readers that go away.

use crate::plain::{check_routes, route_totals, some_flights};
use crate::support::{Ran, Room, end, run, shell, snapring, wait_for};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Child;
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
        let ran = stopped(&room, &input, signal).exits(code, &["stopped after checkpoint 1"]);
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

/// Nobody reads what the job prints, so it cannot end in order: the pipe is full, and the sink waits.
#[test]
fn the_second_leaves_at_once() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut child = snapring(["run", "routes"]).spawn().unwrap();
        let pipe = child.stdout.take().unwrap();
        let waiting_bytes = || ioctl_fionread(&pipe).unwrap();
        wait_for(|| {
            let before = waiting_bytes();
            std::thread::sleep(Duration::from_millis(200));
            before > 0 && before == waiting_bytes()
        });
        send(&child, signal);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(child.try_wait().unwrap(), None, "it waits for its sink");
        send(&child, signal);
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_secs(2), "it does not leave");
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(end(child).code, Some(code));
    }
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
