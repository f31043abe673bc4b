//! A table of elements, hashed in the key group of the key that they belong to.

use super::super::kept_table::KeptTable;
use super::super::operating::Open;
use super::super::viewing::Viewing;
use super::{Opening, noted};
use crate::error::{Error, Failed, StateError};
use crate::record::Record;
use crate::snapshot::Entry;

/// A table whose keys begin with the id of a collection.
pub(super) struct Elements<K, V> {
    table: KeptTable<K, V>,
    failed: Option<StateError>,
}

impl<K: Record, V: Record> Elements<K, V> {
    pub fn open(opening: &Opening<'_>, name: &str) -> Result<Self, Error> {
        let open = opening.open.of_elements();
        Ok(Self { table: KeptTable::open(&open, name, opening.restored.iter().copied())?, failed: None })
    }

    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub fn get(&mut self, key: &K) -> Result<Option<V>, StateError> {
        let hash = self.table.hash(key);
        noted(&mut self.failed, self.table.get(hash, key))
    }

    /// One that must be there.
    pub fn there(&mut self, key: &K) -> Result<V, StateError> {
        let found = self.get(key)?;
        noted(&mut self.failed, found.ok_or_else(missing))
    }

    pub fn insert(&mut self, key: &K, value: V) -> Result<(), StateError> {
        let hash = self.table.hash(key);
        noted(&mut self.failed, self.table.insert(hash, key, value).map(|_| ()))
    }

    pub fn remove(&mut self, key: &K) -> Result<Option<V>, StateError> {
        let hash = self.table.hash(key);
        noted(&mut self.failed, self.table.remove(hash, key))
    }

    /// Removes one that must be there.
    pub fn take(&mut self, key: &K) -> Result<V, StateError> {
        let found = self.remove(key)?;
        noted(&mut self.failed, found.ok_or_else(missing))
    }

    /// Changes the value of a key, if there is one.
    pub fn change_if_there<R>(&mut self, key: &K, f: impl FnOnce(&mut V) -> R) -> Result<Option<R>, StateError> {
        let hash = self.table.hash(key);
        let changed = self.table.modify(hash, key, |value| {
            // What is absent has not changed.
            Ok(if value.is_none() { None } else { value.get_mut().map(f) })
        });
        noted(&mut self.failed, changed)
    }

    /// Changes one that must be there.
    pub fn change(&mut self, key: &K, f: impl FnOnce(&mut V)) -> Result<(), StateError> {
        let changed = self.change_if_there(key, f)?;
        noted(&mut self.failed, changed.ok_or_else(missing))
    }

    /// A page of them, from a hash on; and where to go on.
    pub fn page(&self, from: u64, found: &mut Vec<(K, V)>) -> Result<Option<u64>, StateError> {
        self.table.scan(from, |_, key, value| {
            found.push((key, value));
            Ok(())
        })
    }

    pub fn start(&self) -> u64 {
        self.table.range().start
    }

    pub fn leave(&mut self) -> Result<(), StateError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    pub fn freeze(&mut self, open: &Open, entries: &mut Vec<Entry>) {
        self.table.freeze(open, entries);
    }

    pub fn settle(&mut self, durable: bool) {
        self.table.settle(durable);
    }

    pub fn view(&mut self, open: &Open, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        self.table.view(open, asked)
    }

    pub fn hydrate(&mut self) -> Result<bool, Failed> {
        self.table.hydrate()
    }

    pub fn forget(&mut self) -> Result<(), Failed> {
        self.table.forget()
    }
}

#[cold]
fn missing() -> StateError {
    StateError::corrupt("a list or map has lost an element")
}
