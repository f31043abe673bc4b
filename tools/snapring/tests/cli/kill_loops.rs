//! `kill -9` while records go round: what is committed in the end is what an undisturbed run commits, by every exact
//! protocol, and with another at each start. Each start has another parallelism too, so that what was on its way in the loop
//! finds tasks that are not those it was going to. Of `transfers` each checkpoint is read back, too: all the money is in it.
//!
//! More rounds: `SNAPRING_KILL_ROUNDS=50 cargo test -p snapring-cli --test cli kill_loops::transfers -- --nocapture` (two kills each).

use crate::kill::Random;
use crate::loops::check_balances;
use crate::plain::{gunzipped, sorted};
use crate::plain_loops::{components, reached};
use crate::support::{Ran, Room, end, run, snapring};
use std::time::Duration;

const EXACT: [&str; 5] = ["aligned", "chandy-lamport", "unaligned", "aligned-then-unaligned", "stop-the-world"];
/// One with each protocol, and one with another at each start.
const ROUNDS: u32 = 2 * EXACT.len() as u32;
/// In each round.
const KILLS: u32 = 2;
/// A run that is not killed takes at least this long.
const PACED_S: f64 = 0.5;
/// What a start from a checkpoint says, unless all is over.
const RESUMED: &str = "going on from epoch";

/// How a job is started.
struct Starts<'a> {
    room: Room,
    job: &'a str,
    inputs: &'a [&'a str],
    of_job: &'a [&'a str],
    round: u32,
}

impl Starts<'_> {
    fn args(&self, start: u32) -> Vec<String> {
        let parallelism = format!("--parallelism={}", 1 + (self.round + start) % 3);
        let changes = self.round / EXACT.len() as u32;
        let protocol = format!("--protocol={}", EXACT[(self.round + changes * start) as usize % EXACT.len()]);
        let common = ["--checkpoint-interval=10ms", "--durability=process-crash", &parallelism, &protocol];
        self.room.stateful(self.job, self.inputs, &[&common, self.of_job].concat())
    }
}

/// Starts a process, and kills it at a random moment; whether that was before its end. Any other end is a good one: a wrong
/// audit is none.
fn killed_once(args: &[String], random: &mut Random) -> (bool, Ran) {
    let mut child = snapring(args).spawn().unwrap();
    std::thread::sleep(Duration::from_secs_f64((0.1 + 0.6 * random.unit()) * PACED_S));
    child.kill().unwrap();
    let ran = end(child);
    if ran.signal == Some(9) { (true, ran) } else { (false, ran.ok()) }
}

/// Kills the job at a random moment, and again when it has gone on, and lets it come to its end.
fn killed(job: &str, inputs: &[&str], of_job: &[&str], check: impl Fn(&[String])) {
    let mut random = Random::new();
    println!("{job}, seed {}", random.0);
    let rounds = std::env::var("SNAPRING_KILL_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let (mut met, mut resumed) = (0, 0);
    for round in 0..rounds {
        let starts = Starts { room: Room::new(), job, inputs, of_job, round };
        for start in 0..KILLS {
            let (before_the_end, ran) = killed_once(&starts.args(start), &mut random);
            met += u32::from(before_the_end);
            resumed += u32::from(ran.stderr.contains(RESUMED));
        }
        let rest = run(starts.args(KILLS)).ok();
        resumed += u32::from(rest.stderr.contains(RESUMED));
        check(&sorted(starts.room.committed()));
    }
    println!("{met} kills before the end, {resumed} starts from a checkpoint");
    assert!(
        met >= rounds / 2 && resumed >= rounds / 2,
        "{met} kills before the end, {resumed} starts from a checkpoint"
    );
}

/// The first `rows` of a bundled file.
fn some(name: &str, rows: usize) -> String {
    gunzipped(name).lines().take(1 + rows).map(|line| format!("{line}\n")).collect()
}

#[test]
fn transfers() {
    let of_job = ["--accounts", "500", "--amount", "20", "--transfers", "10000000", "--audit"];
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

/// Results on standard output, by a protocol that may count a record twice: all of them come, and no wrong ones.
#[test]
fn at_least_once_loses_nothing() {
    let (room, csv) = (Room::new(), some("wordnet-verbs-reach.csv.gz", 4000));
    let (wanted, input) = (reached(&csv), room.file("lines.csv", &csv));
    let mut random = Random::new();
    println!("seed {}", random.0);
    for parallelism in ["--parallelism=1", "--parallelism=3"] {
        let room = Room::new();
        let of_checkpoints = ["--protocol=at-least-once", "--checkpoint-interval=10ms", "--durability=process-crash"];
        let first = ["run", "reachability", "--input", &input, "--state", &room.at("S"), parallelism, "--rate=4000"];
        let args: Vec<String> = first.into_iter().chain(of_checkpoints).map(str::to_owned).collect();
        let mut lines = Vec::new();
        for _ in 0..KILLS {
            let (_, ran) = killed_once(&args, &mut random);
            // The last line may have been cut.
            let whole = ran.stdout.rfind('\n').map_or(0, |end| end + 1);
            lines.extend(ran.stdout[..whole].lines().map(str::to_owned));
        }
        let rest = run(&args).ok();
        assert!(rest.stderr.contains(RESUMED), "{rest:?}");
        lines.extend(rest.lines());
        lines = sorted(lines);
        lines.dedup();
        assert_eq!(lines, wanted);
    }
}
