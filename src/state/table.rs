//! The keyed table with its types: what operators see. The ways that every record takes are short and monomorphic; all
//! else is done by [`super::buckets`] on encoded bytes.

mod heap;
mod modify;

use super::buckets::{Buckets, Layout, Place};
use super::directory::Directory;
use super::entry::VALUE_LONG;
use super::groups::Shape;
use super::hash::SMALL_KEY_BYTES;
use super::restore::Part;
use super::{HashRange, Hasher, StateError, Window};
use crate::page::{Pages, Pool};
use crate::record::{Input, Record};
use std::cell::Cell;

/// Tables up to this size are in the cache anyway: fetching ahead would only cost.
const PREFETCH_ABOVE_BYTES: usize = 1 << 20;

/// What one task remembers by key. Every call takes the key's hash, by the [`Hasher`] that the table was made with.
pub struct Table<K, V> {
    pub(super) buckets: Buckets,
    /// Groups of each page, if the layout is fixed.
    groups: usize,
    /// Encodings that are being looked up or written.
    key: Vec<u8>,
    value: Vec<u8>,
    /// The key and the value decoded last, for what they have allocated.
    kept_key: Option<K>,
    kept: Option<V>,
}

impl<K: Record, V: Record> Table<K, V> {
    const KEY_BYTES: usize = match K::WIDTH {
        Some(bytes) => bytes,
        None => 0,
    };
    const VALUE_BYTES: usize = match V::WIDTH {
        Some(bytes) => bytes,
        None => 0,
    };
    const IS_FIXED: bool = K::WIDTH.is_some() && V::WIDTH.is_some();

    /// An empty table for a task's range of hashes.
    ///
    /// # Errors
    /// The pool is exhausted: even an empty table has a page.
    pub fn new(pool: &Pool, hasher: Hasher, range: HashRange) -> Result<Self, StateError> {
        Self::restore(pool, hasher, range, &[])
    }

    /// The table of a task, out of what the tasks of a snapshot have left; parts whose range does not meet `range` are
    /// left out. A single part of the same range is taken as it is, under its old page ids, and none of it is dirty; its
    /// pages may be absent, and are read and checked one by one when they are first touched. From any others the table is
    /// built anew, and everything is dirty.
    ///
    /// # Errors
    /// A part is corrupt, or of a table with other types or another hasher; or the pool is exhausted.
    pub fn restore(pool: &Pool, hasher: Hasher, range: HashRange, parts: &[Part<'_>]) -> Result<Self, StateError> {
        let layout = Layout::of(pool.page_bytes(), K::WIDTH, V::WIDTH);
        let empty = Buckets {
            pages: Pages::new(pool),
            directory: Directory::new(range, 1),
            layout,
            hasher,
            range,
            len: 0,
            buckets: 0,
            copy: Vec::new(),
        };
        Ok(Self {
            buckets: empty.restore(pool, K::WIDTH, V::WIDTH, parts)?,
            groups: match layout {
                Layout::Fixed { .. } => Shape::filling(pool.page_bytes(), Self::KEY_BYTES + Self::VALUE_BYTES).groups,
                Layout::Heap => 0,
            },
            key: Vec::new(),
            value: Vec::new(),
            kept_key: None,
            kept: None,
        })
    }

    /// Number of keys.
    pub fn len(&self) -> u64 {
        self.buckets.len
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the pages in use.
    pub fn bytes(&self) -> usize {
        self.buckets.pages.live() as usize * self.buckets.pages.page_bytes()
    }

    /// How often a page was copied because a frozen one was still in use.
    pub fn page_copies(&self) -> u64 {
        self.buckets.pages.copies()
    }

    /// The hashes that this table is for.
    pub fn range(&self) -> HashRange {
        self.buckets.range
    }

    /// The hash of a key.
    #[inline]
    pub fn hash(&mut self, key: &K) -> u64 {
        self.buckets.hasher.hash(key, &mut self.key)
    }

    /// The shape of all pages, its slot size known to the compiler.
    #[inline]
    fn shape(&self) -> Shape {
        Shape { groups: self.groups, slot_bytes: Self::KEY_BYTES + Self::VALUE_BYTES }
    }

    /// Asks the processor to fetch where a key of this hash is or will be.
    #[inline]
    fn prefetch(&self, hash: u64) {
        let bucket = self.buckets.directory.bucket_of(hash);
        let at = self.shape().home(hash);
        self.buckets.pages.prefetch(bucket, at);
        self.buckets.pages.prefetch(bucket, at + 64);
    }

    /// Asks the processor to fetch where the keys of a window are or will be, if the table is large.
    #[inline]
    pub fn prefetch_all<T>(&self, window: &Window<T>) {
        self.prefetch_hashes(window.hashes());
    }

    /// The same for keys of these hashes.
    #[inline]
    pub fn prefetch_hashes(&self, hashes: impl ExactSizeIterator<Item = u64>) {
        if self.groups == 0 {
            self.prefetch_heap(hashes);
        } else if self.bytes() > PREFETCH_ABOVE_BYTES {
            hashes.for_each(|hash| self.prefetch(hash));
        }
    }

    /// Changes the value of a key with `f`; the value is first made by `init` if there is none.
    ///
    /// # Errors
    /// The pool is exhausted, or the value that is there cannot be read: then the table has not changed.
    ///
    /// # Panics
    /// The hash is outside of the task's range. (If `f` panics, the table has not changed.)
    #[inline]
    pub fn update<R>(
        &mut self,
        hash: u64,
        key: &K,
        init: impl FnOnce() -> V,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<R, StateError> {
        self.with_encoded(key, |table, key| table.update_encoded(hash, key, init, f))
    }

    /// Runs `f` with the encoding of a key, which is on the stack if it is small and of a fixed layout.
    #[inline(always)]
    fn with_encoded<R>(&mut self, key: &K, f: impl FnOnce(&mut Self, &[u8]) -> R) -> R {
        if K::WIDTH.is_some() && Self::KEY_BYTES <= SMALL_KEY_BYTES {
            let mut bytes = [0; SMALL_KEY_BYTES];
            key.store(&mut bytes[..Self::KEY_BYTES]);
            return f(self, &bytes[..Self::KEY_BYTES]);
        }
        let mut bytes = std::mem::take(&mut self.key);
        bytes.clear();
        key.encode(&mut bytes);
        let result = f(self, &bytes);
        self.key = bytes;
        result
    }

    #[inline(always)]
    fn update_encoded<R>(
        &mut self,
        hash: u64,
        key: &[u8],
        init: impl FnOnce() -> V,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<R, StateError> {
        if Self::IS_FIXED && self.groups > 0 {
            self.update_fixed(hash, key, init, f)
        } else {
            self.update_heap(hash, key, init, f)
        }
    }

    #[inline(always)] // Else the compiler does not know how long `key` is, and calls memcmp.
    fn update_fixed<R>(
        &mut self,
        hash: u64,
        key: &[u8],
        init: impl FnOnce() -> V,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<R, StateError> {
        let shape = self.shape();
        let page = self.buckets.pages.write(self.buckets.directory.bucket_of(hash))?;
        if let Some(slot) = shape.find(page, hash, |slot| page[slot..slot + Self::KEY_BYTES] == key[..Self::KEY_BYTES])
        {
            let at = slot + Self::KEY_BYTES;
            return change(&mut page[at..at + Self::VALUE_BYTES], f);
        }
        self.update_elsewhere(hash, key, init, f)
    }

    /// The long way: further pages of a chain, long keys and values; and keys of a fixed layout that are absent.
    #[inline(never)]
    fn update_elsewhere<R>(
        &mut self,
        hash: u64,
        key: &[u8],
        init: impl FnOnce() -> V,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<R, StateError> {
        let place = self.buckets.locate(hash, key)?;
        let mut value = match place {
            Some(place) => {
                self.buckets.read_value(place, &mut self.value)?;
                decode(&mut self.kept, &mut self.value.as_slice())?
            }
            None => init(),
        };
        let result = f(&mut value);
        self.value.clear();
        value.encode(&mut self.value);
        self.kept = Some(value);
        self.buckets.put_at(place, hash, key, &self.value)?;
        Ok(result)
    }

    /// Takes in the records of a [`Window`], in order; [`Table::prefetch_all`] first makes it fast. The first record of a key
    /// becomes its value by `first`, further ones change it by `next`. After each record `seen` looks at the value, and `each`
    /// gets what it saw, along with what came with the record.
    ///
    /// # Errors
    /// As for [`Table::update`], or that of `each`, whose record's value has been changed already.
    ///
    /// # Panics
    /// As for [`Table::update`].
    #[inline]
    pub fn update_batch<'a, T, A, R, E: From<StateError>>(
        &mut self,
        records: impl Iterator<Item = (u64, &'a [u8], (T, A))>,
        first: impl Fn(T) -> V,
        next: impl Fn(&mut V, T),
        seen: impl Fn(&V) -> R,
        mut each: impl FnMut(A, R) -> Result<(), E>,
    ) -> Result<(), E> {
        for (hash, key, (record, along)) in records {
            // Either `first` takes the record or, if there is a value, `next`.
            let record = Cell::new(Some(record));
            let init = || first(record.take().expect("called once, and first"));
            let result = self.update_encoded(hash, key, init, |value| {
                if let Some(record) = record.take() {
                    next(value, record);
                }
                seen(value)
            })?;
            each(along, result)?;
        }
        Ok(())
    }

    /// Sets the value of a key. Says whether there was one.
    ///
    /// # Errors
    /// As for [`Table::update`].
    ///
    /// # Panics
    /// As for [`Table::update`].
    pub fn insert(&mut self, hash: u64, key: &K, value: V) -> Result<bool, StateError> {
        let before = self.len();
        // Either `init` takes the value, or there is one and `f` replaces it.
        let value = Cell::new(Some(value));
        let init = || value.take().expect("called once, and first");
        self.update(hash, key, init, |place| {
            if let Some(value) = value.take() {
                *place = value;
            }
        })?;
        Ok(self.len() == before)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The value cannot be read.
    ///
    /// # Panics
    /// As for [`Table::update`].
    pub fn get(&self, hash: u64, key: &K) -> Result<Option<V>, StateError> {
        let Some(place) = self.locate(hash, key)? else { return Ok(None) };
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
            let Some(place) = table.buckets.locate(hash, key)? else { return Ok(None) };
            let value = table.read(place)?;
            table.buckets.remove(hash, place)?;
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
            let Some(place) = table.buckets.locate(hash, key)? else { return Ok(false) };
            table.buckets.remove(hash, place)?;
            Ok(true)
        })
    }

    fn locate(&self, hash: u64, key: &K) -> Result<Option<Place>, StateError> {
        if K::WIDTH.is_some() && Self::KEY_BYTES <= SMALL_KEY_BYTES {
            let mut bytes = [0; SMALL_KEY_BYTES];
            key.store(&mut bytes[..Self::KEY_BYTES]);
            return self.buckets.locate(hash, &bytes[..Self::KEY_BYTES]);
        }
        let mut bytes = Vec::with_capacity(Self::KEY_BYTES);
        key.encode(&mut bytes);
        self.buckets.locate(hash, &bytes)
    }

    fn read(&self, place: Place) -> Result<V, StateError> {
        let entry = self.buckets.entry(place)?;
        if entry.flags & VALUE_LONG == 0 {
            return Ok(V::decode(&mut { entry.value })?);
        }
        let mut bytes = Vec::new();
        self.buckets.read_value(place, &mut bytes)?;
        Ok(V::decode(&mut bytes.as_slice())?)
    }
}

/// Changes a value of a fixed layout where it lies.
#[inline(always)]
fn change<V: Record, R>(bytes: &mut [u8], f: impl FnOnce(&mut V) -> R) -> Result<R, StateError> {
    let mut value = V::load(bytes)?;
    let result = f(&mut value);
    value.store(bytes);
    Ok(result)
}

/// Decodes a key or a value, over the one that was kept.
#[inline]
fn decode<V: Record>(kept: &mut Option<V>, input: &mut Input<'_>) -> Result<V, StateError> {
    match kept.take() {
        Some(mut value) => {
            value.decode_into(input)?;
            Ok(value)
        }
        None => Ok(V::decode(input)?),
    }
}
