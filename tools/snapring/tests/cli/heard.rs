//! What a job says of itself: failures that it goes on from, checkpoints that it gave up, and numbers at its end.

use crate::plain::{check_routes, route_totals, some_flights};
use crate::support::{Room, run, shell};
use serde_json::Value;

fn object(stdout: &str) -> Value {
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

#[test]
fn a_failure_that_comes_again_ends_the_job_after_so_many_restarts() {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 50) + "517,late,EWR,IAH\n");
    let more = ["--restarts", "2", "--checkpoint-interval", "1h"];
    let ran = run(room.stateful("routes", &[&input], &more))
        .exits(1, &["in 100.0ms: ", "in 200.0ms: ", "f.csv:52", "3 attempts in a row failed"]);
    assert_eq!(ran.stderr.matches("warning: the job failed, and goes on").count(), 2, "{ran:?}");
    let never = Room::new();
    let input = never.file("f.csv", some_flights(0, 50) + "517,late,EWR,IAH\n");
    let ran = run(never.stateful("routes", &[&input], &["--restarts", "0"])).exits(1, &["f.csv:52"]);
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
}

#[test]
fn checkpoints_that_are_given_up_are_told_while_the_job_runs_on() {
    let room = Room::new();
    let (binary, state) = (env!("CARGO_BIN_EXE_snapring"), room.at("S"));
    let job = "run keyed-count --events 2000000 --keys 1000000 --rate 1500000 --checkpoint-interval 50ms --json";
    let ran = shell(&format!("ulimit -f 12288; exec {binary} {job} --state {state}"));
    let said = String::from_utf8(ran.stderr).unwrap();
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("warning: checkpoint ")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("no space for")), "{said}");
    let mut epochs: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').nth(2)).collect();
    let all = epochs.len();
    epochs.dedup();
    assert_eq!(epochs.len(), all, "each once: {said}");
}

#[test]
fn the_summary_tells_of_restarts_and_warnings() {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 300));
    let summary = object(&run(room.stateful("routes", &[&input], &["--json", "--restarts", "3"])).ok().stdout);
    assert_eq!((&summary["restarts"], &summary["given_up"]["checkpoints"]), (&0.into(), &0.into()));
    assert!(summary["given_up"]["last_reason"].is_null() && summary["warnings"].is_array(), "{summary}");
    assert!(summary["metrics"].is_null(), "nobody asked");
}

#[test]
fn metrics_are_told_if_asked_for() {
    let csv = some_flights(0, 2000);
    let room = Room::new();
    let input = room.file("f.csv", &csv);
    let more = ["--metrics", "--parallelism", "2", "--rate", "4000", "--checkpoint-interval", "50ms"];
    let ran = run(room.stateful("routes", &[&input], &more)).ok();
    for what in ["flights/0", "totals/1", "flights/0 -> totals/1", "until durable", "written", "busy", "idle"] {
        assert!(ran.stderr.contains(what), "{what}: {ran:?}");
    }
    assert_eq!(ran.stdout, "");
    let json = run(["run", "routes", "--input", &input, "--rate", "4000", "--json", "--metrics"]).ok();
    assert!(!json.stderr.contains("flights/0"), "once is enough: {json:?}");
    let metrics = object(&json.stdout)["metrics"].clone();
    let of = |name: &str, what: &str| -> u64 {
        let tasks = metrics["tasks"].as_array().unwrap().iter().filter(|task| task["name"] == name);
        tasks.map(|task| task[what].as_u64().unwrap()).sum()
    };
    assert_eq!((of("flights", "records"), of("totals", "records")), (2000, 2000));
    let passed: u64 = metrics["channels"].as_array().unwrap().iter().map(|one| one["records"].as_u64().unwrap()).sum();
    assert_eq!(passed, 2000);
    assert!(metrics["checkpoint_phases"]["durable_ns"].is_null(), "there were none: {metrics}");
    let shares = &metrics["tasks"][0]["shares"];
    let sum: f64 =
        ["busy", "blocked_by_output", "blocked_by_alignment", "idle"].iter().map(|s| shares[s].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{shares}");
    check_routes(&room.committed(), &route_totals(&csv));
}

#[test]
fn results_do_not_depend_on_how_workers_wait() {
    let csv = some_flights(0, 500);
    let room = Room::new();
    let input = room.file("f.csv", &csv);
    for idle in ["spin", "yield", "park"] {
        let ran = run(["run", "routes", "--input", &input, "--idle", idle]).ok();
        check_routes(&ran.lines(), &route_totals(&csv));
    }
}
