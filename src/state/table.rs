//! The keyed table with its types: what operators see. The ways that every record takes are short and monomorphic; all
//! else is done by [`super::buckets`] on encoded bytes.

mod fixed;
mod heap;
mod look;
mod modify;
mod near;
mod straight;

use super::buckets::Buckets;
use super::directory::Directory;
use super::groups::Shape;
use super::hash::SMALL_KEY_BYTES;
use super::layout::Layout;
use super::restore::Part;
use super::room::Scratch;
use super::{Ahead, HashRange, Hasher, StateError};
use crate::page::{Pages, Pool};
use crate::record::{Input, Record};

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
            moves: 0,
            scratch: Scratch::default(),
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
        self.buckets.bytes()
    }

    /// How often a page was copied because a frozen one was still in use.
    pub fn page_copies(&self) -> u64 {
        self.buckets.pages.copies()
    }

    /// The hashes that this table is for.
    pub fn range(&self) -> HashRange {
        self.buckets.range
    }

    /// Whether keys and values lie in slots: a slot may be too large for a page.
    #[inline(always)]
    fn is_fixed(&self) -> bool {
        Self::IS_FIXED && self.groups > 0
    }

    /// The hash of a key.
    #[inline]
    pub fn hash(&mut self, key: &K) -> u64 {
        self.buckets.hasher.hash(key, &mut self.key)
    }

    /// Asks the processor to fetch where keys of these hashes are or will be, if the table is large. What takes in records by
    /// batches does that itself.
    #[inline]
    pub fn prefetch_hashes(&self, hashes: impl Iterator<Item = u64> + Clone) {
        if !self.is_fixed() {
            self.prefetch_heap(hashes);
        } else if !self.buckets.is_near() {
            hashes.clone().for_each(|hash| self.prefetch_fixed(hash));
            if const { Self::IS_LONG } {
                hashes.for_each(|hash| self.prefetch_slot(hash));
            }
        }
    }

    /// Gives the records of a batch to `each`, in order, if the layout is fixed. In front of each step the places of later keys are
    /// fetched, one by one or by a few. A small table takes all in one step, so that nothing else is in the innermost loop.
    #[inline(always)]
    fn step_by_step<I: Ahead, E>(
        &mut self,
        mut records: I,
        mut each: impl FnMut(&mut Self, I::Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_far = !self.buckets.is_near();
        let step = if is_far { Self::STEP } else { usize::MAX };
        if is_far {
            self.prefetch_first(&records);
        }
        loop {
            if is_far {
                self.prefetch_step(&records);
            }
            for _ in 0..step {
                let Some(record) = records.next() else { return Ok(()) };
                each(self, record)?;
            }
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
    pub fn update<R, F: FnOnce(&mut V) -> R>(
        &mut self,
        hash: u64,
        key: &K,
        init: impl FnOnce() -> V,
        f: F,
    ) -> Result<R, StateError> {
        let first = |f: F| {
            let mut value = init();
            let result = f(&mut value);
            (value, result)
        };
        self.with_encoded(key, |table, key| table.upsert(hash, key, f, first, |value, f| f(value)))
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

    /// The one way behind all that change a value: the first record of a key makes it, `next` changes one that is there.
    #[inline(always)]
    fn upsert<T, R>(
        &mut self,
        hash: u64,
        key: &[u8],
        record: T,
        first: impl FnOnce(T) -> (V, R),
        next: impl FnOnce(&mut V, T) -> R,
    ) -> Result<R, StateError> {
        if self.is_fixed() {
            self.upsert_fixed(hash, key, record, first, next)
        } else {
            self.upsert_heap(hash, key, None, record, first, next)
        }
    }

    /// The long way: further pages of a chain, long keys and values.
    #[cold]
    #[inline(never)]
    fn upsert_elsewhere<T, R>(
        &mut self,
        hash: u64,
        key: &[u8],
        record: T,
        first: impl FnOnce(T) -> (V, R),
        next: impl FnOnce(&mut V, T) -> R,
    ) -> Result<R, StateError> {
        let place = self.buckets.locate(hash, key)?;
        let (value, result) = match place {
            Some(place) => {
                self.buckets.read_value(place, &mut self.value)?;
                let mut value = decode(&mut self.kept, &mut self.value.as_slice())?;
                let result = next(&mut value, record);
                (value, result)
            }
            None => first(record),
        };
        self.value.clear();
        value.encode(&mut self.value);
        self.kept = Some(value);
        self.buckets.put_at(place, hash, key, &self.value)?;
        Ok(result)
    }

    /// Takes in the records of a [`Window`](super::Window), in order. The first record of a key becomes its value by `first`,
    /// further ones change it by `next`. After each record `seen` looks at the value, and `each` gets what it saw, along with
    /// what came with the record.
    ///
    /// # Errors
    /// As for [`Table::update`], or that of `each`, whose record's value has been changed already.
    ///
    /// # Panics
    /// As for [`Table::update`].
    #[inline]
    pub fn update_batch<'a, T, A, R, E: From<StateError>>(
        &mut self,
        records: impl Ahead<Key = &'a [u8], Record = (T, A)>,
        first: impl Fn(T) -> V,
        next: impl Fn(&mut V, T),
        seen: impl Fn(&V) -> R,
        mut each: impl FnMut(A, R) -> Result<(), E>,
    ) -> Result<(), E> {
        let (first, next) = (first_seen(&first, &seen), next_seen(&next, &seen));
        if self.is_fixed() {
            return self.step_by_step(records, |table, (hash, key, (record, along))| {
                each(along, table.upsert_fixed(hash, key, record, first, next)?)
            });
        }
        if self.is_near_heap() {
            return self.update_near(records, first, next, each);
        }
        self.spot_by_spot(records, |table, spot, (hash, key, (record, along))| {
            each(along, table.upsert_heap(hash, key, spot, record, first, next)?)
        })
    }

    /// Sets the value of a key. Says whether there was one.
    ///
    /// # Errors
    /// As for [`Table::update`].
    ///
    /// # Panics
    /// As for [`Table::update`].
    pub fn insert(&mut self, hash: u64, key: &K, value: V) -> Result<bool, StateError> {
        let next = |place: &mut V, value| {
            *place = value;
            true
        };
        self.with_encoded(key, |table, key| table.upsert(hash, key, value, |value| (value, false), next))
    }
}

/// What makes a value, and then looks at it.
#[inline(always)]
fn first_seen<T, V, R>(first: &impl Fn(T) -> V, seen: &impl Fn(&V) -> R) -> impl Fn(T) -> (V, R) + Copy {
    move |record| {
        let value = first(record);
        let result = seen(&value);
        (value, result)
    }
}

/// What changes a value, and then looks at it.
#[inline(always)]
fn next_seen<T, V, R>(next: &impl Fn(&mut V, T), seen: &impl Fn(&V) -> R) -> impl Fn(&mut V, T) -> R + Copy {
    move |value, record| {
        next(value, record);
        seen(value)
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
