//! A view: all keyed state of a running job as it was at one cut, in memory, for anybody to read.

use super::pending::refused;
use crate::error::{Cause, DecodeError, Error, Failed, StateError};
use crate::operator::{TABLE, TableCut};
use crate::page::WholePages;
use crate::record::{Evolution, Record, Schema};
use crate::state::{FrozenTable, task_of};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The keyed state of a job as it was at one moment: consistent over all operators and tasks, as a checkpoint is. It holds no
/// record that was on its way then, and nothing of a task that had finished.
///
/// Nothing was written for it, and nothing was copied when it was taken: it shares its pages with the job, which copies a page
/// before it changes it for the first time. So a view that is kept for long takes as much memory in the end as the state did,
/// out of `state_bytes_max`; dropping it gives that back. A clone is the same view.
///
/// ```
/// use snapring::{Config, Dataflow};
/// use std::time::Duration;
///
/// let flow = Dataflow::new("sums");
/// let (mut orders, stream) = flow.input::<(u64, i64)>("orders");
/// let mut sums = stream.key_by(|order| order.0).fold("sum", 0i64, |sum, order| *sum += order.1).output("sums");
/// let job = flow.start(Config::new().unpinned_workers(1))?;
/// for order in [(7, 40), (8, 1), (7, 2)] {
///     orders.push(order)?;
///     while sums.poll()?.is_none() {
///         sums.wait(Duration::from_millis(10));
///     }
/// }
///
/// let view = job.view()?.wait()?; // the job runs on
/// let sum = view.table::<u64, i64>("sum")?;
/// assert_eq!((sum.len(), sum.get(&7)?, sum.get(&9)?), (2, Some(42), None));
/// assert_eq!(sum.fold(0, |total, _, value| *total += value)?, 43);
/// # job.stop(Duration::from_secs(5))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct View(Arc<Inner>);

struct Inner {
    epoch: u64,
    tables: Vec<Cut>,
}

/// One task's table.
struct Cut {
    operator: Arc<str>,
    state: String,
    task: u32,
    tasks: u32,
    schema: Schema,
    /// It is of what was outdated: what becomes of its values.
    outdated: Option<Evolution>,
    /// Until somebody looks: who does pays for the directory, and not the job.
    raw: Mutex<Option<(Vec<u8>, WholePages)>>,
    table: OnceLock<FrozenTable>,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.states().collect::<Vec<_>>();
        f.debug_struct("View").field("epoch", &self.0.epoch).field("states", &tables).finish()
    }
}

impl View {
    /// None: pages of it have been let go of meanwhile.
    pub(super) fn new(epoch: u64, cuts: Vec<TableCut>) -> Option<Self> {
        let cut = |cut: TableCut| {
            let TableCut { operator, state, task, tasks, schema, outdated, root, pages } = cut;
            let raw = Mutex::new(Some((root, pages.hand_over()?)));
            Some(Cut { operator, state, task, tasks, schema, outdated, raw, table: OnceLock::new() })
        };
        let tables = cuts.into_iter().map(cut).collect::<Option<_>>()?;
        Some(Self(Arc::new(Inner { epoch, tables })))
    }

    /// The epoch that ends with the view's cut.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// The states that there are: operator and state, in no order that means anything. Each comes once.
    pub fn states(&self) -> impl Iterator<Item = (&str, &str)> {
        let name = |cut: &'_ Cut| (cut.operator.clone(), cut.state.clone());
        let is_first =
            move |at: &usize| !self.0.tables[..*at].iter().any(|other| name(other) == name(&self.0.tables[*at]));
        (0..self.0.tables.len()).filter(is_first).map(|at| (&*self.0.tables[at].operator, &*self.0.tables[at].state))
    }

    /// What there is instead of a state that there is not.
    fn lacks(&self, operator: &str, state: &str) -> String {
        let of_operator: Vec<_> = self.states().filter(|(of, _)| *of == operator).collect();
        let there = if of_operator.is_empty() { self.states().collect() } else { of_operator };
        let there: Vec<String> = there.iter().map(|(operator, state)| format!("`{operator}` `{state}`")).collect();
        let there = if there.is_empty() { "none at all".to_owned() } else { there.join(", ") };
        if state == TABLE {
            return format!(
                "operator `{operator}` does not keep one value per key: name a state, by `View::state`, out of {there}"
            );
        }
        format!("the view has no state `{state}` of an operator `{operator}`, but {there}")
    }

    /// Calls `each` with operator, state, task, key and value, encoded, of all there is. A table without keys is passed over.
    ///
    /// # Panics
    /// It is damaged: for tests.
    #[cfg(feature = "testing")]
    pub(crate) fn each_row(&self, mut each: impl FnMut(&str, &str, u32, &[u8], &[u8])) {
        for cut in &self.0.tables {
            cut.open().expect("it is whole");
            let rows = cut.table.get().expect("it was just opened").each(|key, value| {
                each(&cut.operator, &cut.state, cut.task, key, value);
                Ok::<(), StateError>(())
            });
            rows.expect("it is whole");
        }
    }

    /// The state of an operator that keeps one value per key.
    ///
    /// # Errors
    /// As for [`View::state`].
    pub fn table<K: Record, V: Record>(&self, operator: &str) -> Result<TableView<K, V>, Error> {
        self.state(operator, TABLE)
    }

    /// A state of an operator, by the names of both, with the types that it has there.
    ///
    /// # Errors
    /// There is no such state, it has other types, or a task that holds a part of it had finished.
    pub fn state<K: Record, V: Record>(&self, operator: &str, state: &str) -> Result<TableView<K, V>, Error> {
        let is_it = |cut: &Cut| &*cut.operator == operator && cut.state == state;
        let all = (0..self.0.tables.len()).filter(|at| is_it(&self.0.tables[*at]));
        let (mut parts, outdated): (Vec<_>, Vec<_>) = all.partition(|at| self.0.tables[*at].outdated.is_none());
        parts.sort_by_key(|at| self.0.tables[*at].task);
        let Some(first) = parts.first().map(|at| &self.0.tables[*at]) else {
            return Err(refused(&self.lacks(operator, state)));
        };
        let schema = <(K, V)>::schema();
        if first.schema != schema {
            let what = format!("state `{state}` of `{operator}` is of {}, not of {schema}", first.schema);
            return Err(refused(&what));
        }
        if parts.len() != first.tasks as usize {
            let what = format!(
                "{} of the {} tasks of `{operator}` had finished, and the view has nothing of them",
                first.tasks as usize - parts.len(),
                first.tasks
            );
            return Err(refused(&what));
        }
        for at in parts.iter().chain(&outdated) {
            self.0.tables[*at].open()?;
        }
        Ok(TableView { view: self.clone(), parts, outdated, of: PhantomData })
    }
}

impl Cut {
    /// Makes the directory, if nobody has.
    fn open(&self) -> Result<(), Error> {
        let mut raw = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((root, pages)) = raw.take() {
            let table = match self.outdated {
                None => FrozenTable::new(&root, pages),
                Some(_) => FrozenTable::outdated(&root, pages),
            };
            let table = table.map_err(|error| self.failed(error.into()))?;
            let _ = self.table.set(table);
        }
        match self.table.get() {
            Some(_) => Ok(()),
            None => Err(refused("the view is damaged")),
        }
    }

    /// Reads a value as it is today.
    fn today<V>(&self, value: &[u8], read: impl FnOnce(&[u8]) -> Result<V, DecodeError>) -> Result<V, DecodeError> {
        let Some(evolution) = &self.outdated else { return read(value) };
        let mut bytes = Vec::new();
        evolution.apply(value, &mut bytes)?;
        read(&bytes)
    }

    fn failed(&self, cause: Cause) -> Error {
        let mut failed = Failed::from(cause).at(&self.operator);
        failed.0.task = Some(self.task);
        failed.into()
    }
}

/// A state in a [`View`]. Any thread may read it, for as long as it likes.
pub struct TableView<K, V> {
    view: View,
    /// The tasks' tables, in the order of the tasks.
    parts: Vec<usize>,
    /// What of them was outdated.
    outdated: Vec<usize>,
    of: PhantomData<fn() -> (K, V)>,
}

impl<K: Record, V: Record> fmt::Debug for TableView<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableView").field("keys", &self.len()).finish_non_exhaustive()
    }
}

impl<K: Record, V: Record> TableView<K, V> {
    fn tables(&self) -> impl Iterator<Item = (&Cut, &FrozenTable)> {
        let cuts = self.parts.iter().chain(&self.outdated).map(|at| &self.view.0.tables[*at]);
        cuts.map(|cut| (cut, cut.table.get().expect("it was opened when the state was named")))
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.tables().map(|(_, table)| table.len()).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn get(&self, key: &K) -> Result<Option<V>, Error> {
        let (mut bytes, mut value) = (Vec::new(), Vec::new());
        key.encode(&mut bytes);
        let tasks = self.parts.len() as u32;
        let hash = self.tables().next().map_or(0, |(_, table)| table.hash(&bytes));
        let task = task_of(hash, tasks);
        for (cut, table) in self.tables().filter(|(cut, _)| cut.task == task) {
            let found = table.get(hash, &bytes, &mut value).map_err(|error| cut.failed(error.into()))?;
            if found {
                let value = cut.today(&value, |mut value| V::decode(&mut value));
                return value.map(Some).map_err(|error| cut.failed(StateError::from(error).into()));
            }
        }
        Ok(None)
    }

    /// Goes through all keys and values, in no order that means anything.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn each(&self, mut each: impl FnMut(K, V)) -> Result<(), Error> {
        for (cut, table) in self.tables() {
            let result = table.each(|mut key, value| {
                let (key, value) = (K::decode(&mut key), cut.today(value, |mut value| V::decode(&mut value)));
                each(key.map_err(damaged)?, value.map_err(damaged)?);
                Ok(())
            });
            result.map_err(|error: StateError| cut.failed(error.into()))?;
        }
        Ok(())
    }

    /// Takes all keys and values into one, which begins as `initial`.
    ///
    /// # Errors
    /// As [`TableView::each`].
    pub fn fold<A>(&self, initial: A, mut f: impl FnMut(&mut A, K, V)) -> Result<A, Error> {
        let mut folded = initial;
        self.each(|key, value| f(&mut folded, key, value))?;
        Ok(folded)
    }
}

fn damaged(error: DecodeError) -> StateError {
    StateError::from(error)
}
