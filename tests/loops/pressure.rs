//! More in a loop than its rings hold (protocols, rules 27 to 29).

use super::{Token, run, step, tight, token};
use snapring::connector::{Collect, Discard, Generate, Items};
use snapring::error::{Cause, Error};
use snapring::operator::{Emit, Operator, Value};
use snapring::{Config, Dataflow, Protocol};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts the passes of a key, and hands on.
pub(crate) struct Pass;

impl Operator for Pass {
    type Key = u64;
    type In = Token;
    type Out = Token;
    type State = Value<u64>;

    fn on_record<E: Emit<Token>>(
        &self,
        _: &u64,
        record: Token,
        passes: &mut Value<u64>,
        out: &mut E,
    ) -> Result<(), snapring::error::Failed> {
        *passes.get_or_insert_with(|| 0)? += 1;
        out.emit(record)
    }
}

fn under_each_protocol(run: impl Fn(Protocol, &std::path::Path)) {
    for protocol in Protocol::ALL {
        let state = tempfile::tempdir().unwrap();
        run(protocol, state.path());
    }
}

#[test]
fn many_more_tokens_than_slots_go_round() {
    under_each_protocol(|protocol, state| {
        let done = Collect::new();
        let flow = Dataflow::new("tokens");
        let tokens = flow.source("tokens", Generate::new(300, 3, |id| token(id, 1 + (id % 1000) as u32)));
        let (again, tokens) = tokens.feedback::<Token>("again");
        let passed = tokens.key_by(|token| token.id).process("pass", Pass).map(step);
        let (more, over) = passed.split(|token| token.laps > 0);
        again.close(more);
        over.sink("done", done.clone());
        let summary = run(flow, tight(protocol, state)).unwrap();
        let mut ids: Vec<u64> = done.take().iter().map(|token| token.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..300).collect::<Vec<_>>(), "{protocol}");
        assert!(summary.checkpoints > 1 && summary.given_up == 0, "{protocol}: {summary:?}");
    });
}

#[test]
fn what_expands_a_thousandfold_in_a_loop_goes_through() {
    under_each_protocol(|protocol, state| {
        let done = Collect::new();
        let flow = Dataflow::new("expand");
        let (again, seeds) = flow.source("seeds", Generate::new(200, 2, |id| token(id, 2))).feedback::<Token>("again");
        let spread = seeds.flat_map(|seed| {
            let copies = if seed.laps == 2 { 1000 } else { 1 };
            (0..copies).map(move |_| step(seed.clone()))
        });
        let (more, over) = spread.stage("body").split(|token| token.laps > 0);
        again.close(more);
        over.sink("done", done.clone());
        let summary = run(flow, tight(protocol, state)).unwrap();
        assert_eq!(done.take().len(), 200_000, "{protocol}");
        assert!(summary.checkpoints > 1 && summary.given_up == 0, "{protocol}: {summary:?}");
    });
}

#[test]
fn a_slow_operator_in_a_loop_and_an_input_into_its_middle_hold_up_no_checkpoint() {
    under_each_protocol(|protocol, state| {
        let done = Collect::new();
        let flow = Dataflow::new("middle");
        let ahead = flow.source("ahead", Generate::new(200, 2, |id| token(id, 5)));
        let middle = flow.source("middle", Generate::new(200, 2, |id| token(1000 + id, 3)));
        let (again, head) = ahead.feedback::<Token>("again");
        let body = head.stage("first").merge(middle).key_by(|token| token.id % 7).process("slow", Pass).inspect(|_| {
            std::thread::sleep(Duration::from_micros(50));
        });
        let (more, over) = body.map(step).split(|token| token.laps > 0);
        again.close(more);
        over.sink("done", done.clone());
        let summary = run(flow, tight(protocol, state)).unwrap();
        assert_eq!(done.take().len(), 400, "{protocol}");
        assert!(summary.checkpoints > 3 && summary.given_up == 0, "{protocol}: {summary:?}");
    });
}

#[test]
fn what_goes_round_for_ever_starves_nobody() {
    let state = tempfile::tempdir().unwrap();
    let passed = Arc::new(AtomicU64::new(0));
    let flow = Dataflow::new("for ever");
    let tokens = flow.source("tokens", Generate::new(500, 1, |id| token(id, if id < 3 { u32::MAX } else { 1 })));
    let (again, tokens) = tokens.feedback::<Token>("again");
    let (more, over) = tokens.stage("body").map(step).split(|token| token.laps > 0);
    again.close(more);
    let counted = passed.clone();
    over.inspect(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    })
    .sink("passed", Discard::new());
    let job = flow.start(tight(Protocol::Aligned, state.path())).unwrap();
    let start = std::time::Instant::now();
    while passed.load(Ordering::Relaxed) < 497 || job.metrics().durable < 5 {
        assert!(start.elapsed() < Duration::from_secs(30), "{passed:?} have passed:\n{}", job.diagnosis());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!job.is_over(), "three go round");
    drop(job);
}

/// Rule 28: without it a fast input would fill the loop's spill, up to its limit.
#[test]
fn a_fast_input_waits_for_its_loop() {
    let done = Arc::new(AtomicU64::new(0));
    let flow = Dataflow::new("fast");
    let tokens = flow.source("tokens", Generate::new(3_000, 1, |id| token(id, 2_000)));
    let (again, tokens) = tokens.feedback::<Token>("again");
    let (more, over) = tokens.stage("body").map(step).split(|token| token.laps > 0);
    again.close(more);
    let counted = done.clone();
    over.inspect(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    })
    .sink("done", Discard::new());
    // A sixth of the input: four times what the rings of the loop hold.
    let config = Config::new().unpinned_workers(2).parallelism(1).ring_capacity(2).batch_len_max(16);
    run(flow, config.spill(1 << 13, 1 << 13)).unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 3_000);
}

#[test]
fn a_loop_that_grows_without_bound_ends_with_an_error() {
    let flow = Dataflow::new("rabbits");
    let (again, rabbits) = flow.source("rabbits", Items::new(vec![token(0, 0)])).feedback::<Token>("again");
    let (more, out) = rabbits.stage("breed").flat_map(|rabbit| [rabbit.clone(), rabbit]).split(|_| true);
    again.close(more);
    out.sink("out", Discard::new());
    let config = Config::new().unpinned_workers(2).spill(1 << 16, 1 << 20);
    match run(flow, config) {
        Err(Error::Job(failure)) => {
            let message = failure.to_string();
            assert!(matches!(failure.cause, Cause::LoopFull { .. }), "{message}");
            assert!(message.contains("`again`") && message.contains("1048576"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}
