//! One task, every order of events: up to 3 inputs of which 2 are back edges, 2 epochs, an end, an abort, under every
//! protocol.
//!
//! Each input has a script: records, and where barriers (or published cuts) and the end lie between them. Every
//! combination of scripts in which at most one input ends is explored in every order; every word may be read at any
//! moment. Whenever a snapshot is complete, what it counts of each input, in the state and in
//! the log, is held against the script: exactly what lies ahead of the cut.
//!
//! What takes too long is cut short, and then explored along ways drawn at random. With SNAPRING_LONG set nothing is: any
//! inputs may end, and there are all scripts of three inputs.

use super::explore::{Explored, explore_and_walk};
use super::graphs::{Graph, Setup};
use super::shell::Shell;
use super::world::{Message, Report, Slot, Snapshot, Word, World};
use snapring::checkpoint::{Cut, Drained, InputKind, Log, Outputs, Protocol, TaskCut};

type Script = Vec<Slot>;

/// The task under test comes last; the others only play their scripts.
const ONE: (&[&str], &[(usize, usize, bool)]) = (&["P", "T"], &[(0, 1, false)]);
const BACK: (&[&str], &[(usize, usize, bool)]) = (&["P", "T"], &[(0, 1, true)]);
const TWO: (&[&str], &[(usize, usize, bool)]) = (&["P", "Q", "T"], &[(0, 2, false), (1, 2, false)]);
const HEAD: (&[&str], &[(usize, usize, bool)]) = (&["P", "Q", "T"], &[(0, 2, false), (1, 2, true)]);
const THREE: (&[&str], &[(usize, usize, bool)]) =
    (&["P", "Q", "R", "T"], &[(0, 3, false), (1, 3, false), (2, 3, false)]);
const JOIN: (&[&str], &[(usize, usize, bool)]) = (&["P", "Q", "R", "T"], &[(0, 3, false), (1, 3, false), (2, 3, true)]);
const HEAD2: (&[&str], &[(usize, usize, bool)]) = (&["P", "Q", "R", "T"], &[(0, 3, false), (1, 3, true), (2, 3, true)]);

struct OneTask {
    setup: Setup,
    scripts: Vec<Script>,
    aborted: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Play(usize),
    Look(usize),
    Drain(usize),
    Take(usize),
    Request(u64),
    TimeOut(u64),
    Release(u64),
    Close(u64),
    Abort,
}

/// How much is explored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    /// Three inputs: the end comes early or last, if at all; where cuts come as barriers or published, or not at all, each
    /// input has another order of them; no record follows the last.
    Short,
    Full,
}

fn publishes(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Unaligned | Protocol::AlignedThenUnaligned)
}

/// The scripts of one input: a record in each gap; the barrier of each epoch, or none in one that is given up (its producer
/// had seen that); the end at every place, or nowhere.
fn scripts(setup: &Setup, input: u8, aborted: u64, ends: bool, length: Length) -> Vec<Script> {
    let (barrier, word) = (Slot::Barrier, |epoch| Slot::Word(Word::Cut(epoch)));
    let cuts = |epoch: u64| -> Vec<Option<Slot>> {
        let mut cuts = match setup.protocol {
            Protocol::StopTheWorld => return vec![None],
            Protocol::Unaligned => vec![word(epoch)],
            Protocol::AlignedThenUnaligned if length == Length::Full => vec![barrier(epoch), word(epoch)],
            Protocol::AlignedThenUnaligned if (u64::from(input) + epoch).is_multiple_of(2) => vec![word(epoch)],
            _ => vec![barrier(epoch)],
        };
        if epoch == aborted && length == Length::Short && input % 2 == 1 {
            return vec![None];
        }
        let missing = (epoch == aborted && length == Length::Full).then_some(None);
        cuts.drain(..).map(Some).chain(missing).collect()
    };
    let publishes = publishes(setup.protocol);
    let record = |hop| Some(Slot::Message(Message { id: input, hop }));
    let mut scripts: Vec<Script> = Vec::new();
    for first in cuts(1) {
        for second in cuts(2) {
            let last = record(2).filter(|_| length == Length::Full);
            let whole: Script = [record(0), first, record(1), second, last].into_iter().flatten().collect();
            let places = if length == Length::Full { (0..=whole.len()).collect() } else { vec![1, whole.len()] };
            for at in if ends { places } else { vec![] } {
                let end = [Slot::Word(Word::End), Slot::End];
                let script = [&whole[..at], &end[usize::from(!publishes)..]].concat();
                if !scripts.contains(&script) {
                    scripts.push(script);
                }
            }
            if !ends {
                scripts.push(whole);
            }
        }
    }
    scripts
}

impl OneTask {
    fn task(&self) -> usize {
        self.scripts.len()
    }

    fn told(&self, world: &World, step: Step, tell: impl Fn(&mut TaskCut) -> Cut, nexts: &mut Vec<(Step, World)>) {
        let task = self.task();
        let mut next = world.clone();
        let says = tell(&mut next.tasks[task].edit().cut);
        if says != Cut::Go || next.tasks[task].cut != world.tasks[task].cut {
            let shell = Shell(&self.setup);
            shell.act(&mut next, task, says);
            if let Step::Request(epoch) | Step::TimeOut(epoch) | Step::Release(epoch) = step {
                next.job.edit().request = epoch;
            }
            self.push(step, next, nexts);
        }
    }

    fn word_steps(&self, world: &World, nexts: &mut Vec<(Step, World)>) {
        let cut = &world.tasks[self.task()].cut;
        for epoch in [1, 2] {
            // Words only rise: who has read of epoch 2 reads nothing of epoch 1 any more.
            if epoch >= world.job.request {
                self.told(world, Step::Request(epoch), |cut| cut.requested(epoch), nexts);
                self.told(world, Step::TimeOut(epoch), |cut| cut.timed_out(epoch), nexts);
                self.told(world, Step::Release(epoch), |cut| cut.released(epoch), nexts);
            }
            if cut.frozen() >= epoch {
                let closed = |cut: &mut TaskCut| {
                    cut.closed_to(epoch);
                    Cut::Go
                };
                self.told(world, Step::Close(epoch), closed, nexts);
            }
        }
        if self.aborted > 0 {
            let mut next = world.clone();
            next.tasks[self.task()].edit().cut.aborted_to(self.aborted);
            if next.tasks[self.task()].cut != *cut {
                Shell(&self.setup).drop_snapshot(&mut next, self.task(), self.aborted);
                self.push(Step::Abort, next, nexts);
            }
        }
    }

    fn push(&self, step: Step, mut next: World, nexts: &mut Vec<(Step, World)>) {
        // Between tasks this is a step of its own; here at once.
        for channel in 0..self.scripts.len() {
            Shell(&self.setup).scan(&mut next, channel);
        }
        for report in std::mem::take(&mut next.tasks[self.task()].edit().reports) {
            if let Report::Snapshot(snapshot) = report {
                next.fault = self.check(&next, &snapshot);
            }
        }
        nexts.push((step, next));
    }

    /// What is wrong with a complete snapshot.
    fn check(&self, world: &World, snapshot: &Snapshot) -> Option<String> {
        let epoch = snapshot.epoch;
        if epoch == self.aborted {
            return None; // nobody wants it
        }
        for (input, script) in self.scripts.iter().enumerate() {
            let cut = |slot: &Slot| *slot == Slot::Barrier(epoch) || *slot == Slot::Word(Word::Cut(epoch));
            let cut = if self.setup.protocol == Protocol::StopTheWorld {
                Some(script.len() - world.channels[input].leftovers.len()) // all that was played
            } else {
                script.iter().position(cut).or(script.iter().position(|slot| *slot == Slot::End))
            };
            let Some(cut) = cut else { return Some(format!("input {input} has no cut of epoch {epoch}")) };
            let ahead = script[..cut].iter().filter(|slot| matches!(slot, Slot::Message(_))).count();
            let in_state = usize::from(snapshot.done[input]);
            let log = snapshot.copies.iter().filter(|copy| usize::from(copy.id) == input);
            let log: Vec<_> = log.map(|copy| usize::from(copy.hop)).collect();
            let right = if self.setup.protocol.is_exact() {
                in_state <= ahead && log.iter().copied().eq(in_state..ahead)
            } else {
                (in_state..ahead).all(|record| log.contains(&record))
            };
            if !right {
                return Some(format!("input {input}: {ahead} lie ahead, the state has {in_state}, the log {log:?}"));
            }
        }
        None
    }
}

impl Explored for OneTask {
    type World = World;
    type Step = Step;

    fn start(&self) -> World {
        let mut world = World::new(&self.setup);
        // Where nobody looks ahead, it does not matter when a slot comes.
        let plays = publishes(self.setup.protocol) || self.setup.protocol == Protocol::StopTheWorld;
        for (channel, script) in self.scripts.iter().enumerate() {
            let channel = world.channels[channel].edit();
            if plays { channel.leftovers = script.clone() } else { channel.ring = script.clone() }
        }
        world
    }

    fn steps(&self, world: &World) -> Vec<(Step, World)> {
        let shell = Shell(&self.setup);
        let mut nexts = Vec::new();
        self.word_steps(world, &mut nexts);
        for channel in 0..self.scripts.len() {
            let mut step = |step, make: &dyn Fn(&mut World) -> bool| {
                let mut next = world.clone();
                if make(&mut next) {
                    self.push(step, next, &mut nexts);
                }
            };
            let (news, ring) = (shell.has_news(world, channel), !world.channels[channel].ring.is_empty());
            step(Step::Play(channel), &|next| shell.flush(next, channel));
            if news {
                step(Step::Look(channel), &|next| {
                    shell.look(next, channel);
                    true
                });
            } else if ring && shell.has_spill(channel) {
                step(Step::Drain(channel), &|next| {
                    shell.drain(next, channel);
                    true
                });
            }
            if shell.front(world, channel).is_some() {
                step(Step::Take(channel), &|next| {
                    shell.take(next, channel);
                    true
                });
            }
        }
        nexts
    }

    fn fingerprint(&self, world: &mut World) -> u64 {
        world.fingerprint()
    }

    fn fault<'w>(&self, world: &'w World) -> Option<&'w str> {
        world.fault.as_deref()
    }

    /// All is taken, and the last epoch that was not given up has its snapshot.
    fn is_goal(&self, world: &World) -> bool {
        let task = &world.tasks[self.task()];
        let empty = |channel: &super::world::Channel| {
            channel.leftovers.is_empty() && channel.ring.is_empty() && channel.spill.is_empty()
        };
        let last = if self.aborted == 2 { 0 } else { 2 };
        let all = world.channels.iter().all(|channel| empty(channel));
        all && task.snapshot.is_none() && task.cut.frozen() >= last && !task.cut.is_paused()
    }

    fn name(&self, step: Step) -> String {
        format!("{step:?}")
    }

    fn dump(&self, world: &World) -> String {
        format!("  {:?}, {:?}\n  {:?}", self.setup.protocol, self.scripts, world)
    }
}

/// Explores all scripts; returns how many states there were.
fn explore_all(protocol: Protocol, graph: (&'static [&'static str], &'static [(usize, usize, bool)])) -> usize {
    let inputs = graph.1.len();
    let long = std::env::var_os("SNAPRING_LONG").is_some();
    let many = inputs > if publishes(protocol) { 1 } else { 2 };
    let length = if many && !long { Length::Short } else { Length::Full };
    let mut states = 0;
    for all_begin in [false, true] {
        if all_begin && !matches!(protocol, Protocol::ChandyLamport | Protocol::Unaligned) {
            continue;
        }
        let setup = Setup {
            graph: Graph::new("one task", graph.0, graph.1, vec![]),
            all_begin,
            late: true,
            ..Setup::new("self", 1, protocol)
        };
        for aborted in 0..=2 {
            let choices: Vec<Vec<Script>> = (0..inputs)
                .map(|input| [false, true].map(|ends| scripts(&setup, input as u8, aborted, ends, length)).concat())
                .collect();
            let mut chosen = vec![0; inputs];
            loop {
                let scripts: Vec<_> = chosen.iter().zip(&choices).map(|(&i, of)| of[i].clone()).collect();
                let ended = scripts.iter().filter(|script| script.ends_with(&[Slot::End])).count();
                if ended <= 1 || long || inputs < 3 {
                    let one = OneTask { setup: setup.clone(), scripts, aborted };
                    states += check_scripts(&one, long);
                }
                let Some(place) = chosen.iter().zip(&choices).rposition(|(&i, of)| i + 1 < of.len()) else { break };
                chosen[place] += 1;
                chosen[place + 1..].fill(0);
            }
        }
    }
    states
}

/// Explores one choice of scripts; if that takes too long, up to a bound, and then along ways drawn at random.
fn check_scripts(one: &OneTask, long: bool) -> usize {
    let (states_max, walks) = if long { (5_000_000, 1000) } else { (8_000, 100) };
    let found = explore_and_walk(one, states_max, walks);
    assert!(found.fault.is_none(), "{}", found.fault.expect("just seen"));
    found.states
}

fn check(protocol: Protocol) -> usize {
    let begin = std::time::Instant::now();
    let more: &[_] = if std::env::var_os("SNAPRING_LONG").is_some() { &[THREE, JOIN] } else { &[] };
    let graphs = [ONE, BACK, TWO, HEAD, HEAD2];
    let states: Vec<_> = graphs.iter().chain(more).map(|graph| explore_all(protocol, *graph)).collect();
    println!("{protocol}: {states:?} states, {:.1?}", begin.elapsed());
    states.iter().sum()
}

#[test]
fn aligned() {
    assert!(check(Protocol::Aligned) > 100_000);
}

#[test]
fn chandy_lamport() {
    assert!(check(Protocol::ChandyLamport) > 400_000);
}

#[test]
fn unaligned() {
    assert!(check(Protocol::Unaligned) > 300_000);
}

#[test]
fn aligned_then_unaligned() {
    assert!(check(Protocol::AlignedThenUnaligned) > 200_000);
}

#[test]
fn at_least_once() {
    assert!(check(Protocol::AtLeastOnce) > 100_000);
}

#[test]
fn stop_the_world() {
    assert!(check(Protocol::StopTheWorld) > 150_000);
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

#[test]
#[should_panic(expected = "where it is held")]
fn a_held_barrier_that_is_taken_is_a_fault_of_the_shell() {
    let mut head = TaskCut::new(Protocol::Aligned, &[InputKind::Forward, InputKind::Back], false, 0);
    let _ = head.drained(1, 1);
    assert!(head.holds(1) && !head.holds(0));
    let _ = head.barrier(1, 1);
}

#[test]
#[should_panic(expected = "under unaligned")]
fn a_barrier_where_there_are_none_is_a_fault_of_the_shell() {
    let mut task = TaskCut::new(Protocol::Unaligned, &[InputKind::Forward], false, 0);
    let _ = task.barrier(0, 1);
}

#[test]
fn an_end_that_is_published_brings_no_cut() {
    let mut task = TaskCut::new(Protocol::Unaligned, &[InputKind::Forward, InputKind::Back], false, 0);
    assert_eq!(task.requested(1), Cut::Go);
    task.published_end(0);
    assert_eq!(task.requested(1), Cut::Freeze(1), "though its End is not taken yet");
    assert!(task.is_logging(0) && task.is_logging(1) && !task.is_complete());
    let mut task = TaskCut::new(Protocol::AlignedThenUnaligned, &[InputKind::Forward], false, 0);
    task.published_end(0);
    assert_eq!(task.requested(1), Cut::Go, "a barrier may lie ahead of it");
}

#[test]
fn a_barrier_gives_way_once_its_epoch_has_timed_out() {
    let mut source = TaskCut::new(Protocol::AlignedThenUnaligned, &[], false, 0);
    assert_eq!(source.requested(1), Cut::Freeze(1));
    assert_eq!((source.outputs(), source.overtakes()), (Outputs::Barrier, false));
    assert_eq!(source.timed_out(1), Cut::Go, "it has frozen already");
    assert!(source.overtakes());
    source.aborted_to(1);
    assert!(!source.overtakes(), "nobody wants it any more");
    assert_eq!((source.timed_out(2), source.outputs()), (Cut::Freeze(2), Outputs::Published));
    assert!(!source.overtakes(), "there is no barrier");
    let mut task = TaskCut::new(Protocol::AlignedThenUnaligned, &[InputKind::Forward; 2], false, 0);
    assert_eq!(task.published(0, 1), Cut::Freeze(1), "a cut says the same as the word");
}

#[test]
fn nothing_follows_an_end_that_lies_in_the_spill() {
    let mut head = TaskCut::new(Protocol::Unaligned, &[InputKind::Forward, InputKind::Back], true, 0);
    head.end_drained(1);
    assert_eq!(head.requested(1), Cut::Freeze(1));
    assert_eq!((head.log(0), head.log(1)), (Log::Open, Log::Backlog));
    head.end_drained(1);
    head.reached(0);
    assert!(head.is_complete());
}

#[test]
fn at_least_once_nothing_waits() {
    let kinds = [InputKind::Forward, InputKind::Forward, InputKind::Back];
    let mut head = TaskCut::new(Protocol::AtLeastOnce, &kinds, false, 0);
    assert_eq!(head.barrier(0, 1), Cut::Go);
    assert_eq!((head.drained(2, 1), head.holds(1)), (Drained::Queue, false));
    assert_eq!(head.barrier(2, 1), Cut::Go, "it goes by");
    assert!(head.polls(0) && head.polls(2) && !head.is_aligning());
    assert_eq!(head.barrier(1, 1), Cut::Freeze(1));
    assert_eq!((head.log(0), head.log(2)), (Log::Empty, Log::Empty));
}
