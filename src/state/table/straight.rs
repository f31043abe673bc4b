//! The way of records into a table that lies in the cache: straight, one after the other. There is nothing to wait for, and so
//! no window in which keys lie until their places have been fetched; what is left is counted in single instructions.

use super::fixed::change_mirror;
use super::{Table, first_seen, next_seen};
use crate::record::Record;
use crate::state::StateError;
use crate::state::buckets::Buckets;
use crate::state::head::HEAD_BYTES;
use zerocopy::IntoBytes;

/// So many addresses are looked up anew at most when pages have come or gone.
const LIST_MAX: usize = 1024;

/// A record that has to take the long way: the hash and encoding of its key, it, and what came along with it.
type Left<K, T, A> = (u64, <K as Record>::Mirror, (T, A));

impl<K: Record, V: Record> Table<K, V> {
    /// Whether records are best taken in by [`Table::update_straight`]: the layout is fixed, the table lies in the cache, and so
    /// does its directory.
    #[inline]
    pub fn takes_straight(&self) -> bool {
        let Buckets { hasher, directory, .. } = &self.buckets;
        self.is_fixed() && self.buckets.is_near() && !hasher.is_of_elements() && directory.list().len() <= LIST_MAX
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
            let Some(group) = pages.part(directory.index_of(hash), hash as u32) else {
                return left(hash, key, record, along);
            };
            let (word, slots) = Self::group_at(group.bytes(), 0);
            let Some(lane) = Self::find_in_group(word, slots, hash, key.as_bytes()) else {
                return left(hash, key, record, along);
            };
            each(along, change_mirror(&mut slots[lane].value, |value| next(value, record))?)?;
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
