//! Jobs that fail and heal themselves: user code that fails at each of its places, what the end says when it fails
//! again and again, and what a restart means to whoever holds the job.

mod trip;

use snapring::connector::{Csv, Discard, Generate, Memory};
use snapring::dataflow::Dataflow;
use snapring::error::{BuildError, Error, Failure};
use snapring::operator::Progress;
use snapring::record::Record;
use snapring::runtime::{Checkpoints, Config, Restart};
use snapring::snapshot::Durability;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trip::{At, Dropping, Numbers, PLACES, Trip, Tripping};

const COUNT: u64 = 6000;

/// Numbers, their drop, a fold by key, and a sink: user code at all places. `first` fails in the first closure.
fn draw(trip: &Trip, first: &Trip, out: &Memory<(u64, u64)>) -> Dataflow {
    let flow = Dataflow::new("tripping");
    let (in_map, in_record, in_key, in_fold) = (trip.clone(), trip.clone(), trip.clone(), trip.clone());
    let first = first.clone();
    flow.source("numbers", Numbers::new(COUNT, 3, trip))
        .map(move |number| {
            first.pass(At::Map);
            in_map.pass(At::Map);
            Dropping(number, in_record.clone())
        })
        .stage("boxed")
        .map(|dropping| dropping.0)
        .key_by(move |number| {
            in_key.pass(At::Key);
            number % 10
        })
        .fold("sum", 0u64, move |sum, number| {
            in_fold.pass(At::Fold);
            *sum += number;
        })
        .sink("out", Tripping { inner: out.clone(), trip: trip.clone() });
    flow
}

/// What comes out for each key, whatever the order: the number of records, and the greatest.
fn check(out: &Memory<(u64, u64)>, what: &str) {
    let committed = out.committed();
    for key in 0..10 {
        let sums: Vec<u64> = committed.iter().filter(|pair| pair.0 == key).map(|pair| pair.1).collect();
        let all: u64 = (0..COUNT).filter(|number| number % 10 == key).sum();
        assert_eq!((sums.len() as u64, sums.iter().max()), (COUNT / 10, Some(&all)), "{what}, key {key}");
    }
}

fn quick(attempts: u32) -> Restart {
    Restart::attempts(attempts).backoff(Duration::from_micros(100), Duration::from_millis(2))
}

fn config(folder: &tempfile::TempDir) -> Config {
    let checkpoints =
        Checkpoints::every(Duration::from_millis(2)).to(folder.path()).durability(Durability::ProcessCrash);
    Config::new().unpinned_workers(2).parallelism(2).ring_capacity(2).batch_len_max(20).checkpoints(checkpoints)
}

/// A rate at which some checkpoints fall into the run.
const RATE_PER_S: u64 = 100_000;

/// Failing after so many passes, each place is reached: some are passed with each record, some once in an attempt.
fn every(at: At) -> u64 {
    match at {
        At::Map | At::Drop | At::Key | At::Fold | At::Write => 1501,
        At::Read => 301,
        // The first passes are those of the start, which is not retried.
        At::Verify | At::DropOfWriter | At::DropOfCommitter => 1,
        At::Claim | At::Recover => 2,
        At::OpenWriter => 3,
        At::Open | At::Prepare | At::Sync | At::Commit => 2,
    }
}

/// Places that are only come to between two attempts get a first failure elsewhere.
fn first_failure(at: At) -> Trip {
    let is_late =
        matches!(at, At::Verify | At::Claim | At::Recover | At::OpenWriter | At::DropOfWriter | At::DropOfCommitter);
    Trip::new(At::Map, 3000, u32::from(is_late), false)
}

#[test]
fn user_code_that_fails_at_any_place_is_run_again() {
    for (at, errs) in PLACES.into_iter().flat_map(|at| [(at, false), (at, true)]) {
        let (folder, out) = (tempfile::tempdir().unwrap(), Memory::new());
        let (trip, first) = (Trip::new(at, every(at), 2, errs), first_failure(at));
        let config = config(&folder).rate_per_s(RATE_PER_S).restart(quick(4));
        let job = draw(&trip, &first, &out).start(config).unwrap();
        let summary = job.wait().unwrap_or_else(|error| panic!("{at:?}: {error}"));
        check(&out, &format!("{at:?}"));
        assert!(trip.left() < 2, "{at:?} was not reached");
        assert!(summary.restarts >= 1, "{at:?}: {summary:?}");
    }
}

#[test]
fn a_local_job_heals_too() {
    for (at, errs) in PLACES.into_iter().flat_map(|at| [(at, false), (at, true)]) {
        let (folder, out) = (tempfile::tempdir().unwrap(), Memory::new());
        let (trip, first) = (Trip::new(at, every(at), 2, errs), first_failure(at));
        let config = config(&folder).rate_per_s(RATE_PER_S).restart(quick(4));
        let mut job = draw(&trip, &first, &out).into_local(config).unwrap();
        job.run().unwrap_or_else(|error| panic!("{at:?}: {error}"));
        check(&out, &format!("{at:?}"));
        assert!(trip.left() < 2, "{at:?} was not reached");
        assert!(job.restarts() >= 1, "{at:?}");
        assert_eq!(job.step().unwrap(), Progress::Done);
    }
}

#[derive(Clone, Record)]
struct Order {
    id: u64,
    symbol: String,
}

fn orders(count: u64) -> Generate<Order, impl Fn(u64) -> Order + Send + Sync + 'static> {
    Generate::new(count, 1, |id| Order { id, symbol: format!("S{}", id % 3) })
}

fn failure(error: &Error) -> &Failure {
    match error {
        Error::Job(failure) => failure,
        other => panic!("{other}"),
    }
}

#[test]
fn an_error_that_comes_again_ends_the_job_with_the_first_one_whole() {
    let folder = tempfile::tempdir().unwrap();
    let flow = Dataflow::new("bad");
    let sums = flow.source("orders", orders(1000)).stage("checked").try_map(|order| match order.id {
        777 => Err("no such account"),
        _ => Ok(order),
    });
    sums.sink("out", Discard::new());
    let checkpoints = Checkpoints::on_demand().to(folder.path());
    let config = Config::new().unpinned_workers(1).checkpoints(checkpoints).restart(quick(3));
    let error = flow.start(config).unwrap().wait().unwrap_err();
    let failure = failure(&error);
    assert!(failure.operator.as_ref().unwrap().starts_with("try_map@"), "{error}");
    assert_eq!((failure.task, failure.epoch, failure.record), (Some(0), Some(1), Some(778)), "{error}");
    assert_eq!(failure.text.as_deref(), Some(r#"{"id":777,"symbol":"S0"}"#), "{error}");
    let again = failure.again.as_ref().unwrap();
    assert!(again.attempts == 4 && again.last.is_none(), "{error}");
    assert!(error.to_string().ends_with("; 4 attempts in a row failed without a new checkpoint"), "{error}");
}

#[test]
fn a_last_error_that_is_another_is_told_beside_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let flow = Dataflow::new("worse");
    let calls = Arc::new(AtomicU64::new(0));
    let seen = calls.clone();
    flow.source("orders", orders(10))
        .inspect(move |order| {
            let call = seen.fetch_add(1, Ordering::SeqCst);
            assert!(order.id != 3, "call {call}");
        })
        .sink("out", Discard::new());
    let checkpoints = Checkpoints::on_demand().to(folder.path());
    let config = Config::new().unpinned_workers(1).checkpoints(checkpoints).restart(quick(2));
    let error = flow.start(config).unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("panicked: call 3; 3 attempts in a row failed"), "{error}");
    assert!(error.contains(", the last with: operator `inspect@") && error.contains("panicked: call 11"), "{error}");
    assert!(error.ends_with(r#"; the record: {"id":3,"symbol":"S0"}"#), "{error}");
}

#[test]
fn a_careful_job_tells_the_record_at_once() {
    let flow = Dataflow::new("careful");
    flow.source("orders", orders(10))
        .stage("next")
        .key_by(|order| {
            assert!(order.id != 5, "five");
            order.id
        })
        .count("count")
        .sink("out", Discard::new());
    let error = flow.start(Config::new().unpinned_workers(1).careful(true)).unwrap().wait().unwrap_err().to_string();
    assert!(
        error.contains("`key_by@") && error.ends_with(r#"panicked: five; the record: {"id":5,"symbol":"S2"}"#),
        "{error}"
    );
}

#[test]
fn a_new_durable_epoch_ends_the_row() {
    let (folder, out) = (tempfile::tempdir().unwrap(), Memory::new());
    // Seven failures, with one restart allowed: each has passed a checkpoint before.
    let trip = Trip::new(At::Fold, 800, 7, false);
    let calm = Trip::new(At::Map, 1, 0, false);
    let config = config(&folder).rate_per_s(30_000).restart(quick(1));
    let summary = draw(&trip, &calm, &out).start(config).unwrap().wait().unwrap();
    assert_eq!((trip.left(), summary.restarts), (0, 7));
    assert!(summary.first_record.is_some() && summary.resident_bytes_at_first_record.is_some(), "{summary:?}");
    check(&out, "seven times");
    assert!(summary.checkpoints >= 7 && summary.records > COUNT, "{summary:?}");
}

#[test]
fn restarts_need_checkpoints() {
    let flow = Dataflow::new("none");
    flow.source("orders", orders(10)).sink("out", Discard::new());
    let error = flow.start(Config::new().restart(Restart::attempts(1))).unwrap_err();
    assert!(matches!(error, Error::Build(BuildError::RestartNeedsCheckpoints)), "{error}");
    assert!(error.to_string().contains("configure checkpoints"));
}

#[test]
fn a_folder_of_files_is_claimed_again() {
    let (state, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let trip = Trip::new(At::Map, 600, 3, false);
    let passing = trip.clone();
    let flow = Dataflow::new("files");
    flow.source("orders", orders(2000))
        .inspect(move |_| passing.pass(At::Map))
        .sink("out", Csv::exactly_once(output.path()).unwrap());
    let config = Config::new().unpinned_workers(1).rate_per_s(50_000).restart(quick(3));
    let checkpoints = Checkpoints::every(Duration::from_millis(3)).to(state.path());
    let summary = flow.start(config.checkpoints(checkpoints)).unwrap().wait().unwrap();
    assert_eq!(summary.restarts, 3);
    let (mut lines, mut attempts) = (Vec::new(), std::collections::BTreeSet::new());
    for entry in std::fs::read_dir(output.path()).unwrap() {
        let path = entry.unwrap().path();
        let Some("csv") = path.extension().and_then(|extension| extension.to_str()) else { continue };
        lines.extend(std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned));
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        attempts.insert(stem.split('-').nth(3).unwrap().parse::<u32>().unwrap());
    }
    lines.sort();
    let mut expected: Vec<String> = (0..2000).map(|id| format!("{id},S{}", id % 3)).collect();
    expected.sort();
    assert_eq!(lines, expected);
    assert!(attempts.last() == Some(&4), "{attempts:?}");
}

#[test]
fn who_waits_for_a_checkpoint_hears_of_the_restart() {
    let (folder, out) = (tempfile::tempdir().unwrap(), Memory::new());
    let trip = Trip::new(At::Prepare, 1, 1, false);
    let calm = Trip::new(At::Map, 1, 0, false);
    let checkpoints = Checkpoints::on_demand().to(folder.path());
    let config = config(&folder).checkpoints(checkpoints).rate_per_s(20_000).restart(quick(1));
    let job = draw(&trip, &calm, &out).start(config).unwrap();
    let error = job.checkpoint().unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("ask again"), "{error}");
    let report = job.checkpoint().unwrap().wait().unwrap();
    assert_eq!((report.epoch, job.restored_epoch()), (1, None));
    job.wait().unwrap();
    check(&out, "after the restart");
}

#[test]
fn a_pause_between_attempts_doubles_and_can_be_cut_short() {
    let draw = || {
        let flow = Dataflow::new("paused");
        flow.source("orders", orders(10)).inspect(|order| assert!(order.id != 3, "three")).sink("out", Discard::new());
        flow
    };
    let config = |folder: &tempfile::TempDir, first: Duration, max: Duration| {
        let checkpoints = Checkpoints::on_demand().to(folder.path());
        let restart = Restart::attempts(4).backoff(first, max);
        Config::new().unpinned_workers(1).checkpoints(checkpoints).restart(restart)
    };
    let (folder, begin) = (tempfile::tempdir().unwrap(), Instant::now());
    let ms = Duration::from_millis;
    assert!(draw().start(config(&folder, ms(10), ms(25))).unwrap().wait().is_err());
    assert!(begin.elapsed() >= ms(10 + 20 + 25 + 25), "{:?}", begin.elapsed());

    let (folder, begin) = (tempfile::tempdir().unwrap(), Instant::now());
    let job = draw().start(config(&folder, Duration::from_secs(3600), Duration::MAX)).unwrap();
    std::thread::sleep(ms(20));
    assert!(!job.is_over());
    drop(job);
    assert!(begin.elapsed() < Duration::from_secs(20));
}
