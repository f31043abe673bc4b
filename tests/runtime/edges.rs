//! Every edge at several parallelisms, with batches and rings of one, with checkpoints in between and restarts at another
//! parallelism: nothing is lost, nothing comes twice.

use super::{config, numbers, sorted};
use snapring::connector::{BadLines, Collect, Csv, Discard, Items, Lines, Memory};
use snapring::dataflow::{Dataflow, Stream};
use snapring::operator::Stage;
use snapring::runtime::{Checkpoints, Local, StageConfig};
use std::path::Path;

const NUMBERS: u64 = 600;

/// Draws a stream of all numbers on to a sink, and says what must come out, sorted.
type Draw = fn(Stream<u64>, &Dataflow) -> Stream<u64>;

/// So many tasks has a stage called `all` in each of these runs: what a broadcast multiplies by.
const ALL: u32 = 3;

fn other(flow: &Dataflow) -> Stream<u64> {
    flow.source("others", numbers(50, 2)).map(|number| number + NUMBERS).boxed()
}

fn edges() -> Vec<(&'static str, Draw, Vec<u64>)> {
    let all = || (0..NUMBERS).collect::<Vec<_>>();
    let times = |count: usize| sorted(all().repeat(count));
    vec![
        ("broadcast", |numbers, _| numbers.broadcast("all"), times(ALL as usize)),
        ("broadcast and back", |numbers, _| numbers.broadcast("all").stage("one"), times(ALL as usize)),
        ("rebalance", |numbers, _| numbers.rebalance(), all()),
        (
            "split",
            |numbers, _| {
                let (odd, even) = numbers.split(|number| number % 2 == 1);
                odd.map(|number| number).merge(even.stage("even"))
            },
            all(),
        ),
        (
            "split_by",
            |numbers, _| {
                let [a, b, c] = numbers.split_by(|number| (number % 3) as usize);
                a.union([b.rebalance(), c.map(|number| number).boxed()])
            },
            all(),
        ),
        (
            "partition_result",
            |numbers, _| {
                let texts = numbers.map(|number| if number % 5 == 0 { Err(number.to_string()) } else { Ok(number) });
                let (right, wrong) = texts.stage("results").partition_result();
                right.merge(wrong.try_map(|text| text.parse()))
            },
            all(),
        ),
        (
            "union",
            |numbers, flow| numbers.union([other(flow), flow.source("third", super::numbers(0, 1))]),
            (0..NUMBERS + 50).collect(),
        ),
        ("union of one", |numbers, _| numbers.union([]), all()),
    ]
}

fn local(draw: Draw, out: &Memory<u64>, folder: &Path, parallelism: u32, len: usize) -> Local {
    let flow = Dataflow::new("edges");
    let numbers = flow.source("numbers", numbers(NUMBERS, 5));
    let drawn = draw(numbers, &flow);
    let broadcasts = flow.graph().operators().any(|operator| operator.name == "all");
    drawn.sink("out", out.clone());
    let config = config(1).parallelism(parallelism).ring_capacity(len).batch_len_max(len);
    let config = if broadcasts { config.stage("all", StageConfig::new().parallelism(ALL)) } else { config };
    flow.into_local(config.checkpoints(Checkpoints::on_demand().to(folder))).unwrap()
}

#[test]
fn each_edge_hands_each_record_on_once_across_restarts() {
    for (name, draw, expected) in edges() {
        for (parallelisms, len) in [([1, 1, 1], 1), ([1, 4, 2], 1), ([3, 1, 3], 2), ([2, 2, 5], 7)] {
            let (folder, out) = (tempfile::tempdir().unwrap(), Memory::new());
            for (run, parallelism) in parallelisms.into_iter().enumerate() {
                let mut job = local(draw, &out, folder.path(), parallelism, len);
                if run == 2 {
                    job.run().unwrap();
                    break;
                }
                // Some steps, a checkpoint, and some more steps that are lost.
                let steps = 80 + 150 * run;
                for _ in 0..steps {
                    job.step().unwrap();
                }
                let Ok(pending) = job.checkpoint() else {
                    assert!(len > 1, "{name}: the job is over early");
                    break;
                };
                while pending.try_wait().unwrap().is_none() {
                    job.step().unwrap();
                }
                for _ in 0..50 {
                    job.step().unwrap();
                }
            }
            assert_eq!(sorted(out.committed()), expected, "{name}, {parallelisms:?}, {len}");
        }
    }
}

#[test]
fn each_edge_works_on_threads() {
    for (name, draw, expected) in edges() {
        let flow = Dataflow::new("edges");
        let (numbers, out) = (flow.source("numbers", numbers(NUMBERS, 5)), Collect::new());
        let drawn = draw(numbers, &flow);
        let broadcasts = flow.graph().operators().any(|operator| operator.name == "all");
        drawn.sink("out", out.clone());
        let config = config(2).parallelism(2).ring_capacity(2).batch_len_max(3);
        let config = if broadcasts { config.stage("all", StageConfig::new().parallelism(ALL)) } else { config };
        flow.start(config).unwrap().wait().unwrap();
        assert_eq!(sorted(out.take()), expected, "{name}");
    }
}

/// Marks each record with the task that has it: threads of a worker each, a task each.
fn tasks_of(records: Vec<(String, u64)>) -> std::collections::BTreeMap<String, Vec<u64>> {
    let mut tasks = std::collections::BTreeMap::<_, Vec<_>>::new();
    records.into_iter().for_each(|(task, record)| tasks.entry(task).or_default().push(record));
    tasks.values_mut().for_each(|records| records.sort_unstable());
    tasks
}

fn with_thread(stream: Stream<u64>) -> Stream<(String, u64), impl Stage<Out = (String, u64)>> {
    stream.map(|record| (std::thread::current().name().unwrap_or_default().to_owned(), record))
}

#[test]
fn a_broadcast_reaches_every_task_and_a_rebalance_evens_out() {
    let (all, even) = (Collect::new(), Collect::new());
    let flow = Dataflow::new("tasks");
    // One split: one of the tasks reads all there is.
    let (one, other) = flow.source("numbers", numbers(300, 1)).fork();
    with_thread(one.broadcast("all")).sink("everything", all.clone());
    with_thread(other.rebalance()).sink("even", even.clone());
    flow.start(config(3).parallelism(3).batch_len_max(10)).unwrap().wait().unwrap();
    let all = tasks_of(all.take());
    assert!(all.len() == 3 && all.values().all(|records| records.iter().copied().eq(0..300)), "{all:?}");
    let even = tasks_of(even.take());
    assert!(even.len() == 3 && even.values().all(|records| records.len() == 100), "{even:?}");
}

#[test]
fn edges_are_drawn_with_their_names() {
    let flow = Dataflow::new("drawn");
    let (left, right) = flow.source("numbers", numbers(1, 1)).broadcast("rules").split(|_| true);
    left.rebalance().union([right.boxed()]).sink("out", Discard::new());
    let graph = flow.graph().to_string();
    for part in [
        "broadcast to chain rules",
        "rules (broadcast) > split@",
        "rebalance to chain rebalance@",
        "(union)",
        "(boxed)",
    ] {
        assert!(graph.contains(part), "{part} is not in:\n{graph}");
    }
}

#[test]
fn a_stream_that_is_not_there_is_named() {
    let flow = Dataflow::new("picked");
    let [one, two] = flow.source("numbers", numbers(10, 1)).split_by(|number| *number as usize);
    one.sink("one", Discard::new());
    two.sink("two", Discard::new());
    let error = flow.start(config(1)).unwrap().wait().unwrap_err().to_string();
    for part in ["split_by@", "picked stream 2", "there are 2", "record 3"] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
    let other = Dataflow::new("other");
    let flow = Dataflow::new("mixed");
    flow.source("numbers", numbers(1, 1)).union([other.source("others", numbers(1, 1))]).sink("out", Discard::new());
    let error = flow.start(config(1)).unwrap_err().to_string();
    assert!(error.contains("union@") && error.contains("two different dataflows"), "{error}");
}

/// A bad line among every ten.
fn some_bad(lines: u64) -> String {
    (0..lines).fold("n\n".to_owned(), |text, n| text + &if n % 10 == 3 { "bad\n".into() } else { format!("{n}\n") })
}

#[test]
fn skipped_lines_are_counted_once_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.csv");
    std::fs::write(&path, some_bad(1000)).unwrap();
    let out = Memory::new();
    let local = |parallelism| {
        let flow = Dataflow::new("skips");
        let csv = Csv::<u64>::open(&path).unwrap().split_bytes(500).bad_lines(BadLines::Skip);
        flow.source("numbers", csv).sink("out", out.clone());
        let config = config(1).parallelism(parallelism).batch_len_max(3);
        flow.into_local(config.checkpoints(Checkpoints::on_demand().to(folder.path().join("state")))).unwrap()
    };
    let mut before = 0;
    for parallelism in [2, 1, 4] {
        let mut job = local(parallelism);
        assert_eq!(job.skipped().lines, before, "as many as when the checkpoint was made");
        for _ in 0..60 {
            job.step().unwrap();
        }
        let pending = job.checkpoint().unwrap();
        // Nothing is read any more when it is durable but what was read in the same round.
        while pending.try_wait().unwrap().is_none() {
            job.step().unwrap();
        }
        drop(job);
        let restored = local(parallelism);
        before = restored.skipped().lines;
        assert!(before > 0 && before < 100, "{before}");
    }
    let mut job = local(3);
    job.run().unwrap();
    let skipped = job.skipped();
    assert_eq!(skipped.lines, 100);
    let lines: Vec<u64> = skipped.first.iter().map(|line| line.line).collect();
    assert_eq!(lines, (0..10).map(|n| n * 10 + 5).collect::<Vec<_>>());
    assert_eq!(sorted(out.committed()), (0..1000).filter(|n| n % 10 != 3).collect::<Vec<_>>());
}

#[test]
fn bad_lines_by_the_side_are_records_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.csv");
    std::fs::write(&path, some_bad(100)).unwrap();
    let (good, bad) = (Collect::new(), Collect::new());
    let flow = Dataflow::new("sides");
    let csv = Csv::<u64>::open(&path).unwrap().split_bytes(64).or_bad_lines();
    let (numbers, lines) = flow.source("numbers", csv).partition_result();
    numbers.sink("good", good.clone());
    lines.key_by_ref(|line| &line.file).count("count").sink("bad", bad.clone());
    let summary = flow.start(config(2)).unwrap().wait().unwrap();
    assert_eq!((summary.records, summary.skipped.lines), (100, 0));
    assert_eq!(good.take().len(), 90);
    assert_eq!(bad.take().into_iter().max(), Some((path.display().to_string(), 10)));
    let strict = Dataflow::new("strict");
    strict.source("text", Lines::open(&path).unwrap().text()).sink("out", Collect::new());
    strict.start(config(1)).unwrap().wait().unwrap();
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let start = |config| {
        let flow = Dataflow::new("refused");
        flow.source("numbers", Items::new(vec![1u64])).stage("next").sink("out", Discard::new());
        flow.start(config).unwrap_err().to_string()
    };
    let core = core_affinity::get_core_ids().unwrap()[0].id;
    let error = start(config(1).cores([core]));
    assert!(error.contains("`cores`") && error.contains("`unpinned_workers`"), "{error}");
    let error = start(config(1).stage("next", StageConfig::new().parallelism(300)));
    assert!(error.contains("stage `next`") && error.contains("between 1 and 256, not 300"), "{error}");
}
