//! What the jobs print and write, against a plain computation.

use crate::plain::{check_routes, flights, route_totals, some_flights, some_verses, sorted, verses, word_counts};
use crate::support::{Room, run};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::io::Write;

#[test]
fn wordcount_counts_the_bundled_text() {
    let ran = run(["run", "wordcount"]).ok();
    assert_eq!(sorted(ran.lines()), word_counts(&verses()));
    assert!(ran.stderr.contains("wordcount: 2,746 records"), "{ran:?}");
}

#[test]
fn routes_follows_the_bundled_flights() {
    let ran = run(["run", "routes"]).ok();
    let totals = route_totals(&flights());
    assert_eq!((ran.lines().len(), totals.len()), (27_004, 186));
    check_routes(&ran.lines(), &totals);
}

#[test]
fn committed_files_hold_what_standard_output_would() {
    for parallelism in ["1", "3"] {
        let room = Room::new();
        run(room.stateful("routes", &[], &["--parallelism", parallelism])).ok();
        check_routes(&room.committed(), &route_totals(&flights()));
        let room = Room::new();
        run(room.stateful("wordcount", &[], &["--parallelism", parallelism])).ok();
        assert_eq!(sorted(room.committed()), word_counts(&verses()));
    }
}

#[test]
fn several_inputs_are_one() {
    let room = Room::new();
    let (first, second) = (some_flights(0, 700), some_flights(700, 1500));
    let (a, b) = (room.file("a.csv", &first), room.file("b.csv", &second));
    let ran = run(["run", "routes", "--input", &a, "--input", &b]).ok();
    check_routes(&ran.lines(), &route_totals(&some_flights(0, 1500)));
}

#[test]
fn gzip_is_known_by_its_first_bytes() {
    let room = Room::new();
    let text = some_verses(300);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let packed = room.file("not-called-gz.txt", gzip.finish().unwrap());
    let plain = room.file("plain.gz", &text);
    for input in [packed, plain] {
        assert_eq!(sorted(run(["run", "wordcount", "--input", &input]).ok().lines()), word_counts(&text));
    }
}

#[test]
fn any_bytes_are_text() {
    let room = Room::new();
    let input = room.file("bytes", b"One\0tWo\xff\xfeone\r\n\r\n\xc3\xa9two,3\"3 one");
    let ran = run(["run", "wordcount", "--input", &input]).ok();
    assert_eq!(sorted(ran.lines()), ["3,2", "one,3", "two,2"]);
    let nothing = room.file("nothing", "");
    assert_eq!(run(["run", "wordcount", "--input", &nothing]).ok().stdout, "");
}

#[test]
fn columns_are_found_by_the_header() {
    let room = Room::new();
    let input = room.file("f.csv", "dest,dep_delay,extra,dep_time,origin\nB,5,x,900,A\nB,NA,x,NA,A\nB,-7,x,901,A\n");
    let ran = run(["run", "routes", "--input", &input]).ok();
    assert_eq!(ran.lines(), ["A,B,1,0,5", "A,B,2,1,5", "A,B,3,1,-2"]);
}

#[test]
fn json_lines_have_the_fields_names() {
    let room = Room::new();
    let input = room.file("t.txt", "a b a");
    let mut lines = run(["run", "wordcount", "--input", &input, "--format", "jsonl"]).ok().lines();
    lines.sort_unstable();
    assert_eq!(lines, [r#"{"word":"a","count":2}"#, r#"{"word":"b","count":1}"#]);
    run(room.stateful("wordcount", &[&input], &["--format", "jsonl"])).ok();
    assert_eq!(sorted(room.committed()), lines);
}

#[test]
fn keyed_count_counts_each_event_once() {
    let args = ["run", "keyed-count", "--keys", "7", "--events", "5000", "--parallelism", "2", "--seed"];
    let counts = |seed| {
        let mut last = BTreeMap::<u64, u64>::new();
        for line in run(args.into_iter().chain([seed])).ok().lines() {
            let (key, count) = line.split_once(',').expect("two cells");
            let (key, count): (u64, u64) = (key.parse().expect("a key"), count.parse().expect("a count"));
            let before = last.insert(key, count).unwrap_or(0);
            assert_eq!(count, before + 1, "counts of a key come in order");
        }
        assert!(last.keys().copied().eq(0..7), "{last:?}");
        assert_eq!(last.values().sum::<u64>(), 5000);
        last
    };
    assert_eq!(counts("3"), counts("3"));
    assert_ne!(counts("3"), counts("4"));
}

#[test]
fn a_state_without_output_prints_results() {
    let room = Room::new();
    let input = room.file("f.csv", some_flights(0, 200));
    let args = ["run", "routes", "--input", &input, "--state", &room.at("S")];
    check_routes(&run(args).ok().lines(), &route_totals(&some_flights(0, 200)));
    let again = run(args).exits(0, &["nothing is left to do"]);
    assert_eq!(again.stdout, "");
}
