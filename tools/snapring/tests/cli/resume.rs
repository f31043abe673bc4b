//! Going on from a state folder.

use crate::plain::{check_routes, route_totals, some_flights, some_verses, sorted, word_counts};
use crate::support::{Ran, Room, committed, copy_dir, end, run, snapring, wait_for};
use std::time::Duration;

/// Runs a paced job until it has committed something, and kills it then. The job is not at its end.
fn killed_midway(room: &Room, args: &[&str]) {
    let mut child = snapring(args).spawn().unwrap();
    wait_for(|| !room.committed().is_empty());
    child.kill().unwrap();
    assert_eq!(end(child).signal, Some(9));
}

fn routes_args<'a>(room: &Room, input: &'a str, more: &[&'a str]) -> Vec<String> {
    room.stateful("routes", &[input], &[&["--checkpoint-interval", "20ms"], more].concat())
}

fn refs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

#[track_caller]
fn resumed(ran: Ran) {
    ran.exits(0, &["going on from epoch"]);
}

#[test]
fn at_another_parallelism() {
    let csv = some_flights(0, 3000);
    for (first, second, third) in [("1", "4", "2"), ("4", "1", "3")] {
        let room = Room::new();
        let input = room.file("f.csv", &csv);
        let paced = routes_args(&room, &input, &["--rate", "2000", "--parallelism", first]);
        killed_midway(&room, &refs(&paced));
        let before = room.committed().len();
        // Once more midway, then to the end.
        let paced = routes_args(&room, &input, &["--rate", "2000", "--parallelism", second]);
        let mut child = snapring(&paced).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        child.kill().unwrap();
        end(child);
        assert!(room.committed().len() >= before);
        resumed(run(routes_args(&room, &input, &["--parallelism", third])));
        check_routes(&room.committed(), &route_totals(&csv));
    }
}

#[test]
fn wordcount_at_another_parallelism() {
    let text = some_verses(1200);
    for (first, second) in [("1", "4"), ("4", "1")] {
        let room = Room::new();
        let input = room.file("t.txt", &text);
        let paced = ["--rate", "500", "--checkpoint-interval", "20ms", "--parallelism", first];
        let mut child = snapring(room.stateful("wordcount", &[&input], &paced)).spawn().unwrap();
        wait_for(|| room.has_checkpoint());
        child.kill().unwrap();
        assert_eq!(end(child).signal, Some(9));
        resumed(run(room.stateful("wordcount", &[&input], &["--parallelism", second])));
        assert_eq!(sorted(room.committed()), word_counts(&text));
    }
}

#[test]
fn twice_from_the_same_checkpoint() {
    let csv = some_flights(0, 3000);
    let room = Room::new();
    let input = room.file("f.csv", &csv);
    let paced = routes_args(&room, &input, &["--rate", "2000"]);
    killed_midway(&room, &refs(&paced));
    copy_dir(&room.path("S"), &room.path("S2"));
    copy_dir(&room.path("O"), &room.path("O2"));
    resumed(run(routes_args(&room, &input, &[])));
    let (state, output) = (room.at("S2"), room.at("O2"));
    resumed(run(["run", "routes", "--input", &input, "--state", &state, "--output", &output, "--parallelism", "3"]));
    check_routes(&room.committed(), &route_totals(&csv));
    assert_eq!(sorted(room.committed()), sorted(committed(&room.path("O2"))));
}

#[test]
fn a_finished_job_has_nothing_left_to_do() {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 500));
    run(routes_args(&room, &input, &[])).ok();
    let before = room.committed();
    for parallelism in ["1", "4"] {
        let again = run(routes_args(&room, &input, &["--parallelism", parallelism, "--json"]));
        let again = again.exits(0, &["nothing is left to do"]);
        let summary: serde_json::Value = serde_json::from_str(&again.stdout).expect("one object");
        assert_eq!(summary["finished_before"], true);
        assert_eq!(summary["records"], 0);
    }
    assert_eq!(room.committed(), before);
}

#[test]
fn with_and_without_output_are_two_jobs() {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 500));
    let state = room.at("S");
    run(["run", "routes", "--input", &input, "--state", &state]).ok();
    run(routes_args(&room, &input, &[])).exits(4, &["lines"]);
}

#[test]
fn by_a_rule_for_a_name_that_has_been_applied_or_does_not_fit() {
    let csv = some_flights(0, 3000);
    let room = Room::new();
    let input = room.file("f.csv", &csv);
    killed_midway(&room, &refs(&routes_args(&room, &input, &["--rate", "2000"])));
    let operator = |names: &str| run(routes_args(&room, &input, &["--renamed", names]));
    operator("nobody=other").exits(4, &["`nobody` cannot go on as `other`: the dataflow has no `other`"]);
    for wrong in ["routes", "=routes", "routes="] {
        operator(wrong).exits(2, &["write OLD=NEW"]);
    }
    // The snapshot has the new name already.
    resumed(operator("flights-before=flights"));
    check_routes(&room.committed(), &route_totals(&csv));
}
