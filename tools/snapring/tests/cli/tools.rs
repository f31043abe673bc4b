//! The rest: lists, graphs, summaries, help.

use crate::plain::some_flights;
use crate::support::{Room, end, run, snapring};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::process::Stdio;

fn object(stdout: &str) -> Value {
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

#[test]
fn jobs_lists_the_jobs() {
    let text = run(["jobs"]).ok().stdout;
    let listed = object(&run(["jobs", "--json"]).ok().stdout);
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["wordcount", "routes", "keyed-count", "transfers", "components", "reachability", "tokens"]);
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
    assert_eq!(listed[1]["options"].to_string(), r#"["--input","--bad-lines"]"#);
    assert_eq!(listed[2]["options"].to_string(), r#"["--keys","--events","--seed"]"#);
    assert_eq!(listed[3]["options"].to_string(), r#"["--accounts","--amount","--seed","--transfers"]"#);
    assert_eq!(listed[6]["options"].to_string(), r#"["--tokens","--operators","--laps"]"#);
}

#[test]
fn a_graph_is_drawn_and_not_run() {
    let room = Room::new();
    let args = room.stateful("routes", &[], &["--graph"]);
    let text = run(&args).ok().stdout;
    assert!(
        ["dataflow routes", "flights", "totals", "lines", "by key"].iter().all(|what| text.contains(what)),
        "{text}"
    );
    let graph = object(&run(args.iter().map(String::as_str).chain(["--json"])).ok().stdout);
    assert_eq!(graph["edges"][0]["route"], "key");
    assert_eq!(
        (graph["edges"][0]["name"].as_str(), graph["components"].to_string()),
        (Some("flights->totals"), "[]".into())
    );
    let operators = graph["chains"][1]["operators"].as_array().unwrap();
    assert!(operators.iter().any(|operator| operator["name"] == "totals" && operator["keeps"] == "state"), "{graph}");
    assert!(!room.path("S").exists() && !room.path("O").exists());
}

#[test]
fn a_loop_is_shown_in_words_in_dot_and_in_json() {
    let text = run(["run", "transfers", "--graph"]).ok().stdout;
    for part in ["forward back to chain transfers", "loop 1: transfers, accounts", "is entered by kicks->transfers"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    assert_eq!(run(["run", "transfers", "--graph=words"]).ok().stdout, text);
    let dot = run(["run", "--graph=dot", "tokens", "--operators", "1"]).ok().stdout;
    assert!(
        dot.starts_with("digraph \"tokens\" {") && dot.contains("c1 -> c1") && dot.contains("style=dashed"),
        "{dot}"
    );
    let graph = object(&run(["run", "tokens", "--operators=3", "--graph", "--json"]).ok().stdout);
    let found = &graph["components"][0];
    assert_eq!(found["chains"].to_string(), r#"["operator-1","operator-2","operator-3"]"#);
    assert_eq!(found["back"].to_string(), r#"["feedback operator-1"]"#);
    let back = graph["edges"].as_array().unwrap().iter().find(|edge| edge["back"] == true).unwrap();
    assert_eq!((back["from"].as_str(), back["to"].as_str()), (Some("operator-3"), Some("operator-1")));
}

#[test]
fn the_summary_counts() {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 1000));
    let paced = ["--json", "--rate", "5000", "--checkpoint-interval", "20ms"];
    let ran = run(room.stateful("routes", &[&input], &paced)).ok();
    let summary = object(&ran.stdout);
    assert_eq!(summary["records"], 1000);
    let (seconds, rate) = (summary["seconds"].as_f64().unwrap(), summary["records_per_second"].as_f64().unwrap());
    assert!(seconds >= 0.19, "it is paced: {summary}");
    assert!((rate * seconds - 1000.0).abs() < 1.0, "{summary}");
    assert!(summary["epochs"].as_u64() > Some(1) && summary["bytes"].as_u64() > Some(0), "{summary}");
    let first_ns = summary["start_to_first_record_ns"].as_u64().unwrap();
    assert!(first_ns > 0 && (first_ns as f64) < (seconds + 1.0) * 1e9, "{summary}");
    assert!(ran.stderr.contains("routes: 1,000 records"), "{ran:?}");
}

#[test]
fn json_without_output_prints_the_summary_alone() {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 100));
    let summary = object(&run(["run", "routes", "--input", &input, "--json"]).ok().stdout);
    assert_eq!((&summary["records"], &summary["epochs"]), (&Value::from(100), &Value::from(0)));
    let failed = run(["run", "routes", "--input", "/no/such/file", "--json"]).exits(5, &["/no/such/file"]);
    assert_eq!(failed.stdout, "", "JSON or nothing");
}

#[test]
fn nothing_is_drawn_where_nobody_looks() {
    let ran = run(["run", "routes", "--json", "--rate", "50000"]).ok();
    assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains('\r'), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
}

/// Both ends of a terminal of one line: ours, and the program's.
fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("the system has terminals");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it is ours to give");
    let name = ptsname(&ours, Vec::new()).expect("it has a name");
    tcsetwinsize(&ours, Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).expect("it has a size");
    let path = name.to_str().expect("a plain name");
    (ours.into(), File::options().read(true).write(true).open(path).expect("it can be opened"))
}

#[test]
fn a_terminal_gets_a_progress_bar() {
    let room = Room::new();
    let (mut ours, theirs) = terminal();
    let paced = ["--rate", "20000", "--checkpoint-interval", "100ms"];
    let mut command = snapring(room.stateful("routes", &[], &paced));
    let child = command.env("TERM", "xterm").env("NO_COLOR", "1").stderr(Stdio::from(theirs)).spawn().unwrap();
    drop(command); // it holds the program's end open
    let shown = std::thread::spawn(move || {
        let mut shown = Vec::new();
        // A terminal that nobody holds open any more is an error to read, not an end.
        let _ = ours.read_to_end(&mut shown);
        String::from_utf8(shown).expect("UTF-8")
    });
    end(child).ok();
    let shown = shown.join().unwrap();
    let bar = shown.rsplit('\r').find(|line| line.contains("  checkpoint ")).unwrap_or_else(|| panic!("{shown}"));
    assert!(["records", "/s", "epoch", "ms, ", "KiB"].iter().all(|what| bar.contains(what)), "{bar}");
    assert!(!shown.contains("\u{1b}[3"), "no colours: {shown:?}");
    assert!(shown.trim_end().lines().last().is_some_and(|line| line.contains("routes: 27,004 records")), "{shown}");
}

#[test]
fn help_version_completions_and_the_manual() {
    let help = run(["--help"]).ok().stdout;
    assert!(["run", "inspect", "jobs", "Exit codes"].iter().all(|what| help.contains(what)), "{help}");
    assert!(run(["--version"]).ok().stdout.starts_with("snapring "));
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(["completions", shell]).ok().stdout.contains("checkpoint-interval"), "{shell}");
        assert!(run(["completions", shell]).ok().stdout.contains("doctor"), "{shell}");
    }
    let manual = run(["man"]).ok().stdout;
    assert!(manual.contains(".TH snapring"), "{manual}");
    let manual = run(["man", "run"]).ok().stdout;
    assert!(manual.contains(".TH snapring-run") && manual.contains("keep"), "{manual}");
    assert!(["idle", "restarts", "metrics", "park"].iter().all(|what| manual.contains(what)), "{manual}");
    assert!(run(["man", "doctor"]).ok().stdout.contains(".TH snapring-doctor"));
    run(["man", "walk"]).exits(2, &["walk"]);
}
