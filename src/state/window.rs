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
    pub fn with_capacity(records: usize) -> Self {
        Self { keys: Vec::new(), encoded: Vec::new(), records: Vec::with_capacity(records) }
    }

    /// Takes in the key of the record that [`Window::push`] adds next, and says its hash.
    #[inline]
    pub fn key(&mut self, hasher: &Hasher, key: &K) -> u64 {
        let number = self.records.len();
        let start = if K::WIDTH.is_some() || number == 0 { 0 } else { self.keys[number - 1].end };
        let Some(place) = self.keys.get_mut(number) else { return self.key_in_more_room(hasher, key) };
        if K::WIDTH.is_some() {
            key.to_mirror(&mut place.fixed);
            place.hash = hasher.hash_bytes(place.fixed.as_bytes());
        } else {
            // What an earlier window has left, or a key whose record never came.
            self.encoded.truncate(start);
            key.encode(&mut self.encoded);
            place.end = self.encoded.len();
            place.hash = hasher.hash_bytes(&self.encoded[start..]);
        }
        place.hash
    }

    #[cold]
    #[inline(never)]
    fn key_in_more_room(&mut self, hasher: &Hasher, key: &K) -> u64 {
        let empty = || Key { hash: 0, fixed: K::Mirror::new_zeroed(), end: 0 };
        self.keys.resize_with((self.records.len() + 1).next_power_of_two(), empty);
        self.key(hasher, key)
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
    pub fn hashes(&self) -> impl ExactSizeIterator<Item = u64> + Clone {
        self.keys[..self.records.len()].iter().map(|key| key.hash)
    }

    /// Takes them out in order: hash, encoding of the key, and record.
    #[inline]
    pub fn drain(&mut self) -> Drained<'_, K, T> {
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
