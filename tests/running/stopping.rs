//! The ways to end a job, and that none takes longer than its deadline.

use super::gate::Gate;
use super::{busy, config, gated, ms, numbers, on_demand, until};
use snapring::connector::{Discard, Memory};
use snapring::dataflow::Dataflow;
use snapring::error::{ConnectorError, Failed};
use snapring::operator::{Committer, Part, Place, Progress, Sink, Writer};
use snapring::runtime::{Config, Job, Restart, Stopped};
use std::time::{Duration, Instant};

/// Sums of numbers that are emitted at the end alone.
fn draw(out: &Memory<(u64, u64)>, count: u64) -> Dataflow {
    let flow = Dataflow::new("sums");
    let sums = flow.source("numbers", numbers(count)).key_by(|n| n % 7);
    sums.fold_to_end("count", 0u64, |count, _| *count += 1).sink("out", out.clone());
    flow
}

fn counted(out: &Memory<(u64, u64)>) -> u64 {
    out.committed().iter().map(|pair| pair.1).sum()
}

#[test]
fn a_drained_job_is_finished_with_what_it_had_read() {
    let (folder, out) = (tempfile::tempdir().unwrap(), Memory::new());
    let start = || draw(&out, u64::MAX).start(config(2).checkpoints(on_demand(&folder)).rate_per_s(50_000)).unwrap();
    let job = start();
    until("some records", || job.progress().records > 1000);
    let stopped = job.drain(Duration::MAX).unwrap();
    let report = stopped.checkpoint.unwrap();
    assert_eq!(stopped.summary.last_epoch, Some(report.epoch));
    assert_eq!((stopped.late.len(), stopped.batches_left, stopped.parts_left), (0, 0, 0));
    assert_eq!((counted(&out), out.committed().len()), (stopped.summary.records, 7));
    let again = start().wait().unwrap();
    assert!(again.finished_before && again.records == 0);
    let stopped = start().stop(ms(100)).unwrap();
    assert!(stopped.summary.finished_before && stopped.late.is_empty(), "{stopped:?}");
}

#[test]
fn draining_needs_no_checkpoints_and_works_for_local_jobs() {
    let flow = Dataflow::new("plain");
    flow.source("numbers", numbers(u64::MAX)).sink("out", Discard::new());
    let job = flow.start(config(1)).unwrap();
    until("some records", || busy(&job));
    let stopped = job.drain(Duration::MAX).unwrap();
    assert!(stopped.checkpoint.is_err() && stopped.late.is_empty() && stopped.summary.records > 0, "{stopped:?}");

    let (folder, out) = (tempfile::tempdir().unwrap(), Memory::new());
    let mut job = draw(&out, u64::MAX).into_local(config(1).checkpoints(on_demand(&folder))).unwrap();
    (0..100).for_each(|_| assert_ne!(job.step().unwrap(), Progress::Done));
    job.drain();
    job.run().unwrap();
    assert_eq!(counted(&out), job.progress().records);
}

#[test]
fn a_failure_while_draining_is_not_followed_by_a_restart() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::closed());
    let (flow, passing) = (Dataflow::new("failing"), gate.clone());
    let failing = flow.source("numbers", numbers(u64::MAX)).stage("failing").inspect(move |_| {
        passing.pass();
        panic!("boom");
    });
    failing.sink("out", Discard::new());
    let restart = Restart::attempts(100).backoff(ms(1), ms(1));
    let job = flow.start(config(2).checkpoints(on_demand(&folder)).restart(restart)).unwrap();
    until("some records", || busy(&job));
    let opener = std::thread::spawn(move || {
        std::thread::sleep(ms(100));
        gate.open();
    });
    let error = job.drain(Duration::MAX).unwrap_err().to_string();
    assert!(error.contains("boom") && !error.contains("attempts"), "{error}");
    opener.join().unwrap();
}

#[test]
fn a_job_that_stops_leaves_a_savepoint_from_which_another_starts() {
    let (folder, out) = (tempfile::tempdir().unwrap(), Memory::new());
    let place = tempfile::tempdir().unwrap();
    let with = |job_config: Config| job_config.rate_per_s(100_000);
    let job = draw(&out, 30_000).start(with(config(2).checkpoints(on_demand(&folder)))).unwrap();
    until("some records", || job.progress().records > 1000);
    let savepoint = place.path().join("saved");
    let stopped = job.stop_with_savepoint(&savepoint, Duration::MAX).unwrap();
    let epoch = stopped.checkpoint.unwrap().epoch;
    assert_eq!(stopped.savepoint, Some(Ok(savepoint.clone())));
    drop(folder);
    let again = tempfile::tempdir().unwrap();
    let only: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(only, ["saved"], "nothing else is left");
    let checkpoints = on_demand(&again).from_savepoint(&savepoint);
    let job = draw(&out, 30_000).start(config(1).checkpoints(checkpoints)).unwrap();
    assert_eq!(job.restored_epoch(), Some(epoch));
    job.wait().unwrap();
    assert_eq!(counted(&out), 30_000);
}

#[test]
fn a_savepoint_is_not_put_where_something_is() {
    let (folder, out, place) = (tempfile::tempdir().unwrap(), Memory::new(), tempfile::tempdir().unwrap());
    let mine = place.path().join("mine");
    std::fs::write(&mine, "precious").unwrap();
    let job = draw(&out, u64::MAX).start(config(2).checkpoints(on_demand(&folder))).unwrap();
    let stopped = job.stop_with_savepoint(&mine, Duration::MAX).unwrap();
    assert!(stopped.checkpoint.is_ok(), "the job has stopped in order: {stopped:?}");
    let refusal = stopped.savepoint.unwrap().unwrap_err();
    assert!(refusal.contains("is there already"), "{refusal}");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "precious");
}

/// Ends a job whose worker does not return, and checks that this takes no longer than it may.
fn end_stuck(end: impl FnOnce(Job, Duration) -> Stopped, checkpoints: bool) -> Stopped {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::closed());
    let job_config = config(2).ring_capacity(3).batch_len_max(10);
    let job_config = if checkpoints { job_config.checkpoints(on_demand(&folder)) } else { job_config };
    let job = gated(1_000_000, &gate).start(job_config).unwrap();
    until("a full ring", || job.metrics().channels[0].filled == 2);
    let begin = Instant::now();
    let stopped = end(job, ms(400));
    let took = begin.elapsed();
    assert!(took >= ms(300) && took < Duration::from_secs(5), "{took:?}");
    assert_eq!(stopped.batches_left, 2, "{stopped:?}");
    // On a busy machine the other worker may be late as well, but not in any task.
    let is_stuck = |late: &&String| late.starts_with("worker 1: in task 0 of `gated`") && late.contains("inspect@");
    assert_eq!(stopped.late.iter().filter(is_stuck).count(), 1, "{stopped:?}");
    assert!(stopped.late.iter().all(|late| is_stuck(&late) || late == "worker 0"), "{stopped:?}");
    // The state folder comes free, though the worker is still there.
    let mut again = None;
    until("a free folder", || {
        again = gated(10, &Gate::closed()).start(config(1).checkpoints(on_demand(&folder))).ok();
        again.is_some()
    });
    gate.open();
    drop(again.map(|job| job.abort(ms(1))));
    stopped
}

#[test]
fn no_way_to_end_a_stuck_job_takes_longer_than_it_may() {
    let stopped = end_stuck(|job, deadline| job.stop(deadline).unwrap(), true);
    assert!(stopped.checkpoint.unwrap_err().contains("within 400ms"));
    let stopped = end_stuck(|job, deadline| job.drain(deadline).unwrap(), true);
    assert!(stopped.checkpoint.unwrap_err().contains("did not drain within 400ms"));
    let stopped = end_stuck(|job, deadline| job.stop_with_savepoint("nowhere", deadline).unwrap(), true);
    assert!(stopped.savepoint.unwrap().unwrap_err().contains("no checkpoint to copy"));
    end_stuck(|job, deadline| job.abort(deadline).unwrap(), true);
    end_stuck(|job, deadline| job.abort(deadline).unwrap(), false);
}

#[test]
fn an_abort_takes_no_checkpoint_and_no_time() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::closed());
    gate.open();
    let job = gated(u64::MAX, &gate).start(config(2).checkpoints(on_demand(&folder))).unwrap();
    let begin = Instant::now();
    let stopped = job.abort(Duration::from_secs(60)).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert_eq!((stopped.summary.checkpoints, stopped.late.len()), (0, 0));
}

/// A sink whose commit does not return.
struct Stuck(Gate);
struct Nothing;

impl Sink for Stuck {
    type In = u64;
    type Writer = Nothing;
    fn exactly_once(&self) -> bool {
        true
    }
    fn claim(&self, _: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        Ok(Box::new(Self(self.0.clone())))
    }
    fn writer(&self, _: &Place, _: u32) -> Result<Nothing, ConnectorError> {
        Ok(Nothing)
    }
}

impl Writer for Nothing {
    type In = u64;
    fn write(&mut self, _: u64) -> Result<(), Failed> {
        Ok(())
    }
    fn prepare(&mut self, epoch: u64) -> Result<Option<Part>, Failed> {
        Ok(Some(Part(vec![epoch as u8])))
    }
}

impl Committer for Stuck {
    fn recover(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        Ok(())
    }
    fn sync(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        Ok(())
    }
    fn commit(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        self.0.pass();
        Ok(())
    }
}

#[test]
fn a_commit_that_does_not_return_is_named_and_left_behind() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::closed());
    let flow = Dataflow::new("stuck");
    flow.source("numbers", numbers(u64::MAX)).sink("out", Stuck(gate.clone()));
    let job = flow.start(config(1).checkpoints(on_demand(&folder))).unwrap();
    let begin = Instant::now();
    let stopped = job.stop(ms(500)).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(stopped.checkpoint.is_err() && stopped.parts_left == 1, "{stopped:?}");
    assert_eq!(stopped.late, ["the coordinator: in the commit of sink `out`"]);
    gate.open();
}

#[test]
fn a_drain_that_was_cut_short_leaves_no_half_of_the_end() {
    for stop_at in 0..80 {
        let (folder, out) = (tempfile::tempdir().unwrap(), Memory::new());
        let start = || {
            let job_config = config(1).batch_len_max(10).checkpoints(on_demand(&folder));
            draw(&out, 2000).into_local(job_config).unwrap()
        };
        let mut job = start();
        (0..40).for_each(|_| assert_ne!(job.step().unwrap(), Progress::Done));
        job.drain();
        let mut asked = None;
        for _ in 0..stop_at {
            asked = asked.or_else(|| job.checkpoint().ok());
            job.step().unwrap();
        }
        drop(job);
        // Nobody drains this one: it reads all, unless the first one was finished.
        let mut job = start();
        let finished = job.step().unwrap() == Progress::Done;
        job.run().unwrap();
        assert_eq!(out.committed().len(), 7, "stopped at step {stop_at}: each sum is there once");
        assert_eq!(counted(&out) == 2000, !finished, "stopped at step {stop_at}");
    }
}
