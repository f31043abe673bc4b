//! Access to the value of a key that may come, change and go: for operators that decide so record by record.

use super::super::StateError;
use super::super::Value;
use super::super::buckets::Place;
use super::super::hash::SMALL_KEY_BYTES;
use super::{Table, decode};
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
        if Self::IS_FIXED && self.groups > 0 && Self::KEY_BYTES <= SMALL_KEY_BYTES {
            let mut bytes = [0; SMALL_KEY_BYTES];
            key.store(&mut bytes[..Self::KEY_BYTES]);
            return self.modify_fixed(hash, &bytes[..Self::KEY_BYTES], f);
        }
        let mut bytes = std::mem::take(&mut self.key);
        bytes.clear();
        key.encode(&mut bytes);
        let result = if Self::IS_FIXED && self.groups > 0 {
            self.modify_fixed(hash, &bytes, f)
        } else {
            self.modify_heap(hash, &bytes, f)
        };
        self.key = bytes;
        result
    }

    #[inline(always)] // As in `update_fixed`: else the compiler does not know how long `key` is.
    fn modify_fixed<R, E: From<StateError>>(
        &mut self,
        hash: u64,
        key: &[u8],
        f: impl FnOnce(&mut Value<V>) -> Result<R, E>,
    ) -> Result<R, E> {
        let shape = self.shape();
        let bucket = self.buckets.directory.bucket_of(hash);
        let page = self.buckets.pages.read(bucket).map_err(StateError::from)?;
        let is_key = |slot| page[slot..slot + Self::KEY_BYTES] == key[..Self::KEY_BYTES];
        let Some(slot) = shape.find(page, hash, is_key) else {
            return self.modify_heap(hash, key, f);
        };
        let at = slot + Self::KEY_BYTES;
        let value = V::load(&page[at..at + Self::VALUE_BYTES]).map_err(StateError::from)?;
        let mut value = Value::new(Some(value));
        let result = f(&mut value)?;
        match value.into_parts() {
            (_, false) => {}
            (Some(value), true) => {
                let page = self.buckets.pages.write(bucket).map_err(StateError::from)?;
                value.store(&mut page[at..at + Self::VALUE_BYTES]);
            }
            (None, true) => self.buckets.remove(hash, Place { page: bucket, slot })?,
        }
        Ok(result)
    }

    /// The general way: the heap's layout, absent keys, further pages of a chain.
    #[inline(never)]
    fn modify_heap<R, E: From<StateError>>(
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
        // For what it has allocated, as in `update`.
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
    pub fn modify_batch<T, E: From<StateError>>(
        &mut self,
        records: impl Iterator<Item = (u64, K, T)>,
        mut f: impl FnMut(&K, T, &mut Value<V>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (hash, key, record) in records {
            self.modify(hash, &key, |value| f(&key, record, value))?;
        }
        Ok(())
    }
}
