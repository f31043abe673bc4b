//! Views of a running job: consistent over tasks and operators, whatever runs meanwhile, and never a reason for the job to
//! fail.

mod memory;

use snapring::connector::{Discard, Generate, Memory};
use snapring::operator::Progress;
use snapring::runtime::{CheckpointOutcome, Local, View};
use snapring::snapshot::sim::SimDisk;
use snapring::snapshot::{Store, StoreOptions};
use snapring::{Checkpoints, Config, Dataflow, Job};
use std::collections::BTreeMap;
use std::time::Duration;

const KEYS: u64 = 5000;

/// Counts by key, and then the counts by their last digits: what the first operator has counted the second one has, too.
fn two_counts(events: u64) -> Dataflow {
    let flow = Dataflow::new("two-counts");
    flow.source("events", Generate::new(events, 8, |index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS))
        .key_by(|key| *key)
        .count("first")
        .key_by(|(key, _)| key % 97)
        .count("second")
        .sink("out", Discard::new());
    flow
}

fn totals(view: &View) -> [u64; 2] {
    ["first", "second"].map(|name| {
        let table = view.table::<u64, u64>(name).unwrap();
        let total = table.fold(0, |total, _, count| *total += count).unwrap();
        // Each key is where it is looked for.
        let mut looked_up = 0;
        table.each(|key, count| looked_up += u64::from(table.get(&key).unwrap() == Some(count))).unwrap();
        assert_eq!(looked_up, table.len());
        assert_eq!(table.get(&u64::MAX).unwrap(), None);
        total
    })
}

fn views_of(job: &Job, count: usize) -> Vec<View> {
    (0..count).map(|_| job.view().unwrap().wait().unwrap()).collect()
}

#[test]
fn each_view_is_one_cut_through_all_tasks() {
    let job = two_counts(u64::MAX).start(Config::new().unpinned_workers(2).parallelism(3)).unwrap();
    let views = views_of(&job, 20);
    let mut before = 0;
    for view in &views {
        let [first, second] = totals(view);
        assert_eq!(first, second, "records lie between the two operators: the cut is not one");
        assert!(first >= before, "views do not go back");
        before = first;
    }
    assert!(before > 0);
    // What is held stays as it was while the job went on.
    let again: Vec<_> = views.iter().map(totals).collect();
    assert!(again.iter().all(|[first, second]| first == second) && again.is_sorted());
    job.abort(Duration::from_secs(10)).unwrap();
}

#[test]
fn views_write_nothing_and_checkpoints_go_on_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    let every = Duration::from_millis(20);
    let checkpoints = Checkpoints::every(every).to(folder.path());
    let job = two_counts(u64::MAX).start(Config::new().unpinned_workers(2).checkpoints(checkpoints)).unwrap();
    let mut views = 0;
    while job.metrics().durable < 5 {
        let [first, second] = totals(&job.view().unwrap().wait().unwrap());
        assert_eq!(first, second);
        views += 1;
        assert!(views < 20_000, "views keep checkpoints from being made");
    }
    let metrics = job.metrics();
    assert_eq!(metrics.given_up, 0);
    let durable = metrics.checkpoints.iter().filter(|checkpoint| checkpoint.outcome == CheckpointOutcome::Durable);
    assert!(durable.clone().count() >= 5 && durable.clone().all(|checkpoint| checkpoint.pause_ns.is_some()));
    job.abort(Duration::from_secs(10)).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::on_demand().to(folder.path());
    let job = two_counts(u64::MAX).start(Config::new().unpinned_workers(1).checkpoints(checkpoints)).unwrap();
    views_of(&job, 10);
    let metrics = job.metrics();
    assert_eq!((metrics.durable, metrics.checkpoints.len()), (0, 0), "nobody has asked for a checkpoint");
    // The next checkpoint is of all that has changed, though views were cut in between.
    job.checkpoint().unwrap().wait().unwrap();
    job.abort(Duration::from_secs(10)).unwrap();
    let job = two_counts(u64::MAX)
        .start(Config::new().unpinned_workers(1).checkpoints(Checkpoints::on_demand().to(folder.path())))
        .unwrap();
    let [first, second] = totals(&job.view().unwrap().wait().unwrap());
    assert_eq!(first, second);
    assert!(first > 0, "it went on from the checkpoint");
    job.abort(Duration::from_secs(10)).unwrap();
}

fn store(disk: &SimDisk) -> Store {
    let options = StoreOptions { page_bytes: 4096, segment_bytes: 64 << 10, ..StoreOptions::default() };
    Store::open_on(Box::new(disk.clone()), options).unwrap()
}

fn local(disk: &SimDisk, seed: u64, sink: &Memory<(u64, u64)>) -> Local {
    let flow = Dataflow::new("local");
    let source = Generate::new(4 * KEYS, 4, |index| index % KEYS);
    flow.source("keys", source).key_by(|key| *key).count("counts").sink("out", sink.clone());
    let checkpoints = Checkpoints::on_demand().store(store(disk));
    let config = Config::new().unpinned_workers(1).parallelism(2).checkpoints(checkpoints).batch_len_max(10);
    flow.into_local(config.seed(seed)).unwrap()
}

/// Steps until it is there.
fn view_of(job: &mut Local) -> View {
    let asked = job.view().unwrap();
    loop {
        job.step().unwrap();
        if let Some(view) = asked.try_wait().unwrap() {
            return view;
        }
    }
}

fn content(view: &View) -> BTreeMap<u64, u64> {
    let mut content = BTreeMap::new();
    view.table::<u64, u64>("counts")
        .unwrap()
        .each(|key, count| {
            content.insert(key, count);
        })
        .unwrap();
    content
}

#[test]
fn what_is_still_in_the_snapshot_is_part_of_a_view() {
    for seed in 0..20 {
        let (disk, sink) = (SimDisk::new(), Memory::new());
        let mut job = local(&disk, seed, &sink);
        while job.progress().records < 2 * KEYS + 100 * seed {
            job.step().unwrap();
        }
        let asked = job.checkpoint().unwrap();
        while asked.try_wait().unwrap().is_none() {
            job.step().unwrap();
        }
        drop(job);
        let mut job = local(&disk, seed + 1, &sink);
        let view = view_of(&mut job);
        let then = content(&view);
        assert!(then.len() as u64 == KEYS && then.values().sum::<u64>() >= 2 * KEYS);
        // The job goes on to its end, and the view stays what it was.
        while job.step().unwrap() != Progress::Done {}
        assert_eq!(content(&view), then);
        assert!(job.view().is_err());
        let counts: u64 = sink.committed().iter().filter(|(_, count)| *count == 4).count() as u64;
        assert_eq!(counts, KEYS, "seed {seed}: each key has been counted four times");
    }
}

#[test]
fn what_a_view_does_not_have_is_said_by_name() {
    let job = two_counts(u64::MAX).start(Config::new().unpinned_workers(1)).unwrap();
    let view = job.view().unwrap().wait().unwrap();
    let states: Vec<_> = view.states().collect();
    assert_eq!(states.len(), 2, "{states:?}");
    let unknown = view.table::<u64, u64>("third").unwrap_err().to_string();
    assert!(unknown.contains("`third`") && unknown.contains("`first`"), "{unknown}");
    let other = view.table::<u64, i32>("first").unwrap_err().to_string();
    assert!(other.contains("u64") && other.contains("i32"), "{other}");
    job.abort(Duration::from_secs(10)).unwrap();
}

#[test]
fn nobody_waits_for_ever_for_a_view_of_a_job_that_ends() {
    for _ in 0..20 {
        let job = two_counts(20_000).start(Config::new().unpinned_workers(2).parallelism(2)).unwrap();
        while let Ok(asked) = job.view() {
            // A view, or the word that it will not come.
            if let Ok(view) = asked.wait() {
                let _ = view.table::<u64, u64>("first").map(|table| table.len());
            }
        }
        assert_eq!(job.wait().unwrap().records, 20_000);
    }
}
