//! Records on their way into a table. Their keys lie encoded one behind the other, in memory that is used again and again:
//! a key is neither cloned nor encoded twice, and the table finds it by its bytes. It knows no table.

use super::Hasher;
use crate::record::Record;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::vec::Drain;

/// Records with their keys' hashes and encodings, looked up together ([`super::Table::update_batch`]); 64 are a good number.
pub struct Window<K, T> {
    /// Encodings of the keys, in order. Those of a fixed layout stand where their number says, and there may be room behind.
    keys: Vec<u8>,
    /// Hash, end of the key's encoding, and what goes with it.
    records: Vec<(u64, usize, T)>,
    of: PhantomData<fn(&K)>,
}

impl<K: Record, T> Window<K, T> {
    /// An empty window, with memory for so many records.
    pub fn with_capacity(records: usize) -> Self {
        Self { keys: Vec::new(), records: Vec::with_capacity(records), of: PhantomData }
    }

    /// Takes in the key of the record that [`Window::push`] adds next, and says its hash.
    #[inline]
    pub fn key(&mut self, hasher: &Hasher, key: &K) -> u64 {
        if let Some(width) = K::WIDTH {
            let start = self.records.len() * width;
            if self.keys.len() < start + width {
                self.keys.resize((start + width).next_power_of_two(), 0);
            }
            let bytes = &mut self.keys[start..start + width];
            key.store(bytes);
            return hasher.hash_bytes(bytes);
        }
        let start = self.records.last().map_or(0, |&(_, end, _)| end);
        // What an earlier window has left, or a key whose record never came.
        self.keys.truncate(start);
        key.encode(&mut self.keys);
        hasher.hash_bytes(&self.keys[start..])
    }

    /// Adds a record to the key and the hash that [`Window::key`] has taken in and said.
    #[inline]
    pub fn push(&mut self, hash: u64, record: T) {
        let end = K::WIDTH.map_or(self.keys.len(), |width| (self.records.len() + 1) * width);
        self.records.push((hash, end, record));
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
    pub fn hashes(&self) -> impl ExactSizeIterator<Item = u64> {
        self.records.iter().map(|&(hash, ..)| hash)
    }

    /// Takes them out in order: hash, encoding of the key, and record.
    #[inline]
    pub fn drain(&mut self) -> Drained<'_, K, T> {
        Drained { keys: &self.keys, start: 0, records: self.records.drain(..), of: PhantomData }
    }
}

/// Records that can be looked at before they come: so that their places in memory are fetched while others are worked on.
pub trait Ahead: Iterator {
    /// The hash of the record that comes after so many others.
    fn hash_ahead(&self, records: usize) -> Option<u64>;
}

/// One alone has none behind it.
impl<R> Ahead for std::iter::Once<R> {
    #[inline]
    fn hash_ahead(&self, _: usize) -> Option<u64> {
        None
    }
}

/// What [`Window::drain`] takes out.
pub struct Drained<'a, K, T> {
    keys: &'a [u8],
    /// Where the next key begins.
    start: usize,
    records: Drain<'a, (u64, usize, T)>,
    of: PhantomData<fn(&K)>,
}

impl<'a, K: Record, T> Iterator for Drained<'a, K, T> {
    type Item = (u64, &'a [u8], T);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (hash, end, record) = self.records.next()?;
        // The same, but the compiler knows how long the key is.
        let end = K::WIDTH.map_or(end, |width| self.start + width);
        let key = &self.keys[self.start..end];
        self.start = end;
        Some((hash, key, record))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

impl<K: Record, T> Ahead for Drained<'_, K, T> {
    #[inline]
    fn hash_ahead(&self, records: usize) -> Option<u64> {
        self.records.as_slice().get(records).map(|&(hash, ..)| hash)
    }
}

impl<K: Record, T> ExactSizeIterator for Drained<'_, K, T> {}
impl<K: Record, T> FusedIterator for Drained<'_, K, T> {}
