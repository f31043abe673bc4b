//! One task, every order of events: up to 3 inputs, 2 epochs, an end on any inputs, one abort.
//!
//! Each input has a script: records, and where the barriers and the end lie between them. Every combination of scripts
//! is explored in every order of delivery; an abort may come at any moment. After each step the machine is compared with
//! a plain model that has no state of its own: it looks at all that was delivered and asks what the rules say.

use snapring::checkpoint::{Cut, InputKind, Protocol, TaskCut};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Item {
    Record,
    Barrier(u64),
    End,
}
use Item::{Barrier, End, Record};

type Script = Vec<Item>;

/// Every script of one input: a record in each gap; each barrier there or missing (its task had finished or had seen the
/// abort); the end at every place, or nowhere.
fn scripts(aborted: u64) -> Vec<Script> {
    let all = |with: [bool; 2]| {
        let mut script = vec![Record];
        for epoch in [1, 2] {
            if with[epoch as usize - 1] {
                script.push(Barrier(epoch));
            }
            script.push(Record);
        }
        script
    };
    let mut scripts = Vec::new();
    for with in [[true, true], [false, true], [true, false], [false, false]] {
        // A producer that lives on leaves out only barriers of an epoch that was given up.
        let lives = (1..=2).all(|epoch| with[epoch as usize - 1] || epoch == aborted);
        let whole = all(with);
        if lives {
            scripts.push(whole.clone());
        }
        for at in 0..=whole.len() {
            let mut ended = whole[..at].to_vec();
            ended.push(End);
            scripts.push(ended);
        }
    }
    scripts.sort_by_key(|script| format!("{script:?}"));
    scripts.dedup();
    scripts
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    machine: TaskCut,
    /// How much of each script was delivered.
    at: Vec<usize>,
    /// What `aborted_to` holds, as far as the task has looked.
    aborted: u64,
    /// The last epoch in which the task froze.
    frozen: u64,
}

/// The plain model: what the rules say, from all that was delivered.
mod plain {
    use super::*;

    fn seen(script: &Script, at: usize, epoch: u64) -> bool {
        script[..at].contains(&Barrier(epoch))
    }

    pub fn ended(world: &World, script: &Script, input: usize) -> bool {
        script[..world.at[input]].contains(&End)
    }

    /// The highest epoch of which a barrier was seen, unless it is over: frozen or given up.
    pub fn aligning(world: &World, scripts: &[Script]) -> Option<u64> {
        let over = world.frozen.max(world.aborted);
        (1..=2).rev().find(|&epoch| epoch > over && (0..scripts.len()).any(|i| seen(&scripts[i], world.at[i], epoch)))
    }

    /// An input waits if it has delivered the barrier that is being aligned.
    pub fn polls(world: &World, scripts: &[Script], input: usize) -> bool {
        let waits = aligning(world, scripts).is_some_and(|epoch| seen(&scripts[input], world.at[input], epoch));
        !waits && !ended(world, &scripts[input], input)
    }

    /// Whether the task must freeze now.
    pub fn cut(world: &World, scripts: &[Script]) -> Cut {
        match aligning(world, scripts) {
            Some(epoch) if (0..scripts.len()).all(|i| !polls(world, scripts, i)) => Cut::Freeze(epoch),
            _ => Cut::Go,
        }
    }
}

/// Applies a cut, and checks that it parts the records of every input exactly at its barrier.
fn apply(world: &mut World, cut: Cut, scripts: &[Script]) {
    let Cut::Freeze(epoch) = cut else { return };
    assert!(epoch > world.frozen, "froze in {epoch} after {}", world.frozen);
    assert!(epoch > world.aborted, "froze in {epoch}, given up before");
    for (script, at) in scripts.iter().zip(&world.at) {
        let behind = &script[*at..];
        match script.iter().position(|item| *item == Barrier(epoch)) {
            Some(barrier) => assert_eq!(*at, barrier + 1, "{epoch}: cut off its barrier in {script:?}"),
            None => {
                assert!(behind.is_empty() && script.ends_with(&[End]), "{epoch}: live input cut at {at} in {script:?}")
            }
        }
    }
    world.frozen = epoch;
    assert_eq!(world.machine.frozen(), epoch);
}

fn deliver(world: &World, scripts: &[Script], input: usize) -> World {
    let mut next = world.clone();
    let item = scripts[input][world.at[input]];
    next.at[input] += 1;
    let expected = plain::cut(&next, scripts);
    let cut = match item {
        Record => {
            // No record from behind a barrier that this task has yet to freeze at.
            let ahead = scripts[input][..world.at[input]].iter();
            let newest = ahead.filter_map(|item| if let Barrier(epoch) = item { Some(*epoch) } else { None }).max();
            let newest = newest.filter(|epoch| Some(*epoch) == plain::aligning(world, scripts));
            assert_eq!(newest, None, "a record from behind the barrier was taken before the freeze");
            Cut::Go
        }
        Barrier(epoch) => next.machine.barrier(input, epoch),
        End => next.machine.ended(input),
    };
    assert_eq!(cut, expected, "after {item:?} on {input} at {:?} of {scripts:?}", next.at);
    apply(&mut next, cut, scripts);
    next
}

fn abort(world: &World, epoch: u64) -> World {
    let mut next = world.clone();
    next.aborted = epoch;
    next.machine.aborted_to(epoch);
    next
}

/// The word is read at any time. Only once all inputs have ended does it mean anything.
fn request(world: &World, scripts: &[Script], epoch: u64) -> World {
    let mut next = world.clone();
    let all_ended = (0..scripts.len()).all(|i| plain::ended(world, &scripts[i], i));
    assert_eq!(world.machine.all_ended(), all_ended);
    let acts = all_ended && epoch > world.frozen.max(world.aborted);
    let expected = if acts { Cut::Freeze(epoch) } else { Cut::Go };
    let cut = next.machine.requested(epoch);
    assert_eq!(cut, expected);
    if let Cut::Freeze(epoch) = cut {
        next.frozen = epoch;
    }
    next
}

/// Explores every order for one choice of scripts; returns how many states there were.
fn explore(scripts: &[Script], abort_of: u64) -> usize {
    let machine = TaskCut::new(Protocol::Aligned, &vec![InputKind::Forward; scripts.len()], false, 0);
    let start = World { machine, at: vec![0; scripts.len()], aborted: 0, frozen: 0 };
    let mut visited = HashSet::from([start.clone()]);
    let mut todo = vec![start];
    while let Some(world) = todo.pop() {
        let mut nexts = Vec::new();
        for input in 0..scripts.len() {
            let polls = world.machine.polls(input);
            assert_eq!(polls, plain::polls(&world, scripts, input), "input {input} at {:?} of {scripts:?}", world.at);
            if polls && world.at[input] < scripts[input].len() {
                nexts.push(deliver(&world, scripts, input));
            }
        }
        if abort_of > world.aborted {
            nexts.push(abort(&world, abort_of));
        }
        nexts.extend([1, 2].map(|epoch| request(&world, scripts, epoch)).into_iter().filter(|next| *next != world));
        if nexts.is_empty() {
            check_end(&world, scripts, abort_of);
        }
        todo.extend(nexts.into_iter().filter(|next| visited.insert(next.clone())));
    }
    visited.len()
}

/// Progress: when nothing more can happen, nothing waits, and every epoch that was not given up has its cut.
fn check_end(world: &World, scripts: &[Script], abort_of: u64) {
    for (script, at) in scripts.iter().zip(&world.at) {
        assert_eq!(*at, script.len(), "an input is blocked for ever: {:?} of {scripts:?}", world.at);
    }
    if abort_of != 2 {
        assert_eq!(world.frozen, 2, "epoch 2 has no cut in {scripts:?}");
    }
    let (frozen, closed) = (world.frozen, world.aborted.max(world.frozen));
    assert!(world.machine.may_finish(closed));
    assert!(frozen == 0 || !world.machine.may_finish(frozen - 1), "finished while its epoch was under way");
}

fn explore_all(inputs: usize) -> usize {
    let mut states = 0;
    for abort_of in 0..=2 {
        let scripts = scripts(abort_of);
        let mut chosen = vec![0; inputs];
        loop {
            let of: Vec<_> = chosen.iter().map(|&i| scripts[i].clone()).collect();
            states += explore(&of, abort_of);
            let Some(place) = chosen.iter().rposition(|&i| i + 1 < scripts.len()) else { break };
            chosen[place] += 1;
            chosen[place + 1..].fill(0);
        }
    }
    println!("{inputs} inputs: {states} states");
    states
}

#[test]
fn every_order_with_one_input() {
    assert!(explore_all(1) > 300);
}

#[test]
fn every_order_with_two_inputs() {
    assert!(explore_all(2) > 10_000);
}

#[test]
fn every_order_with_three_inputs() {
    assert!(explore_all(3) > 500_000);
}

#[test]
fn a_source_takes_epochs_from_the_word() {
    let mut source = TaskCut::new(Protocol::Aligned, &[], false, 4);
    assert_eq!(source.requested(4), Cut::Go, "restored from it");
    assert_eq!(source.requested(5), Cut::Freeze(5));
    assert_eq!(source.requested(5), Cut::Go, "asked again");
    assert!(!source.may_finish(4) && source.may_finish(5));
    source.aborted_to(6);
    assert_eq!(source.requested(6), Cut::Go, "given up before it was seen");
    assert_eq!(source.requested(7), Cut::Freeze(7));
}

#[test]
#[should_panic(expected = "not polled")]
fn a_barrier_from_an_input_that_waits_is_a_fault_of_the_shell() {
    let mut task = TaskCut::new(Protocol::Aligned, &[InputKind::Forward; 2], false, 0);
    let _ = task.barrier(0, 1);
    let _ = task.barrier(0, 2);
}
