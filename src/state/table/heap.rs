//! The way of every record whose key or value has a variable length. A key is found by its bytes, a value of fixed width is
//! changed where it lies, another one in memory that is kept; whatever needs more than one page goes the long way.

use super::{Table, change, decode};
use crate::page::fetch_ahead;
use crate::record::Record;
use crate::state::entry::{Spot, VALUE_LONG, find_at};
use crate::state::head::next_of;
use crate::state::layout::Layout;
use crate::state::{Ahead, StateError};

/// Above this many pages their headers are not in the cache either.
const HEADERS_ABOVE: u32 = 4096;
/// Keys that are fetched in step.
pub(super) const STEP: usize = 64;

/// The spots of keys that are looked up in step.
pub(super) struct Spots([Option<Spot>; STEP]);

impl Spots {
    /// Fills as many as there are, and says how many.
    #[inline(always)]
    fn fill<T>(&mut self, from: &mut impl Iterator<Item = T>, spot: impl Fn(T) -> Option<Spot>) -> usize {
        let mut len = 0;
        for (place, from) in self.0.iter_mut().zip(from) {
            *place = spot(from);
            len += 1;
        }
        len
    }
}

/// The first spot of a hash in its group, and the processor is asked for the entry: a word and its number may take two lines.
#[inline(always)]
fn fetched(page: &[u8], home: usize, hash: u64) -> Option<Spot> {
    Spot::first(page, home, hash).inspect(|spot| {
        fetch_ahead(page, spot.at);
        fetch_ahead(page, spot.at + 32);
    })
}

impl<K: Record, V: Record> Table<K, V> {
    /// Says where the entries of the next keys may be, and asks the processor to fetch them. In stages, each for all of these
    /// keys: what one stage waits for says where the next has to look, and other keys do not wait meanwhile.
    fn look_ahead(&self, mut hashes: impl Iterator<Item = u64>, spots: &mut Spots) -> usize {
        let (pages, directory) = (&self.buckets.pages, &self.buckets.directory);
        if self.buckets.is_near() {
            return spots.fill(&mut hashes, |hash| {
                let page = pages.here(directory.bucket_of(hash))?;
                fetched(page, Layout::Heap.shape_of(page).home(hash), hash)
            });
        }
        let are_headers_far = pages.live() > HEADERS_ABOVE;
        let mut step: [(u64, usize, &[u8]); STEP] = [(0, 0, &[]); STEP];
        let mut len = 0;
        for (place, hash) in step.iter_mut().zip(&mut hashes) {
            // A page that cannot be read is met again, and told of, by the update.
            let page = pages.read(directory.bucket_of(hash)).unwrap_or_default();
            if are_headers_far {
                fetch_ahead(page, 0);
            }
            *place = (hash, 0, page);
            len += 1;
        }
        for (hash, home, page) in step[..len].iter_mut().filter(|(.., page)| !page.is_empty()) {
            *home = Layout::Heap.shape_of(page).home(*hash);
            fetch_ahead(page, *home);
        }
        spots.fill(
            &mut step[..len].iter(),
            |&(hash, home, page)| {
                if page.is_empty() { None } else { fetched(page, home, hash) }
            },
        )
    }

    /// Asks for the entries of keys, and does not say where they are.
    pub(super) fn prefetch_heap(&self, mut hashes: impl Iterator<Item = u64>) {
        let mut spots = Spots([None; STEP]);
        while !self.buckets.is_near() && self.look_ahead(&mut hashes, &mut spots) == STEP {}
    }

    /// Gives the records of a batch to `each`, in order, with the spots of their keys.
    #[inline(always)]
    pub(super) fn spot_by_spot<I: Ahead, E>(
        &mut self,
        mut records: I,
        mut each: impl FnMut(&mut Self, Option<Spot>, I::Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut spots = Spots([None; STEP]);
        loop {
            let len = self.look_ahead(records.hashes(), &mut spots);
            let moves = self.buckets.moves;
            for index in 0..STEP {
                let Some(record) = records.next() else { return Ok(()) };
                let is_true = index < len && self.buckets.moves == moves;
                each(self, if is_true { spots.0[index] } else { None }, record)?;
            }
        }
    }

    /// [`Table::upsert`] in the heap's layout.
    #[inline]
    pub(super) fn upsert_heap<T, R>(
        &mut self,
        hash: u64,
        key: &[u8],
        spot: Option<Spot>,
        record: T,
        first: impl FnOnce(T) -> (V, R),
        next: impl FnOnce(&mut V, T) -> R,
    ) -> Result<R, StateError> {
        if key.len() > self.buckets.key_bytes_max() {
            return self.upsert_elsewhere(hash, key, record, first, next);
        }
        let bucket = self.buckets.directory.bucket_of(hash);
        let page = self.buckets.pages.write(bucket)?;
        let found = find_at(page, spot, hash, key);
        let Some(found) = found else {
            return match next_of(page) {
                Some(_) => self.upsert_elsewhere(hash, key, record, first, next),
                None => self.add_new(hash, key, first(record)),
            };
        };
        // A value of another width is a damaged one.
        if found.sizes.flags & VALUE_LONG != 0 || V::WIDTH.is_some_and(|width| width != found.sizes.value) {
            return self.upsert_elsewhere(hash, key, record, first, next);
        }
        if V::WIDTH.is_some() {
            return change(&mut page[found.value_at()..][..Self::VALUE_BYTES], |value| next(value, record));
        }
        let mut value = decode(&mut self.kept, &mut found.value(page))?;
        let result = next(&mut value, record);
        self.value.clear();
        value.encode(&mut self.value);
        self.kept = Some(value);
        if self.value.len() <= found.sizes.room {
            found.overwrite(page, &self.value);
        } else {
            self.buckets.grow(bucket, found, hash, key, &self.value)?;
        }
        Ok(result)
    }

    /// Adds a key that is known to be absent.
    #[inline(never)]
    fn add_new<R>(&mut self, hash: u64, key: &[u8], (value, result): (V, R)) -> Result<R, StateError> {
        self.value.clear();
        value.encode(&mut self.value);
        self.kept = Some(value);
        self.buckets.put_at(None, hash, key, &self.value)?;
        Ok(result)
    }
}
