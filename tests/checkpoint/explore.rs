//! Breadth-first exploration of a graph of states: shortest counterexamples, and whether a goal stays in reach. What a
//! state is, it does not know.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt::Write;

/// What is explored.
pub trait Explored {
    type World: Clone;
    /// The name of a step. No two steps of one state have the same.
    type Step: Copy + Eq;
    fn start(&self) -> Self::World;
    fn steps(&self, world: &Self::World) -> Vec<(Self::Step, Self::World)>;
    /// States are remembered by this: 64 bits are enough for the few million that there are.
    fn fingerprint(&self, world: &mut Self::World) -> u64;
    /// What is wrong with a state.
    fn fault<'w>(&self, world: &'w Self::World) -> Option<&'w str>;
    /// From every state one of these must be in reach.
    fn is_goal(&self, world: &Self::World) -> bool;
    fn name(&self, step: Self::Step) -> String;
    fn dump(&self, world: &Self::World) -> String;
}

#[derive(Debug)]
pub struct Found {
    pub states: usize,
    /// Whether all states were explored.
    pub is_whole: bool,
    pub fault: Option<Fault>,
}

#[derive(Debug)]
pub struct Fault {
    pub what: String,
    pub steps: Vec<String>,
    pub dump: String,
}

impl Found {
    /// The counterexample that must be there.
    pub fn expect_fault(self, what: &str) -> Fault {
        let fault = self.fault.unwrap_or_else(|| panic!("no fault in {} states", self.states));
        assert!(fault.what.contains(what), "another fault than {what}: {fault}");
        fault
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} ({} steps)", self.what, self.steps.len())?;
        self.steps.iter().try_for_each(|step| writeln!(f, "  {step}"))?;
        f.write_str(&self.dump)
    }
}

struct Search<'a, E: Explored> {
    explored: &'a E,
    index: HashMap<u64, u32>,
    /// Where each state came from.
    parents: Vec<Option<(u32, E::Step)>>,
    edges: Vec<(u32, u32)>,
    goals: Vec<bool>,
    todo: VecDeque<(u32, E::World)>,
}

/// Explores all states, but stops at the first that has a fault, and when there are too many.
pub fn explore<E: Explored>(explored: &E, states_max: usize) -> Found {
    let mut search = Search {
        explored,
        index: HashMap::new(),
        parents: Vec::new(),
        edges: Vec::new(),
        goals: Vec::new(),
        todo: VecDeque::new(),
    };
    search.add(explored.start(), None);
    while let Some((at, world)) = search.todo.pop_front() {
        for (step, next) in explored.steps(&world) {
            let fault = explored.fault(&next).map(str::to_owned);
            let to = search.add(next, Some((at, step)));
            search.edges.push((at, to));
            if let Some(what) = fault {
                return search.found(Some((what, to)));
            }
        }
        if search.parents.len() > states_max {
            return Found { is_whole: false, ..search.found(None) };
        }
    }
    let stuck = search.stuck().map(|at| ("STUCK: nothing leads to the end from here".to_owned(), at));
    search.found(stuck)
}

/// Explores up to so many states, and if there are more, so many ways drawn at random.
pub fn explore_and_walk<E: Explored>(explored: &E, states_max: usize, walks: u64) -> Found {
    let found = explore(explored, states_max);
    if found.is_whole || found.fault.is_some() {
        return found;
    }
    Found { fault: walk(explored, walks), ..found }
}

/// Goes `walks` ways from the start to an end, each drawn at random, and stops at the first fault. An end that is no goal
/// is one.
fn walk<E: Explored>(explored: &E, walks: u64) -> Option<Fault> {
    for seed in 0..walks {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let (mut world, mut steps) = (explored.start(), Vec::new());
        let what = loop {
            if let Some(what) = explored.fault(&world) {
                break Some(what.to_owned());
            }
            let mut nexts = explored.steps(&world);
            if nexts.is_empty() {
                break (!explored.is_goal(&world)).then(|| "STUCK: this is not the end".into());
            }
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (step, next) = nexts.swap_remove((random >> 33) as usize % nexts.len());
            steps.push(explored.name(step));
            world = next;
        };
        if let Some(what) = what {
            return Some(Fault { what, steps, dump: explored.dump(&world) });
        }
    }
    None
}

impl<E: Explored> Search<'_, E> {
    fn add(&mut self, mut world: E::World, parent: Option<(u32, E::Step)>) -> u32 {
        let next = self.parents.len() as u32;
        match self.index.entry(self.explored.fingerprint(&mut world)) {
            Entry::Occupied(old) => *old.get(),
            Entry::Vacant(new) => {
                new.insert(next);
                self.parents.push(parent);
                self.goals.push(self.explored.is_goal(&world));
                self.todo.push_back((next, world));
                next
            }
        }
    }

    /// The first state from which no goal is in reach; of those without a next step, if there are such.
    fn stuck(&mut self) -> Option<u32> {
        self.edges.sort_unstable_by_key(|edge| edge.1);
        let mut reaches = self.goals.clone();
        let mut todo: Vec<u32> = (0..reaches.len() as u32).filter(|&at| reaches[at as usize]).collect();
        while let Some(at) = todo.pop() {
            let from = self.edges.partition_point(|edge| edge.1 < at);
            for edge in self.edges[from..].iter().take_while(|edge| edge.1 == at) {
                if !std::mem::replace(&mut reaches[edge.0 as usize], true) {
                    todo.push(edge.0);
                }
            }
        }
        let mut leads = vec![false; reaches.len()];
        self.edges.iter().filter(|edge| edge.0 != edge.1).for_each(|edge| leads[edge.0 as usize] = true);
        let dead = (0..reaches.len()).find(|&at| !reaches[at] && !leads[at]);
        dead.or_else(|| reaches.iter().position(|reaches| !reaches)).map(|at| at as u32)
    }

    fn found(&self, fault: Option<(String, u32)>) -> Found {
        Found { states: self.parents.len(), is_whole: true, fault: fault.map(|(what, at)| self.trace(&what, at)) }
    }

    /// The steps to a state, made again.
    fn trace(&self, what: &str, mut at: u32) -> Fault {
        let mut steps = Vec::new();
        while let Some((from, step)) = self.parents[at as usize] {
            steps.push(step);
            at = from;
        }
        steps.reverse();
        let mut world = self.explored.start();
        for step in &steps {
            let mut nexts = self.explored.steps(&world);
            let again = nexts.iter().position(|next| next.0 == *step).expect("a step is there again");
            world = nexts.swap_remove(again).1;
        }
        let mut dump = String::new();
        writeln!(dump, "{}", self.explored.dump(&world)).expect("a string takes all");
        Fault { what: what.into(), steps: steps.into_iter().map(|step| self.explored.name(step)).collect(), dump }
    }
}
