//! A list per key.

use super::super::operating::Open;
use super::super::viewing::Viewing;
use super::collection::{Collection, Head};
use super::elements::Elements;
use super::{Keys, Kind, Opening, Tables, Work};
use crate::error::{Error, Failed, StateError};
use crate::record::Record;
use crate::snapshot::Entry;
use std::fmt;

/// A list per key, which grows at its end and shrinks at both. An empty one takes no room.
///
/// Every call costs the same whatever the length: only the items that are asked for are read, and only pages with items that
/// change are written. Errors are as for [`Value`](super::Value).
pub struct List<T> {
    list: Collection,
    items: Elements<Item, T>,
}

/// Names an item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct Item {
    /// The id of the list.
    pub list: u64,
    /// One more for each item pushed: the first one's is in the list's [`Head`].
    pub number: u64,
}

impl Head {
    fn item(&self, index: u64) -> Item {
        Item { list: self.id, number: self.first.wrapping_add(index) }
    }
}

impl<T> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").finish_non_exhaustive()
    }
}

impl<T: Record> List<T> {
    /// How many items there are.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn len(&mut self) -> Result<u64, StateError> {
        Ok(self.list.head()?.map_or(0, |head| head.len))
    }

    /// Whether there are none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn is_empty(&mut self) -> Result<bool, StateError> {
        Ok(self.list.head()?.is_none())
    }

    /// Adds an item at the end.
    ///
    /// # Errors
    /// The pool is exhausted, or a page cannot be read.
    pub fn push(&mut self, item: T) -> Result<(), StateError> {
        let head = self.list.head_or_new()?;
        self.items.insert(&head.item(head.len), item)?;
        self.list.set(Head { len: head.len.saturating_add(1), ..head });
        self.list.cleared.has_come();
        Ok(())
    }

    /// Takes the last item out.
    ///
    /// # Errors
    /// As for [`List::push`].
    pub fn pop_back(&mut self) -> Result<Option<T>, StateError> {
        let Some(head) = self.list.head()? else { return Ok(None) };
        let item = self.items.take(&head.item(head.len - 1))?;
        self.list.set(Head { len: head.len - 1, ..head });
        Ok(Some(item))
    }

    /// Takes the first item out.
    ///
    /// # Errors
    /// As for [`List::push`].
    pub fn pop_front(&mut self) -> Result<Option<T>, StateError> {
        let Some(head) = self.list.head()? else { return Ok(None) };
        let item = self.items.take(&head.item(0))?;
        self.list.set(Head { first: head.first.wrapping_add(1), len: head.len - 1, ..head });
        Ok(Some(item))
    }

    /// The item at an index, counted from 0.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn get(&mut self, index: u64) -> Result<Option<T>, StateError> {
        match self.list.head()?.filter(|head| index < head.len) {
            Some(head) => self.items.there(&head.item(index)).map(Some),
            None => Ok(None),
        }
    }

    /// Replaces the item at an index. False if there is none.
    ///
    /// # Errors
    /// As for [`List::push`].
    pub fn set(&mut self, index: u64, item: T) -> Result<bool, StateError> {
        let Some(head) = self.list.head()?.filter(|head| index < head.len) else { return Ok(false) };
        self.items.insert(&head.item(index), item)?;
        self.list.renew();
        Ok(true)
    }

    /// Takes all items out, without looking at them.
    ///
    /// # Errors
    /// As for [`List::push`].
    pub fn clear(&mut self) -> Result<(), StateError> {
        self.list.clear()
    }

    /// All items from the first to the last. Each is read when its turn comes.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn iter(&mut self) -> Result<ListIter<'_, T>, StateError> {
        let head = self.list.head()?;
        Ok(ListIter { items: &mut self.items, head, next: 0 })
    }
}

/// The items of a [`List`].
pub struct ListIter<'a, T> {
    items: &'a mut Elements<Item, T>,
    head: Option<Head>,
    next: u64,
}

impl<T> fmt::Debug for ListIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListIter").field("next", &self.next).finish_non_exhaustive()
    }
}

impl<T: Record> Iterator for ListIter<'_, T> {
    type Item = Result<T, StateError>;

    fn next(&mut self) -> Option<Self::Item> {
        let head = self.head.filter(|head| self.next < head.len)?;
        self.next += 1;
        Some(self.items.there(&head.item(self.next - 1)))
    }
}

fn items_of(name: &str) -> String {
    format!("{name}/items")
}

impl<T: Record> Kind for List<T> {
    fn tables<K: Record>(name: &str, is_timed: bool, tables: &mut Tables) {
        Collection::tables::<K>(name, is_timed, tables);
        tables.add::<Item, T>(items_of(name));
    }

    fn open<K: Record>(opening: &Opening<'_>, name: &str, ttl_ns: Option<u64>) -> Result<Self, Error> {
        let list = Collection::open::<K>(opening, name, ttl_ns)?;
        Ok(Self { list, items: Elements::open(opening, &items_of(name))? })
    }
}

impl<T: Record> Work for List<T> {
    fn name(&self) -> &str {
        self.list.name()
    }

    #[inline]
    fn enter(&mut self, hash: u64, key: &[u8]) {
        self.list.enter(hash, key);
    }

    #[inline]
    fn leave(&mut self) -> Result<(), StateError> {
        self.items.leave()?;
        self.list.leave()
    }

    fn prefetch(&self, hashes: &[u64]) {
        self.list.prefetch(hashes);
    }

    fn tick(&mut self, clock_ns: u64) {
        self.list.tick(clock_ns);
    }

    fn tidy(&mut self, records: u64) -> Result<(), StateError> {
        let items = &mut self.items;
        self.list.tidy(records, |list, number| items.remove(&Item { list, number }).map(|_| ()))
    }

    fn keys(&self, from: u64, keys: &mut Keys) -> Result<Option<u64>, StateError> {
        self.list.keys(from, keys)
    }

    fn freeze(&mut self, open: &Open, entries: &mut Vec<Entry>) {
        self.list.freeze(open, entries);
        self.items.freeze(open, entries);
    }

    fn settle(&mut self, durable: bool) {
        self.list.settle(durable);
        self.items.settle(durable);
    }

    fn view(&mut self, open: &Open, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        Ok(self.list.view(open, asked)? & self.items.view(open, asked)?)
    }

    fn hydrate(&mut self) -> Result<bool, Failed> {
        Ok(self.list.hydrate()? & self.items.hydrate()?)
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.list.forget()?;
        self.items.forget()
    }
}
