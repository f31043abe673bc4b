//! Several tasks, channels and the coordinator together, every interleaving: small graphs, rings of one slot, leftovers,
//! 2 epochs, one abort or declined commit, ends. What only shows between tasks shows here (protocols, rule 44).
//!
//! Every record has a fixed way from its source to a sink, so a checkpoint is exact if each record was taken in either by
//! all tasks on its way or by none. Every task reads each word in a step of its own, as late as it likes; what it reports
//! reaches the coordinator as late as it likes, but in order.

use snapring::checkpoint::{Action, Coordinator, Cut, InputKind, Protocol, TaskCut, Timing};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Set of records, one bit each.
type Records = u8;

struct Graph {
    tasks: usize,
    /// From task, to task.
    channels: &'static [(usize, usize)],
    records_per_source: usize,
    /// Whether sources end; if not, a stuck checkpoint cannot be rescued by their end.
    ends: bool,
    aborts: usize,
    /// Whether reports may reach the coordinator late; if not, at once. Late ones multiply the states.
    late: bool,
}

const CHAIN: &[(usize, usize)] = &[(0, 1), (1, 2)];
const FAN_IN: &[(usize, usize)] = &[(0, 2), (1, 2), (2, 3)];
const DIAMOND: &[(usize, usize)] = &[(0, 1), (0, 2), (1, 3), (2, 3)];
const GRID: &[(usize, usize)] = &[(0, 2), (0, 3), (1, 2), (1, 3)];
const EPOCHS: usize = 2;

impl Graph {
    fn inputs(&self, task: usize) -> Vec<usize> {
        (0..self.channels.len()).filter(|&c| self.channels[c].1 == task).collect()
    }

    fn outputs(&self, task: usize) -> Vec<usize> {
        (0..self.channels.len()).filter(|&c| self.channels[c].0 == task).collect()
    }

    /// The output that a record takes: the partitioner.
    fn output(&self, task: usize, record: u8) -> Option<usize> {
        let outputs = self.outputs(task);
        (!outputs.is_empty()).then(|| outputs[usize::from(record) % outputs.len()])
    }

    fn sources(&self) -> Vec<usize> {
        (0..self.tasks).filter(|&task| self.inputs(task).is_empty()).collect()
    }

    /// The records that a source gives.
    fn given(&self, source: usize) -> std::ops::Range<u8> {
        let nth = self.sources().iter().position(|&s| s == source).expect("a source");
        let per = self.records_per_source;
        (nth * per) as u8..((nth + 1) * per) as u8
    }

    /// Panics unless each record was taken in by all tasks on its way, or by none. Returns all that were.
    fn check_cut(&self, taken: &[Records], epoch: u64) -> Records {
        let mut all = 0;
        for source in self.sources() {
            for record in self.given(source) {
                let has = |task: usize| taken[task] >> record & 1;
                all |= has(source) << record;
                let mut task = source;
                while let Some(channel) = self.output(task, record) {
                    task = self.channels[channel].1;
                    let fault = if has(source) == 1 { "lost" } else { "doubled" };
                    assert_eq!(has(task), has(source), "record {record} is {fault} in epoch {epoch}: {taken:?}");
                }
            }
        }
        all
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Slot {
    Record(u8),
    Barrier(u64),
    End,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Report {
    Snapshot(u64, Records),
    Final(Records),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Task {
    machine: TaskCut,
    taken: Records,
    finished: bool,
    reports: Vec<Report>,
    /// What the coordinator holds of it.
    snapshot: Option<Records>,
    last: Option<Records>,
}

#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Channel {
    ring: Option<Slot>,
    leftovers: Vec<Slot>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    tasks: Vec<Task>,
    channels: Vec<Channel>,
    coordinator: Coordinator,
    request: u64,
    aborted_to: u64,
    closed_to: u64,
    begun: usize,
    aborts: usize,
    committing: Option<u64>,
}

impl World {
    fn new(graph: &Graph) -> Self {
        let timing = Timing { interval_ns: None, timeout_ns: Some(1), unaligned_after_ns: None };
        let task = |task| Task {
            machine: TaskCut::new(Protocol::Aligned, &vec![InputKind::Forward; graph.inputs(task).len()], false, 0),
            taken: 0,
            finished: false,
            reports: vec![],
            snapshot: None,
            last: None,
        };
        Self {
            tasks: (0..graph.tasks).map(task).collect(),
            channels: vec![Channel::default(); graph.channels.len()],
            coordinator: Coordinator::new(Protocol::Aligned, graph.tasks, 0, timing, 0),
            request: 0,
            aborted_to: 0,
            closed_to: 0,
            begun: 0,
            aborts: graph.aborts,
            committing: None,
        }
    }

    fn send(&mut self, channel: usize, slot: Slot) {
        let channel = &mut self.channels[channel];
        if channel.ring.is_none() && channel.leftovers.is_empty() {
            channel.ring = Some(slot);
        } else {
            channel.leftovers.push(slot);
        }
    }

    fn has_leftovers(&self, graph: &Graph, task: usize) -> bool {
        graph.outputs(task).iter().any(|&c| !self.channels[c].leftovers.is_empty())
    }

    /// The shell's part of [`Cut::Freeze`].
    fn cut(&mut self, graph: &Graph, task: usize, cut: Cut) {
        if let Cut::Freeze(epoch) = cut {
            graph.outputs(task).into_iter().for_each(|c| self.send(c, Slot::Barrier(epoch)));
            self.report(graph, task, Report::Snapshot(epoch, self.tasks[task].taken));
        }
    }

    fn report(&mut self, graph: &Graph, task: usize, report: Report) {
        self.tasks[task].reports.push(report);
        if !graph.late {
            self.hear(graph, task);
        }
    }

    /// The coordinator hears the oldest report of a task.
    fn hear(&mut self, graph: &Graph, task: usize) {
        let action = match self.tasks[task].reports.remove(0) {
            Report::Snapshot(epoch, taken) => {
                if epoch == self.request && epoch > self.closed_to {
                    self.tasks[task].snapshot = Some(taken);
                }
                self.coordinator.snapshot(task, epoch)
            }
            Report::Final(taken) => {
                self.tasks[task].last = Some(taken);
                self.coordinator.finished(task)
            }
        };
        self.act(graph, action);
    }

    /// Takes a record in and sends it on.
    fn take(&mut self, graph: &Graph, task: usize, record: u8) {
        assert!(self.tasks[task].taken >> record & 1 == 0);
        self.tasks[task].taken |= 1 << record;
        if let Some(channel) = graph.output(task, record) {
            self.send(channel, Slot::Record(record));
        }
    }

    /// The shell's part of each [`Action`].
    fn act(&mut self, graph: &Graph, action: Option<Action>) {
        match action {
            None => {}
            Some(Action::Begin(epoch)) => self.request = epoch,
            Some(Action::Abort(epoch)) => {
                (self.aborted_to, self.closed_to, self.committing) = (epoch, epoch, None);
                self.tasks.iter_mut().for_each(|task| task.snapshot = None);
            }
            Some(Action::Commit(epoch)) => {
                self.committing = Some(epoch);
                let stands = |task: &Task| task.snapshot.or(task.last).expect("a task without a snapshot");
                let taken: Vec<_> = self.tasks.iter().map(stands).collect();
                graph.check_cut(&taken, epoch);
            }
            Some(action @ (Action::TimeOut(_) | Action::Release(_))) => panic!("{action:?} under the aligned protocol"),
            Some(Action::Fail(epoch)) => panic!("epoch {epoch} was the last"),
        }
    }
}

/// The coordinator's steps: begin, give up, become durable, hear a task.
fn coordinator_steps(graph: &Graph, world: &World, push: &mut impl FnMut(World)) {
    if world.begun < EPOCHS && world.committing.is_none() && world.closed_to == world.request {
        let mut next = world.clone();
        let epoch = next.coordinator.demand();
        if let Some(action) = next.coordinator.tick(0) {
            assert_eq!(action, Action::Begin(epoch));
            next.begun += 1;
            next.act(graph, Some(action));
            push(next);
        }
    }
    if world.aborts > 0 && world.closed_to < world.request {
        let mut next = world.clone();
        next.aborts -= 1;
        let action = match world.committing {
            Some(_) if world.tasks.iter().all(|task| task.last.is_some()) => None, // the last one: would fail the job
            Some(epoch) => next.coordinator.declined(epoch),
            None => next.coordinator.tick(1),
        };
        if action.is_some() {
            next.act(graph, action);
            push(next);
        }
    }
    if let Some(epoch) = world.committing {
        let mut next = world.clone();
        next.coordinator.durable(epoch);
        (next.closed_to, next.committing) = (epoch, None);
        next.tasks.iter_mut().for_each(|task| task.snapshot = None);
        push(next);
    }
    for task in (0..graph.tasks).filter(|&task| !world.tasks[task].reports.is_empty()) {
        let mut next = world.clone();
        next.hear(graph, task);
        push(next);
    }
}

/// One task's steps: look at the words, take from an input, give from the source, finish.
fn task_steps(graph: &Graph, world: &World, task: usize, push: &mut impl FnMut(World)) {
    let Task { machine, taken, .. } = &world.tasks[task];
    let mut next = world.clone();
    let cut = next.tasks[task].machine.requested(world.request);
    if cut != Cut::Go {
        next.cut(graph, task, cut);
        push(next);
    }
    let mut next = world.clone();
    next.tasks[task].machine.aborted_to(world.aborted_to);
    if next.tasks[task].machine != *machine {
        push(next);
    }
    let leftovers = world.has_leftovers(graph, task);
    let inputs = graph.inputs(task);
    for (input, &channel) in inputs.iter().enumerate().filter(|(input, _)| machine.polls(*input)) {
        let Some(slot) = world.channels[channel].ring else { continue };
        if leftovers && matches!(slot, Slot::Record(_)) {
            continue; // rule 4
        }
        let mut next = world.clone();
        next.channels[channel].ring = None;
        let cut = match slot {
            Slot::Record(record) => {
                next.take(graph, task, record);
                Cut::Go
            }
            Slot::Barrier(epoch) => next.tasks[task].machine.barrier(input, epoch),
            Slot::End => next.tasks[task].machine.ended(input),
        };
        next.cut(graph, task, cut);
        push(next);
    }
    let rest = if inputs.is_empty() { graph.given(task).find(|record| taken >> record & 1 == 0) } else { None };
    if let Some(record) = rest.filter(|_| !leftovers) {
        let mut next = world.clone();
        next.take(graph, task, record);
        push(next);
    }
    if rest.is_none() && graph.ends && !leftovers && machine.all_ended() && machine.may_finish(world.closed_to) {
        let mut next = world.clone();
        next.tasks[task].finished = true;
        graph.outputs(task).into_iter().for_each(|c| next.send(c, Slot::End));
        next.report(graph, task, Report::Final(*taken));
        push(next);
    }
}

fn steps(graph: &Graph, world: &World) -> Vec<World> {
    let mut nexts = Vec::new();
    let push = &mut |next| nexts.push(next);
    coordinator_steps(graph, world, push);
    for (c, channel) in world.channels.iter().enumerate() {
        if channel.ring.is_none() && !channel.leftovers.is_empty() {
            let mut next = world.clone();
            next.channels[c].ring = Some(next.channels[c].leftovers.remove(0));
            push(next);
        }
    }
    for task in (0..graph.tasks).filter(|&task| !world.tasks[task].finished) {
        task_steps(graph, world, task, push);
    }
    nexts
}

/// Every step uses something up, so there are no circles: if each state without a next one is a good end, nothing is ever
/// stuck.
fn check_end(graph: &Graph, world: &World) {
    for (c, channel) in world.channels.iter().enumerate() {
        assert!(channel.ring.is_none() && channel.leftovers.is_empty(), "channel {c} is stuck");
    }
    let taken: Vec<_> = world.tasks.iter().map(|task| task.taken).collect();
    let given = graph.sources().len() * graph.records_per_source;
    assert_eq!(graph.check_cut(&taken, u64::MAX), ((1u16 << given) - 1) as u8, "not all records were taken in");
    for (task, Task { machine, finished, .. }) in world.tasks.iter().enumerate() {
        assert_eq!(*finished, graph.ends, "task {task}");
        let inputs = graph.inputs(task).len();
        assert!(
            graph.ends || (0..inputs).all(|input| machine.polls(input)),
            "an input of task {task} is blocked for ever"
        );
    }
    assert_eq!(world.coordinator.is_over(), graph.ends);
    assert_eq!(world.committing, None);
    assert!(graph.ends || (world.begun == EPOCHS && world.closed_to == world.request), "an epoch is still under way");
}

/// Explores every interleaving; returns how many states there are. States are remembered by their hash: 64 bits are
/// enough for the few million that there are.
fn explore(graph: &Graph) -> usize {
    let fingerprint = |world: &World| {
        let mut hasher = DefaultHasher::new();
        world.hash(&mut hasher);
        hasher.finish()
    };
    let start = World::new(graph);
    let mut visited = HashSet::from([fingerprint(&start)]);
    let mut todo = vec![start];
    while let Some(world) = todo.pop() {
        let nexts = steps(graph, &world);
        if nexts.is_empty() {
            check_end(graph, &world);
        }
        todo.extend(nexts.into_iter().filter(|next| visited.insert(fingerprint(next))));
    }
    visited.len()
}

fn explore_all(tasks: usize, channels: &'static [(usize, usize)], records_per_source: usize, late: [bool; 2]) -> usize {
    let mut states = 0;
    for (ends, aborts) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        let late = late[aborts] || std::env::var_os("SNAPRING_LONG").is_some();
        let count = explore(&Graph { tasks, channels, records_per_source, ends, aborts, late });
        println!("ends {ends}, aborts {aborts}, late reports {late}: {count} states");
        states += count;
    }
    states
}

// The numbers say that the exploration still reaches what it should. With SNAPRING_LONG set, reports are always late.

#[test]
fn chain() {
    assert!(explore_all(3, CHAIN, 2, [true, true]) > 100_000);
}

#[test]
fn fan_in() {
    assert!(explore_all(4, FAN_IN, 1, [true, false]) > 200_000);
}

#[test]
fn diamond() {
    assert!(explore_all(4, DIAMOND, 2, [true, false]) > 200_000);
}

#[test]
fn grid() {
    assert!(explore_all(4, GRID, 1, [true, false]) > 500_000);
}
