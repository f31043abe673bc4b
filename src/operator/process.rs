//! Runs a user's operator in a task: its state is a table like any other's, so that snapshot, restore and another
//! parallelism need nothing of the user.

use super::keyed_state::{KeyedState, WINDOW};
use super::operating::{Open, Operate};
use super::pipe::Out;
use super::stage::Closure;
use super::viewing::Viewing;
use super::{KeyOf, Operator, Progress};
use crate::channel::Records;
use crate::error::{Error, Failed};
use crate::snapshot::{Entry, RestoredEntry};
use crate::state::{Hasher, Window};
use std::sync::Arc;

pub(crate) struct Process<B, O: Operator> {
    key: Closure<B>,
    operator: Arc<O>,
    state: KeyedState<O::Key, O::State>,
    /// Records on their way to the operator.
    window: Window<O::In>,
}

impl<B, O: Operator> Process<B, O> {
    /// Opens the state of a task: empty, or its range of what the tasks of a snapshot have left.
    pub(crate) fn open<'a>(
        open: Open,
        key: Closure<B>,
        operator: Arc<O>,
        restored: impl Iterator<Item = &'a RestoredEntry>,
    ) -> Result<Self, Error> {
        let state = KeyedState::open(open, true, restored)?;
        Ok(Self { key, operator, state, window: Window::with_capacity(WINDOW) })
    }
}

impl<B: KeyOf<O::In, Key = O::Key>, O: Operator> Operate for Process<B, O> {
    type In = O::In;
    type Out = O::Out;

    fn batch(&mut self, records: &mut Records<'_, O::In>, out: &mut Out<O::Out>) -> Result<(), Failed> {
        let (operator, key) = (&*self.operator, &self.key);
        let enter = |window: &mut Window<_>, hasher: &Hasher, record| {
            let hash = key.call(|key| key.with(&record, |key| window.key(hasher, key)));
            window.push(hash, record);
        };
        while records.len() > 0 {
            let taken = self.state.fill(&mut self.window, records, enter);
            let each = |key: &_, record, value: &mut _| operator.on_record(key, record, value, out);
            self.state.table.modify_batch(taken, each)?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Out<O::Out>) -> Result<Progress, Failed> {
        let operator = &*self.operator;
        self.state.end(|key, value| operator.on_end(key, value, out))
    }

    fn freeze(&mut self) -> Vec<Entry> {
        self.state.freeze()
    }

    fn settle(&mut self, durable: bool) {
        self.state.settle(durable);
    }

    fn view(&mut self, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        self.state.view(asked)
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.state.forget()
    }

    fn hydrate(&mut self) -> Result<bool, Failed> {
        self.state.hydrate()
    }
}
