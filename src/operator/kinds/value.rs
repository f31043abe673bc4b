//! One value per key.

use super::super::operating::Open;
use super::super::viewing::Viewing;
use super::by_key::{self, ByKey, Found, Gone};
use super::{Keys, Kind, Opening, Tables, Work, noted};
use crate::error::{Error, Failed, StateError};
use crate::record::Record;
use crate::snapshot::Entry;
use std::fmt;

/// One value per key: none until something is set, and none again when it is taken.
///
/// It is read when it is first asked for, and written once, after the record, if it has been changed. What is only looked at
/// is not written again. Errors are those of the state (the pool is exhausted, a page of the snapshot is damaged): pass them
/// on by `?`; the job fails with the first one in any case.
pub struct Value<V> {
    value: Option<V>,
    /// `value` is what there is.
    is_read: bool,
    is_changed: bool,
    /// None: the value was read by whoever lends it, and is written by him.
    home: Option<Box<dyn ByKey<V>>>,
    failed: Option<StateError>,
}

impl<V> fmt::Debug for Value<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_read, is_changed, .. } = self;
        f.debug_struct("Value").field("is_read", is_read).field("is_changed", is_changed).finish_non_exhaustive()
    }
}

impl<V> Value<V> {
    /// A value that has been read.
    #[inline]
    pub(in super::super) fn lent(value: Option<V>) -> Self {
        Self { value, is_read: true, is_changed: false, home: None, failed: None }
    }

    /// What has become of a value that was lent, and whether it has changed.
    #[inline]
    pub(in super::super) fn into_parts(self) -> (Option<V>, bool) {
        (self.value, self.is_changed)
    }

    /// What is there.
    ///
    /// # Errors
    /// It cannot be read.
    #[inline]
    pub fn get(&mut self) -> Result<Option<&V>, StateError> {
        self.read()?;
        Ok(self.value.as_ref())
    }

    /// What is there, to be changed: it is written again, changed or not.
    ///
    /// # Errors
    /// It cannot be read.
    #[inline]
    pub fn get_mut(&mut self) -> Result<Option<&mut V>, StateError> {
        self.read()?;
        self.is_changed |= self.value.is_some();
        Ok(self.value.as_mut())
    }

    /// What is there, to be changed; first made by `init` if there is nothing.
    ///
    /// # Errors
    /// It cannot be read.
    #[inline]
    pub fn get_or_insert_with(&mut self, init: impl FnOnce() -> V) -> Result<&mut V, StateError> {
        self.read()?;
        self.is_changed = true;
        Ok(self.value.get_or_insert_with(init))
    }

    /// Sets it. What was there is not read.
    #[inline]
    pub fn set(&mut self, value: V) {
        self.value = Some(value);
        (self.is_read, self.is_changed) = (true, true);
    }

    /// Takes it out: nothing is left of it, and so of the key, if nothing else is kept of that.
    ///
    /// # Errors
    /// It cannot be read.
    #[inline]
    pub fn take(&mut self) -> Result<Option<V>, StateError> {
        self.read()?;
        self.is_changed |= self.value.is_some();
        Ok(self.value.take())
    }

    /// Lets go of it, unread.
    #[inline]
    pub fn clear(&mut self) {
        self.value = None;
        (self.is_read, self.is_changed) = (true, true);
    }

    /// Whether there is nothing.
    ///
    /// # Errors
    /// It cannot be read.
    #[inline]
    pub fn is_none(&mut self) -> Result<bool, StateError> {
        Ok(self.get()?.is_none())
    }

    #[inline]
    fn read(&mut self) -> Result<(), StateError> {
        if self.is_read { Ok(()) } else { self.read_home().map(|_| ()) }
    }

    /// Reads it. If the time of what is there is over, that is handed out, and will be removed.
    #[inline(never)]
    fn read_home(&mut self) -> Result<Option<V>, StateError> {
        let found = match &mut self.home {
            Some(home) => noted(&mut self.failed, home.get())?,
            None => Found::Nothing,
        };
        self.is_read = true;
        match found {
            Found::Nothing => {}
            Found::Value(value) => self.value = Some(value),
            Found::Over(value) => {
                self.is_changed = true;
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Reads it, if it has not been read. Hands out what is there and over.
    pub(super) fn over(&mut self) -> Result<Option<V>, StateError> {
        if self.is_read { Ok(None) } else { self.read_home() }
    }

    /// It counts as written now.
    pub(super) fn renew(&mut self) {
        self.is_changed |= self.home().is_timed();
    }

    pub(super) fn tidy_into(&mut self, records: u64, gone: &mut Gone<'_, V>) -> Result<(), StateError> {
        self.home_mut().tidy(records, gone)
    }

    fn home(&self) -> &dyn ByKey<V> {
        self.home.as_deref().expect("only a value that was opened is worked on")
    }

    fn home_mut(&mut self) -> &mut (dyn ByKey<V> + 'static) {
        self.home.as_deref_mut().expect("only a value that was opened is worked on")
    }
}

impl<V: Record> Kind for Value<V> {
    fn tables<K: Record>(name: &str, is_timed: bool, tables: &mut Tables) {
        by_key::tables::<K, V>(name, is_timed, tables);
    }

    fn open<K: Record>(opening: &Opening<'_>, name: &str, ttl_ns: Option<u64>) -> Result<Self, Error> {
        let home = by_key::open::<K, V>(opening, name, ttl_ns)?;
        Ok(Self { value: None, is_read: false, is_changed: false, home: Some(home), failed: None })
    }
}

impl<V: Record> Work for Value<V> {
    fn name(&self) -> &str {
        self.home().name()
    }

    #[inline]
    fn enter(&mut self, hash: u64, key: &[u8]) {
        self.value = None;
        (self.is_read, self.is_changed) = (false, false);
        self.home_mut().enter(hash, key);
    }

    #[inline]
    fn leave(&mut self) -> Result<(), StateError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        match self.value.take() {
            Some(value) => self.home_mut().put(value),
            None => self.home_mut().remove(),
        }
    }

    fn prefetch(&self, hashes: &[u64]) {
        self.home().prefetch(hashes);
    }

    fn tick(&mut self, clock_ns: u64) {
        self.home_mut().tick(clock_ns);
    }

    fn tidy(&mut self, records: u64) -> Result<(), StateError> {
        self.tidy_into(records, &mut |_| Ok(()))
    }

    fn keys(&self, from: u64, keys: &mut Keys) -> Result<Option<u64>, StateError> {
        self.home().keys(from, keys)
    }

    fn freeze(&mut self, open: &Open, entries: &mut Vec<Entry>) {
        self.home_mut().freeze(open, entries);
    }

    fn settle(&mut self, durable: bool) {
        self.home_mut().settle(durable);
    }

    fn view(&mut self, open: &Open, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        self.home_mut().view(open, asked)
    }

    fn hydrate(&mut self) -> Result<bool, Failed> {
        self.home_mut().hydrate()
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.home_mut().forget()
    }
}
