//! Records on their way into a table. Their keys lie encoded in memory that is used again and again: each in a place of its own
//! if it has a fixed layout or is short, else one behind the other. A key is neither cloned nor encoded twice, and the table
//! finds it by its bytes. It knows no table.

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
    /// As many, where keys have no fixed layout.
    places: Vec<Place>,
    /// Encodings of such keys that are not short, one behind the other.
    encoded: Vec<u8>,
    records: Vec<T>,
    hasher: Hasher,
    /// Of the keys from this one on the hash may not be known yet, if they have no fixed layout and are not short.
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
}

/// Where the encoding of a key without fixed layout is.
#[derive(Clone, Copy, Default)]
struct Place {
    /// A short one.
    short: [u8; 16],
    /// 0: it is not short.
    short_len: usize,
    /// Where those end that are not short, up to this one.
    end: usize,
}

impl Place {
    /// The encoding, if those in front of it end at `start`.
    #[inline(always)]
    fn bytes<'a>(&'a self, encoded: &'a [u8], start: usize) -> &'a [u8] {
        if self.short_len > 0 { &self.short[..self.short_len] } else { &encoded[start..self.end] }
    }
}

impl<K: Record, T> Window<K, T> {
    /// An empty window, with memory for so many records.
    pub fn new(hasher: Hasher, records: usize) -> Self {
        let (keys, places, encoded) = (Vec::new(), Vec::new(), Vec::new());
        Self { keys, places, encoded, records: Vec::with_capacity(records), hasher, hashed: 0 }
    }

    /// Takes in the key of the record that [`Window::push`] adds next.
    #[inline]
    pub fn key(&mut self, key: &K) {
        let number = self.records.len();
        let start = self.end_of(number);
        let Some(entered) = self.keys.get_mut(number) else { return self.key_in_more_room(key) };
        if K::WIDTH.is_some() {
            key.to_mirror(&mut entered.fixed);
            entered.hash = self.hasher.hash_bytes(entered.fixed.as_bytes());
        } else if let Some(short) = key.short() {
            entered.hash = self.hasher.hash_short(short);
            self.places[number] = Place { short: short.bytes(), short_len: short.len(), end: start };
        } else {
            // What an earlier window has left, or a key whose record never came.
            self.encoded.truncate(start);
            key.encode(&mut self.encoded);
            self.places[number] = Place { end: self.encoded.len(), ..Place::default() };
        }
    }

    #[cold]
    #[inline(never)]
    fn key_in_more_room(&mut self, key: &K) {
        let room = (self.records.len() + 1).next_power_of_two();
        self.keys.resize_with(room, || Key { hash: 0, fixed: K::Mirror::new_zeroed() });
        if K::WIDTH.is_none() {
            self.places.resize(room, Place::default());
        }
        self.key(key);
    }

    /// Where the encodings of the first so many keys end, of those without a fixed layout that are not short.
    #[inline]
    fn end_of(&self, keys: usize) -> usize {
        if K::WIDTH.is_some() || keys == 0 { 0 } else { self.places[keys - 1].end }
    }

    /// Hashes the keys that have no fixed layout and are not short. Not as they come: what has been written byte by byte cannot
    /// be read by whole words at once, and the processor would wait.
    #[inline]
    fn hash(&mut self) {
        if K::WIDTH.is_some() {
            return;
        }
        let (mut start, from, to) = (self.end_of(self.hashed), self.hashed, self.records.len());
        self.hashed = to;
        if self.end_of(to) == start {
            return;
        }
        for (key, place) in self.keys[from..to].iter_mut().zip(&self.places[from..to]) {
            if place.short_len == 0 {
                key.hash = self.hasher.hash_bytes(&self.encoded[start..place.end]);
            }
            start = place.end;
        }
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
        Drained { keys, places: self.places.iter(), encoded: &self.encoded, start: 0, records: self.records.drain(..) }
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
    places: slice::Iter<'a, Place>,
    encoded: &'a [u8],
    /// Where the next key begins.
    start: usize,
    records: Drain<'a, T>,
}

impl<'a, K: Record, T> Iterator for Drained<'a, K, T> {
    type Item = (u64, &'a [u8], T);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Key { hash, fixed } = self.keys.next()?;
        let record = self.records.next()?;
        if K::WIDTH.is_some() {
            return Some((*hash, fixed.as_bytes(), record));
        }
        let place = self.places.next()?;
        let key = place.bytes(self.encoded, self.start);
        self.start = place.end;
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
