//! `kill -9` while records go round: what is committed in the end is what an undisturbed run commits. Each start has another
//! parallelism, so that what was on its way in the loop finds tasks that are not those it was going to.

use crate::kill::Random;
use crate::loops::check_balances;
use crate::plain::{gunzipped, sorted};
use crate::plain_loops::{components, reached};
use crate::support::{Room, end, run, snapring};
use std::time::Duration;

const ROUNDS: u32 = 4;
/// In each round.
const KILLS: u32 = 2;
/// A run that is not killed takes at least this long.
const PACED_S: f64 = 0.5;
/// What a start from a checkpoint says, unless all is over.
const RESUMED: &str = "going on from epoch";

/// Kills the job at a random moment, and again when it has gone on, and lets it come to its end.
fn killed(job: &str, inputs: &[&str], of_job: &[&str], check: impl Fn(&[String])) {
    let mut random = Random::new();
    println!("{job}, seed {}", random.0);
    let (mut met, mut resumed) = (0, 0);
    for round in 0..ROUNDS {
        let room = Room::new();
        for start in 0..KILLS {
            let mut child = snapring(args(&room, job, inputs, of_job, round + start)).spawn().unwrap();
            std::thread::sleep(Duration::from_secs_f64((0.1 + 0.6 * random.unit()) * PACED_S));
            child.kill().unwrap();
            let ran = end(child);
            resumed += u32::from(ran.stderr.contains(RESUMED));
            match ran.signal {
                Some(9) => met += 1,
                _ => drop(ran.ok()),
            }
        }
        let rest = run(args(&room, job, inputs, of_job, round + KILLS)).ok();
        resumed += u32::from(rest.stderr.contains(RESUMED));
        check(&sorted(room.committed()));
    }
    println!("{met} kills before the end, {resumed} starts from a checkpoint");
    assert!(met >= ROUNDS && resumed >= ROUNDS, "{met} kills before the end, {resumed} starts from a checkpoint");
}

fn args(room: &Room, job: &str, inputs: &[&str], of_job: &[&str], start: u32) -> Vec<String> {
    let parallelism = format!("{}", 1 + start % 3);
    let common = ["--checkpoint-interval", "10ms", "--durability", "process-crash", "--parallelism", &parallelism];
    room.stateful(job, inputs, &[&common, of_job].concat())
}

/// The first `rows` of a bundled file.
fn some(name: &str, rows: usize) -> String {
    gunzipped(name).lines().take(1 + rows).map(|line| format!("{line}\n")).collect()
}

#[test]
fn transfers() {
    let of_job = ["--accounts", "500", "--amount", "20", "--transfers", "10000000"];
    killed("transfers", &[], &of_job, |lines| check_balances(lines, 500, 10_000));
}

#[test]
fn components_of_a_graph() {
    let (room, csv) = (Room::new(), some("wordnet-verbs.csv.gz", 4000));
    let wanted = components(&csv);
    let input = room.file("edges.csv", &csv);
    killed("components", &[&input], &["--rate", "8000"], |lines| assert_eq!(lines, wanted));
}

#[test]
fn reachability() {
    let (room, csv) = (Room::new(), some("wordnet-verbs-reach.csv.gz", 4000));
    let wanted = reached(&csv);
    let input = room.file("lines.csv", &csv);
    killed("reachability", &[&input], &["--rate", "8000"], |lines| assert_eq!(lines, wanted));
}

#[test]
fn tokens() {
    let wanted = sorted((0..500).map(|token| format!("{token},30000")).collect());
    let of_job = ["--tokens", "500", "--laps", "30000", "--operators", "3"];
    killed("tokens", &[], &of_job, |lines| assert_eq!(lines, wanted));
}
