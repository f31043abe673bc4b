//! Records on their way into a table. Their keys lie encoded in memory that is used again and again: each in a place of its own
//! if it has a fixed layout or is short, else one behind the other. A key is neither cloned nor encoded twice, and the table
//! finds it by its bytes. It knows no table.

use super::Hasher;
use crate::record::{Padded, Record};
use std::iter::FusedIterator;
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
    /// The first such key whose hash is not known yet, if there is one.
    unhashed: Option<usize>,
    /// All that is encoded is of records that are out.
    is_drained: bool,
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
#[derive(Clone, Copy)]
enum Place {
    /// Here.
    Short(Padded),
    /// With others, from here to there.
    Long(usize, usize),
}

impl Place {
    #[inline(always)]
    fn bytes<'a>(&'a self, encoded: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Short(short) => short.bytes(),
            Self::Long(start, end) => &encoded[*start..*end],
        }
    }
}

/// The encoding of a key without fixed layout.
#[derive(Clone, Copy)]
pub enum Encoding<'a> {
    /// In registers.
    Short(Padded),
    /// In memory.
    Long(&'a [u8]),
}

impl<K: Record, T> Window<K, T> {
    /// An empty window, with memory for so many records.
    pub fn new(hasher: Hasher, records: usize) -> Self {
        let (keys, places, encoded) = (Vec::new(), Vec::new(), Vec::new());
        Self { keys, places, encoded, records: Vec::with_capacity(records), hasher, unhashed: None, is_drained: false }
    }

    /// Takes in the key of the record that [`Window::push`] adds next.
    #[inline]
    pub fn key(&mut self, key: &K) {
        let number = self.records.len();
        let Some(entered) = self.keys.get_mut(number) else { return self.key_in_more_room(key) };
        if K::WIDTH.is_some() {
            key.to_mirror(&mut entered.fixed);
            entered.hash = self.hasher.hash_bytes(entered.fixed.as_bytes());
        } else if let Some(short) = key.short() {
            entered.hash = self.hasher.hash_short(short);
            self.places[number] = Place::Short(short.padded());
        } else {
            self.long_key(key);
        }
    }

    #[cold]
    #[inline(never)]
    fn key_in_more_room(&mut self, key: &K) {
        let room = (self.records.len() + 1).next_power_of_two();
        self.keys.resize_with(room, || Key { hash: 0, fixed: K::Mirror::new_zeroed() });
        if K::WIDTH.is_none() {
            self.places.resize(room, Place::Long(0, 0));
        }
        self.key(key);
    }

    #[inline(never)]
    fn long_key(&mut self, key: &K) {
        let number = self.records.len();
        self.unhashed.get_or_insert(number);
        if std::mem::take(&mut self.is_drained) {
            self.encoded.clear();
        }
        let start = self.encoded.len();
        key.encode(&mut self.encoded);
        self.places[number] = Place::Long(start, self.encoded.len());
    }

    /// Hashes the keys that have no fixed layout and are not short. Not as they come: what has been written byte by byte cannot
    /// be read by whole words at once, and the processor would wait.
    #[inline]
    fn hash(&mut self) {
        if let Some(first) = self.unhashed.take() {
            self.hash_from(first);
        }
    }

    #[inline(never)]
    fn hash_from(&mut self, first: usize) {
        // With the one that may have been entered and has no record yet. If it has not, there is what an earlier window has left.
        let all = self.records.len() - first + 1;
        for (key, place) in self.keys[first..].iter_mut().zip(&self.places[first..]).take(all) {
            if let Place::Long(start, end) = *place {
                key.hash = self.encoded.get(start..end).map_or(0, |key| self.hasher.hash_bytes(key));
            }
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
        self.is_drained = true;
        let keys = &self.keys[..self.records.len()];
        Drained { keys, places: &self.places, encoded: &self.encoded, next: 0, records: self.records.drain(..) }
    }
}

/// Records that can be looked at before they come: so that their places in memory are fetched while others are worked on.
pub trait Ahead: Iterator<Item = (u64, Self::Key, Self::Record)> {
    /// The encoding of a key.
    type Key;
    /// What comes with it.
    type Record;

    /// The hashes of the records that are to come, in order, as far as they are known.
    fn hashes(&self) -> impl Iterator<Item = u64>;

    /// The encoding of the next key, if it has no fixed layout and is known.
    #[inline(always)]
    fn encoding(&self) -> Option<Encoding<'_>> {
        None
    }

    /// The next record alone.
    #[inline(always)]
    fn next_record(&mut self) -> Option<Self::Record> {
        self.next().map(|(.., record)| record)
    }
}

/// One alone has none behind it.
impl<A, R> Ahead for std::iter::Once<(u64, A, R)> {
    type Key = A;
    type Record = R;

    #[inline]
    fn hashes(&self) -> impl Iterator<Item = u64> {
        std::iter::empty()
    }
}

/// What [`Window::drain`] takes out.
pub struct Drained<'a, K: Record, T> {
    keys: &'a [Key<K::Mirror>],
    places: &'a [Place],
    encoded: &'a [u8],
    /// So many are out.
    next: usize,
    records: Drain<'a, T>,
}

impl<'a, K: Record, T> Iterator for Drained<'a, K, T> {
    type Item = (u64, &'a [u8], T);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Key { hash, fixed } = self.keys.get(self.next)?;
        let record = self.records.next()?;
        let number = self.next;
        self.next += 1;
        if K::WIDTH.is_some() {
            return Some((*hash, fixed.as_bytes(), record));
        }
        Some((*hash, self.places[number].bytes(self.encoded), record))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

impl<'a, K: Record, T> Ahead for Drained<'a, K, T> {
    type Key = &'a [u8];
    type Record = T;

    #[inline]
    fn hashes(&self) -> impl Iterator<Item = u64> {
        self.keys[self.next..].iter().map(|key| key.hash)
    }

    #[inline(always)]
    fn encoding(&self) -> Option<Encoding<'_>> {
        if K::WIDTH.is_some() {
            return None;
        }
        Some(match self.places.get(self.next)? {
            Place::Short(short) => Encoding::Short(*short),
            Place::Long(start, end) => Encoding::Long(&self.encoded[*start..*end]),
        })
    }

    #[inline(always)]
    fn next_record(&mut self) -> Option<T> {
        let record = self.records.next()?;
        self.next += 1;
        Some(record)
    }
}

impl<K: Record, T> ExactSizeIterator for Drained<'_, K, T> {}
impl<K: Record, T> FusedIterator for Drained<'_, K, T> {}
