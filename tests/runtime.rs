//! Jobs as a user runs them: drawing, failing, stopping, going on. The crashes are in `simulate`.

#[path = "runtime/edges.rs"]
mod edges;
#[path = "runtime/process.rs"]
mod process;
#[path = "runtime/restore.rs"]
mod restore;
#[path = "runtime/states.rs"]
mod states;
#[path = "runtime/trickle.rs"]
mod trickle;

use snapring::connector::{Collect, Discard, Generate, Items, Memory};
use snapring::dataflow::{Dataflow, Stream};
use snapring::error::Error;
use snapring::operator::{Progress, Stage};
use snapring::runtime::{Checkpoints, Config, StageConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn numbers(count: u64, splits: u32) -> Generate<u64, impl Fn(u64) -> u64 + Send + Sync + 'static> {
    Generate::new(count, splits, |index| index)
}

fn config(workers: usize) -> Config {
    Config::new().unpinned_workers(workers)
}

fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items
}

/// What the design promises to type-check: helper functions from stream to stream.
fn odd(stream: Stream<u64>) -> Stream<u64, impl Stage<Out = u64>> {
    stream.filter(|number| number % 2 == 1)
}

#[test]
fn every_stateless_operator_in_one_chain() {
    let (out, seen) = (Collect::new(), Arc::new(AtomicU64::new(0)));
    let looked = seen.clone();
    let flow = Dataflow::new("chain");
    odd(flow.source("numbers", numbers(10, 3)))
        .map(|number| number * 10)
        .filter_map(|number| (number != 30).then_some(number))
        .try_map(|number| if number < 1000 { Ok(number + 1) } else { Err("too large") })
        .flat_map(|number| [number, number + 1])
        .inspect(move |_| {
            looked.fetch_add(1, Ordering::Relaxed);
        })
        .sink("out", out.clone());
    let summary = flow.start(config(1)).unwrap().wait().unwrap();
    assert_eq!(sorted(out.take()), [11, 12, 51, 52, 71, 72, 91, 92]);
    assert_eq!(seen.load(Ordering::Relaxed), 8);
    assert_eq!((summary.records, summary.checkpoints, summary.last_epoch), (10, 0, None));
}

#[test]
fn fork_merge_stage_and_key_at_any_parallelism() {
    for (workers, parallelism) in [(1, 1), (1, 4), (2, 1), (2, 3), (3, 7)] {
        let (sums, copies) = (Collect::new(), Collect::new());
        let flow = Dataflow::new("graph");
        let (left, right) = flow.source("numbers", numbers(1000, 5)).fork();
        let right = right.stage("right").map(|number| number + 1000);
        let (merged, copy) = left.merge(right).fork();
        copy.sink("copies", copies.clone());
        merged
            .key_by(|number| number % 10)
            .fold_to_end("sum", 0u64, |sum, number| *sum += number)
            .sink("sums", sums.clone());
        let config = config(workers).parallelism(parallelism).ring_capacity(1).batch_len_max(3);
        flow.start(config.stage("right", StageConfig::new().parallelism(2))).unwrap().wait().unwrap();
        assert_eq!(sorted(copies.take()), (0..2000).collect::<Vec<_>>(), "{workers} {parallelism}");
        let expected: Vec<(u64, u64)> = (0..10).map(|key| (key, (0..2000).filter(|n| n % 10 == key).sum())).collect();
        assert_eq!(sorted(sums.take()), expected, "{workers} {parallelism}");
    }
}

#[test]
fn keyed_operators_emit_after_each_record() {
    let (counts, maxima, sums) = (Collect::new(), Collect::new(), Collect::new());
    let words = ["a", "b", "a", "c", "a", "b"].map(str::to_owned).to_vec();
    let flow = Dataflow::new("keyed");
    let (one, other) = flow.source("words", Items::new(words)).fork();
    let (other, third) = other.map(|word| (word.clone(), word)).fork();
    one.key_by_ref(|word| word).count("count").sink("counts", counts.clone());
    other
        .key_by(|(key, _)| key.len() as u64)
        .reduce("max", |max, pair| {
            if pair.1 > max.1 {
                *max = pair;
            }
        })
        .sink("maxima", maxima.clone());
    third.key_by_ref(|(key, _)| key).fold("sum", 1u32, |sum, _| *sum *= 2).sink("sums", sums.clone());
    flow.start(config(1)).unwrap().wait().unwrap();
    let pair = |word: &str, count| (word.to_owned(), count);
    assert_eq!(
        sorted(counts.take()),
        [pair("a", 1), pair("a", 2), pair("a", 3), pair("b", 1), pair("b", 2), pair("c", 1)]
    );
    assert_eq!(maxima.take().last().map(|(_, max)| max.1.clone()), Some("c".to_owned()));
    assert_eq!(sums.take().into_iter().max(), Some(("c".to_owned(), 2)));
}

#[test]
fn the_first_error_names_operator_task_epoch_and_record() {
    let flow = Dataflow::new("failing");
    flow.source("numbers", numbers(100, 1))
        .try_map(|number| if number == 41 { Err(format!("{number} is bad")) } else { Ok(number) })
        .sink("out", Discard::new());
    let error = flow.start(config(2)).unwrap().wait().unwrap_err();
    let text = error.to_string();
    for part in ["try_map@", "runtime.rs", "task 0", "epoch 1", "record 42", "41 is bad"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert_eq!(error.exit_code(), 1);
}

#[test]
fn a_panic_is_a_failure_with_a_name() {
    for at in 0..4 {
        let flow = Dataflow::new("panicking");
        flow.source(
            "numbers",
            Generate::new(1000, 2, move |index| if at == 0 && index == 7 { panic!("boom") } else { index }),
        )
        .map(move |number| if at == 1 && number == 7 { panic!("boom") } else { number })
        .key_by(move |number| if at == 2 && *number == 7 { panic!("boom") } else { number % 3 })
        .fold("sum", 0u64, move |sum, number| {
            assert!(at != 3 || number != 7, "boom");
            *sum += number;
        })
        .sink("out", Discard::new());
        let error = flow.start(config(2)).unwrap().wait().unwrap_err().to_string();
        let name = ["`numbers`", "map@", "key_by@", "`sum`"][at as usize];
        assert!(error.contains(name) && error.contains("boom"), "{name}: {error}");
    }
}

#[test]
fn what_is_drawn_or_configured_wrongly_is_said_before_anything_runs() {
    let message = |draw: &dyn Fn(&Dataflow), config: Config| {
        let flow = Dataflow::new("wrong");
        draw(&flow);
        match flow.start(config) {
            Ok(_) => panic!("it starts"),
            Err(error @ Error::Build(_)) => {
                assert_eq!(error.exit_code(), 2);
                error.to_string()
            }
            Err(other) => panic!("{other}"),
        }
    };
    let fine = |flow: &Dataflow| flow.source("numbers", numbers(1, 1)).sink("out", Discard::new());
    let has = |message: String, part: &str| assert!(message.contains(part), "{part} is not in: {message}");
    has(message(&|_| {}, config(1)), "is empty");
    has(message(&|flow| drop(flow.source("numbers", numbers(1, 1)).map(|n| n)), config(1)), "`numbers`");
    has(
        message(
            &|flow| {
                fine(flow);
                fine(flow)
            },
            config(1),
        ),
        "two operators are named",
    );
    has(message(&|flow| flow.source("", numbers(1, 1)).sink("out", Discard::new()), config(1)), "empty name");
    has(
        message(&|flow| flow.source("numbers", numbers(1, 1)).sink("out", Memory::new()), config(1)),
        "configure checkpoints",
    );
    has(message(&fine, config(0)), "at least 1");
    has(message(&fine, config(1).ring_capacity(0)), "ring_capacity");
    has(message(&fine, config(1).ring_capacity(usize::MAX)), "ring_capacity must be between 1 and 65536");
    has(message(&fine, config(1).batch_len_max(usize::MAX)), "batch_len_max must be between 1 and 1048576");
    has(message(&fine, config(1).checkpoints(Checkpoints::on_demand().to(""))), "have no place");
    has(message(&fine, config(1).parallelism(0)), "parallelism");
    has(message(&fine, Config::new().cores([100_000])), "core 100000 is not allowed");
    has(message(&fine, config(1).stage("missing", StageConfig::new())), "`missing`");
    has(
        message(&fine, config(1).stage("numbers", StageConfig::new().cores([9]))),
        "core 9, which is not one of the job's",
    );
    has(message(&fine, config(1).checkpoints(Checkpoints::on_demand())), ".to(");
    let other = Dataflow::new("other");
    let two = |flow: &Dataflow| {
        let joined = flow.source("numbers", numbers(1, 1)).merge(other.source("others", numbers(1, 1)));
        joined.sink("out", Discard::new());
    };
    has(message(&two, config(1)), "two different dataflows");
}

#[test]
fn a_checkpoint_on_demand_is_durable_when_wait_returns() {
    let folder = tempfile::tempdir().unwrap();
    let draw = |out: &Memory<(u64, u64)>| {
        let flow = Dataflow::new("durable");
        flow.source("numbers", numbers(100_000, 4)).key_by(|n| n % 100).count("count").sink("out", out.clone());
        flow
    };
    let checkpoints = || Checkpoints::on_demand().to(folder.path());
    let out = Memory::new();
    let job = draw(&out).start(config(2).rate_per_s(40_000).checkpoints(checkpoints())).unwrap();
    let first = job.checkpoint().unwrap().wait().unwrap();
    let second = job.checkpoint().unwrap().wait().unwrap();
    assert!(second.epoch > first.epoch);
    let before = out.committed().len();
    job.abort(Duration::MAX).unwrap();
    assert!(before < 100_000);
    let job = draw(&out).start(config(2).parallelism(3).checkpoints(checkpoints())).unwrap();
    assert_eq!(job.restored_epoch(), Some(second.epoch));
    let summary = job.wait().unwrap();
    assert!(!summary.finished_before && summary.restored_epoch == Some(second.epoch));
    let expected: Vec<(u64, u64)> = (0..100).flat_map(|key| (1..=1000).map(move |count| (key, count))).collect();
    assert_eq!(sorted(out.committed()), expected);
    // Once more: nothing is left to do.
    let summary = draw(&out).start(config(1).checkpoints(checkpoints())).unwrap().wait().unwrap();
    assert!(summary.finished_before && summary.records == 0);
    assert_eq!(out.committed().len(), 100_000);
}

#[test]
fn a_stopped_job_goes_on_where_it_stood() {
    let folder = tempfile::tempdir().unwrap();
    let out = Memory::new();
    // At the rate below they last for ten seconds, however late `stop` comes on a busy machine.
    const NUMBERS: u64 = 200_000;
    let start = |rate| {
        let flow = Dataflow::new("stopped");
        flow.source("numbers", numbers(NUMBERS, 2)).sink("out", out.clone());
        let checkpoints = Checkpoints::on_demand().to(folder.path());
        flow.start(config(1).rate_per_s(rate).checkpoints(checkpoints)).unwrap()
    };
    let job = start(20_000);
    while job.progress().records < 500 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let stopped = job.stop(Duration::MAX).unwrap();
    assert!(stopped.checkpoint.is_ok() && stopped.late.is_empty(), "{stopped:?}");
    let summary = stopped.summary;
    assert!(summary.records < NUMBERS, "{}", summary.records);
    // What was read between the last cut and the end is read again.
    let committed = out.committed().len() as u64;
    assert!((500..=summary.records).contains(&committed), "{committed} of {}", summary.records);
    start(u64::MAX).wait().unwrap();
    assert_eq!(sorted(out.committed()), (0..NUMBERS).collect::<Vec<_>>());
}

#[test]
fn dropping_a_job_stops_it() {
    let flow = Dataflow::new("endless");
    flow.source("numbers", numbers(u64::MAX, 1)).stage("next").sink("out", Discard::new());
    let job = flow.start(config(2)).unwrap();
    let start = Instant::now();
    drop(job);
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn pacing_is_over_all_sources() {
    let flow = Dataflow::new("paced");
    let one = flow.source("one", numbers(100, 3));
    one.merge(flow.source("two", numbers(100, 3))).sink("out", Discard::new());
    let start = Instant::now();
    flow.start(config(1).rate_per_s(1000)).unwrap().wait().unwrap();
    let elapsed = start.elapsed();
    assert!((Duration::from_millis(180)..Duration::from_millis(1500)).contains(&elapsed), "{elapsed:?}");
}

#[test]
fn a_changed_dataflow_is_refused_with_both_lists() {
    let folder = tempfile::tempdir().unwrap();
    let start = |job: &str, operator: &str, seconds: bool| {
        let flow = Dataflow::new(job);
        let keyed = flow.source("numbers", numbers(10, 1)).key_by(|n| n % 2);
        if seconds {
            keyed.fold(operator, 0i32, |_, _| {}).sink("out", Discard::new());
        } else {
            keyed.count(operator).sink("out", Discard::new());
        }
        flow.start(config(1).checkpoints(Checkpoints::on_demand().to(folder.path()))).and_then(|job| job.wait())
    };
    start("job", "count", false).unwrap();
    let refused = |error: Error, parts: &[&str]| {
        assert_eq!(error.exit_code(), 4, "{error}");
        parts.iter().for_each(|part| assert!(error.to_string().contains(part), "{part} is not in: {error}"));
    };
    refused(start("other", "count", false).unwrap_err(), &["`job`", "`other`"]);
    refused(start("job", "sum", false).unwrap_err(), &["`count`", "`sum`"]);
}

#[test]
fn changed_input_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let start = |count| {
        let flow = Dataflow::new("job");
        flow.source("numbers", numbers(count, 2)).sink("out", Discard::new());
        flow.start(config(1).checkpoints(Checkpoints::on_demand().to(folder.path()))).and_then(|job| job.wait())
    };
    start(10).unwrap();
    assert!(start(10).unwrap().finished_before);
    let error = start(11).unwrap_err().to_string();
    assert!(error.contains("the input has changed"), "{error}");
}

#[test]
fn who_asks_while_an_epoch_is_under_way_gets_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let flow = Dataflow::new("asked");
    flow.source("numbers", numbers(10_000, 1)).stage("next").sink("out", Discard::new());
    let mut job = flow.into_local(config(1).checkpoints(Checkpoints::on_demand().to(folder.path()))).unwrap();
    let first = job.checkpoint().unwrap();
    job.step().unwrap();
    let second = job.checkpoint().unwrap();
    let mut epochs = Vec::new();
    for pending in [first, second] {
        epochs.push(loop {
            match pending.try_wait().unwrap() {
                Some(report) => break report.epoch,
                None => assert_ne!(job.step().unwrap(), Progress::Done),
            }
        });
    }
    assert_eq!(epochs, [1, 2]);
}

#[test]
fn a_long_emission_is_cut_by_checkpoints_and_resumed() {
    // 10 million keys take a while: `SNAPRING_LONG=1 cargo test --release --test runtime a_long_emission`.
    let keys = if std::env::var_os("SNAPRING_LONG").is_some() { 10_000_000 } else { 100_000 };
    // Other parallelisms: what has been emitted is known by range of the hash.
    cut_emission(keys, 1, 3);
    cut_emission(keys, 3, 1);
}

fn cut_emission(keys: u64, before: u32, after: u32) {
    let folder = tempfile::tempdir().unwrap();
    let out = Memory::new();
    let local = |parallelism| {
        let flow = Dataflow::new("long");
        let folded =
            flow.source("numbers", numbers(keys, 3)).key_by(|n| *n).fold_to_end("last", 0u64, |last, n| *last = n);
        folded.stage("after").sink("out", out.clone());
        let config = config(1).parallelism(parallelism).ring_capacity(1).batch_len_max(7);
        flow.into_local(config.checkpoints(Checkpoints::on_demand().to(folder.path()))).unwrap()
    };
    let mut job = local(before);
    while job.progress().records < keys {
        job.step().unwrap();
    }
    // The emission goes on for many steps; a checkpoint falls into it.
    for _ in 0..2000 {
        assert_ne!(job.step().unwrap(), Progress::Done, "the emission must outlast these steps");
    }
    let pending = job.checkpoint().unwrap();
    while pending.try_wait().unwrap().is_none() {
        job.step().unwrap();
    }
    let committed = out.committed().len() as u64;
    assert!(committed > 0 && committed < keys, "{committed}");
    drop(job);
    local(after).run().unwrap();
    assert_eq!(sorted(out.committed()), (0..keys).map(|key| (key, key)).collect::<Vec<_>>());
}
