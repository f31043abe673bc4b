//! Savepoints: by SIGUSR1 of a running job, and to begin with. Killed at any moment, a file is there whole or not at all.

use crate::kill::Random;
use crate::plain::{check_routes, route_totals, some_flights};
use crate::support::{Room, end, run, snapring, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Child;
use std::time::Duration;

fn ask(child: &Child) {
    kill_process(Pid::from_child(child), Signal::USR1).unwrap();
}

#[test]
fn a_signal_makes_one_and_another_run_begins_with_it() {
    let (room, csv) = (Room::new(), some_flights(0, 3000));
    let (input, file) = (room.file("f.csv", &csv), room.at("saved"));
    let more = ["--rate", "3000", "--checkpoint-interval", "20ms", "--savepoint", &file];
    let child = snapring(room.stateful("routes", &[&input], &more)).spawn().unwrap();
    wait_for(|| room.path("O").exists());
    ask(&child);
    wait_for(|| room.path("saved").exists());
    // It says so a moment after the file is there, and until then that it is under way.
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(30));
        ask(&child);
    }
    let said =
        ["SIGUSR1: takes the savepoint", "--from-savepoint begins", "no savepoint, and the job goes on", "already"];
    end(child).exits(0, &said);
    check_routes(&room.committed(), &route_totals(&csv));

    run(["inspect", "verify", &file]).exits(0, &[]);
    let listed = run(["inspect", "ls", &file, "--json"]).ok();
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let [epoch] = &listed["epochs"].as_array().unwrap()[..] else { panic!("{listed}") };
    let epoch = epoch["epoch"].as_u64().unwrap();
    run(["inspect", "channels", &file]).ok();

    let begun = |state: &str, output: &str| {
        let args = ["run", "routes", "--input", &input, "--parallelism", "3", "--from-savepoint", &file];
        run(args.into_iter().chain(["--state", &room.at(state), "--output", &room.at(output)]))
    };
    // What the first run has committed since is in the way.
    begun("T", "O").exits(5, &["later epoch", "move these files away"]);
    for entry in fs::read_dir(room.path("O")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let of = name.strip_prefix("part-").and_then(|rest| rest.split('-').next()?.parse::<u64>().ok());
        if of.is_some_and(|of| of > epoch) {
            fs::remove_file(&path).unwrap();
        }
    }
    begun("U", "O").exits(0, &[&format!("going on from epoch {epoch}")]);
    check_routes(&room.committed(), &route_totals(&csv));
    begun("U", "O").exits(5, &["leave out the savepoint"]);
    run(room.stateful("routes", &[&input], &["--from-savepoint", &file])).exits(5, &["leave out the savepoint"]);
}

#[test]
fn it_is_refused_where_it_makes_no_sense() {
    let room = Room::new();
    run(["run", "routes", "--savepoint", "x"]).exits(2, &["--state"]);
    run(["run", "routes", "--from-savepoint", "x"]).exits(2, &["--state"]);
    let text = room.file("text", "no savepoint at all".repeat(100));
    run(["run", "routes", "--state", &room.at("S"), "--from-savepoint", &text]).exits(5, &["not a snapring store"]);
    run(["run", "routes", "--state", &room.at("S"), "--from-savepoint", &room.at("none")]).exits(5, &["none"]);
    let child = snapring(["run", "routes", "--rate", "20000", "--json"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(400));
    ask(&child);
    end(child).exits(0, &["no savepoint: say where by --savepoint"]);
}

/// `kill -9` somewhere while one is made.
#[test]
fn a_killed_process_leaves_a_whole_one_or_none() {
    let (room, mut random) = (Room::new(), Random::new());
    let (mut whole, mut none) = (0, 0);
    for round in 0..12 {
        let file = room.at(&format!("saved-{round}"));
        let state = room.at(&format!("S-{round}"));
        let args = ["run", "keyed-count", "--events", "100000000000", "--keys", "300000", "--json"];
        let more = ["--checkpoint-interval", "20ms", "--state", &state, "--savepoint", &file];
        let mut child = snapring(args.into_iter().chain(more)).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(600));
        ask(&child);
        std::thread::sleep(Duration::from_secs_f64(0.12 * random.unit()));
        child.kill().unwrap();
        end(child);
        if room.path(&format!("saved-{round}")).exists() {
            run(["inspect", "verify", &file]).exits(0, &[]);
            whole += 1;
        } else {
            none += 1;
        }
    }
    println!("{whole} savepoints were there, {none} were not");
}
