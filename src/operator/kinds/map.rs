//! A map per key.
//!
//! Entries have *slots*, 0 to len - 1. One table finds an entry by its key, another the key by the slot: so all of them can be
//! gone through without searching. When an entry goes, the last one takes its slot.

use super::super::operating::Open;
use super::super::viewing::Viewing;
use super::collection::{Collection, Head};
use super::elements::Elements;
use super::{Keys, Kind, Opening, Tables, Work};
use crate::error::{Error, Failed, StateError};
use crate::record::Record;
use crate::snapshot::Entry as Kept;
use std::fmt;

/// A map per key. An empty one takes no room.
///
/// Every call costs the same whatever the number of entries: only those that are asked for are read, and only pages with
/// entries that change are written. Errors are as for [`Value`](super::Value).
pub struct Map<Q, V> {
    map: Collection,
    entries: Elements<Key<Q>, Entry<V>>,
    order: Elements<Slot, Q>,
    /// A key that is being looked up, for what it has allocated.
    key: Option<Key<Q>>,
    bytes: Vec<u8>,
}

/// Names an entry of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct Key<Q> {
    /// The id of the map.
    pub map: u64,
    /// The key within the map.
    pub key: Q,
}

/// An entry of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct Entry<V> {
    /// Its number among the entries of the map.
    pub slot: u64,
    /// The value.
    pub value: V,
}

/// Names the slot of an entry: a table of these has its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Record)]
pub struct Slot {
    /// The id of the map.
    pub map: u64,
    /// From 0 to the number of entries - 1.
    pub slot: u64,
}

impl Head {
    fn slot(&self, slot: u64) -> Slot {
        Slot { map: self.id, slot }
    }
}

impl<Q, V> fmt::Debug for Map<Q, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").finish_non_exhaustive()
    }
}

impl<Q: Record, V: Record> Map<Q, V> {
    /// How many entries there are.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn len(&mut self) -> Result<u64, StateError> {
        Ok(self.map.head()?.map_or(0, |head| head.len))
    }

    /// Whether there are none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn is_empty(&mut self) -> Result<bool, StateError> {
        Ok(self.map.head()?.is_none())
    }

    /// The value of a key.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn get(&mut self, key: &Q) -> Result<Option<V>, StateError> {
        let found = self.with(key, |entries, key| entries.get(key))?;
        Ok(found.flatten().map(|entry| entry.value))
    }

    /// Whether there is a value of a key.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn contains(&mut self, key: &Q) -> Result<bool, StateError> {
        Ok(self.get(key)?.is_some())
    }

    /// Sets the value of a key, and says what it was.
    ///
    /// # Errors
    /// The pool is exhausted, or a page cannot be read.
    pub fn insert(&mut self, key: Q, value: V) -> Result<Option<V>, StateError> {
        let mut new = Some(value);
        let replace = |value: &mut V| new.take().map(|new| std::mem::replace(value, new));
        if let Some(old) = self.change(&key, replace)? {
            return Ok(old);
        }
        new.map_or(Ok(()), |value| self.add(key, value)).map(|()| None)
    }

    /// Changes the value of a key with `f`; the value is first made by `init` if there is none.
    ///
    /// # Errors
    /// As for [`Map::insert`].
    pub fn update<R>(
        &mut self,
        key: Q,
        init: impl FnOnce() -> V,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<R, StateError> {
        let mut f = Some(f);
        if let Some(Some(result)) = self.change(&key, |value| f.take().map(|f| f(value)))? {
            return Ok(result);
        }
        let (mut value, f) = (init(), f.expect("there was no value that it could have changed"));
        let result = f(&mut value);
        self.add(key, value)?;
        Ok(result)
    }

    /// Takes a key out, and says its value.
    ///
    /// # Errors
    /// As for [`Map::insert`].
    pub fn remove(&mut self, key: &Q) -> Result<Option<V>, StateError> {
        let Some(entry) = self.with(key, |entries, key| entries.remove(key))?.flatten() else { return Ok(None) };
        let Some(head) = self.map.head()? else { return Ok(None) };
        let last = head.slot(head.len - 1);
        let moved = self.order.take(&last)?;
        if entry.slot != last.slot {
            let moved = Key { map: head.id, key: moved };
            self.entries.change(&moved, |moved| moved.slot = entry.slot)?;
            self.order.insert(&head.slot(entry.slot), moved.key)?;
        }
        self.map.set(Head { len: head.len - 1, ..head });
        Ok(Some(entry.value))
    }

    /// Takes all entries out, without looking at them.
    ///
    /// # Errors
    /// As for [`Map::insert`].
    pub fn clear(&mut self) -> Result<(), StateError> {
        self.map.clear()
    }

    /// All entries, in an order that changes when entries go. Each is read when its turn comes.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn iter(&mut self) -> Result<MapIter<'_, Q, V>, StateError> {
        let head = self.map.head()?;
        Ok(MapIter { map: self, head, next: 0 })
    }

    /// Gives a key of this map to `f`, as the table of entries wants it. None: there is no entry at all.
    fn with<R>(
        &mut self,
        key: &Q,
        f: impl FnOnce(&mut Elements<Key<Q>, Entry<V>>, &Key<Q>) -> Result<R, StateError>,
    ) -> Result<Option<R>, StateError> {
        let Some(head) = self.map.head()? else { return Ok(None) };
        // A key of one's own, out of one that was lent: by its encoding, so that `Q` need not be `Clone`.
        self.bytes.clear();
        head.id.encode(&mut self.bytes);
        key.encode(&mut self.bytes);
        let mut input = self.bytes.as_slice();
        let key = match self.key.take() {
            Some(mut key) => key.decode_into(&mut input).map(|()| key)?,
            None => Key::decode(&mut input)?,
        };
        let result = f(&mut self.entries, &key);
        self.key = Some(key);
        result.map(Some)
    }

    /// Changes the value of a key with `f`. None: there is none.
    fn change<R>(&mut self, key: &Q, f: impl FnOnce(&mut V) -> R) -> Result<Option<R>, StateError> {
        let change = |entry: &mut Entry<V>| f(&mut entry.value);
        let changed = self.with(key, |entries, key| entries.change_if_there(key, change))?.flatten();
        if changed.is_some() {
            self.map.renew();
        }
        Ok(changed)
    }

    /// Adds an entry for a key that has none.
    fn add(&mut self, key: Q, value: V) -> Result<(), StateError> {
        let head = self.map.head_or_new()?;
        let key = Key { map: head.id, key };
        self.entries.insert(&key, Entry { slot: head.len, value })?;
        self.order.insert(&head.slot(head.len), key.key)?;
        self.map.set(Head { len: head.len.saturating_add(1), ..head });
        self.map.cleared.has_come();
        Ok(())
    }
}

/// The entries of a [`Map`].
pub struct MapIter<'a, Q, V> {
    map: &'a mut Map<Q, V>,
    head: Option<Head>,
    next: u64,
}

impl<Q, V> fmt::Debug for MapIter<'_, Q, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapIter").field("next", &self.next).finish_non_exhaustive()
    }
}

impl<Q: Record, V: Record> Iterator for MapIter<'_, Q, V> {
    type Item = Result<(Q, V), StateError>;

    fn next(&mut self) -> Option<Self::Item> {
        let head = self.head.filter(|head| self.next < head.len)?;
        self.next += 1;
        let entry = self.map.order.there(&head.slot(self.next - 1)).and_then(|key| {
            let key = Key { map: head.id, key };
            let entry = self.map.entries.there(&key)?;
            Ok((key.key, entry.value))
        });
        Some(entry)
    }
}

fn entries_of(name: &str) -> String {
    format!("{name}/entries")
}

fn order_of(name: &str) -> String {
    format!("{name}/order")
}

impl<Q: Record, V: Record> Kind for Map<Q, V> {
    fn tables<K: Record>(name: &str, is_timed: bool, tables: &mut Tables) {
        Collection::tables::<K>(name, is_timed, tables);
        tables.add::<Key<Q>, Entry<V>>(entries_of(name));
        tables.add::<Slot, Q>(order_of(name));
    }

    fn open<K: Record>(opening: &Opening<'_>, name: &str, ttl_ns: Option<u64>) -> Result<Self, Error> {
        Ok(Self {
            map: Collection::open::<K>(opening, name, ttl_ns)?,
            entries: Elements::open(opening, &entries_of(name))?,
            order: Elements::open(opening, &order_of(name))?,
            key: None,
            bytes: Vec::new(),
        })
    }
}

impl<Q: Record, V: Record> Work for Map<Q, V> {
    fn name(&self) -> &str {
        self.map.name()
    }

    #[inline]
    fn enter(&mut self, hash: u64, key: &[u8]) {
        self.map.enter(hash, key);
    }

    #[inline]
    fn leave(&mut self) -> Result<(), StateError> {
        self.entries.leave()?;
        self.order.leave()?;
        self.map.leave()
    }

    fn prefetch(&self, hashes: &[u64]) {
        self.map.prefetch(hashes);
    }

    fn tick(&mut self, clock_ns: u64) {
        self.map.tick(clock_ns);
    }

    fn tidy(&mut self, records: u64) -> Result<(), StateError> {
        let (entries, order) = (&mut self.entries, &mut self.order);
        self.map.tidy(records, |map, slot| {
            if let Some(key) = order.remove(&Slot { map, slot })? {
                entries.remove(&Key { map, key })?;
            }
            Ok(())
        })
    }

    fn keys(&self, from: u64, keys: &mut Keys) -> Result<Option<u64>, StateError> {
        self.map.keys(from, keys)
    }

    fn freeze(&mut self, open: &Open, entries: &mut Vec<Kept>) {
        self.map.freeze(open, entries);
        self.entries.freeze(open, entries);
        self.order.freeze(open, entries);
    }

    fn settle(&mut self, durable: bool) {
        self.map.settle(durable);
        self.entries.settle(durable);
        self.order.settle(durable);
    }

    fn view(&mut self, open: &Open, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        Ok(self.map.view(open, asked)? & self.entries.view(open, asked)? & self.order.view(open, asked)?)
    }

    fn hydrate(&mut self) -> Result<bool, Failed> {
        Ok(self.map.hydrate()? & self.entries.hydrate()? & self.order.hydrate()?)
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.map.forget()?;
        self.entries.forget()?;
        self.order.forget()
    }
}
