//! What a task is around: its body, which knows the type of what flows. The task tells it when, and knows nothing of that type.

use crate::checkpoint::{Cut, InputKind, TaskCut};
use crate::error::Failed;
use crate::marks::Mark;
use crate::operator::{Link, Visit};
use crate::snapshot::Entry;

/// The root of a task: what it reads from, and the pipes behind it.
pub(crate) trait Body: Send {
    /// What its inputs are; a source has none.
    fn inputs(&self) -> Vec<InputKind>;
    /// Of each input: whether it comes from within the loop that the task is part of.
    fn inside(&self) -> Vec<bool> {
        Vec::new()
    }
    /// Looks at what is beside the rings, and takes out of them what must not stay there. `is_blocked`: nothing is polled now.
    fn attend(&mut self, _: &mut TaskCut, _is_blocked: bool) -> Result<Cut, Failed> {
        Ok(Cut::Go)
    }
    /// Takes at most one batch or mark, and counts in `taken` the records that it hands on.
    fn poll(&mut self, cut: &mut TaskCut, taken: &mut u64) -> Result<Took, Failed>;
    /// Whether `poll` would take something, as far as that is known without trying.
    fn is_ready(&self, _: &TaskCut) -> bool {
        true
    }
    /// Shows which inputs are left for later, if the task `waits`.
    fn show_held(&mut self, _: &TaskCut, _waits: bool) {}
    /// The task takes in nothing more, but marks; records that still come are an error. `is_cut`: it still takes part in epochs.
    fn absorb(&mut self, _: &mut TaskCut, _is_cut: bool) -> Result<Cut, Failed> {
        Ok(Cut::Go)
    }
    /// The task has frozen: begins the logs of its inputs.
    fn begin_logs(&mut self, _: &mut TaskCut) -> Result<(), Failed> {
        Ok(())
    }
    /// The logs, when they are complete or not wanted any more.
    fn take_logs(&mut self) -> Vec<Entry> {
        Vec::new()
    }

    /// The record under way, where it is known: after a failure, for its report.
    fn text(&self) -> Option<String> {
        None
    }
    /// Whether it waits for something that wakes nobody.
    fn polls(&self) -> bool {
        false
    }
    /// The pipes.
    fn link(&mut self) -> &mut dyn Link;
    /// The task has failed: tells all neighbours.
    fn poison(&mut self) {
        self.link().poison();
    }
    /// Everything with state, itself included.
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed>;
}

/// What a body took in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Took {
    Records,
    /// From within the loop that the task is part of.
    InsideRecords,
    Mark(usize, Mark),
    /// Nothing, for the task is to freeze first.
    Cut(Cut),
    /// Something was put aside for later.
    Aside,
    Nothing,
    /// A source is at its end.
    Ended,
    /// A ring's other end has gone without an End.
    Broken,
}
