//! Small graphs, the messages that travel through them, and how an exploration is set up. No machine is known here but by
//! the names of roles and protocols.

use snapring::checkpoint::{InputKind, LapRole, Protocol};

/// A graph and the messages in it. Each message has a fixed way: the tasks that process it, one after the other.
#[derive(Clone)]
pub struct Graph {
    pub name: &'static str,
    pub tasks: &'static [&'static str],
    /// From task, to task, whether it is a declared feedback edge.
    pub channels: &'static [(usize, usize, bool)],
    pub ways: Vec<&'static [usize]>,
    pub inputs: Vec<Vec<usize>>,
    pub outputs: Vec<Vec<usize>>,
    /// The component of each task that lies on a cycle.
    pub component: Vec<Option<usize>>,
    pub components: usize,
}

type Shape = (&'static str, &'static [&'static str], &'static [(usize, usize, bool)], &'static [&'static [usize]]);

const SHAPES: &[Shape] = &[
    (
        "fanin",
        &["S0", "S1", "A", "K"],
        &[(0, 2, false), (1, 2, false), (2, 3, false)],
        &[&[0, 2, 3], &[1, 2, 3], &[0, 2, 3]],
    ),
    (
        "chain",
        &["S", "A", "B", "K"],
        &[(0, 1, false), (1, 2, false), (2, 3, false)],
        &[&[0, 1, 2, 3], &[0, 1, 2, 3], &[0, 1, 2, 3]],
    ),
    (
        "diamond",
        &["S", "A", "B", "K"],
        &[(0, 1, false), (0, 2, false), (1, 3, false), (2, 3, false)],
        &[&[0, 1, 3], &[0, 2, 3], &[0, 1, 3]],
    ),
    (
        "grid",
        &["S0", "S1", "A", "B"],
        &[(0, 2, false), (0, 3, false), (1, 2, false), (1, 3, false)],
        &[&[0, 2], &[1, 3], &[0, 3], &[1, 2]],
    ),
    ("self", &["S", "H"], &[(0, 1, false), (1, 1, true)], &[&[0, 1, 1], &[0, 1, 1, 1], &[0, 1, 1]]),
    (
        "loop",
        &["S", "H", "T"],
        &[(0, 1, false), (1, 2, false), (2, 1, true)],
        &[&[0, 1, 2, 1], &[0, 1, 2, 1, 2], &[0, 1, 2, 1]],
    ),
    (
        "cross",
        &["S0", "S1", "H0", "H1"],
        &[(0, 2, false), (1, 3, false), (2, 3, true), (3, 2, true)],
        &[&[0, 2, 3, 2], &[1, 3, 2], &[0, 2, 3]],
    ),
    (
        "fused22",
        &["S0", "S1", "H0", "H1"],
        &[(0, 2, false), (1, 3, false), (2, 2, true), (2, 3, true), (3, 2, true), (3, 3, true)],
        &[&[0, 2, 3, 3], &[1, 3, 2, 2], &[0, 2, 3]],
    ),
    (
        "grid22",
        &["S0", "S1", "H0", "H1", "T0", "T1"],
        &[
            (0, 2, false),
            (1, 3, false),
            (2, 4, false),
            (3, 5, false),
            (4, 2, true),
            (4, 3, true),
            (5, 2, true),
            (5, 3, true),
        ],
        &[&[0, 2, 4, 3, 5, 2], &[1, 3, 5, 2], &[0, 2, 4, 2]],
    ),
    (
        "shared",
        &["S0", "S1", "H0", "H1", "T"],
        &[(0, 2, false), (1, 3, false), (2, 4, false), (3, 4, false), (4, 2, true), (4, 3, true)],
        &[&[0, 2, 4, 3], &[1, 3, 4, 2, 4], &[0, 2, 4, 2]],
    ),
    (
        "nested",
        &["S", "H0", "H1", "T"],
        &[(0, 1, false), (1, 2, false), (2, 3, false), (3, 2, true), (3, 1, true)],
        &[&[0, 1, 2, 3, 2, 3], &[0, 1, 2, 3, 1, 2], &[0, 1, 2]],
    ),
    (
        "mid",
        &["S0", "S1", "H", "T"],
        &[(0, 2, false), (1, 3, false), (2, 3, false), (3, 2, true)],
        &[&[0, 2, 3, 2], &[1, 3, 2, 3], &[0, 2, 3]],
    ),
    // Two loops, one behind the other.
    (
        "twice",
        &["S", "H", "G"],
        &[(0, 1, false), (1, 1, true), (1, 2, false), (2, 2, true)],
        &[&[0, 1, 1, 2, 2], &[0, 1, 2], &[0, 1, 1, 2]],
    ),
];

impl Graph {
    /// The graph of this name, with its first `messages` messages.
    pub fn named(name: &str, messages: usize) -> Self {
        let shape = SHAPES.iter().find(|shape| shape.0 == name).expect("a graph of this name");
        Self::new(shape.0, shape.1, shape.2, shape.3[..messages].to_vec())
    }

    pub fn new(
        name: &'static str,
        tasks: &'static [&'static str],
        channels: &'static [(usize, usize, bool)],
        ways: Vec<&'static [usize]>,
    ) -> Self {
        let of = |end: fn(&(usize, usize, bool)) -> usize| -> Vec<Vec<usize>> {
            let ends = |task| (0..channels.len()).filter(|&c| end(&channels[c]) == task).collect();
            (0..tasks.len()).map(ends).collect()
        };
        let (component, components) = components(tasks.len(), channels);
        let (inputs, outputs) = (of(|channel| channel.1), of(|channel| channel.0));
        Self { name, tasks, channels, ways, inputs, outputs, component, components }
    }

    pub fn is_source(&self, task: usize) -> bool {
        self.inputs[task].is_empty()
    }

    pub fn is_back(&self, channel: usize) -> bool {
        self.channels[channel].2
    }

    pub fn is_head(&self, task: usize) -> bool {
        self.inputs[task].iter().any(|&channel| self.is_back(channel))
    }

    /// Whether a channel lies within a component.
    pub fn is_inside(&self, channel: usize) -> bool {
        let (from, to, _) = self.channels[channel];
        self.component[from].is_some() && self.component[from] == self.component[to]
    }

    pub fn kinds(&self, task: usize) -> Vec<InputKind> {
        let kind = |&channel: &usize| if self.is_back(channel) { InputKind::Back } else { InputKind::Forward };
        self.inputs[task].iter().map(kind).collect()
    }

    pub fn role(&self, task: usize) -> LapRole {
        match self.component[task] {
            None => LapRole::None,
            Some(_) if self.is_head(task) => LapRole::Head,
            Some(_) => LapRole::Body,
        }
    }

    pub fn heads(&self, component: usize) -> usize {
        (0..self.tasks.len()).filter(|&t| self.component[t] == Some(component) && self.is_head(t)).count()
    }

    pub fn channel(&self, from: usize, to: usize) -> usize {
        self.channels.iter().position(|channel| (channel.0, channel.1) == (from, to)).expect("a channel on the way")
    }

    pub fn channel_name(&self, channel: usize) -> String {
        let (from, to, back) = self.channels[channel];
        format!("{}{}{}", self.tasks[from], if back { "~>" } else { "->" }, self.tasks[to])
    }
}

/// Which tasks reach each other, the plain way.
fn components(tasks: usize, channels: &[(usize, usize, bool)]) -> (Vec<Option<usize>>, usize) {
    let mut reaches = vec![vec![false; tasks]; tasks];
    channels.iter().for_each(|channel| reaches[channel.0][channel.1] = true);
    for via in 0..tasks {
        for from in 0..tasks {
            for to in 0..tasks {
                reaches[from][to] |= reaches[from][via] && reaches[via][to];
            }
        }
    }
    let mut component = vec![None; tasks];
    let mut components = 0;
    for task in 0..tasks {
        if component[task].is_none() && reaches[task][task] {
            (0..tasks).filter(|&t| reaches[task][t] && reaches[t][task]).for_each(|t| component[t] = Some(components));
            components += 1;
        }
    }
    (component, components)
}

/// What a shell does wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wrong {
    #[default]
    Nothing,
    /// Rule 13: a barrier at the front of a spill goes by before the freeze.
    NoHoldBack,
    /// Rule 14: the log of a back edge begins empty.
    LogWithoutSpill,
    /// Rule 13: the log goes on behind a held barrier.
    LogBehindBarrier,
    /// Rule 15: a barrier is told of when it leaves the spill, not when it leaves the ring.
    BarrierWhenProcessed,
    /// From the literature: a head forwards the barrier when all forward inputs have it, keeps them blocked, and freezes
    /// when it has come round, without a log.
    HeadWaits,
    /// Rule 19: leftovers are not saved.
    NoLeftovers,
    /// Rule 22: the snapshot is not amended by what lay ahead of a barrier that was overtaken.
    NotAmended,
    /// Rule 9: a task finishes with leftovers.
    FinishesWithLeftovers,
    /// Rule 9: a task finishes while an epoch in which it froze is under way.
    FinishesInEpoch,
    /// Rule 24: a paused task flushes its outbox.
    FlushesPaused,
    /// Rule 2: what was given up is told to sources only.
    NoAborts,
    /// Rule 27: no spill; the task takes from the ring of its back edge.
    NoSpill,
    /// Rule 28: no exception while an epoch is pending.
    HoldsAlways,
    /// Rule 30: a head reports that nothing was processed.
    AlwaysClean,
    /// Rule 30: outside inputs that enter elsewhere than at a head do not matter.
    BodyPassesEarly,
}

/// What is explored.
#[derive(Clone)]
pub struct Setup {
    pub graph: Graph,
    pub protocol: Protocol,
    /// All tasks begin by the word, where the protocol allows that.
    pub all_begin: bool,
    pub epochs: usize,
    pub aborts: usize,
    /// Whether sources end. If not, a stuck checkpoint cannot be rescued by their end.
    pub ends: bool,
    /// Slots of a ring.
    pub capacity: usize,
    /// Whether leftovers also keep a task from taking marks.
    pub strict: bool,
    /// Whether a head begins a lap even if it has something to process.
    pub hasty: bool,
    /// Outside inputs wait while a spill in their component holds more records than this.
    pub low_water: Option<usize>,
    /// Whether reports may reach the coordinator late.
    pub late: bool,
    /// The first message goes round its loop for ever.
    pub eternal: bool,
    /// The first message lies in the rest of a restore, so far on its way.
    pub rest: Option<u8>,
    pub wrong: Wrong,
}

impl Setup {
    pub fn new(graph: &str, messages: usize, protocol: Protocol) -> Self {
        Self {
            graph: Graph::named(graph, messages),
            protocol,
            all_begin: false,
            epochs: 1,
            aborts: 0,
            ends: true,
            capacity: 1,
            strict: false,
            hasty: false,
            low_water: None,
            late: false,
            eternal: false,
            rest: None,
            wrong: Wrong::Nothing,
        }
    }
}
