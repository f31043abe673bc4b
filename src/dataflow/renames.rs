//! Operators that have another name now than in the snapshot: by a rule of the user's, what is kept under the old name is
//! taken as if it had been kept under the new one. It must not know what is kept.
//!
//! A rule stays where it is once it has been given: a snapshot that has the new name already needs it no more.

use super::drawing::Drawing;
use crate::error::RestoreError;
use crate::graph::{Graph, Keeps};
use crate::snapshot::{Restored, RestoredEntry, Side};

/// The rules of a start.
pub(super) struct Renames<'a> {
    rules: &'a [(String, String)],
    graph: &'a Graph,
    /// The names of edges before, where they differ: with that of today.
    edges: Vec<(String, String)>,
}

impl<'a> Renames<'a> {
    /// Checks the rules against the drawing.
    pub(super) fn new(rules: &'a [(String, String)], drawing: &'a Drawing) -> Result<Self, RestoreError> {
        let graph = &drawing.graph;
        for (at, rule) in rules.iter().enumerate() {
            let (old, new) = rule;
            if !graph.operators().any(|operator| operator.name == *new) {
                return Err(refused(rule, format!("the dataflow has no `{new}`")));
            }
            if old == new {
                return Err(refused(rule, "that is its name".to_owned()));
            }
            if let Some((other, same)) = rules[..at].iter().find(|other| other.0 == *old || other.1 == *new) {
                return Err(refused(rule, format!("there is a rule that takes `{other}` as `{same}`")));
            }
        }
        let mut then = graph.clone();
        for chain in &mut then.chains {
            let names = chain.operators.iter_mut().map(|operator| &mut operator.name);
            for name in names.chain([&mut chain.name]) {
                if let Some((old, _)) = rules.iter().find(|(_, new)| new == name) {
                    name.clone_from(old);
                }
            }
        }
        then.name_edges();
        let edges = then.edges.into_iter().zip(&graph.edges).map(|(then, now)| (then.name, now.name.clone()));
        Ok(Self { rules, graph, edges: edges.filter(|(then, now)| then != now).collect() })
    }

    /// Checks the rules against a snapshot, and gives what is in it its new names. Says which rules it needed.
    pub(super) fn apply(&self, snapshot: &mut Restored) -> Result<Vec<(String, String)>, RestoreError> {
        let mut needed = Vec::new();
        for rule in self.rules {
            let (old, new) = rule;
            match (has(snapshot, old), has(snapshot, new)) {
                (true, true) => return Err(refused(rule, "the snapshot has both".to_owned())),
                (true, false) => needed.push(rule.clone()),
                (false, false) if self.keeps(new) => {
                    return Err(refused(rule, "the snapshot has neither".to_owned()));
                }
                _ => {}
            }
        }
        for entry in &mut snapshot.entries {
            self.rename(entry);
        }
        Ok(needed)
    }

    fn keeps(&self, name: &str) -> bool {
        self.graph.operators().any(|operator| operator.name == name && operator.keeps != Keeps::Nothing)
    }

    fn rename(&self, entry: &mut RestoredEntry) {
        if let Some((_, new)) = self.rules.iter().find(|(old, _)| *old == entry.operator) {
            entry.operator.clone_from(new);
        }
        if let Some((side, edge)) = Side::of_state(&entry.state)
            && let Some((_, now)) = self.edges.iter().find(|(then, _)| then == edge)
        {
            entry.state = side.state(now);
        }
    }
}

/// Whether a snapshot has something of an operator.
fn has(snapshot: &Restored, operator: &str) -> bool {
    snapshot.entries.iter().any(|entry| entry.operator == operator)
}

#[cold]
fn refused((old, new): &(String, String), reason: String) -> RestoreError {
    RestoreError::Renamed { old: old.clone(), new: new.clone(), reason }
}
