//! Loops whose operators speak at the end, and only to where the loop is left: that is no error, whenever the job was cut and
//! wherever it goes on.

use super::{Token, run, step, token};
use snapring::connector::{Collect, Generate, Memory};
use snapring::error::{Cause, Error, Failed};
use snapring::operator::Progress;
use snapring::operator::{Emit, Operator, Value};
use snapring::snapshot::Durability;
use snapring::testing::{Fault, World, simulate};
use snapring::{Checkpoints, Config, Dataflow, Protocol};
use std::path::Path;
use std::time::Duration;

const IDS: u64 = 40;
/// What is no token, but how many passes a key has had.
const SUM: u32 = u32::MAX;

fn laps(id: u64) -> u32 {
    (id * 7 % 13) as u32
}

/// Counts passes, and hands on; tells the count when the input has ended.
struct Passes;

impl Operator for Passes {
    type Key = u64;
    type In = Token;
    type Out = Token;
    type State = Value<u64>;

    fn on_record<E: Emit<Token>>(
        &self,
        _: &u64,
        token: Token,
        count: &mut Value<u64>,
        out: &mut E,
    ) -> Result<(), Failed> {
        *count.get_or_insert_with(|| 0)? += 1;
        out.emit(token)
    }

    fn on_end<E: Emit<Token>>(&self, key: &u64, count: &mut Value<u64>, out: &mut E) -> Result<(), Failed> {
        let count = count.take()?.unwrap_or_default();
        out.emit(Token { id: key << 32 | count, laps: SUM })
    }
}

/// Two heads, one loop within the other, an input into the middle, and two operators that speak at the end.
fn draw(pass: impl Fn(Token) -> Token + Send + Sync + 'static, sink: Memory<Token>) -> Dataflow {
    let flow = Dataflow::new("late");
    let tokens = flow.source("tokens", Generate::new(IDS, 2, |id| token(id, laps(id))));
    let middle = flow.source("middle", Generate::new(IDS, 3, |id| token(IDS + id, laps(id))));
    let (outer, tokens) = tokens.feedback::<Token>("outer");
    let first = tokens.key_by(|token| token.id % 5).process("first", Passes).merge(middle);
    let (sums, tokens) = first.stage("between").split(|token| token.laps == SUM);
    let (inner, tokens) = tokens.feedback::<Token>("inner");
    let second = tokens.map(pass).key_by(|token| token.id % 7).process("second", Passes);
    let [over, within, without] = second.merge(sums).stage("sort").split_by(|token| match token.laps {
        0 | SUM => 0,
        laps => 1 + (laps % 2) as usize,
    });
    inner.close(within.map(step));
    outer.close(without.map(step));
    over.sink("results", sink);
    flow
}

fn sorted(mut tokens: Vec<Token>) -> Vec<Token> {
    tokens.sort();
    tokens
}

/// By hand: each token passes `second` once for each lap and once at the end, and `first` when it comes in there, or by the outer
/// loop.
fn expected() -> Vec<Token> {
    let mut all = Vec::new();
    let (mut firsts, mut seconds) = ([0; 5], [0; 7]);
    for id in 0..2 * IDS {
        if id < IDS {
            firsts[id as usize % 5] += 1;
        }
        for laps in (0..=laps(id % IDS)).rev() {
            seconds[id as usize % 7] += 1;
            if laps > 0 && laps % 2 == 1 {
                firsts[id as usize % 5] += 1;
            }
        }
        all.push(token(id, 0));
    }
    let sums = |counts: &[u64]| (0..).zip(counts).map(|(key, count)| token(key << 32 | count, SUM)).collect::<Vec<_>>();
    all.extend(sums(&firsts));
    all.extend(sums(&seconds));
    sorted(all)
}

#[test]
fn what_leaves_a_loop_at_its_end_is_no_error_under_the_simulator() -> Result<(), Fault> {
    let draw = |world: &mut World| {
        let pass = world.trip().before(|token| token);
        let sink = world.sink("results");
        draw(pass, sink)
    };
    let check = |world: &World| assert_eq!(sorted(world.committed::<Token>("results")), expected());
    let seen = simulate(0..80, draw, check)?;
    assert!(seen.crashes > 20 && seen.restores > 20, "{seen:?}");
    Ok(())
}

#[test]
fn what_leaves_a_loop_at_its_end_is_no_error_on_threads() {
    for round in 0..6 {
        for protocol in Protocol::ALL.into_iter().filter(|protocol| protocol.is_exact()) {
            let (state, sink) = (tempfile::tempdir().unwrap(), Memory::new());
            // Nothing here is about what a sync does, and most of the time would go by them.
            let checkpoints = Checkpoints::every(Duration::from_millis(1))
                .unaligned_after(Duration::from_millis(1))
                .durability(Durability::ProcessCrash);
            let workers = 1 + round as usize / 3;
            let config = Config::new()
                .unpinned_workers(workers)
                .parallelism(1 + round % 3)
                .ring_capacity(1 + (round as usize % 2) * 3)
                .batch_len_max(1 + round as usize)
                .checkpoints(checkpoints.protocol(protocol).to(state.path()));
            run(draw(|token| token, sink.clone()), config).unwrap();
            assert_eq!(sorted(sink.committed()), expected(), "{protocol}, {workers} workers");
        }
    }
}

/// Small rings and batches, so that the end of the loop has many steps.
fn small(tasks: u32) -> Config {
    Config::new().unpinned_workers(1).parallelism(tasks).ring_capacity(2).batch_len_max(3)
}

/// The same with checkpoints when they are asked for.
fn kept(protocol: Protocol, state: &Path, tasks: u32) -> Config {
    small(tasks).checkpoints(Checkpoints::on_demand().protocol(protocol).to(state))
}

/// Cuts near the end, one step apart: the loop has ended for some tasks and not for others.
#[test]
fn a_job_that_was_cut_at_the_end_of_its_loop_goes_on() {
    let mut cuts = 0;
    for protocol in Protocol::ALL.into_iter().filter(|protocol| protocol.is_exact()) {
        for before in tasks_and_steps() {
            let (tasks, from_end) = before;
            let (state, sink) = (tempfile::tempdir().unwrap(), Memory::new());
            let mut job = draw(|token| token, sink.clone()).into_local(kept(protocol, state.path(), tasks)).unwrap();
            let mut steps = 0;
            while job.step().unwrap() != Progress::Done {
                steps += 1;
            }
            let (state, sink) = (tempfile::tempdir().unwrap(), Memory::new());
            let mut job = draw(|token| token, sink.clone()).into_local(kept(protocol, state.path(), tasks)).unwrap();
            for _ in 0..steps - from_end {
                job.step().unwrap();
            }
            let Ok(checkpoint) = job.checkpoint() else { continue };
            let mut is_over = false;
            while !is_over && !matches!(checkpoint.try_wait(), Ok(Some(_)) | Err(_)) {
                is_over = job.step().unwrap() == Progress::Done;
            }
            if !is_over {
                cuts += 1;
                drop(job);
                let tasks = 1 + (from_end as u32 / 7) % 3;
                let job = draw(|token| token, sink.clone()).into_local(kept(protocol, state.path(), tasks));
                job.unwrap().run().unwrap();
            }
            assert_eq!(
                sorted(sink.committed()),
                expected(),
                "{protocol}, {tasks} tasks, {from_end} steps from the end"
            );
        }
    }
    assert!(cuts > 20, "{cuts}");
}

/// Results go into the loop when all has ended: by another stage, and by as many tasks as there are.
fn draw_wrong() -> Dataflow {
    let flow = Dataflow::new("wrong");
    let (again, tokens) = flow.source("tokens", Generate::new(20, 2, |id| token(id, 3))).feedback::<Token>("again");
    let sums = tokens.key_by(|token| token.id).fold_to_end("sums", 0u64, |sum, token| *sum += u64::from(token.laps));
    let (more, over) = sums.map(|(id, _)| token(id, 1)).stage("behind").split(|token| token.laps > 0);
    again.close(more);
    over.sink("over", Collect::new());
    flow
}

fn is_after_loop(error: &Error) -> bool {
    matches!(error, Error::Job(failure) if matches!(&failure.cause, Cause::AfterLoop { .. }))
}

/// Whether or not it has been cut meanwhile.
#[test]
fn what_goes_into_a_loop_at_its_end_is_an_error_after_a_restart_too() {
    let mut cuts = 0;
    for protocol in Protocol::ALL {
        for (tasks, from_end) in tasks_and_steps() {
            let state = tempfile::tempdir().unwrap();
            let unkept = small(tasks);
            let (mut job, mut steps) = (draw_wrong().into_local(unkept).unwrap(), 0u64);
            let error = loop {
                match job.step() {
                    Ok(progress) => assert!(progress != Progress::Done, "{protocol}: nobody has told"),
                    Err(error) => break error,
                }
                steps += 1;
            };
            assert!(is_after_loop(&error), "{error}");
            let mut job = draw_wrong().into_local(kept(protocol, state.path(), tasks)).unwrap();
            let mut over = (0..steps.saturating_sub(from_end)).find_map(|_| job.step().err());
            let checkpoint = job.checkpoint();
            let mut is_cut = false;
            while let (None, Ok(checkpoint), false) = (&over, &checkpoint, is_cut) {
                over = job.step().err();
                is_cut = matches!(checkpoint.try_wait(), Ok(Some(_)));
            }
            if is_cut {
                cuts += 1;
                drop(job);
                let tasks = 1 + (from_end as u32 / 7) % 3;
                over = draw_wrong().into_local(kept(protocol, state.path(), tasks)).unwrap().run().err();
            }
            let over = over.expect("nobody has told");
            assert!(is_after_loop(&over), "{protocol}, {tasks} tasks, {from_end} steps from the end: {over}");
        }
    }
    assert!(cuts > 20, "{cuts}");
}

fn tasks_and_steps() -> Vec<(u32, u64)> {
    [1, 2, 3].into_iter().flat_map(|tasks| (0..400).step_by(29).map(move |steps| (tasks, steps))).collect()
}
