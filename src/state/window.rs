//! Records on their way into a table. Their keys lie encoded one behind the other, in memory that is used again and again:
//! a key is neither cloned nor encoded twice, and the table finds it by its bytes. It knows no table.

use super::Hasher;
use crate::record::Record;
use std::iter::FusedIterator;
use std::vec::Drain;

/// Records with their keys' hashes and encodings, looked up together ([`super::Table::prefetch_all`]); 64 are a good number.
pub struct Window<T> {
    /// Encodings of the keys, in order.
    keys: Vec<u8>,
    /// Hash, end of the key's encoding, and what goes with it.
    records: Vec<(u64, usize, T)>,
}

impl<T> Window<T> {
    /// An empty window, with memory for so many records.
    pub fn with_capacity(records: usize) -> Self {
        Self { keys: Vec::new(), records: Vec::with_capacity(records) }
    }

    /// Takes in the key of the record that [`Window::push`] adds next, and says its hash.
    #[inline]
    pub fn key<K: Record>(&mut self, hasher: &Hasher, key: &K) -> u64 {
        let start = self.records.last().map_or(0, |&(_, end, _)| end);
        // What an earlier window has left, or a key whose record never came.
        self.keys.truncate(start);
        key.encode(&mut self.keys);
        hasher.hash_bytes(&self.keys[start..])
    }

    /// Adds a record to the key and the hash that [`Window::key`] has taken in and said.
    #[inline]
    pub fn push(&mut self, hash: u64, record: T) {
        self.records.push((hash, self.keys.len(), record));
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
    pub fn drain(&mut self) -> Drained<'_, T> {
        Drained { keys: &self.keys, start: 0, records: self.records.drain(..) }
    }
}

/// What [`Window::drain`] takes out.
pub struct Drained<'a, T> {
    keys: &'a [u8],
    start: usize,
    records: Drain<'a, (u64, usize, T)>,
}

impl<'a, T> Iterator for Drained<'a, T> {
    type Item = (u64, &'a [u8], T);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (hash, end, record) = self.records.next()?;
        let key = &self.keys[self.start..end];
        self.start = end;
        Some((hash, key, record))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

impl<T> ExactSizeIterator for Drained<'_, T> {}
impl<T> FusedIterator for Drained<'_, T> {}
