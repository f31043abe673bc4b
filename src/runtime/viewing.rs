//! A task's part in a view: at the cut it says so to everything with state, and then hands over pages, some in each step.

use super::coordinator::Event;
use super::shared::Shared;
use super::task::Task;
use crate::error::{Cause, Failed, StateError};
use crate::operator::{TableCut, Viewing};
use std::sync::mpsc::Sender;

/// Pages that a step hands over: some microseconds, as a batch takes.
const PAGES_A_STEP: u32 = 128;

/// The view that a task takes part in.
#[derive(Default)]
pub(super) struct TaskView {
    /// The epoch of its cut; none: there is no view under way.
    epoch: Option<u64>,
    complete: Vec<TableCut>,
}

impl TaskView {
    pub fn is_under_way(&self) -> bool {
        self.epoch.is_some()
    }
}

impl Task {
    /// The task is cut, and the epoch is that of a view.
    pub(super) fn begin_view(&mut self, epoch: u64) -> Result<(), Failed> {
        self.view = TaskView { epoch: Some(epoch), complete: Vec::new() };
        self.ask_for_view(&mut Viewing::Begin).map(|_| ())
    }

    /// Hands over some more pages.
    pub(super) fn view_on(&mut self, shared: &Shared, events: &Sender<Event>) -> Result<(), Failed> {
        self.view_by(PAGES_A_STEP, shared, events)
    }

    /// Hands over all that is left: the task is about to go.
    pub(super) fn view_to_end(&mut self, shared: &Shared, events: &Sender<Event>) -> Result<(), Failed> {
        if self.view.is_under_way() { self.view_by(u32::MAX, shared, events) } else { Ok(()) }
    }

    fn view_by(&mut self, pages: u32, shared: &Shared, events: &Sender<Event>) -> Result<(), Failed> {
        let Some(epoch) = self.view.epoch else { return Ok(()) };
        if shared.viewed() != epoch {
            return self.drop_view();
        }
        let mut tables = std::mem::take(&mut self.view.complete);
        match self.ask_for_view(&mut Viewing::Step { pages, complete: &mut tables }) {
            Ok(false) => self.view.complete = tables,
            Ok(true) => {
                self.view = TaskView::default();
                self.report(events, Event::Viewed { epoch, tables });
            }
            Err(Failed(failure)) if matches!(failure.cause, Cause::State(StateError::Exhausted(_))) => {
                self.drop_view()?;
                self.report(events, Event::Unviewed { epoch });
            }
            Err(failed) => return Err(failed),
        }
        Ok(())
    }

    fn drop_view(&mut self) -> Result<(), Failed> {
        self.view = TaskView::default();
        self.ask_for_view(&mut Viewing::Drop).map(|_| ())
    }

    /// Asks everything with state. Whether the view is complete here.
    fn ask_for_view(&mut self, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        let mut done = true;
        self.body.visit(&mut |stateful| {
            done &= stateful.view(asked).map_err(|failed| failed.at(stateful.name()))?;
            Ok(())
        })?;
        Ok(done)
    }
}
