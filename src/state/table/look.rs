//! Looking a key up, to get its value or to take it out.

use super::super::StateError;
use super::super::buckets::Place;
use super::super::entry::{VALUE_LONG, find_short};
use super::super::hash::SMALL_KEY_BYTES;
use super::super::head::next_of;
use super::Table;
use crate::record::Record;

impl<K: Record, V: Record> Table<K, V> {
    /// The value of a key.
    ///
    /// # Errors
    /// The value cannot be read.
    ///
    /// # Panics
    /// As for [`Table::update`].
    pub fn get(&self, hash: u64, key: &K) -> Result<Option<V>, StateError> {
        if K::WIDTH.is_some() && Self::KEY_BYTES <= SMALL_KEY_BYTES {
            let mut bytes = [0; SMALL_KEY_BYTES];
            key.store(&mut bytes[..Self::KEY_BYTES]);
            return self.get_encoded(hash, &bytes[..Self::KEY_BYTES]);
        }
        let mut bytes = Vec::with_capacity(Self::KEY_BYTES);
        key.encode(&mut bytes);
        self.get_encoded(hash, &bytes)
    }

    fn get_encoded(&self, hash: u64, key: &[u8]) -> Result<Option<V>, StateError> {
        let Some(place) = self.place_of(hash, key)? else { return Ok(None) };
        self.read(place).map(Some)
    }

    /// Takes a key out, and says its value.
    ///
    /// # Errors
    /// The value cannot be read or the pool is exhausted; then the table has not changed.
    ///
    /// # Panics
    /// As for [`Table::update`].
    pub fn remove(&mut self, hash: u64, key: &K) -> Result<Option<V>, StateError> {
        self.with_encoded(key, |table, key| {
            let Some(place) = table.place_of(hash, key)? else { return Ok(None) };
            let value = table.read(place)?;
            table.remove_at(hash, place)?;
            Ok(Some(value))
        })
    }

    /// Takes a key out without looking at its value. Says whether it was there.
    ///
    /// # Errors
    /// As for [`Table::remove`].
    ///
    /// # Panics
    /// As for [`Table::update`].
    pub fn discard(&mut self, hash: u64, key: &K) -> Result<bool, StateError> {
        self.with_encoded(key, |table, key| {
            let Some(place) = table.place_of(hash, key)? else { return Ok(false) };
            table.remove_at(hash, place)?;
            Ok(true)
        })
    }

    #[inline(always)]
    fn remove_at(&mut self, hash: u64, place: Place) -> Result<(), StateError> {
        if self.is_fixed() { self.remove_fixed(hash, place) } else { self.buckets.remove(hash, place) }
    }

    /// Where the entry of an encoded key is: as a rule in the first page of its bucket, or nowhere.
    #[inline(always)] // As in `update_fixed`.
    fn place_of(&self, hash: u64, key: &[u8]) -> Result<Option<Place>, StateError> {
        if key.len() > self.buckets.key_bytes_max() {
            return self.buckets.locate(hash, key);
        }
        let bucket = self.buckets.directory.bucket_of(hash);
        let page = self.buckets.pages.read(bucket)?;
        let slot = if self.is_fixed() {
            let is_key = |slot| page[slot..slot + Self::KEY_BYTES] == key[..Self::KEY_BYTES];
            self.shape().find(page, hash, is_key)
        } else {
            find_short(page, hash, key).map(|found| found.slot)
        };
        match slot {
            Some(slot) => Ok(Some(Place { page: bucket, slot })),
            None if next_of(page).is_none() => Ok(None),
            None => self.buckets.locate(hash, key),
        }
    }

    fn read(&self, place: Place) -> Result<V, StateError> {
        if self.is_fixed() {
            let page = self.buckets.pages.read(place.page)?;
            return Ok(V::load(&page[place.slot + Self::KEY_BYTES..][..Self::VALUE_BYTES])?);
        }
        let entry = self.buckets.entry(place)?;
        if entry.flags & VALUE_LONG == 0 {
            return Ok(V::decode(&mut { entry.value })?);
        }
        let mut bytes = Vec::new();
        self.buckets.read_value(place, &mut bytes)?;
        Ok(V::decode(&mut bytes.as_slice())?)
    }
}
