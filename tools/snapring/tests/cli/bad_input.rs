//! Input and folders that are not what they should be: an exit code that says which kind, and a message that says where.

use crate::plain::some_flights;
use crate::support::{Room, run, shell};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;

const HEADER: &str = "dep_time,dep_delay,origin,dest\n";

#[test]
fn a_missing_file_is_named() {
    let room = Room::new();
    let path = room.at("no-such-file");
    for job in ["wordcount", "routes"] {
        run(["run", job, "--input", &path]).exits(5, &["no-such-file", "open"]);
    }
    let dir = room.dir.path().to_str().unwrap();
    run(["run", "wordcount", "--input", dir]).exits(5, &[dir, "folder"]);
    let pipe = room.at("pipe");
    assert!(shell(&format!("mkfifo {pipe}")).status.success());
    run(["run", "wordcount", "--input", &pipe]).exits(5, &[&pipe, "cannot be read again"]);
}

#[test]
fn a_wrong_header_says_what_is_missing() {
    let room = Room::new();
    let input = room.file("f.csv", "dep_time,dep_delay,from,dest\n517,2,EWR,IAH\n");
    run(["run", "routes", "--input", &input]).exits(5, &["f.csv", "header", "origin"]);
    let nothing = room.file("nothing.csv", "");
    run(["run", "routes", "--input", &nothing]).exits(5, &["nothing.csv", "header"]);
}

#[test]
fn a_malformed_line_is_named() {
    let room = Room::new();
    let rows = [
        ("517,late,EWR,IAH", "late"),
        ("517,9223372036854775807,EWR,IAH", "9223372036854775807"),
        ("517,2,EWR", "3"),
        ("517,2,EWR,IAH,x", "5"),
    ];
    for (row, what) in rows {
        let input = room.file("f.csv", format!("{HEADER}517,2,EWR,IAH\n{row}\n517,2,EWR,IAH\n"));
        run(["run", "routes", "--input", &input])
            .exits(1, &["f.csv:3", what, "operator `flights`, task 0, epoch 1, record 2"]);
        run(room.stateful("routes", &[&input], &[])).exits(1, &["f.csv:3"]);
        fs::remove_dir_all(room.path("S")).unwrap();
        fs::remove_dir_all(room.path("O")).unwrap();
    }
}

#[test]
fn bad_lines_are_skipped_if_asked_for() {
    let room = Room::new();
    let good = "517,2,EWR,IAH\n";
    let bad = ["517,late,EWR,IAH\n", "517,2,EWR\n", "517,\"2,EWR,IAH\n", "517,2,EWR,IAH,x\n"];
    let text = bad.iter().fold(HEADER.to_owned(), |text, bad| text + good + bad) + good;
    let input = room.file("f.csv", text);
    let ran = run(["run", "routes", "--input", &input, "--bad-lines", "skip"]).ok();
    assert_eq!(ran.lines().last().map(String::as_str), Some("EWR,IAH,5,0,10"));
    assert!(ran.stderr.contains(&format!("4 bad lines skipped; the first: {input}:3: ")), "{ran:?}");
    run(["run", "routes", "--input", &input, "--bad-lines", "fail"]).exits(1, &["f.csv:3"]);
    let ran = run(room.stateful("routes", &[&input], &["--bad-lines", "skip", "--json"])).ok();
    let object: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&object["records"], &object["bad_lines"]["skipped"]), (&5.into(), &4.into()));
    let first = object["bad_lines"]["first"].as_array().unwrap();
    let lines: Vec<_> =
        first.iter().map(|line| (line["line"].as_u64().unwrap(), line["text"].as_str().unwrap())).collect();
    assert_eq!(lines, [3, 5, 7, 9].into_iter().zip(bad.map(str::trim_end)).collect::<Vec<_>>());
    assert_eq!(first[1]["file"], input.as_str());
    run(["run", "wordcount", "--bad-lines", "skip"]).exits(2, &["`wordcount` takes no --bad-lines"]);
    run(["run", "routes", "--bad-lines", "maybe"]).exits(2, &["maybe", "skip"]);
}

/// However often the job is killed: each bad line is counted once, and no good one is missing.
#[test]
fn skipped_lines_are_counted_once_whatever_happens() {
    let room = Room::new();
    let good = some_flights(0, 3000);
    let (header, rows) = good.split_once('\n').unwrap();
    let mixed: String = rows.lines().enumerate().fold(format!("{header}\n"), |text, (at, row)| {
        text + row + if at % 100 == 50 { "\nno flight\n" } else { "\n" }
    });
    let input = room.file("f.csv", mixed);
    let more = ["--bad-lines", "skip", "--checkpoint-interval", "20ms", "--durability", "process-crash"];
    let paced = [&more[..], &["--rate", "3000"]].concat();
    for after_ms in [250, 300, 350] {
        let mut killed = crate::support::snapring(room.stateful("routes", &[&input], &paced)).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(after_ms));
        killed.kill().unwrap();
        killed.wait().unwrap();
    }
    let ran = run(room.stateful("routes", &[&input], &more)).ok();
    assert!(ran.stderr.contains(&format!("30 bad lines skipped; the first: {input}:53: ")), "{ran:?}");
    crate::plain::check_routes(&room.committed(), &crate::plain::route_totals(&good));
}

#[test]
fn a_truncated_gzip_is_named() {
    let room = Room::new();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(some_flights(0, 2000).as_bytes()).unwrap();
    let mut bytes = gzip.finish().unwrap();
    bytes.truncate(bytes.len() / 2);
    let input = room.file("f.csv.gz", bytes);
    run(["run", "routes", "--input", &input]).exits(5, &["f.csv.gz", "gzip", "truncated"]);
}

#[test]
fn a_file_where_a_folder_should_be_is_named() {
    let room = Room::new();
    let input = room.file("t.txt", "some text");
    let file = room.file("file", "precious");
    run(["run", "wordcount", "--input", &input, "--state", &file]).exits(5, &[&file]);
    let state = room.at("S");
    run(["run", "wordcount", "--input", &input, "--state", &state, "--output", &file]).exits(5, &[&file]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let room = Room::new();
    let input = room.file("t.txt", "some text");
    fs::create_dir(room.path("S")).unwrap();
    let thesis = room.file("S/thesis.txt", "precious");
    run(room.stateful("wordcount", &[&input], &[])).exits(5, &[&room.at("S"), "thesis.txt"]);
    assert_eq!(fs::read_to_string(thesis).unwrap(), "precious");
}

#[test]
fn an_output_folder_belongs_to_one_state() {
    let room = Room::new();
    let input = room.file("t.txt", "some text");
    run(room.stateful("wordcount", &[&input], &[])).ok();
    let before = room.committed();
    let (other, output) = (room.at("S2"), room.at("O"));
    run(["run", "wordcount", "--input", &input, "--state", &other, "--output", &output]).exits(5, &[&output]);
    assert_eq!(room.committed(), before);
}

#[test]
fn a_state_of_another_job_does_not_fit() {
    let room = Room::new();
    run(room.stateful("wordcount", &[], &[])).ok();
    let state = room.at("S");
    run(["run", "routes", "--state", &state]).exits(4, &["wordcount", "routes"]);
}

#[test]
fn an_input_that_has_changed_does_not_fit() {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 300));
    run(room.stateful("routes", &[&input], &[])).ok();
    let before = room.committed();
    room.file("f.csv", some_flights(0, 301));
    run(room.stateful("routes", &[&input], &[])).exits(4, &["f.csv", "changed"]);
    let other = room.file("g.csv", some_flights(0, 300));
    run(room.stateful("routes", &[&other], &[])).exits(4, &[".csv"]);
    assert_eq!(room.committed(), before);
}

#[test]
fn other_generated_events_do_not_fit() {
    let room = Room::new();
    let args = |keys, seed| room.stateful("keyed-count", &[], &["--events", "100", "--keys", keys, "--seed", seed]);
    run(args("5", "1")).ok();
    run(args("5", "1")).ok();
    run(args("5", "2")).exits(4, &["seed 2"]);
    run(args("6", "1")).exits(4, &["keys 6"]);
}

#[test]
fn a_state_in_use_is_refused() {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 2000));
    let mut first = crate::support::snapring(room.stateful("routes", &[&input], &["--rate", "100"])).spawn().unwrap();
    while !room.path("O").exists() {
        assert_eq!(first.try_wait().unwrap(), None);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    run(room.stateful("routes", &[&input], &[])).exits(5, &["in use"]);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_damaged_state_is_corrupt() {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 300));
    run(room.stateful("routes", &[&input], &[])).ok();
    let before = room.committed();
    let store = fs::read_dir(room.path("S")).unwrap().map(|entry| entry.unwrap().path());
    let store = store.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&store).unwrap();
    // All that is not zero, behind the head: whatever holds the newest epoch is among it.
    bytes.iter_mut().skip(16 << 10).filter(|byte| **byte != 0).for_each(|byte| *byte ^= 0x10);
    fs::write(&store, bytes).unwrap();
    run(room.stateful("routes", &[&input], &[])).exits(3, &["corrupt"]);
    let state = room.at("S");
    let verified = run(["inspect", "verify", &state]);
    assert_eq!(verified.code, Some(3), "{verified:#?}");
    assert_eq!(room.committed(), before);
}

/// A write beyond the limit of a file's size is an error of the job, not the end of the process by SIGXFSZ.
#[test]
fn a_file_that_may_not_grow_is_an_error() {
    let room = Room::new();
    let (state, output) = (room.at("S"), room.at("O"));
    let ran = shell(&format!(
        "ulimit -f 100; exec {} run routes --state {state} --output {output}",
        env!("CARGO_BIN_EXE_snapring")
    ));
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(5), "{stderr}");
    assert!(stderr.contains("error: "), "{stderr}");
}
