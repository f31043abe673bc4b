//! The end of a loop (protocols, rules 30 to 32): it comes when nothing is under way in it any more, and not before.

use super::{Token, run, step, tight, token};
use snapring::connector::{Collect, Generate};
use snapring::error::{Cause, Error};
use snapring::{Config, Dataflow, Protocol};
use std::time::Duration;

#[test]
fn checkpoints_go_on_while_a_loop_outlives_its_input() {
    for protocol in Protocol::ALL {
        let state = tempfile::tempdir().unwrap();
        let done = Collect::new();
        let flow = Dataflow::new("outlives");
        let (again, tokens) =
            flow.source("tokens", Generate::new(5, 1, |id| token(id, 300))).feedback::<Token>("again");
        let slow = tokens.stage("body").map(step).inspect(|_| std::thread::sleep(Duration::from_micros(100)));
        let (more, over) = slow.split(|token| token.laps > 0);
        again.close(more);
        over.sink("done", done.clone());
        let summary = run(flow, tight(protocol, state.path())).unwrap();
        assert_eq!(done.take().len(), 5);
        assert!(summary.checkpoints > 5 && summary.given_up == 0, "{protocol}: {summary:?}");
    }
}

#[test]
fn nested_loops_end_from_within() {
    for workers in [1, 2, 3] {
        let done = Collect::new();
        let flow = Dataflow::new("nested");
        let tokens = flow.source("tokens", Generate::new(100, 4, |id| token(id, 40)));
        let (outer, tokens) = tokens.feedback::<Token>("outer");
        let (inner, tokens) = tokens.feedback::<Token>("inner");
        let stepped = tokens.key_by(|token| token.id).count("laps").map(|(id, laps)| token(id, 40 - laps as u32));
        let [over, within, without] = stepped
            .stage("sort")
            .split_by(|token| if token.laps == 0 { 0 } else { 1 + usize::from(token.laps % 3 == 0) });
        inner.close(within);
        outer.close(without);
        over.sink("done", done.clone());
        run(flow, Config::new().unpinned_workers(workers).ring_capacity(1).batch_len_max(3)).unwrap();
        assert_eq!(done.take().len(), 100, "{workers} workers");
    }
}

#[test]
fn what_an_operator_emits_into_its_loop_at_the_end_is_an_error_with_its_name() {
    type Draw = fn(Dataflow) -> Dataflow;
    for (draw, feedback, operator) in [
        (emits_itself as Draw, "again", "sums"),
        (emits_by_another, "again", "behind"),
        (emits_into_an_inner_loop, "inner", "sums"),
    ] {
        for workers in [1, 2] {
            let state = tempfile::tempdir().unwrap();
            let kept = Protocol::ALL.map(|protocol| tight(protocol, state.path()));
            for config in [Config::new(), Config::new().ring_capacity(1)].into_iter().chain(kept) {
                let flow = draw(Dataflow::new("late"));
                match run(flow, config.unpinned_workers(workers)) {
                    Err(Error::Job(failure)) => {
                        let Cause::AfterLoop { feedback: named } = &failure.cause else { panic!("{failure}") };
                        assert_eq!(named, feedback, "{failure}");
                        assert_eq!(failure.operator.as_deref(), Some(operator), "{failure}");
                    }
                    other => panic!("{operator} emits into `{feedback}` after its end: {other:?}"),
                }
            }
        }
    }
}

/// One result per key, when the input has ended: that is, when nothing comes round any more. It goes into the loop.
fn emits_itself(flow: Dataflow) -> Dataflow {
    let (again, tokens) = flow.source("tokens", Generate::new(10, 1, |id| token(id, 3))).feedback::<Token>("again");
    let sums = tokens.key_by(|token| token.id).fold_to_end("sums", 0u64, |sum, token| *sum += u64::from(token.laps));
    let (more, over) = sums.map(|(id, _)| token(id, 1)).split(|token| token.laps > 0);
    again.close(more);
    over.sink("over", Collect::new());
    flow
}

/// The same with a stage between, which has not ended when the results come to it.
fn emits_by_another(flow: Dataflow) -> Dataflow {
    let (again, tokens) = flow.source("tokens", Generate::new(10, 1, |id| token(id, 3))).feedback::<Token>("again");
    let sums = tokens.key_by(|token| token.id).fold_to_end("sums", 0u64, |sum, token| *sum += u64::from(token.laps));
    let (more, over) = sums.map(|(id, _)| token(id, 1)).stage("behind").split(|token| token.laps > 0);
    again.close(more);
    over.sink("over", Collect::new());
    flow
}

/// By an edge that is no feedback, to the head of a loop within the loop.
fn emits_into_an_inner_loop(flow: Dataflow) -> Dataflow {
    let (outer, tokens) = flow.source("tokens", Generate::new(10, 1, |id| token(id, 3))).feedback::<Token>("outer");
    let sums = tokens.key_by(|token| token.id).fold_to_end("sums", 0u64, |sum, token| *sum += u64::from(token.laps));
    let (inner, tokens) = sums.map(|(id, _)| token(id, 2)).feedback::<Token>("inner");
    let [over, within, without] = tokens.map(step).split_by(|token| token.laps as usize);
    inner.close(within);
    outer.close(without);
    over.sink("over", Collect::new());
    flow
}
