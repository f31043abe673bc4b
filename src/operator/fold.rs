//! `fold`, `fold_to_end`, `reduce` and `count`: one value per key, changed by each record with that key.

use super::operating::{Open, Operator};
use super::pipe::Out;
use super::stage::Closure;
use super::{Emit, KeyOf, Progress};
use crate::channel::Records;
use crate::error::{Error, Failed, RestoreError};
use crate::record::{Record, Schema};
use crate::snapshot::{Entry, RestoredEntry};
use crate::state::{HashRange, Hasher, Table, range_of};
use std::cell::Cell;
use std::marker::PhantomData;

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
    open: Open,
    key: Closure<B>,
    step: S,
    table: Table<B::Key, S::Value>,
    /// Bytes of the key that is looked for.
    scratch: Vec<u8>,
    when: When,
    types: PhantomData<fn(T)>,
}

/// When the values are emitted.
pub(crate) enum When {
    /// After each record.
    Always,
    /// Once per key, when the input has ended. Keys in these ranges of the hash have been emitted.
    AtEnd(Vec<HashRange>),
}

impl<T, B: KeyOf<T>, S: Step<T>> Fold<T, B, S> {
    pub(crate) fn open<'a>(
        open: Open,
        key: Closure<B>,
        step: S,
        at_end: bool,
        restored: impl Iterator<Item = &'a RestoredEntry>,
    ) -> Result<Self, Error> {
        let range = range_of(open.task, open.tasks);
        let table = Table::new(&open.pool, range);
        let when = if at_end { When::AtEnd(Vec::new()) } else { When::Always };
        let mut fold = Self { open, key, step, table, scratch: Vec::new(), when, types: PhantomData };
        for entry in restored {
            fold.restore(entry)?;
        }
        Ok(fold)
    }
}
