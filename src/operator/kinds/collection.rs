//! What a list and a map have in common: a head by key, ids, and what was cleared. It knows no elements.

use super::super::kept::value;
use super::super::operating::Open;
use super::super::viewing::Viewing;
use super::cleared::{Cleared, Span};
use super::value::Value;
use super::{Keys, Kind, Opening, Tables, Work};
use crate::error::{Error, Failed, StateError};
use crate::record::Record;
use crate::snapshot::Entry;
use crate::state::GROUP_MASK;

/// What of a list or a map lies by key: which elements belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct Head {
    /// What its elements name it by.
    pub id: u64,
    /// The number of its first element: of a list; in a map it is 0.
    pub first: u64,
    /// How many there are.
    pub len: u64,
}

pub(super) struct Collection {
    head: Value<Head>,
    /// Of the key that was entered.
    hash: u64,
    /// The last number that an id was made of.
    ids: u64,
    pub cleared: Cleared,
}

fn ids_of(name: &str) -> String {
    format!("{name}/ids")
}

impl Collection {
    pub fn tables<K: Record>(name: &str, is_timed: bool, tables: &mut Tables) {
        Value::<Head>::tables::<K>(name, is_timed, tables);
        Cleared::tables(name, tables);
    }

    pub fn open<K: Record>(opening: &Opening<'_>, name: &str, ttl_ns: Option<u64>) -> Result<Self, Error> {
        let state = ids_of(name);
        let entries = opening.restored.iter().filter(|entry| entry.state == state);
        // Key groups of several tasks may have come together: no id may be made twice in any of them.
        let ids: Vec<u64> = entries.map(|entry| value(entry, opening.open.epoch)).collect::<Result<_, _>>()?;
        Ok(Self {
            head: Value::open::<K>(opening, name, ttl_ns)?,
            hash: 0,
            ids: ids.into_iter().max().unwrap_or(0),
            cleared: Cleared::open(opening, name)?,
        })
    }

    /// The head of what there is.
    pub fn head(&mut self) -> Result<Option<Head>, StateError> {
        if let Some(over) = self.head.over()? {
            self.let_go(over)?;
        }
        // None is kept of an empty one; but a snapshot may have been made to hurt.
        Ok(self.head.get()?.copied().filter(|head| head.len > 0))
    }

    /// The same, or one of a new, empty collection: it is none before it is set.
    pub fn head_or_new(&mut self) -> Result<Head, StateError> {
        if let Some(head) = self.head()? {
            return Ok(head);
        }
        self.ids += 1;
        Ok(Head { id: self.hash & GROUP_MASK | self.ids & !GROUP_MASK, first: 0, len: 0 })
    }

    pub fn set(&mut self, head: Head) {
        if head.len > 0 { self.head.set(head) } else { self.head.clear() }
    }

    /// Something in it has been written that the head does not tell.
    pub fn renew(&mut self) {
        self.head.renew();
    }

    /// Lets go of all elements.
    pub fn clear(&mut self) -> Result<(), StateError> {
        if let Some(head) = self.head()? {
            self.let_go(head)?;
            self.head.clear();
        }
        Ok(())
    }

    fn let_go(&mut self, Head { id, first, len }: Head) -> Result<(), StateError> {
        self.cleared.add(id, Span { first, len })
    }

    /// Removes heads that are over, and elements that no head knows any more, by `remove`.
    pub fn tidy(
        &mut self,
        records: u64,
        remove: impl FnMut(u64, u64) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        let cleared = &mut self.cleared;
        self.head.tidy_into(records, &mut |Head { id, first, len }| cleared.add(id, Span { first, len }))?;
        self.cleared.tidy(records, remove)
    }

    pub fn name(&self) -> &str {
        self.head.name()
    }

    #[inline]
    pub fn enter(&mut self, hash: u64, key: &[u8]) {
        self.hash = hash;
        self.head.enter(hash, key);
    }

    #[inline]
    pub fn leave(&mut self) -> Result<(), StateError> {
        self.cleared.leave()?;
        self.head.leave()
    }

    pub fn prefetch(&self, hashes: &[u64]) {
        self.head.prefetch(hashes);
    }

    pub fn tick(&mut self, clock_ns: u64) {
        self.head.tick(clock_ns);
    }

    pub fn keys(&self, from: u64, keys: &mut Keys) -> Result<Option<u64>, StateError> {
        self.head.keys(from, keys)
    }

    pub fn freeze(&mut self, open: &Open, entries: &mut Vec<Entry>) {
        self.head.freeze(open, entries);
        self.cleared.freeze(open, entries);
        let ids = self.ids;
        entries.push(open.entry(&ids_of(self.name()), &u64::schema(), |bytes| ids.encode(bytes), None));
    }

    pub fn settle(&mut self, durable: bool) {
        self.head.settle(durable);
        self.cleared.settle(durable);
    }

    pub fn view(&mut self, open: &Open, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        Ok(self.head.view(open, asked)? & self.cleared.view(open, asked)?)
    }

    pub fn hydrate(&mut self) -> Result<bool, Failed> {
        Ok(self.head.hydrate()? & self.cleared.hydrate()?)
    }

    pub fn forget(&mut self) -> Result<(), Failed> {
        self.head.forget()?;
        self.cleared.forget()
    }
}
