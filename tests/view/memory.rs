//! A job whose state has no memory left: it waits as long as a checkpoint or a view holds some, says so, and counts right.

use snapring::connector::{Discard, Generate, Memory};
use snapring::error::{Cause, Error, StateError};
use snapring::runtime::Local;
use snapring::{Checkpoints, Config, Dataflow, Job};
use std::time::{Duration, Instant};

const KEYS: u64 = 100_000;

fn count(events: u64, config: Config, sink: Option<&Memory<(u64, u64)>>) -> Job {
    let flow = Dataflow::new("tight");
    let source = Generate::new(events, 4, |index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS);
    let counts = flow.source("events", source).key_by(|key| *key).count("counts").filter(|(_, count)| *count == 1);
    match sink {
        Some(sink) => counts.sink("new", sink.clone()),
        None => counts.sink("new", Discard::new()),
    };
    flow.start(config.unpinned_workers(2)).unwrap()
}

/// A little more memory than the state takes.
fn tight() -> usize {
    let job = count(u64::MAX, Config::new(), None);
    until("key", || job.progress().records > 5 * KEYS);
    let in_use_bytes = job.metrics().memory.in_use_bytes;
    job.abort(Duration::from_secs(10)).unwrap();
    usize::try_from(in_use_bytes).unwrap() + (256 << 10)
}

fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_there() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn who_waits_for_memory_that_a_checkpoint_holds_goes_on() {
    let (folder, sink) = (tempfile::tempdir().unwrap(), Memory::new());
    let checkpoints = Checkpoints::every(Duration::from_millis(1)).to(folder.path());
    let config = Config::new().checkpoints(checkpoints).state_bytes_max(tight());
    let job = count(20_000_000, config, Some(&sink));
    until("stall", || job.is_over() || job.metrics().memory.stalls > 0);
    let memory = job.metrics().memory;
    assert!(memory.stalls > 0 && memory.in_use_bytes <= memory.limit_bytes, "{memory:?}");
    let summary = job.wait().unwrap();
    assert_eq!(summary.records, 20_000_000);
    assert!(summary.checkpoints > 1, "only the last was made");
    assert_eq!(sink.committed().len() as u64, KEYS, "each key is new once");
}

#[test]
fn a_view_that_is_held_stops_the_job_and_nothing_else() {
    let job = count(u64::MAX, Config::new().state_bytes_max(tight()), None);
    until("key", || job.progress().records > 3 * KEYS);
    let view = job.view().unwrap().wait().unwrap();
    let sum = || view.table::<u64, u64>("counts").unwrap().fold(0, |sum, _, count| *sum += count).unwrap();
    let then = sum();
    until("stall", || job.metrics().memory.waiting > 0);
    until("warning", || job.warnings().iter().any(|warning| warning.contains("state_bytes_max")));
    assert_eq!(sum(), then);
    let stood = job.progress().records;
    drop(view);
    until("record", || job.progress().records > stood + 1_000_000);
    job.abort(Duration::from_secs(10)).unwrap();
}

#[test]
fn who_needs_more_than_there_is_fails_and_a_job_that_waits_can_be_stopped() {
    let job = count(u64::MAX, Config::new().state_bytes_max(1 << 20), None);
    let Err(Error::Job(failure)) = job.wait() else { panic!("there was no memory for it") };
    assert!(matches!(failure.cause, Cause::State(StateError::Exhausted(_))), "{failure}");

    let job = count(u64::MAX, Config::new().state_bytes_max(tight()), None);
    until("key", || job.progress().records > 3 * KEYS);
    let view = job.view().unwrap().wait().unwrap();
    until("stall", || job.metrics().memory.waiting > 0);
    let begin = Instant::now();
    let _ = job.abort(Duration::from_secs(10));
    assert!(begin.elapsed() < Duration::from_secs(5), "it waited for memory though it was to stop");
    assert!(!view.table::<u64, u64>("counts").unwrap().is_empty());
}

/// The only task waits for memory that its own part of the view holds: nobody else would go on with that.
#[test]
fn a_view_for_which_there_is_no_memory_is_given_up_and_the_job_goes_on() {
    const MANY: u64 = 400_000;
    let count = |config: Config| {
        let flow = Dataflow::new("too tight");
        let source = Generate::new(u64::MAX, 1, |index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % MANY);
        flow.source("events", source).key_by(|key| *key).count("counts").sink("out", Discard::new());
        flow.start(config.unpinned_workers(1)).unwrap()
    };
    let job = count(Config::new());
    until("key", || job.progress().records > 5 * MANY);
    let in_use_bytes = usize::try_from(job.metrics().memory.in_use_bytes).unwrap();
    job.abort(Duration::from_secs(10)).unwrap();

    let job = count(Config::new().state_bytes_max(in_use_bytes + (64 << 10)));
    until("key", || job.progress().records > 5 * MANY);
    if let Err(error) = job.view().unwrap().wait() {
        assert!(error.to_string().contains("`state_bytes_max`"), "{error}");
        assert!(job.metrics().memory.stalls > 0);
    }
    let stood = job.progress().records;
    until("record", || job.progress().records > stood + 1_000_000);
    job.abort(Duration::from_secs(10)).unwrap();
}

/// Two tables of one task: what one waits for is held by the other's part of the view. On one thread nobody waits at all.
#[test]
fn a_view_gives_way_to_another_table_of_the_same_task() {
    const MANY: u64 = 20_000;
    let job = |config: Config| {
        let flow = Dataflow::new("two tables");
        let source = Generate::new(u64::MAX, 1, |index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % MANY);
        let counts = flow.source("events", source).key_by(|key| *key).count("first").key_by(|(key, _)| *key);
        counts.count("second").sink("out", Discard::new());
        flow.into_local(config).unwrap()
    };
    let many = |job: &mut Local| {
        let target = job.progress().records + 5 * MANY;
        while job.progress().records < target {
            job.step().unwrap();
        }
    };
    let mut ample = job(Config::new());
    many(&mut ample);
    let in_use_bytes = usize::try_from(ample.metrics().memory.in_use_bytes).unwrap();

    let mut tight = job(Config::new().state_bytes_max(in_use_bytes + (16 << 10)));
    many(&mut tight);
    let (mut taken, mut given_up) = (0, 0);
    for _ in 0..5 {
        let pending = tight.view().unwrap();
        let answer = loop {
            tight.step().unwrap();
            if let Some(answer) = pending.try_wait().transpose() {
                break answer;
            }
        };
        match answer {
            Ok(view) => {
                taken += 1;
                // Whoever holds one while there is no memory for it, and no other thread to let go of it, ends the job.
                drop(view);
            }
            Err(error) => {
                given_up += 1;
                assert!(error.to_string().contains("`state_bytes_max`"), "{error}");
            }
        }
        many(&mut tight);
    }
    assert!(given_up > 0, "{taken} were taken: there was memory enough");
}
