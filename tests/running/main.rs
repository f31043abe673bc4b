//! A running job as its holder sees it: numbers, warnings about user code that does not return, and the ways to end it,
//! each within its time.

mod gate;
mod stopping;

use gate::Gate;
use snapring::connector::{Discard, Generate};
use snapring::dataflow::Dataflow;
use snapring::runtime::{
    ChannelMetrics, CheckpointOutcome, Checkpoints, Config, Job, Metrics, StageConfig, TaskMetrics, TaskState,
};
use snapring::snapshot::Durability;
use std::time::{Duration, Instant};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn config(workers: usize) -> Config {
    Config::new().unpinned_workers(workers).parallelism(1)
}

fn numbers(count: u64) -> Generate<u64, impl Fn(u64) -> u64 + Send + Sync + 'static> {
    Generate::new(count, 2, |index| index)
}

fn on_demand(folder: &tempfile::TempDir) -> Checkpoints {
    Checkpoints::on_demand().to(folder.path()).durability(Durability::ProcessCrash)
}

/// Numbers, each of which passes a gate in the stage `gated`.
fn gated(count: u64, gate: &Gate) -> Dataflow {
    let (flow, gate) = (Dataflow::new("gated"), gate.clone());
    flow.source("numbers", numbers(count)).stage("gated").inspect(move |_| gate.pass()).sink("out", Discard::new());
    flow
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not come to this: {what}");
        std::thread::sleep(ms(2));
    }
}

#[test]
fn a_worker_that_does_not_return_is_named_and_again_when_it_does() {
    let gate = Gate::closed();
    let job = gated(1000, &gate).start(config(2).watchdog(ms(60))).unwrap();
    until("a warning", || !job.warnings().is_empty());
    let warning = &job.warnings()[0];
    for part in ["worker 1", "task 0 of `gated`", "inspect@tests/running/main.rs", "does not return"] {
        assert!(warning.contains(part), "{part} is not in: {warning}");
    }
    let stalls = job.metrics().stalls;
    assert!(stalls.len() == 1 && stalls[0].worker == 1 && stalls[0].stuck >= ms(60), "{stalls:?}");
    std::thread::sleep(ms(150));
    assert_eq!(job.warnings().len(), 1, "said once");
    gate.open();
    until("a second warning", || job.warnings().len() == 2 || job.is_over());
    assert!(job.metrics().stalls.is_empty());
    job.wait().unwrap();
}

#[test]
fn a_job_whose_output_nobody_polls_is_told_to_stand_still_once_and_again_after_it_has_moved() {
    let flow = Dataflow::new("unread");
    let numbers = flow.source("numbers", numbers(u64::MAX)).stage("middle").map(|number| number + 1);
    let mut results = numbers.stage("last").output("results");
    let job = flow.start(config(2).ring_capacity(2).batch_len_max(10).stall_limit(ms(100))).unwrap();
    until("a warning", || !job.warnings().is_empty());
    let warning = &job.warnings()[0];
    for part in [
        "nothing has moved for ",
        "numbers 0 waits for room in the ring to middle 0",
        "middle 0 waits for room in the ring to last 0",
    ] {
        assert!(warning.contains(part), "{part} is not in: {warning}");
    }
    assert!(!warning.contains("in a circle"), "{warning}");
    assert_eq!(job.diagnosis().circle, []);
    std::thread::sleep(ms(300));
    assert_eq!(job.warnings().len(), 1, "said once: {:?}", job.warnings());
    for _ in 0..100 {
        until("a result", || results.poll().unwrap().is_some());
    }
    until("a second warning", || job.warnings().len() == 2);
    assert!(job.metrics().stalls.is_empty(), "no worker is stuck");
}

fn task<'a>(metrics: &'a Metrics, name: &str) -> &'a TaskMetrics {
    metrics.tasks.iter().find(|task| task.name == name).unwrap()
}

#[test]
fn metrics_say_who_waits_for_whom() {
    let gate = Gate::closed();
    let job = gated(100_000, &gate).start(config(2).ring_capacity(4).batch_len_max(10)).unwrap();
    // The gate is closed: the ring fills but for the slot that is being read, the source waits, and the worker is within a step of the gated task.
    until("a full ring", || task(&job.metrics(), "numbers").state == TaskState::BlockedByOutput);
    until("samples", || task(&job.metrics(), "numbers").samples.blocked_by_output > 3);
    let metrics = job.metrics();
    let [ChannelMetrics { from: 0, to: 1, slots: 4, filled: 3, batches: 4, records: 40, .. }] = metrics.channels[..]
    else {
        panic!("{metrics:?}");
    };
    let gated = task(&metrics, "gated");
    assert_eq!((gated.index, gated.worker, gated.operators.len()), (0, 1, 3), "{gated:?}");
    assert!(gated.samples.busy > 0 && gated.operators[1].starts_with("inspect@"), "{gated:?}");
    gate.open();
    until("the end", || job.is_over());
    let metrics = job.metrics();
    for name in ["numbers", "gated"] {
        let task = task(&metrics, name);
        assert_eq!((task.records, task.state), (100_000, TaskState::Finished), "{task:?}");
        assert!(task.batches >= 10_000, "{task:?}");
    }
    assert_eq!((metrics.channels[0].records, metrics.channels[0].filled, metrics.records), (100_000, 0, 100_000));
    job.wait().unwrap();
}

#[test]
fn metrics_say_that_an_input_waits_at_a_barrier() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::closed());
    let flow = Dataflow::new("aligning");
    let passing = gate.clone();
    // One of two branches is held up: its barrier does not come, and the other waits for it.
    let (fast, slow) = flow.source("numbers", numbers(100)).fork();
    let slow = slow.stage("slow").inspect(move |_| passing.pass()).stage("behind");
    fast.merge(slow).stage("last").sink("out", Discard::new());
    let job = flow.start(config(4).checkpoints(on_demand(&folder)).batch_len_max(10)).unwrap();
    until("a batch on its way", || task(&job.metrics(), "slow").samples.busy > 0);
    let pending = job.checkpoint().unwrap();
    let merge = |metrics: &Metrics| metrics.tasks.iter().find(|task| task.name.starts_with("merge@")).cloned();
    until("an alignment", || merge(&job.metrics()).is_some_and(|merge| merge.state == TaskState::BlockedByAlignment));
    gate.open();
    pending.wait().unwrap();
    job.wait().unwrap();
}

#[test]
fn metrics_remember_checkpoints_by_phase() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::closed());
    gate.open();
    let flow = gated(u64::MAX, &gate);
    let config = config(1).checkpoints(on_demand(&folder).timeout(ms(300))).rate_per_s(10_000).batch_len_max(1);
    let job = flow.start(config).unwrap();
    for _ in 0..70 {
        job.checkpoint().unwrap().wait().unwrap();
    }
    gate.close();
    until("the closed gate", || {
        let before = job.progress().records;
        std::thread::sleep(ms(100));
        job.progress().records == before
    });
    assert!(job.checkpoint().unwrap().wait().is_err(), "out of time");
    let metrics = job.metrics();
    assert_eq!((metrics.durable, metrics.given_up, metrics.checkpoints.len()), (70, 1, 64));
    let [.., durable, given_up] = &metrics.checkpoints[..] else { panic!("{metrics:?}") };
    assert_eq!((durable.epoch, &durable.outcome), (70, &CheckpointOutcome::Durable));
    let phases = [durable.cut_ns, durable.synced_ns, durable.durable_ns, durable.committed_ns];
    assert!(phases.iter().all(Option::is_some) && phases.is_sorted() && durable.bytes > 0, "{durable:?}");
    assert!(given_up.epoch == 71 && given_up.begun_ns > durable.begun_ns && given_up.cut_ns.is_none(), "{given_up:?}");
    assert!(matches!(&given_up.outcome, CheckpointOutcome::GivenUp(reason) if reason.contains("time-out")));
    gate.open();
    drop(job);
}

#[test]
fn a_local_job_has_numbers_too() {
    let gate = Gate::closed();
    gate.open();
    let mut job = gated(1000, &gate).into_local(config(1).stage("gated", StageConfig::new().parallelism(2))).unwrap();
    job.run().unwrap();
    let metrics = job.metrics();
    assert_eq!((metrics.tasks.len(), metrics.channels.len(), metrics.records), (3, 2, 1000));
    assert!(metrics.tasks.iter().all(|task| task.state == TaskState::Finished));
    assert_eq!(metrics.channels.iter().map(|channel| channel.records).sum::<u64>(), 1000);
}

/// What a job that runs says while its holder does something else.
fn busy(job: &Job) -> bool {
    job.metrics().tasks.iter().any(|task| task.records > 0)
}
