//! Records on their way into a table. Their keys lie encoded one behind the other, in memory that is used again and again:
//! a key is neither cloned nor encoded twice, and the table finds it by its bytes. It knows no table.

use super::Hasher;
use crate::record::Record;
use std::iter::FusedIterator;
use std::slice;
use std::vec::Drain;
use zerocopy::{FromZeros, IntoBytes};

/// Records with their keys' hashes and encodings, looked up together ([`super::Table::update_batch`]); 64 are a good number.
pub struct Window<K: Record, T> {
    /// One for each record, in order. There may be further ones, of no meaning.
    keys: Vec<Key<K::Mirror>>,
    /// Encodings of keys without a fixed layout, one behind the other.
    encoded: Vec<u8>,
    records: Vec<T>,
    hasher: Hasher,
    /// Of so many keys the hash is known; of keys of a fixed layout it is always.
    hashed: usize,
}

/// The encoding of a key of a fixed layout.
#[inline(always)]
pub fn mirror_of<K: Record>(key: &K) -> K::Mirror {
    let mut mirror = K::Mirror::new_zeroed();
    key.to_mirror(&mut mirror);
    mirror
}

/// A record's key.
struct Key<M> {
    hash: u64,
    /// The encoding, if it has a fixed layout.
    fixed: M,
    /// Else, where that ends.
    end: usize,
}

impl<K: Record, T> Window<K, T> {
    /// An empty window, with memory for so many records.
    pub fn new(hasher: Hasher, records: usize) -> Self {
        Self { keys: Vec::new(), encoded: Vec::new(), records: Vec::with_capacity(records), hasher, hashed: 0 }
    }

    /// Takes in the key of the record that [`Window::push`] adds next.
    #[inline]
    pub fn key(&mut self, key: &K) {
        let number = self.records.len();
        let start = self.end_of(number);
        let Some(place) = self.keys.get_mut(number) else { return self.key_in_more_room(key) };
        if K::WIDTH.is_some() {
            key.to_mirror(&mut place.fixed);
            place.hash = self.hasher.hash_bytes(place.fixed.as_bytes());
        } else {
            // What an earlier window has left, or a key whose record never came.
            self.encoded.truncate(start);
            key.encode(&mut self.encoded);
            place.end = self.encoded.len();
        }
    }

    #[cold]
    #[inline(never)]
    fn key_in_more_room(&mut self, key: &K) {
        let empty = || Key { hash: 0, fixed: K::Mirror::new_zeroed(), end: 0 };
        self.keys.resize_with((self.records.len() + 1).next_power_of_two(), empty);
        self.key(key);
    }

    /// Where the encodings of the first so many keys end, if they have no fixed layout.
    #[inline]
    fn end_of(&self, keys: usize) -> usize {
        if K::WIDTH.is_some() || keys == 0 { 0 } else { self.keys[keys - 1].end }
    }

    /// Hashes the keys that have no fixed layout. Not as they come: what has been written byte by byte cannot be read by whole
    /// words at once, and the processor would wait.
    #[inline]
    fn hash(&mut self) {
        if K::WIDTH.is_some() {
            return;
        }
        let (mut start, from, to) = (self.end_of(self.hashed), self.hashed, self.records.len());
        for key in &mut self.keys[from..to] {
            key.hash = self.hasher.hash_bytes(&self.encoded[start..key.end]);
            start = key.end;
        }
        self.hashed = to;
    }

    /// Adds a record to the key that [`Window::key`] has taken in.
    #[inline]
    pub fn push(&mut self, record: T) {
        self.records.push(record);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The hashes, in order.
    #[inline]
    pub fn hashes(&mut self) -> impl ExactSizeIterator<Item = u64> + Clone {
        self.hash();
        self.keys[..self.records.len()].iter().map(|key| key.hash)
    }

    /// Takes them out in order: hash, encoding of the key, and record.
    #[inline]
    pub fn drain(&mut self) -> Drained<'_, K, T> {
        self.hash();
        self.hashed = 0;
        let keys = self.keys[..self.records.len()].iter();
        Drained { keys, encoded: &self.encoded, start: 0, records: self.records.drain(..) }
    }
}

/// Records that can be looked at before they come: so that their places in memory are fetched while others are worked on.
pub trait Ahead: Iterator {
    /// The hashes of the records that are to come, in order.
    fn hashes(&self) -> impl Iterator<Item = u64>;
}

/// One alone has none behind it.
impl<R> Ahead for std::iter::Once<R> {
    #[inline]
    fn hashes(&self) -> impl Iterator<Item = u64> {
        std::iter::empty()
    }
}

/// What [`Window::drain`] takes out.
pub struct Drained<'a, K: Record, T> {
    keys: slice::Iter<'a, Key<K::Mirror>>,
    encoded: &'a [u8],
    /// Where the next key begins.
    start: usize,
    records: Drain<'a, T>,
}

impl<'a, K: Record, T> Iterator for Drained<'a, K, T> {
    type Item = (u64, &'a [u8], T);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Key { hash, fixed, end } = self.keys.next()?;
        let record = self.records.next()?;
        if K::WIDTH.is_some() {
            return Some((*hash, fixed.as_bytes(), record));
        }
        let key = &self.encoded[self.start..*end];
        self.start = *end;
        Some((*hash, key, record))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

impl<K: Record, T> Ahead for Drained<'_, K, T> {
    #[inline]
    fn hashes(&self) -> impl Iterator<Item = u64> {
        self.keys.as_slice().iter().map(|key| key.hash)
    }
}

impl<K: Record, T> ExactSizeIterator for Drained<'_, K, T> {}
impl<K: Record, T> FusedIterator for Drained<'_, K, T> {}
