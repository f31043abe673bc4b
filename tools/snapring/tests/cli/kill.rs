//! `kill -9` at random moments: what is committed in the end is what an undisturbed run commits.
//!
//! The moments are spread evenly from the start to somewhat behind the paced end, each at random within its share, so that
//! all stretches of a job's life are met: reading, checkpoints, the emission at the end, the last commit.

use crate::plain::{check_routes, route_totals, some_flights, some_verses, sorted, word_counts};
use crate::support::{Room, end, run, snapring};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ROUNDS: u32 = 20;
const RECORDS: usize = 900;
const PACED_S: f64 = 0.45;
/// The last kill comes at this share of the paced time.
const REACH: f64 = 1.4;

/// What the kills of a job have met.
#[derive(Debug, Default)]
struct Met {
    before_the_end: u32,
    with_a_checkpoint: u32,
    with_committed_files: u32,
}

struct Harness<'a> {
    job: &'a str,
    input: &'a str,
    parallelism: &'a str,
    random: Random,
    met: Met,
}

impl Harness<'_> {
    fn args(&self, room: &Room, more: &[&str]) -> Vec<String> {
        let common = ["--parallelism", self.parallelism, "--checkpoint-interval", "20ms"];
        room.stateful(self.job, &[self.input], &[&common, more].concat())
    }

    /// Starts the paced job, kills it after `delay`, and says whether that was before its end.
    fn kill_after(&mut self, room: &Room, delay: Duration) -> bool {
        let rate = format!("{}", (RECORDS as f64 / PACED_S) as u64);
        let mut child = snapring(self.args(room, &["--rate", &rate])).spawn().unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        let ran = end(child);
        match ran.signal {
            Some(9) => true,
            _ => {
                ran.ok();
                false
            }
        }
    }

    /// One round: a kill, perhaps a second one, then an undisturbed rest.
    fn round(&mut self, round: u32) -> Vec<String> {
        let room = Room::new();
        let share = (f64::from(round) + self.random.unit()) / f64::from(ROUNDS);
        let before_the_end = self.kill_after(&room, Duration::from_secs_f64(share * REACH * PACED_S));
        if before_the_end {
            self.met.before_the_end += 1;
            self.met.with_committed_files += u32::from(!room.committed().is_empty());
            if self.random.unit() < 0.3 {
                let delay = Duration::from_secs_f64(self.random.unit() * PACED_S);
                self.kill_after(&room, delay);
            }
        }
        let rest = run(self.args(&room, &[])).ok();
        self.met.with_a_checkpoint += u32::from(rest.stderr.contains("going on from epoch"));
        room.committed()
    }
}

fn killed(job: &str, parallelism: &str, input: &str, check: impl Fn(&[String])) {
    let room = Room::new();
    let input = room.file("input", input);
    let random = Random::new();
    println!("{job} at parallelism {parallelism}, seed {}", random.0);
    let mut harness = Harness { job, input: &input, parallelism, random, met: Met::default() };
    run(harness.args(&room, &[])).ok();
    let undisturbed = sorted(room.committed());
    check(&undisturbed);
    for round in 0..ROUNDS {
        let committed = sorted(harness.round(round));
        assert_eq!(committed, undisturbed, "round {round}");
    }
    println!("{:?}", harness.met);
    assert!(harness.met.before_the_end >= ROUNDS / 2, "{:?}", harness.met);
    assert!(harness.met.with_a_checkpoint >= ROUNDS / 4, "{:?}", harness.met);
}

fn killed_wordcount(parallelism: &str) {
    let text = some_verses(RECORDS);
    killed("wordcount", parallelism, &text, |lines| assert_eq!(lines, word_counts(&text)));
}

fn killed_routes(parallelism: &str) {
    let csv = some_flights(0, RECORDS);
    killed("routes", parallelism, &csv, |lines| check_routes(lines, &route_totals(&csv)));
}

#[test]
fn wordcount_at_1() {
    killed_wordcount("1");
}

#[test]
fn wordcount_at_4() {
    killed_wordcount("4");
}

#[test]
fn routes_at_1() {
    killed_routes("1");
}

#[test]
fn routes_at_4() {
    killed_routes("4");
}

/// One state folder, killed at each start until it has come to its end, with several inputs.
#[test]
fn again_and_again() {
    let room = Room::new();
    let (first, second) = (room.file("a.csv", some_flights(0, 1000)), room.file("b.csv", some_flights(1000, 2000)));
    let mut random = Random::new();
    println!("seed {}", random.0);
    let args = |more: &[&str]| {
        room.stateful("routes", &[&first, &second], &[&["--checkpoint-interval", "10ms"], more].concat())
    };
    let mut committed = 0;
    for start in 0..12 {
        let parallelism = format!("{}", 1 + start % 4);
        let mut child = snapring(args(&["--rate", "2000", "--parallelism", &parallelism])).spawn().unwrap();
        std::thread::sleep(Duration::from_secs_f64(0.05 + 0.1 * random.unit()));
        child.kill().unwrap();
        let ran = end(child);
        assert!(ran.signal == Some(9) || ran.code == Some(0), "{ran:?}");
        let now = room.committed().len();
        assert!(now >= committed, "what is committed stays");
        committed = now;
    }
    run(args(&[])).ok();
    check_routes(&room.committed(), &route_totals(&some_flights(0, 2000)));
}

/// Many words, so that writing them at the end takes several checkpoints; killed while that goes on.
#[test]
fn in_the_emission_at_the_end() {
    let mut random = Random::new();
    println!("seed {}", random.0);
    let text: String = (0..80_000).map(|word| format!("w{word} w{}\n", word / 2)).collect();
    let counts = word_counts(&text);
    let mut met = 0;
    for round in 0..6 {
        let room = Room::new();
        let input = room.file("t.txt", &text);
        let parallelism = format!("{}", 1 + round % 3);
        let args = room.stateful(
            "wordcount",
            &[&input],
            &["--checkpoint-interval", "1ms", "--durability", "process-crash", "--parallelism", &parallelism],
        );
        let mut child = snapring(&args).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && room.committed().is_empty() {}
        std::thread::sleep(Duration::from_secs_f64(0.01 * random.unit()));
        child.kill().unwrap();
        end(child);
        met += u32::from((1..counts.len()).contains(&room.committed().len()));
        run(&args).ok();
        assert_eq!(sorted(room.committed()), counts, "round {round}");
    }
    println!("{met} kills in the emission");
    assert!(met > 0);
}

/// S. Vigna's SplitMix64, seeded by the clock.
pub struct Random(pub u64);

impl Random {
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is right");
        Self(since.as_nanos() as u64)
    }

    /// Evenly from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
    }
}
