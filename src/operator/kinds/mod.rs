//! What an operator may hold of a key: a value, a list, a map, an aggregate. They know their tables, not the operator that
//! holds them, nor which others there are.
//!
//! 1. A state is one handle for all keys of a task. Before each record it *enters* the key; what is asked for is then read,
//!    nothing else. After the record it *leaves* the key: what has changed of the small part (a value, the head of a
//!    collection) is written.
//! 2. The handle does not name the type of the key: behind it is a table by key ([`by_key`]), which keeps the key's
//!    encoding and decodes it when it first needs it.
//! 3. A list or map is a small head by key, and its elements in tables of their own, by the id of the collection and
//!    what names the element. Elements are hashed in the key group of their key (see [`crate::state::Hasher::of_elements`]),
//!    so that they go where the key goes. Ids come from a counter and are not used again.
//! 4. So everything costs the same whatever the length. What is cleared leaves its elements behind: its id is put on a list,
//!    and each record and each new element pays for the removal of a few.
//! 5. Where a call fails the job fails, whether the operator passes the error on or not: a handle remembers its first error,
//!    and leaving the key returns it. So a half-made change is never built upon.

mod aggregate;
mod by_key;
mod cleared;
mod collection;
mod elements;
mod list;
mod map;
#[cfg(all(test, not(snapring_loom)))]
mod tests;
mod timer;
mod value;

pub use aggregate::{Aggregate, Aggregator};
pub use list::{List, ListIter};
pub use map::{Map, MapIter};
pub use value::Value;

/// How states lie in tables, for those who look into a view or a snapshot: see [the guide](crate::docs::guide::state#looking-in).
pub mod stored {
    pub use super::by_key::Timed;
    pub use super::cleared::Span;
    pub use super::collection::Head;
    pub use super::list::Item;
    pub use super::map::{Entry, Key, Slot};
}

use super::kept::Typed;
use super::operating::Open;
use super::viewing::Viewing;
use crate::error::{Error, Failed, StateError};
use crate::record::Record;
use crate::snapshot::{Entry, RestoredEntry};
use std::collections::BTreeSet;
use std::fmt;

/// Keys by their hash, encoded.
pub type Keys = BTreeSet<(u64, Vec<u8>)>;

/// What a state opens from.
pub struct Opening<'a> {
    pub(crate) open: &'a Open,
    pub(crate) restored: &'a [&'a RestoredEntry],
}

impl Opening<'_> {
    /// The state of this name, for keys of type `K`.
    ///
    /// # Errors
    /// What was kept cannot be read, or the pool is exhausted.
    pub fn state<K: Record, S: Kind>(&self, name: &str, ttl_ms: Option<u64>) -> Result<S, Error> {
        S::open::<K>(self, name, ttl_ms.map(|ttl_ms| ttl_ms.saturating_mul(1_000_000)))
    }
}

/// The states under which tables are kept, and what is in them.
#[derive(Default)]
pub struct Tables(pub(crate) Vec<(String, Typed)>);

impl Tables {
    /// Adds those of the state of this name, for keys of type `K`.
    pub fn state<K: Record, S: Kind>(&mut self, name: &str, ttl_ms: Option<u64>) {
        S::tables::<K>(name, ttl_ms.is_some(), self);
    }

    /// Adds one.
    pub(crate) fn add<K: Record, V: Record>(&mut self, name: String) {
        self.0.push((name, Typed::of::<(K, V)>()));
    }

    /// What is in the table of this name.
    pub(crate) fn type_of(&self, table: &str) -> Option<&Typed> {
        self.0.iter().find(|(name, _)| name == table).map(|(_, ty)| ty)
    }

    /// Whether an entry of a snapshot, one of a table or beside a table, is of one of these states.
    pub(crate) fn are_of(&self, entry: &str) -> bool {
        self.0.iter().any(|(name, _)| state_of(name) == state_of(entry))
    }
}

/// The state that a table or what is kept beside it belongs to.
fn state_of(name: &str) -> &str {
    name.split(['/', '@']).next().unwrap_or(name)
}

impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states: BTreeSet<_> = self.0.iter().map(|(name, _)| state_of(name)).collect();
        let states: Vec<_> = states.into_iter().map(|state| format!("`{state}`")).collect();
        f.write_str(&states.join(", "))
    }
}

/// One state of an operator, before it is told of which key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state",
    label = "not kept by key",
    note = "a state is a `Value<T>`, `List<T>`, `Map<K, T>` or `Aggregate<A>` of `snapring::operator`, where `T` is a record"
)]
pub trait Kind: Work + Sized + Send + 'static {
    /// Names its tables.
    fn tables<K: Record>(name: &str, is_timed: bool, tables: &mut Tables);

    /// Opens its tables: empty, or with a task's share of what was kept.
    ///
    /// # Errors
    /// What was kept cannot be read, or the pool is exhausted.
    fn open<K: Record>(opening: &Opening<'_>, name: &str, ttl_ns: Option<u64>) -> Result<Self, Error>;
}

/// What is done to a state around the operator's own code.
pub trait Work {
    /// The name that it was opened with.
    fn name(&self) -> &str;
    /// From now on it is about this key.
    fn enter(&mut self, hash: u64, key: &[u8]);
    /// Writes what has changed of the key.
    ///
    /// # Errors
    /// It cannot be written, or an earlier call has failed since the key was entered.
    fn leave(&mut self) -> Result<(), StateError>;
    /// Asks the processor to fetch what keys of these hashes have, if the state was of use lately.
    fn prefetch(&self, hashes: &[u64]);
    /// The time, as the job's clock shows it.
    fn tick(&mut self, clock_ns: u64);
    /// So many records have been taken in: removes a few of those things that nobody can see any more.
    ///
    /// # Errors
    /// Something cannot be read or removed.
    fn tidy(&mut self, records: u64) -> Result<(), StateError>;
    /// Adds some of the keys that have something, from a hash on; says from which one to go on.
    ///
    /// # Errors
    /// Something cannot be read.
    fn keys(&self, from: u64, keys: &mut Keys) -> Result<Option<u64>, StateError>;
    /// The cut: hands over what has changed since the last durable checkpoint.
    fn freeze(&mut self, open: &Open, entries: &mut Vec<Entry>);
    /// The last cut has become durable, or was given up.
    fn settle(&mut self, durable: bool);
    /// Does what is asked for a view. Whether it is complete here.
    ///
    /// # Errors
    /// What is still in the snapshot cannot be read.
    fn view(&mut self, open: &Open, asked: &mut Viewing<'_>) -> Result<bool, Failed>;
    /// Reads a page of each table ahead of its need. Whether all is there.
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

/// Keeps the first error for whoever leaves the key.
fn noted<T>(first: &mut Option<StateError>, result: Result<T, StateError>) -> Result<T, StateError> {
    if let Err(error) = &result
        && first.is_none()
    {
        *first = Some(error.clone());
    }
    result
}
