//! Savepoints of a running job: it goes on, whatever becomes of them, and another one can begin with them.

use snapring::connector::{Collect, Csv, Generate};
use snapring::dataflow::Dataflow;
use snapring::error::Error;
use snapring::runtime::{Checkpoints, Config, Job, PendingSavepoint};
use snapring::snapshot::{Durability, Reader, STORE_FILE};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const KEYS: u64 = 20_000;
const EVENTS: u64 = 300_000;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn numbers(count: u64) -> Generate<u64, impl Fn(u64) -> u64 + Send + Sync + 'static> {
    Generate::new(count, 4, |index| index.wrapping_mul(0x9e37_79b9) % KEYS)
}

/// How often each number came, told at the end.
fn draw(count: u64, out: &Collect<(u64, u64)>) -> Dataflow {
    let flow = Dataflow::new("counts");
    let keys = flow.source("numbers", numbers(count)).key_by(|key| *key);
    keys.fold_to_end("count", 0u64, |count, _| *count += 1).sink("out", out.clone());
    flow
}

fn start(flow: Dataflow, tasks: u32, checkpoints: Checkpoints) -> Job {
    let checkpoints = checkpoints.durability(Durability::ProcessCrash);
    flow.start(Config::new().unpinned_workers(2).parallelism(tasks).checkpoints(checkpoints)).unwrap()
}

/// What there is to count, in an order of its own.
fn counts(count: u64) -> Vec<(u64, u64)> {
    let mut counts = vec![0; KEYS as usize];
    (0..count).for_each(|index| counts[(index.wrapping_mul(0x9e37_79b9) % KEYS) as usize] += 1);
    (0..).zip(counts).filter(|(_, count)| *count > 0).collect()
}

fn sorted(out: &Collect<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut pairs = out.take();
    pairs.sort_unstable();
    pairs
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not come to this: {what}");
        std::thread::sleep(ms(2));
    }
}

fn names(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_job_goes_on_while_its_savepoint_is_made_and_others_begin_with_it() {
    let (dir, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let out = Collect::new();
    // It takes a second, so that it is not over before anybody asks.
    let checkpoints = Checkpoints::every(ms(5)).to(dir.path().join("S")).durability(Durability::ProcessCrash);
    let config = Config::new().unpinned_workers(2).rate_per_s(EVENTS).checkpoints(checkpoints);
    let job = draw(EVENTS, &out).start(config.parallelism(2)).unwrap();
    until("some records", || job.progress().records > 1000);
    let file = place.path().join("saved");
    let report = job.savepoint(&file).unwrap().wait().unwrap();
    assert_eq!((&report.path, report.bytes), (&file, fs::metadata(&file).unwrap().len()));
    let before = fs::read(&file).unwrap();
    let summary = job.wait().unwrap();
    assert!(summary.last_epoch.unwrap() > report.checkpoint.epoch, "it has made further ones: {summary:?}");
    assert_eq!(sorted(&out), counts(EVENTS));
    // At another parallelism, and twice.
    for (name, tasks) in [("T", 3), ("U", 2)] {
        let out = Collect::new();
        let begun = Checkpoints::every(ms(5)).to(dir.path().join(name)).from_savepoint(&file);
        let job = start(draw(EVENTS, &out), tasks, begun);
        assert_eq!(job.restored_epoch(), Some(report.checkpoint.epoch));
        assert!(job.wait().unwrap().records < EVENTS, "it has gone on from there");
        assert_eq!(sorted(&out), counts(EVENTS));
    }
    assert!(fs::read(&file).unwrap() == before, "it is only read");
    assert_eq!(names(place.path()), ["saved"]);
    let reader = Reader::open(&file).unwrap();
    assert!(reader.verify(report.checkpoint.epoch).unwrap().damage.is_empty());
}

#[test]
fn a_start_with_a_savepoint_can_be_tried_again_until_its_first_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let (out, file) = (Collect::new(), dir.path().join("saved"));
    let job = start(draw(u64::MAX, &out), 2, Checkpoints::on_demand().to(dir.path().join("S")));
    drop(job.savepoint(&file).unwrap().wait().unwrap());
    drop(job);
    let again = || Checkpoints::on_demand().to(dir.path().join("T")).from_savepoint(&file);
    // As long as nothing has come of it, it is the same start once more.
    drop(start(draw(u64::MAX, &out), 2, again()));
    start(draw(u64::MAX, &out), 2, again()).checkpoint().unwrap().wait().unwrap();
    let refused = draw(u64::MAX, &out).start(Config::new().unpinned_workers(1).checkpoints(again())).unwrap_err();
    assert!(refused.to_string().contains("leave out the savepoint"), "{refused}");
    drop(start(draw(u64::MAX, &out), 2, Checkpoints::on_demand().to(dir.path().join("T"))));
}

/// Whatever the interval: what is committed after the checkpoint that a savepoint holds would come twice.
#[test]
fn nothing_follows_the_savepoint_with_which_a_job_stops() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let out = Collect::new();
        let checkpoints = Checkpoints::every(ms(1)).to(dir.path().join(format!("S{round}")));
        let checkpoints = checkpoints.durability(Durability::ProcessCrash);
        let job = start(draw(EVENTS, &out), 2, checkpoints);
        until("some records", || job.progress().records > 1000);
        let stopped = job.stop_with_savepoint(dir.path().join(format!("saved{round}")), ms(20_000)).unwrap();
        if let Some(Ok(file)) = stopped.savepoint {
            let epochs: Vec<u64> = Reader::open(&file).unwrap().epochs().iter().map(|info| info.epoch).collect();
            assert_eq!(epochs, [stopped.summary.last_epoch.unwrap()]);
            assert_eq!(stopped.checkpoint.unwrap().epoch, epochs[0]);
        }
    }
}

/// A job that has made a checkpoint and has no end.
fn endless(dir: &Path) -> Job {
    let flow = draw(u64::MAX, &Collect::new());
    let checkpoints = Checkpoints::every(ms(5)).to(dir.join("S")).durability(Durability::ProcessCrash);
    let job = flow.start(Config::new().unpinned_workers(1).rate_per_s(1_000_000).checkpoints(checkpoints)).unwrap();
    until("a checkpoint", || job.progress().last_checkpoint.is_some() && job.progress().records > 2 * KEYS);
    job
}

/// The job makes another checkpoint.
fn goes_on(job: &Job) {
    let before = job.progress().last_checkpoint.unwrap().epoch;
    until("another checkpoint", || job.progress().last_checkpoint.unwrap().epoch > before);
}

#[test]
fn what_becomes_of_a_savepoint_is_no_matter_to_the_job() {
    let dir = tempfile::tempdir().unwrap();
    let job = endless(dir.path());
    let at = |name: &str| dir.path().join(name);
    // Given up at once, or somewhere on the way.
    for wait_us in [0, 100, 1000, 5000] {
        let pending: PendingSavepoint = job.savepoint(at("given-up")).unwrap();
        std::thread::sleep(Duration::from_micros(wait_us));
        drop(pending);
        assert!(names(dir.path()).iter().all(|name| name == "S" || name == "given-up"), "{:?}", names(dir.path()));
        let _ = fs::remove_file(at("given-up"));
    }
    // Something comes to be there, and something is there already.
    let pending = job.savepoint(at("taken")).unwrap();
    fs::write(at("taken"), "precious").unwrap();
    if let Err(error) = pending.wait() {
        assert!(error.to_string().contains("is there already"), "{error}");
        assert_eq!(fs::read_to_string(at("taken")).unwrap(), "precious");
    }
    let error = job.savepoint(at("taken")).unwrap_err();
    assert!(matches!(error, Error::Store(_)), "{error}");
    let error = job.savepoint(at("missing/saved")).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    // Two at once, and a checkpoint: each holds what had happened when it was asked for, so none is newer than those behind it.
    for _ in 0..10 {
        let _ = ["one", "other"].map(|name| fs::remove_file(at(name)));
        let pending = ["one", "other"].map(|name| job.savepoint(at(name)).unwrap());
        let checkpoint = job.checkpoint().unwrap();
        let epochs = pending.map(|pending| pending.wait().unwrap().checkpoint.epoch);
        let last = checkpoint.wait().unwrap().epoch;
        assert!(epochs[0] <= epochs[1] && epochs[1] <= last, "{epochs:?} {last}");
    }
    goes_on(&job);
    let stopped = job.stop(Duration::from_secs(60)).unwrap();
    assert!(stopped.checkpoint.is_ok() && stopped.savepoint.is_none(), "{stopped:?}");
    assert_eq!(names(dir.path()), ["S", "one", "other", "taken"]);
}

#[test]
fn damage_in_the_state_is_told_by_the_savepoint_and_not_by_the_job() {
    let dir = tempfile::tempdir().unwrap();
    let job = endless(dir.path());
    let pending = job.checkpoint().unwrap().wait().unwrap();
    let store = dir.path().join("S").join(STORE_FILE);
    // Zeros over everything but the head: whatever the next savepoint reads of pages that do not change is damaged.
    let mut bytes = fs::read(&store).unwrap();
    bytes[65536..].fill(0xee);
    fs::write(&store, bytes).unwrap();
    let result = job.savepoint(dir.path().join("saved")).unwrap().wait();
    if let Err(error) = &result {
        assert!(error.to_string().contains("corrupt"), "{error}");
    }
    assert_eq!(dir.path().join("saved").exists(), result.is_ok());
    assert!(!names(dir.path()).iter().any(|name| name.contains("partial")));
    until("another checkpoint", || job.progress().last_checkpoint.unwrap().epoch > pending.epoch);
    job.abort(Duration::from_secs(60)).unwrap();
}

#[test]
fn a_savepoint_that_was_asked_for_outlives_the_job() {
    let dir = tempfile::tempdir().unwrap();
    let job = endless(dir.path());
    let pending = job.savepoint(dir.path().join("saved")).unwrap();
    until("it has been pinned", || pending.progress().1 > 0);
    job.stop(Duration::from_secs(60)).unwrap();
    let report = pending.wait().unwrap();
    assert_eq!(Reader::open(&report.path).unwrap().epochs()[0].epoch, report.checkpoint.epoch);
    // The folder is free again.
    drop(endless(dir.path()));
}

#[test]
fn a_job_that_is_over_or_has_no_checkpoints_makes_none() {
    let dir = tempfile::tempdir().unwrap();
    let out = Collect::new();
    let job = start(draw(10, &out), 1, Checkpoints::on_demand().to(dir.path().join("S")));
    until("its end", || job.is_over());
    let error = job.savepoint(dir.path().join("saved")).unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("no checkpoint to copy"), "{error}");
    let job = draw(10, &Collect::new()).start(Config::new().unpinned_workers(1)).unwrap();
    let error = job.savepoint(dir.path().join("saved")).unwrap_err();
    assert!(error.to_string().contains("without checkpoints"), "{error}");
    assert_eq!(names(dir.path()), ["S"]);
}

/// The parts that a savepoint lists were committed by the job that made it; what it committed later is in the way of whoever
/// goes on from the savepoint into the same folder, and only there.
#[test]
fn output_goes_on_where_the_savepoint_was_made_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let draw = |output: &str| {
        let flow = Dataflow::new("rows");
        let numbers = flow.source("numbers", Generate::new(40_000, 4, |index| index)).key_by(|key| *key % 1000);
        numbers.count("count").sink("out", Csv::exactly_once(at(output)).unwrap());
        flow
    };
    let lines = |output: &str| {
        let parts = names(&at(output)).into_iter().filter(|name| name.ends_with(".csv"));
        let mut lines: Vec<String> = parts
            .flat_map(|name| {
                let text = fs::read_to_string(at(output).join(name)).unwrap();
                text.lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        lines.sort_unstable();
        lines
    };
    let config = |checkpoints: Checkpoints| {
        let checkpoints = checkpoints.durability(Durability::ProcessCrash);
        Config::new().unpinned_workers(2).parallelism(2).rate_per_s(200_000).checkpoints(checkpoints)
    };
    let job = draw("O").start(config(Checkpoints::every(ms(5)).to(at("S")))).unwrap();
    until("some records", || job.progress().records > 5000);
    let epoch = job.savepoint(at("saved")).unwrap().wait().unwrap().checkpoint.epoch;
    job.wait().unwrap();
    let undisturbed = lines("O");
    assert_eq!(undisturbed.len(), 40_000);

    let begin = |state: &str, output: &str| {
        let begun = Checkpoints::every(ms(5)).to(at(state)).from_savepoint(at("saved"));
        draw(output).start(config(begun)).map(|job| job.wait().unwrap())
    };
    let error = begin("T", "O").unwrap_err().to_string();
    assert!(error.contains("later epoch") && error.contains("move these files away"), "{error}");
    let error = begin("U", "P").unwrap_err().to_string();
    assert!(error.contains("output folder is missing"), "{error}");
    fs::create_dir(at("P")).unwrap();
    let error = begin("V", "P").unwrap_err().to_string();
    assert!(error.contains("does not belong"), "{error}");
    // A copy of the folder as it was: with what the savepoint's epoch and those before have committed.
    for (state, output) in [("W", "Q"), ("X", "R")] {
        fs::create_dir(at(output)).unwrap();
        for name in names(&at("O")) {
            let of: Option<u64> = name.strip_prefix("part-").and_then(|rest| rest.split('-').next()?.parse().ok());
            if of.is_none_or(|of| of <= epoch) {
                fs::copy(at("O").join(&name), at(output).join(&name)).unwrap();
            }
        }
        begin(state, output).unwrap();
        assert!(lines(output) == undisturbed, "{} lines", lines(output).len());
    }
}
