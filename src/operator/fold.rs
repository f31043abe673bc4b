//! `fold`, `fold_to_end`, `reduce` and `count`: one value per key, changed by each record with that key.

use super::keyed_table::{KeyedTable, WINDOW, fill};
use super::operating::{Open, Operate};
use super::pipe::Out;
use super::stage::Closure;
use super::viewing::Viewing;
use super::{Emit, KeyOf, Progress};
use crate::channel::Records;
use crate::error::{Error, Failed};
use crate::record::Record;
use crate::snapshot::{Entry, RestoredEntry};
use crate::state::{Window, mirror_of};

/// How records change the value of their key.
pub(crate) trait Step<T>: Send + 'static {
    /// The value.
    type Value: Record;
    /// The value after the first record of a key.
    fn first(&self, record: T) -> Self::Value;
    /// Takes a further record in.
    fn next(&self, value: &mut Self::Value, record: T);
}

/// From an initial value, by a closure.
pub(crate) struct FromInitial<S, F>(pub(crate) S, pub(crate) Closure<F>);

impl<T, S: Record + Clone, F: Fn(&mut S, T) + Send + Sync + 'static> Step<T> for FromInitial<S, F> {
    type Value = S;
    #[inline]
    fn first(&self, record: T) -> S {
        let mut value = self.0.clone();
        self.next(&mut value, record);
        value
    }
    #[inline]
    fn next(&self, value: &mut S, record: T) {
        self.1.call(|f| f(value, record));
    }
}

/// The first record is the value; a closure joins the others to it.
pub(crate) struct Reducing<F>(pub(crate) Closure<F>);

impl<T: Record, F: Fn(&mut T, T) + Send + Sync + 'static> Step<T> for Reducing<F> {
    type Value = T;
    #[inline]
    fn first(&self, record: T) -> T {
        record
    }
    #[inline]
    fn next(&self, value: &mut T, record: T) {
        self.0.call(|f| f(value, record));
    }
}

/// Counts.
pub(crate) struct Counting;

impl<T> Step<T> for Counting {
    type Value = u64;
    #[inline]
    fn first(&self, _: T) -> u64 {
        1
    }
    #[inline]
    fn next(&self, value: &mut u64, _: T) {
        *value += 1;
    }
}

/// One value per key, in a table.
pub(crate) struct Fold<T, B: KeyOf<T>, S: Step<T>> {
    key: Closure<B>,
    step: S,
    state: KeyedTable<B::Key, S::Value>,
    /// Records on their way into the table; with a key for each, if that is to be emitted.
    window: Window<B::Key, (T, Option<B::Key>)>,
    /// Values are emitted once per key, when the input has ended. Else after each record.
    at_end: bool,
}

impl<T, B: KeyOf<T>, S: Step<T>> Fold<T, B, S> {
    /// Opens the state of a task: empty, or its range of what the tasks of a snapshot have left.
    pub(crate) fn open<'a>(
        open: Open,
        key: Closure<B>,
        step: S,
        at_end: bool,
        restored: impl Iterator<Item = &'a RestoredEntry>,
    ) -> Result<Self, Error> {
        let window = Window::new(open.hasher, WINDOW);
        let state = KeyedTable::open(open, at_end, restored)?;
        Ok(Self { key, step, state, window, at_end })
    }
}

impl<T, B: KeyOf<T>, S: Step<T, Value: Clone>> Fold<T, B, S> {
    /// A batch into a table that lies in the cache.
    fn batch_straight(
        &mut self,
        records: &mut Records<'_, T>,
        out: &mut Out<(B::Key, S::Value)>,
    ) -> Result<(), Failed> {
        let (key, step, table) = (&self.key, &self.step, &mut self.state.table);
        let (first, next) = (|record| step.first(record), |value: &mut _, record| step.next(value, record));
        if self.at_end {
            let keyed = |record| (key.call(|key| key.with(&record, mirror_of)), (record, ()));
            return table.update_straight(records.map(keyed), first, next, |_| (), |(), ()| Ok(()));
        }
        let keyed = |record| {
            let key = key.call(|key| key.owned(&record));
            (mirror_of(&key), (record, key))
        };
        table.update_straight(records.map(keyed), first, next, S::Value::clone, |key, value| out.emit((key, value)))
    }
}

impl<T: Send, B: KeyOf<T, Key: Clone>, S: Step<T, Value: Clone>> Operate for Fold<T, B, S> {
    type In = T;
    type Out = (B::Key, S::Value);

    fn batch(&mut self, records: &mut Records<'_, T>, out: &mut Out<Self::Out>) -> Result<(), Failed> {
        if self.state.table.takes_straight() {
            return self.batch_straight(records, out);
        }
        let (key, at_end) = (&self.key, self.at_end);
        let enter = |window: &mut Window<_, _>, record: T| {
            if at_end {
                key.call(|key| key.with(&record, |key| window.key(key)));
                window.push((record, None));
            } else {
                let key = key.call(|key| key.owned(&record));
                window.key(&key);
                window.push((record, Some(key)));
            }
        };
        while records.len() > 0 {
            let taken = fill(&mut self.window, records, enter);
            let (step, table) = (&self.step, &mut self.state.table);
            let (first, next) = (|record| step.first(record), |value: &mut _, record| step.next(value, record));
            if at_end {
                table.update_batch(taken, first, next, |_| (), |_, ()| Ok::<(), Failed>(()))?;
            } else {
                let emit = |key: Option<_>, value| out.emit((key.expect("entered above"), value));
                table.update_batch(taken, first, next, S::Value::clone, emit)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Out<Self::Out>) -> Result<Progress, Failed> {
        self.state.end(|key, value| out.emit((key, value)))
    }

    fn freeze(&mut self) -> Vec<Entry> {
        self.state.freeze()
    }

    fn settle(&mut self, durable: bool) {
        self.state.settle(durable);
    }

    fn hydrate(&mut self) -> Result<bool, Failed> {
        self.state.hydrate()
    }

    fn view(&mut self, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        self.state.view(asked)
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.state.forget()
    }
}
