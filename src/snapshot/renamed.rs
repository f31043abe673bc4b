//! States that go on under another name: the pages that an epoch has under the old one are those that the next checkpoint
//! builds on under the new one, so that a name costs no writing. It must not know why names change.

use super::recover::Key;
use super::store::Store;
use super::{Checkpoint, Entry};

/// A state of an operator, all tasks together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateName {
    /// The operator.
    pub operator: String,
    /// The state within the operator.
    pub state: String,
}

/// A state that has another name from the next checkpoint on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// As the newest epoch has it.
    pub from: StateName,
    /// As the next checkpoint will have it.
    pub to: StateName,
}

impl Store {
    /// Says which states go on under other names. What was said before does not count any more.
    pub fn rename(&mut self, renamed: Vec<Renamed>) {
        self.renamed = renamed;
    }

    /// Gives the pages that a checkpoint builds on the names that it has for them, unless the epoch before has these by now.
    pub(super) fn apply_names(&mut self, checkpoint: &Checkpoint) {
        let maps = match (&mut self.origin, &mut self.current.base) {
            (Some(origin), _) => &mut origin.maps,
            (None, Ok(base)) => &mut base.maps,
            (None, Err(_)) => return,
        };
        let builds = |entry: &&Entry| entry.pages.as_ref().is_some_and(|pages| !pages.full);
        for entry in checkpoint.entries.iter().filter(builds) {
            let to = key(entry, &entry.operator, &entry.state);
            let is_it = |renamed: &&Renamed| (&renamed.to.operator, &renamed.to.state) == (&to.operator, &to.state);
            let Some(Renamed { from, .. }) = self.renamed.iter().find(is_it).filter(|_| !maps.contains_key(&to)) else {
                continue;
            };
            let from = key(entry, &from.operator, &from.state);
            let needs_it = |other: &Entry| key(other, &other.operator, &other.state) == from;
            if !checkpoint.entries.iter().filter(builds).any(needs_it)
                && let Some(map) = maps.remove(&from)
            {
                maps.insert(to, map);
            }
        }
    }
}

fn key(entry: &Entry, operator: &str, state: &str) -> Key {
    Key { operator: operator.to_owned(), state: state.to_owned(), task: entry.task, tasks: entry.tasks }
}
