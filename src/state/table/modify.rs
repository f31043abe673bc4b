//! Access to the value of a key that may come, change and go: for operators that decide so record by record.

use super::super::buckets::Place;
use super::super::entry::{Found, Spot, VALUE_LONG, find_at};
use super::super::head::next_of;
use super::super::{Ahead, StateError, Value};
use super::{Table, decode};
use crate::page::PageId;
use crate::record::Record;

impl<K: Record, V: Record> Table<K, V> {
    /// Lends the value of a key to `f`, which may set, change or take it. What `f` has only looked at is not written, and
    /// if `f` fails nothing has changed.
    ///
    /// # Errors
    /// That of `f`; or the pool is exhausted, or the value that is there cannot be read: then the table has not changed.
    ///
    /// # Panics
    /// The hash is outside of the task's range. (If `f` panics, the table has not changed.)
    #[inline]
    pub fn modify<R, E: From<StateError>>(
        &mut self,
        hash: u64,
        key: &K,
        f: impl FnOnce(&mut Value<V>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.with_encoded(key, |table, key| table.modify_encoded(hash, key, f))
    }

    #[inline(always)]
    fn modify_encoded<R, E: From<StateError>>(
        &mut self,
        hash: u64,
        key: &[u8],
        f: impl FnOnce(&mut Value<V>) -> Result<R, E>,
    ) -> Result<R, E> {
        if self.is_fixed() { self.modify_fixed(hash, key, f) } else { self.modify_heap(hash, key, None, f) }
    }

    #[inline]
    fn modify_heap<R, E: From<StateError>>(
        &mut self,
        hash: u64,
        key: &[u8],
        spot: Option<Spot>,
        f: impl FnOnce(&mut Value<V>) -> Result<R, E>,
    ) -> Result<R, E> {
        if key.len() > self.buckets.key_bytes_max() {
            return self.modify_elsewhere(hash, key, f);
        }
        let bucket = self.buckets.directory.bucket_of(hash);
        let page = self.buckets.pages.read(bucket).map_err(StateError::from)?;
        let found = find_at(page, spot, hash, key);
        let there = match found {
            None if next_of(page).is_none() => None,
            Some(found) if found.sizes.flags & VALUE_LONG == 0 => Some(found),
            _ => return self.modify_elsewhere(hash, key, f),
        };
        let value = there.map(|found| decode(&mut self.kept, &mut found.value(page))).transpose()?;
        let mut value = Value::new(value);
        let result = f(&mut value)?;
        let (value, changed) = value.into_parts();
        if changed {
            self.write_modified(hash, key, bucket, there, &value)?;
        }
        // For what it has allocated, as in `update`.
        self.kept = value.or(self.kept.take());
        Ok(result)
    }

    /// Writes back what was found in a bucket's first page, or nowhere.
    #[inline]
    fn write_modified(
        &mut self,
        hash: u64,
        key: &[u8],
        bucket: PageId,
        there: Option<Found>,
        value: &Option<V>,
    ) -> Result<(), StateError> {
        let Some(value) = value else {
            let place = there.map(|found| Place { page: bucket, slot: found.slot });
            return place.map_or(Ok(()), |place| self.buckets.remove(hash, place));
        };
        self.value.clear();
        value.encode(&mut self.value);
        match there {
            Some(found) if self.value.len() <= found.sizes.room => {
                found.overwrite(self.buckets.pages.write(bucket)?, &self.value);
                Ok(())
            }
            Some(found) => self.buckets.grow(bucket, found, hash, key, &self.value),
            None => self.buckets.put_at(None, hash, key, &self.value),
        }
    }

    /// The long way: further pages of a chain, long keys and values.
    #[inline(never)]
    pub(super) fn modify_elsewhere<R, E: From<StateError>>(
        &mut self,
        hash: u64,
        key: &[u8],
        f: impl FnOnce(&mut Value<V>) -> Result<R, E>,
    ) -> Result<R, E> {
        let place = self.buckets.locate(hash, key)?;
        let there = match place {
            Some(place) => {
                self.buckets.read_value(place, &mut self.value)?;
                Some(decode(&mut self.kept, &mut self.value.as_slice())?)
            }
            None => None,
        };
        let mut value = Value::new(there);
        let result = f(&mut value)?;
        let (value, changed) = value.into_parts();
        if changed {
            match (&value, place) {
                (Some(value), _) => {
                    self.value.clear();
                    value.encode(&mut self.value);
                    self.buckets.put_at(place, hash, key, &self.value)?;
                }
                (None, Some(place)) => self.buckets.remove(hash, place)?,
                (None, None) => {}
            }
        }
        self.kept = value.or(self.kept.take());
        Ok(result)
    }

    /// Takes in records, as [`Table::update_batch`] does: `f` gets each key and record with the value of the key, in order.
    ///
    /// # Errors
    /// As for [`Table::modify`].
    ///
    /// # Panics
    /// As for [`Table::modify`].
    #[inline]
    pub fn modify_batch<'a, T, E: From<StateError>>(
        &mut self,
        records: impl Ahead<Key = &'a [u8], Record = T>,
        mut f: impl FnMut(&K, T, &mut Value<V>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_fixed() {
            return self.step_by_step(records, |table, (hash, bytes, record)| {
                let key = decode(&mut table.kept_key, &mut { bytes })?;
                table.modify_fixed(hash, bytes, |value| f(&key, record, value))?;
                table.kept_key = Some(key);
                Ok(())
            });
        }
        self.spot_by_spot(records, |table, spot, (hash, bytes, record)| {
            let key = decode(&mut table.kept_key, &mut { bytes })?;
            table.modify_heap(hash, bytes, spot, |value| f(&key, record, value))?;
            table.kept_key = Some(key);
            Ok(())
        })
    }
}
