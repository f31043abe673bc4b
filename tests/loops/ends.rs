//! The end of a loop (protocols, rules 30 to 32): it comes when nothing is under way in it any more, and not before.

use super::{Token, run, step, tight, token};
use snapring::connector::{Collect, Generate};
use snapring::error::{Cause, Error};
use snapring::runtime::Summary;
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
    // The head of the loop says so when the record arrives. A job without checkpoints may be over by then: whoever emitted it
    // has finished, and then nobody says anything. One run in five or ten.
    let told = (0..60).map(|_| emits_into_its_loop_at_the_end()).find_map(Result::err);
    match told {
        Some(Error::Job(failure)) => {
            assert!(matches!(failure.cause, Cause::AfterLoop { .. }), "{failure}");
            assert!(failure.to_string().contains("`again`"), "{failure}");
        }
        other => panic!("{other:?}"),
    }
}

fn emits_into_its_loop_at_the_end() -> Result<Summary, Error> {
    let flow = Dataflow::new("late");
    let (again, tokens) = flow.source("tokens", Generate::new(10, 1, |id| token(id, 3))).feedback::<Token>("again");
    // One result per key, when the input has ended: that is, when nothing comes round any more.
    let sums = tokens.key_by(|token| token.id).fold_to_end("sums", 0u64, |sum, token| *sum += u64::from(token.laps));
    let (more, over) = sums.map(|(id, _)| token(id, 1)).split(|token| token.laps > 0);
    again.close(more);
    over.sink("over", Collect::new());
    run(flow, Config::new().unpinned_workers(2))
}
