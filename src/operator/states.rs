//! What an operator of a user's own holds of a key: one state, or a struct of several. It knows how they are run around the
//! user's code, not what they are.

mod several;

pub use several::{Several, States};

use super::keyed_table::{KeyedTable, TABLE, fill};
use super::kinds::{Tables, Value};
use super::operating::Open;
use super::stage::Closure;
use super::viewing::Viewing;
use super::{KeyOf, Progress};
use crate::channel::Records;
use crate::error::{Error, Failed};
use crate::record::Record;
use crate::snapshot::{Entry, RestoredEntry};
use crate::state::{self, Window};

/// What an [`Operator`](super::Operator) holds of a key: a [`Value`], [`List`](super::List),
/// [`Map`](super::Map) or [`Aggregate`](super::Aggregate), or a struct of such.
///
/// A struct derives it; its states have the names of the fields, in snapshots too. With `#[state(ttl_ms = …)]` a state is gone
/// so many milliseconds after it was last written, by the job's clock; a list or map as a whole, after the last change to
/// anything in it.
///
/// ```
/// use snapring::connector::{Collect, Items};
/// use snapring::error::Failed;
/// use snapring::operator::{Emit, KeyedState, List, Map, Operator, Value};
/// use snapring::{Config, Dataflow};
///
/// #[derive(KeyedState)]
/// struct Visits {
///     /// The pages of this visit.
///     pages: List<String>,
///     /// How often each page was seen.
///     seen: Map<String, u64>,
///     /// Gone after an hour without a page.
///     #[state(ttl_ms = 3_600_000)]
///     visits: Value<u64>,
/// }
///
/// /// Emits the pages of a visit, with how often the user has seen them, as it ends.
/// struct Sessions;
///
/// impl Operator for Sessions {
///     type Key = u64;
///     type In = (u64, String);
///     type Out = (u64, Vec<(String, u64)>);
///     type State = Visits;
///
///     fn on_record<E: Emit<Self::Out>>(
///         &self,
///         user: &u64,
///         (_, page): (u64, String),
///         state: &mut Visits,
///         out: &mut E,
///     ) -> Result<(), Failed> {
///         if page != "logout" {
///             state.seen.update(page.clone(), || 0, |times| *times += 1)?;
///             return Ok(state.pages.push(page)?);
///         }
///         *state.visits.get_or_insert_with(|| 0)? += 1;
///         let mut pages = Vec::new();
///         for page in state.pages.iter()? {
///             let page = page?;
///             let times = state.seen.get(&page)?.unwrap_or(0);
///             pages.push((page, times));
///         }
///         state.pages.clear()?;
///         out.emit((*user, pages))
///     }
/// }
///
/// let clicks = [(7, "a"), (7, "b"), (8, "c"), (7, "a"), (7, "logout"), (7, "a"), (7, "logout")];
/// let clicks: Vec<_> = clicks.map(|(user, page)| (user, page.to_owned())).into();
/// let sessions = Collect::new();
/// let flow = Dataflow::new("sessions");
/// let by_user = flow.source("clicks", Items::new(clicks)).key_by(|(user, _)| *user);
/// by_user.process("sessions", Sessions).sink("out", sessions.clone());
/// flow.start(Config::new().unpinned_workers(1))?.wait()?;
///
/// let session = |pages: &[(&str, u64)]| (7, pages.iter().map(|(page, times)| (page.to_string(), *times)).collect::<Vec<_>>());
/// assert_eq!(sessions.take(), [session(&[("a", 2), ("b", 1), ("a", 2)]), session(&[("a", 3)])]);
/// # Ok::<(), snapring::Error>(())
/// ```
///
/// What is no state cannot be a field, and the struct is of named fields:
/// ```compile_fail,E0277
/// use snapring::operator::{KeyedState, Value};
/// #[derive(KeyedState)]
/// struct Visits { last: Value<u64>, count: u64 }
/// ```
/// ```compile_fail
/// use snapring::operator::{KeyedState, Value};
/// #[derive(KeyedState)]
/// struct Visits(Value<u64>);
/// ```
/// ```compile_fail
/// use snapring::operator::{KeyedState, Value};
/// #[derive(KeyedState)]
/// struct Visits { #[state(ttl = 5)] last: Value<u64> }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what an operator can hold of a key",
    label = "neither a state nor a struct of states",
    note = "for one value per key: `Value<T>`; for several states: a struct of them with `#[derive(snapring::operator::KeyedState)]`"
)]
pub trait KeyedState: Sized + Send + 'static {
    #[doc(hidden)]
    type Kept<K: Record>: Keep<K, Self>;
}

/// How the states of a task are kept, for keys of type `K`.
pub trait Keep<K: Record, S>: Sized + Send {
    /// Names its tables.
    fn tables() -> Tables;

    /// Opens the state of a task: empty, or its range of what the tasks of a snapshot have left.
    ///
    /// # Errors
    /// What was kept cannot be read, or the pool is exhausted.
    fn open(open: Open, restored: &[&RestoredEntry]) -> Result<Self, Error>;

    /// Gives each record, with its key and the state of that, to `each`.
    ///
    /// # Errors
    /// That of `each`, or of the state.
    fn batch<T, B: KeyOf<T, Key = K>>(
        &mut self,
        window: &mut Window<K, T>,
        records: &mut Records<'_, T>,
        key: &Closure<B>,
        each: impl FnMut(&K, T, &mut S) -> Result<(), Failed>,
    ) -> Result<(), Failed>;

    /// The input has ended: gives some of the keys, with their state, to `each`. `Done` if there were none left.
    ///
    /// # Errors
    /// That of `each`, or of the state.
    fn end(&mut self, each: impl FnMut(&K, &mut S) -> Result<(), Failed>) -> Result<Progress, Failed>;

    /// The cut: hands over what has changed since the last durable checkpoint.
    fn freeze(&mut self) -> Vec<Entry>;

    /// The last cut has become durable, or was given up.
    fn settle(&mut self, durable: bool);

    /// Does what is asked for a view. Whether it is complete here.
    ///
    /// # Errors
    /// What is still in the snapshot cannot be read.
    fn view(&mut self, asked: &mut Viewing<'_>) -> Result<bool, Failed>;

    /// Reads a piece of restored state ahead of its need. Whether all is there.
    ///
    /// # Errors
    /// It cannot be read.
    fn hydrate(&mut self) -> Result<bool, Failed>;

    /// The next cut hands over everything.
    ///
    /// # Errors
    /// What is still in the snapshot cannot be read.
    fn forget(&mut self) -> Result<(), Failed>;
}

/// One value per key and nothing else: changed where it lies.
pub struct OneValue<K, V> {
    state: KeyedTable<K, V>,
}

impl<V: Record> KeyedState for Value<V> {
    type Kept<K: Record> = OneValue<K, V>;
}

/// Lends what a table has lent.
#[inline(always)]
fn lend<V>(place: &mut state::Value<V>, to: impl FnOnce(&mut Value<V>) -> Result<(), Failed>) -> Result<(), Failed> {
    let mut value = Value::lent(place.lend());
    to(&mut value)?;
    let (value, is_changed) = value.into_parts();
    place.give_back(value, is_changed);
    Ok(())
}

impl<K: Record, V: Record> Keep<K, Value<V>> for OneValue<K, V> {
    fn tables() -> Tables {
        let mut tables = Tables::default();
        tables.state::<K, Value<V>>(TABLE, None);
        tables
    }

    fn open(open: Open, restored: &[&RestoredEntry]) -> Result<Self, Error> {
        Ok(Self { state: KeyedTable::open(open, true, restored.iter().copied())? })
    }

    fn batch<T, B: KeyOf<T, Key = K>>(
        &mut self,
        window: &mut Window<K, T>,
        records: &mut Records<'_, T>,
        key: &Closure<B>,
        mut each: impl FnMut(&K, T, &mut Value<V>) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        if self.state.table.takes_straight() {
            let keyed = |record| (key.call(|key| key.owned(&record)), record);
            let each = |key: &K, record, place: &mut _| lend(place, |value| each(key, record, value));
            return self.state.table.modify_straight(records.map(keyed), each);
        }
        let enter = |window: &mut Window<K, T>, record| {
            key.call(|key| key.with(&record, |key| window.key(key)));
            window.push(record);
        };
        while records.len() > 0 {
            let taken = fill(window, records, enter);
            let each = |key: &K, record, place: &mut _| lend(place, |value| each(key, record, value));
            self.state.table.modify_batch(taken, each)?;
        }
        Ok(())
    }

    fn end(&mut self, mut each: impl FnMut(&K, &mut Value<V>) -> Result<(), Failed>) -> Result<Progress, Failed> {
        let mut page = Vec::new();
        let progress = self.state.end(|key, value| {
            page.push((key, value));
            Ok(())
        })?;
        for (key, value) in page {
            let mut value = Value::lent(Some(value));
            each(&key, &mut value)?;
            let hash = self.state.table.hash(&key);
            match value.into_parts() {
                (_, false) => {}
                (Some(value), true) => drop(self.state.table.insert(hash, &key, value)?),
                (None, true) => drop(self.state.table.remove(hash, &key)?),
            }
        }
        Ok(progress)
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

    fn hydrate(&mut self) -> Result<bool, Failed> {
        self.state.hydrate()
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.state.forget()
    }
}
