//! The drawn dataflow as plain values: what was drawn, whether it can run, and how it is laid out over tasks and
//! workers. It knows no records, threads or rings.

mod dot;
mod loops;
mod plan;
mod reach;
mod words;

pub use loops::{Component, Loops};
pub use plan::{ChainPlan, Plan, Settings, TaskPlan, plan};
pub use reach::unreached;

use crate::error::BuildError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What was drawn.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The dataflow's name.
    pub name: String,
    /// Operators fused into one loop each; a task is a parallel instance of one.
    pub chains: Vec<Chain>,
    /// Rings between chains.
    pub edges: Vec<Edge>,
}

/// Operators that run in one task.
#[derive(Clone, Debug)]
pub struct Chain {
    /// What configuration calls it: the name of its first named operator.
    pub name: String,
    /// In the order in which they were drawn.
    pub operators: Vec<Operator>,
}

/// The kind of the operator that a loop begins with.
pub const FEEDBACK: &str = "feedback";

impl Chain {
    /// The feedback that it begins with, if it does.
    #[must_use]
    pub fn feedback(&self) -> Option<&Operator> {
        self.operators.first().filter(|operator| operator.kind == FEEDBACK)
    }
}

/// An operator as drawn.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Its name, given or made from its place.
    pub name: String,
    /// Whether the name was given; else it says the place.
    pub named: bool,
    /// `source`, `map`, `fold`, ….
    pub kind: &'static str,
    /// Where it was drawn: `src/pay.rs:12`.
    pub place: String,
    /// What a checkpoint keeps of it.
    pub keeps: Keeps,
}

/// What a checkpoint keeps of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Nothing.
    Nothing,
    /// State that its name finds again.
    State,
    /// Parts of an exactly-once sink.
    Parts,
}

/// How records find their task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// By the hash of their key.
    Key,
    /// Straight on where the parallelism is the same, else to each task in turn.
    Forward,
    /// To each task in turn.
    Rebalance,
    /// To all tasks.
    Broadcast,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "by key",
            Self::Forward => "forward",
            Self::Rebalance => "rebalance",
            Self::Broadcast => "broadcast",
        })
    }
}

/// A bundle of rings from the tasks of one chain to those of another.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Different from that of any other edge, and the same as long as the names of its chains are. A checkpoint keeps what
    /// lies in its rings under it. `FROM->TO` by the names of the chains; of a feedback `feedback NAME`.
    pub name: String,
    /// Index of the chain it leaves.
    pub from: usize,
    /// Index of the chain it enters.
    pub to: usize,
    /// How records find their task.
    pub route: Route,
    /// Whether it closes a loop: drawn as feedback.
    pub back: bool,
}

impl Graph {
    /// All operators, chain by chain.
    pub fn operators(&self) -> impl Iterator<Item = &Operator> {
        self.chains.iter().flat_map(|chain| &chain.operators)
    }

    /// Gives the edges their names: once all is drawn, for until then those of chains change.
    pub(crate) fn name_edges(&mut self) {
        let mut taken = BTreeSet::new();
        for edge in &mut self.edges {
            let (from, to) = (&self.chains[edge.from], &self.chains[edge.to]);
            let name = match to.feedback().filter(|_| edge.back) {
                Some(feedback) => format!("feedback {}", feedback.name),
                None => format!("{}->{}", from.name, to.name),
            };
            let numbered = (2..).map(|number| format!("{name} #{number}"));
            let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
            edge.name = free.expect("numbers do not end");
            taken.insert(edge.name.clone());
        }
    }

    /// Checks names and loops.
    ///
    /// # Errors
    /// Nothing was drawn, or two operators share a name, or one has none; a loop that is no feedback's, or a feedback that is
    /// open or makes no loop.
    pub fn validate(&self) -> Result<(), BuildError> {
        if self.chains.is_empty() {
            return Err(BuildError::Empty(self.name.clone()));
        }
        let mut seen: BTreeMap<&str, &Operator> = BTreeMap::new();
        for operator in self.operators() {
            if operator.name.is_empty() {
                return Err(BuildError::EmptyName { place: operator.place.clone() });
            }
            // Unnamed operators drawn in a loop share their place; nothing needs to find them again.
            if !operator.named {
                continue;
            }
            if let Some(first) = seen.insert(&operator.name, operator) {
                return Err(BuildError::DuplicateName {
                    name: operator.name.clone(),
                    first: first.place.clone(),
                    second: operator.place.clone(),
                });
            }
        }
        Loops::find(self).check(self)
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests;
