//! The state of a job, as a model shell keeps it: queues, logs and words. It knows no step.

use super::graphs::{Graph, Setup, Wrong};
use snapring::checkpoint::{Component, Coordinator, InputKind, Laps, TaskCut, Timing};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// More messages than any setup has.
pub const MESSAGES: usize = 4;
/// How often a task has processed each message: its state.
pub type Done = [u8; MESSAGES];

/// A batch: the `hop`th task on its way is to process it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    pub id: u8,
    pub hop: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    Message(Message),
    Barrier(u64),
    Lap(u64),
    End,
    /// In scripts only: the producer stores the word here.
    Word(Word),
}

/// What is published beside a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    None,
    Cut(u64),
    End,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    pub rest: Vec<Message>,
    pub spill: Vec<Slot>,
    pub ring: Vec<Slot>,
    pub leftovers: Vec<Slot>,
    pub word: Word,
    /// Slots in the ring that lie ahead of the word's position.
    pub ahead: usize,
    /// Slots in the ring that are logged already.
    pub logged: usize,
    pub sent_end: bool,
    /// Under [`Wrong::NoHoldBack`]: the epoch whose barrier went by.
    pub passed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    pub cut: TaskCut,
    pub laps: Laps,
    pub done: Done,
    /// Frozen, and not handed over yet.
    pub snapshot: Option<Snapshot>,
    pub finished: bool,
    /// What the coordinator has not heard yet.
    pub reports: Vec<Report>,
    /// Under [`Wrong::HeadWaits`]: the epoch whose barrier was forwarded.
    pub forwarded: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    pub epoch: u64,
    pub done: Done,
    /// What the logs and the saved leftovers hold, sorted.
    pub copies: Vec<Message>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Report {
    Paused(u64),
    Snapshot(Snapshot),
    Final(Done),
}

/// A part of the world that worlds share until it changes, with its hash.
#[derive(Clone, Debug)]
pub struct Part<T> {
    part: Rc<T>,
    /// 0: not known.
    hash: u64,
}

impl<T: Clone + Hash> Part<T> {
    pub fn new(part: T) -> Self {
        Self { part: Rc::new(part), hash: 0 }
    }

    pub fn edit(&mut self) -> &mut T {
        self.hash = 0;
        Rc::make_mut(&mut self.part)
    }

    fn hash(&mut self) -> u64 {
        if self.hash == 0 {
            self.hash = hash(&*self.part) | 1;
        }
        self.hash
    }
}

impl<T> std::ops::Deref for Part<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.part
    }
}

fn hash(what: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// The words, and what else belongs to the job as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    pub coordinator: Coordinator,
    pub request: u64,
    pub timed_out: u64,
    pub released: u64,
    pub aborted_to: u64,
    pub closed_to: u64,
    pub begun: usize,
    pub aborts: usize,
    pub committing: Option<u64>,
    pub components: Vec<Component>,
    /// What was handed over in the epoch under way.
    pub handed: Vec<Option<Snapshot>>,
    pub finals: Vec<Option<Done>>,
}

#[derive(Clone, Debug)]
pub struct World {
    pub tasks: Vec<Part<Task>>,
    pub channels: Vec<Part<Channel>>,
    pub job: Part<Job>,
    pub fault: Option<String>,
}

/// At 1 ns an epoch goes on unaligned, at 2 ns it is given up.
pub const TIMING: Timing = Timing { interval_ns: None, timeout_ns: Some(2), unaligned_after_ns: Some(1) };

impl World {
    pub fn new(setup: &Setup) -> Self {
        let graph = &setup.graph;
        let tasks = graph.tasks.len();
        let channel = Channel {
            rest: vec![],
            spill: vec![],
            ring: vec![],
            leftovers: vec![],
            word: Word::None,
            ahead: 0,
            logged: 0,
            sent_end: false,
            passed: 0,
        };
        let job = Job {
            coordinator: Coordinator::new(setup.protocol, tasks, 0, TIMING, 0),
            request: 0,
            timed_out: 0,
            released: 0,
            aborted_to: 0,
            closed_to: 0,
            begun: 0,
            aborts: setup.aborts,
            committing: None,
            components: (0..graph.components).map(|component| Component::new(graph.heads(component))).collect(),
            handed: vec![None; tasks],
            finals: vec![None; tasks],
        };
        let mut world = Self {
            tasks: (0..tasks).map(|task| Part::new(new_task(setup, task))).collect(),
            channels: vec![Part::new(channel); graph.channels.len()],
            job: Part::new(job),
            fault: None,
        };
        if let Some(hop) = setup.rest {
            world.put_into_rest(graph, hop);
        }
        world
    }

    /// The first message has come so far before a restore, and lies in the rest of its channel.
    fn put_into_rest(&mut self, graph: &Graph, hop: u8) {
        let way = graph.ways[0];
        way[..hop as usize].iter().for_each(|&task| self.tasks[task].edit().done[0] += 1);
        let channel = graph.channel(way[hop as usize - 1], way[hop as usize]);
        self.channels[channel].edit().rest.push(Message { id: 0, hop });
    }

    pub fn fingerprint(&mut self) -> u64 {
        let hashes = self.tasks.iter_mut().map(Part::hash).chain(self.channels.iter_mut().map(Part::hash));
        let mix = |sum: u64, hash: u64| (sum.rotate_left(5) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let sum = hashes.fold(0, mix);
        mix(sum, self.job.hash()) ^ u64::from(self.fault.is_some())
    }

    pub fn has_leftovers(&self, graph: &Graph, task: usize) -> bool {
        graph.outputs[task].iter().any(|&channel| !self.channels[channel].leftovers.is_empty())
    }

    pub fn is_pending(&self) -> bool {
        self.job.request > self.job.closed_to
    }
}

fn new_task(setup: &Setup, task: usize) -> Task {
    let graph = &setup.graph;
    let mut kinds = graph.kinds(task);
    if matches!(setup.wrong, Wrong::HeadWaits | Wrong::NoSpill) {
        kinds.fill(InputKind::Forward);
    }
    let inside: Vec<_> = graph.inputs[task].iter().map(|&channel| graph.is_inside(channel)).collect();
    Task {
        cut: TaskCut::new(setup.protocol, &kinds, setup.all_begin, 0),
        laps: Laps::new(graph.role(task), &inside),
        done: [0; MESSAGES],
        snapshot: None,
        finished: false,
        reports: vec![],
        forwarded: 0,
    }
}

impl Channel {
    /// The barrier or End slot, or the position, at which the log of `epoch` closes; and the slots ahead of it.
    pub fn log_end(&self, epoch: u64) -> (usize, bool) {
        let known = match self.word {
            Word::None => None,
            Word::Cut(of) => Some(self.ahead).filter(|_| of == epoch),
            Word::End => Some(self.ahead),
        };
        let mark = self.ring.iter().position(|slot| *slot == Slot::Barrier(epoch) || *slot == Slot::End);
        let end = known.into_iter().chain(mark).min();
        (end.unwrap_or(self.ring.len()), end.is_some())
    }

    /// Stores a word, unless a higher one is there.
    pub fn publish(&mut self, word: Word) {
        let rank = |word| match word {
            Word::None => 0,
            Word::Cut(epoch) => epoch,
            Word::End => u64::MAX,
        };
        if rank(word) > rank(self.word) {
            (self.word, self.ahead) = (word, self.ring.len());
        }
    }
}
