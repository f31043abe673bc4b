//! Flags that are unknown, not built, or do not go together: exit code 2, and nothing is touched.

use crate::support::{Room, run};

#[track_caller]
fn refused(args: &[&str], said: &[&str]) {
    let ran = run(args).exits(2, said);
    assert_eq!(ran.stdout, "", "{args:?}");
}

#[test]
fn what_is_unknown_is_refused() {
    refused(&["walk"], &["walk"]);
    refused(&["run"], &["<JOB>"]);
    refused(&["run", "sessions"], &["sessions", "wordcount", "routes", "keyed-count"]);
    refused(&["run", "wordcount", "--fast"], &["--fast"]);
    refused(&["run", "wordcount", "--format", "xml"], &["xml", "csv", "jsonl"]);
    refused(&["run", "wordcount", "--durability", "never"], &["never", "power-loss"]);
    refused(&["run", "wordcount", "--graph=png"], &["png", "words, dot"]);
    refused(&["run", "wordcount", "--idle", "nap"], &["nap", "spin, yield, park"]);
    refused(&["inspect", "burn", "S"], &["burn"]);
    refused(&["doctor", "S"], &["S"]);
}

#[test]
fn what_is_not_built_is_refused() {
    refused(&["run", "wordcount", "--bad-lines=skip"], &["--bad-lines"]);
    refused(&["run", "wordcount", "--allow-dropped-state=x"], &["--allow-dropped-state"]);
    refused(&["bench", "ring"], &["bench"]);
    refused(&["inspect", "show", "S"], &["show"]);
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let room = Room::new();
    let (state, output) = (room.at("S"), room.at("O"));
    refused(&["run", "wordcount", "--output", &output], &["--state"]);
    let of_checkpoints =
        ["--checkpoint-interval=1s", "--keep=3", "--durability=power-loss", "--restarts=3", "--epoch=1"];
    for flag in of_checkpoints.into_iter().chain(["--verify", "--accept-duplicates"]) {
        refused(&["run", "wordcount", flag], &["--state", flag.split('=').next().unwrap_or(flag)]);
    }
    refused(&["run", "wordcount", "--json", "--format", "csv"], &["--output"]);
    for flag in ["--keys=5", "--events=5", "--seed=5"] {
        for job in ["wordcount", "routes"] {
            refused(&["run", job, flag], &[job, &flag[..flag.len() - 2]]);
        }
    }
    for flag in ["--accounts=5", "--amount=5", "--transfers=5", "--tokens=5", "--operators=5", "--laps=5"] {
        refused(&["run", "components", flag], &["components", &flag[..flag.len() - 2]]);
    }
    refused(&["run", "transfers", "--graph=dot", "--json"], &["--graph=dot", "--json"]);
    refused(&["run", "routes", "--state", &state, "--output", &state], &["--state", "--output", "two folders"]);
    refused(&["run", "routes", "--cores", "0,0"], &["core 0 twice"]);
    refused(&["run", "keyed-count", "--input", "x"], &["keyed-count", "--input"]);
    assert!(!room.path("S").exists() && !room.path("O").exists(), "nothing is touched");
}

#[test]
fn flags_of_protocols_go_with_their_protocol() {
    let room = Room::new();
    let (state, output) = (room.at("S"), room.at("O"));
    let with = |more: &[&str], said: &[&str]| {
        refused(&[&["run", "wordcount", "--state", &state], more].concat(), said);
    };
    with(&["--protocol", "none"], &["--protocol none", "leave out --state"]);
    with(&["--protocol", "soon"], &["soon", "aligned-then-unaligned", "stop-the-world"]);
    for protocol in snapring::Protocol::ALL.map(snapring::Protocol::name) {
        refused(&["run", "wordcount", "--protocol", protocol], &[protocol, "--state"]);
        if !["chandy-lamport", "unaligned"].contains(&protocol) {
            with(&["--protocol", protocol, "--initiators", "all"], &["--initiators", protocol]);
        }
        if protocol != "aligned-then-unaligned" {
            with(&["--protocol", protocol, "--unaligned-after", "5ms"], &["--unaligned-after", protocol]);
        }
    }
    for flag in ["--initiators=sources", "--unaligned-after=20ms"] {
        let name = flag.split('=').next().unwrap_or(flag);
        with(&[flag], &[name, "aligned"]);
        refused(&["run", "wordcount", flag], &[name, "--state"]);
        refused(&["run", "wordcount", "--protocol", "none", flag], &[name, "--state"]);
    }
    with(&["--protocol", "unaligned", "--initiators", "a,,b"], &["a,,b", "`sources` nor `all`"]);
    with(&["--protocol", "unaligned", "--initiators", "nobody"], &["nobody"]);
    with(&["--protocol", "aligned-then-unaligned", "--unaligned-after", "20"], &["10ms"]);
    with(&["--protocol", "at-least-once", "--output", &output], &["--output", "at-least-once", "exactly once"]);
    with(&["--audit"], &["wordcount", "--audit"]);
    refused(&["run", "transfers", "--audit"], &["--audit", "--state"]);
    assert!(!room.path("S").exists() && !room.path("O").exists(), "nothing is touched");
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let room = Room::new();
    let state = room.at("S");
    refused(&["run", "wordcount", "--parallelism", "0"], &["--parallelism", "1.."]);
    refused(&["run", "wordcount", "--parallelism", "5000"], &["--parallelism", "1..=256"]);
    refused(&["run", "wordcount", "--parallelism", "many"], &["many"]);
    refused(&["run", "wordcount", "--rate", "0"], &["--rate", "1.."]);
    refused(&["run", "wordcount", "--cores", "4095"], &["core 4095", "allowed"]);
    refused(&["run", "wordcount", "--cores", "0,x"], &["x"]);
    refused(&["run", "wordcount", "--state", &state, "--keep", "1"], &["--keep", "2.."]);
    refused(&["run", "wordcount", "--state", &state, "--checkpoint-interval", "0s"], &["0s"]);
    refused(&["run", "wordcount", "--state", &state, "--checkpoint-interval", "10"], &["10ms"]);
    refused(&["run", "wordcount", "--state", &state, "--restarts", "-1"], &["-1"]);
    refused(&["run", "keyed-count", "--keys", "0"], &["keys"]);
    assert!(!room.path("S").exists(), "nothing is touched");
}
