//! The way of records into a table that lies in the cache: straight, one after the other. There is nothing to wait for, and so
//! no window in which keys lie until their places have been fetched; what is left is counted in single instructions.

use super::fixed::change_mirror;
use super::{Table, first_seen, next_seen};
use crate::page::Near;
use crate::record::Record;
use crate::state::head::HEAD_BYTES;
use crate::state::{StateError, Value, mirror_of};
use zerocopy::IntoBytes;

/// So many addresses are looked up anew at most when pages have come or gone.
const LIST_MAX: usize = 1024;

/// A record that has to take the long way: the hash and encoding of its key, it, and what came along with it.
type Left<K, T, A> = (u64, <K as Record>::Mirror, (T, A));

/// What is left to be done of a record that may change its value: all of it, or its key has to go.
enum Rest<K, T> {
    Record(u64, K, T),
    Remove(u64, K),
}

impl<K: Record, V: Record> Table<K, V> {
    /// Whether records are best taken in by [`Table::update_straight`]: the layout is fixed, the table lies in the cache, and so
    /// does its directory.
    #[inline]
    pub fn takes_straight(&self) -> bool {
        self.is_fixed() && self.is_all_near() && !self.buckets.hasher.is_of_elements()
    }

    /// Whether the table lies in the cache, and so does its directory.
    #[inline]
    pub(super) fn is_all_near(&self) -> bool {
        self.buckets.is_near() && self.buckets.directory.list().len() <= LIST_MAX
    }

    /// Takes in records with the encodings of their keys, otherwise as [`Table::update_batch`] does. Only where
    /// [`Table::takes_straight`] said so.
    ///
    /// # Errors
    /// As for [`Table::update_batch`].
    ///
    /// # Panics
    /// As for [`Table::update`].
    #[inline]
    pub fn update_straight<T, A, R, E: From<StateError>>(
        &mut self,
        mut records: impl Iterator<Item = (K::Mirror, (T, A))>,
        first: impl Fn(T) -> V,
        next: impl Fn(&mut V, T),
        seen: impl Fn(&V) -> R,
        mut each: impl FnMut(A, R) -> Result<(), E>,
    ) -> Result<(), E> {
        let (first, next) = (first_seen(&first, &seen), next_seen(&next, &seen));
        while let Some((hash, key, (record, along))) = self.update_written(&mut records, next, &mut each)? {
            each(along, self.upsert_mirror(hash, key, record, first, next)?)?;
        }
        Ok(())
    }

    /// Takes in records until there are no more or one has to take the long way. A loop of its own, which nothing that it
    /// needs can change: so all that stays in registers.
    #[inline(always)]
    fn update_written<T, A, R, E: From<StateError>>(
        &mut self,
        records: &mut impl Iterator<Item = (K::Mirror, (T, A))>,
        next: impl Fn(&mut V, T) -> R,
        each: &mut impl FnMut(A, R) -> Result<(), E>,
    ) -> Result<Option<Left<K, T, A>>, E> {
        let (hasher, directory) = (self.buckets.hasher.of_keys(), &self.buckets.directory);
        let mut pages = self.buckets.pages.near(directory.changes(), directory.list(), HEAD_BYTES, Self::STRIDE);
        let left = |hash, key, record, along| Ok(Some((hash, key, (record, along))));
        for (key, (record, along)) in records {
            let hash = hasher.hash_bytes(key.as_bytes());
            let Some(value) = Self::value_in(&mut pages, directory.index_of(hash), hash, key.as_bytes()) else {
                return left(hash, key, record, along);
            };
            each(along, change_mirror(value, |value| next(value, record))?)?;
        }
        Ok(None)
    }

    /// Where the value of a key is, if that is in the group that it wants in a page which has been written to in this epoch.
    #[inline(always)]
    fn value_in<'a>(pages: &'a mut Near<'_>, index: usize, hash: u64, key: &[u8]) -> Option<&'a mut V::Mirror> {
        let (word, slots) = Self::group_at(pages.part(index, hash as u32)?.bytes(), 0);
        let lane = Self::find_in_group(word, slots, hash, key)?;
        Some(&mut slots[lane].value)
    }

    /// Takes in records with their keys, otherwise as [`Table::modify_batch`] does. Only where [`Table::takes_straight`] said so.
    ///
    /// # Errors
    /// As for [`Table::modify`].
    ///
    /// # Panics
    /// As for [`Table::modify`].
    #[inline]
    pub fn modify_straight<T, E: From<StateError>>(
        &mut self,
        mut records: impl Iterator<Item = (K, T)>,
        mut f: impl FnMut(&K, T, &mut Value<V>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(rest) = self.modify_written(&mut records, &mut f)? {
            match rest {
                Rest::Record(hash, key, record) => self.modify(hash, &key, |value| f(&key, record, value))?,
                Rest::Remove(hash, key) => drop(self.discard(hash, &key)?),
            }
        }
        Ok(())
    }

    /// The same until there are no more, or one has to take the long way.
    #[inline(always)]
    fn modify_written<T, E: From<StateError>>(
        &mut self,
        records: &mut impl Iterator<Item = (K, T)>,
        f: &mut impl FnMut(&K, T, &mut Value<V>) -> Result<(), E>,
    ) -> Result<Option<Rest<K, T>>, E> {
        let (hasher, directory) = (self.buckets.hasher.of_keys(), &self.buckets.directory);
        let mut pages = self.buckets.pages.near(directory.changes(), directory.list(), HEAD_BYTES, Self::STRIDE);
        for (key, record) in records {
            let encoded = mirror_of(&key);
            let hash = hasher.hash_bytes(encoded.as_bytes());
            let Some(place) = Self::value_in(&mut pages, directory.index_of(hash), hash, encoded.as_bytes()) else {
                return Ok(Some(Rest::Record(hash, key, record)));
            };
            let mut value = Value::new(Some(V::from_mirror(place).map_err(StateError::from)?));
            f(&key, record, &mut value)?;
            match value.into_parts() {
                (_, false) => {}
                (Some(value), true) => value.to_mirror(place),
                (None, true) => return Ok(Some(Rest::Remove(hash, key))),
            }
        }
        Ok(None)
    }

    /// [`Table::upsert`] for a key that is not in memory: were its address taken in the loop, it would always have to be.
    #[cold]
    #[inline(never)]
    fn upsert_mirror<T, R>(
        &mut self,
        hash: u64,
        key: K::Mirror,
        record: T,
        first: impl FnOnce(T) -> (V, R),
        next: impl FnOnce(&mut V, T) -> R,
    ) -> Result<R, StateError> {
        self.upsert_further(hash, key.as_bytes(), record, first, next)
    }
}
