//! Runs a user's operator in a task: its states are tables like any other's, so that snapshot, restore and another
//! parallelism need nothing of the user.

use super::keyed_table::WINDOW;
use super::operating::{Open, Operate};
use super::pipe::Out;
use super::stage::Closure;
use super::states::{Keep, KeyedState};
use super::viewing::Viewing;
use super::{KeyOf, Operator, Progress};
use crate::channel::Records;
use crate::error::{Error, Failed};
use crate::snapshot::{Entry, RestoredEntry};
use crate::state::Window;
use std::sync::Arc;

pub(crate) struct Process<B, O: Operator> {
    key: Closure<B>,
    operator: Arc<O>,
    kept: <O::State as KeyedState>::Kept<O::Key>,
    /// Records on their way to the operator.
    window: Window<O::Key, O::In>,
}

impl<B, O: Operator> Process<B, O> {
    /// Opens the state of a task: empty, or its range of what the tasks of a snapshot have left.
    pub(crate) fn open<'a>(
        open: Open,
        key: Closure<B>,
        operator: Arc<O>,
        restored: impl Iterator<Item = &'a RestoredEntry>,
    ) -> Result<Self, Error> {
        let window = Window::new(open.hasher, WINDOW);
        let kept = Keep::open(open, &restored.collect::<Vec<_>>())?;
        Ok(Self { key, operator, kept, window })
    }
}

impl<B: KeyOf<O::In, Key = O::Key>, O: Operator> Operate for Process<B, O> {
    type In = O::In;
    type Out = O::Out;

    fn batch(&mut self, records: &mut Records<'_, O::In>, out: &mut Out<O::Out>) -> Result<(), Failed> {
        let operator = &*self.operator;
        let each = |key: &_, record, state: &mut _| operator.on_record(key, record, state, out);
        self.kept.batch(&mut self.window, records, &self.key, each)
    }

    fn end(&mut self, out: &mut Out<O::Out>) -> Result<Progress, Failed> {
        let operator = &*self.operator;
        self.kept.end(|key, state| operator.on_end(key, state, out))
    }

    fn freeze(&mut self) -> Vec<Entry> {
        self.kept.freeze()
    }

    fn settle(&mut self, durable: bool) {
        self.kept.settle(durable);
    }

    fn view(&mut self, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        self.kept.view(asked)
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.kept.forget()
    }

    fn hydrate(&mut self) -> Result<bool, Failed> {
        self.kept.hydrate()
    }
}
