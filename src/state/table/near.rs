//! The way of keys of variable length to values of a fixed layout in a table that lies in the cache: first the places of some,
//! then the values there. No key waits for the one in front of it, and what is left is counted in single instructions.

use super::Table;
use super::fixed::change_mirror;
use super::heap::STEP;
use crate::page::{Near, fetch_ahead};
use crate::record::Record;
use crate::state::entry::{ENTRY_BYTES, is_of_key};
use crate::state::head::u16_at;
use crate::state::layout::Layout;
use crate::state::{Ahead, Encoding, StateError};
use zerocopy::FromBytes;

/// Where the entry of a key may be, by its tag.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Its page in the directory's list.
    page: u32,
    /// Its offset; 0: nowhere that is simply there.
    at: u32,
}

/// The places of keys that are looked up in step.
struct Places {
    places: [Place; STEP],
    /// So many have one.
    len: usize,
    /// So many are done.
    next: usize,
}

impl<K: Record, V: Record> Table<K, V> {
    /// Whether a batch goes this way.
    #[inline]
    pub(super) fn is_near_heap(&self) -> bool {
        K::WIDTH.is_none() && V::WIDTH.is_some() && self.is_all_near()
    }

    /// [`Table::update_batch`] for such a table.
    #[inline(always)]
    pub(super) fn update_near<'a, T, A, R, E: From<StateError>>(
        &mut self,
        mut records: impl Ahead<Key = &'a [u8], Record = (T, A)>,
        first: impl Fn(T) -> (V, R) + Copy,
        next: impl Fn(&mut V, T) -> R + Copy,
        mut each: impl FnMut(A, R) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut places = Places { places: [Place::default(); STEP], len: 0, next: 0 };
        let mut moves = self.buckets.moves;
        loop {
            if places.next == places.len || self.buckets.moves != moves {
                moves = self.buckets.moves;
                self.find_places(records.hashes(), &mut places);
            }
            if !self.update_places(&mut records, &mut places, next, &mut each)? {
                let Some((hash, key, (record, along))) = records.next() else { return Ok(()) };
                each(along, self.upsert_heap(hash, key, None, record, first, next)?)?;
            }
        }
    }

    /// Finds the places of the next keys.
    #[inline(always)]
    fn find_places(&mut self, hashes: impl Iterator<Item = u64>, places: &mut Places) {
        let (directory, page_bytes) = (&self.buckets.directory, self.buckets.pages.page_bytes());
        let mut pages = self.buckets.pages.near(directory.changes(), directory.list(), 0, page_bytes);
        let mut len = 0;
        for (place, hash) in places.places.iter_mut().zip(hashes) {
            let index = directory.index_of(hash);
            let at = pages.part(index, 0).and_then(|page| {
                let page = page.bytes();
                let shape = Layout::Heap.shape_of(page);
                let at = u16_at(page, shape.first_at(page, shape.home(hash), hash)?);
                fetch_ahead(page, usize::from(at));
                Some(u32::from(at))
            });
            *place = Place { page: index as u32, at: at.unwrap_or(0) };
            len += 1;
        }
        (places.len, places.next) = (len, 0);
    }

    /// Takes in records until one has to take the long way. True: so many places were found that there may be more records.
    #[inline(always)]
    fn update_places<T, A, R, E: From<StateError>>(
        &mut self,
        records: &mut impl Ahead<Record = (T, A)>,
        places: &mut Places,
        next: impl Fn(&mut V, T) -> R,
        each: &mut impl FnMut(A, R) -> Result<(), E>,
    ) -> Result<bool, E> {
        let (directory, page_bytes) = (&self.buckets.directory, self.buckets.pages.page_bytes());
        let mut pages = self.buckets.pages.near(directory.changes(), directory.list(), 0, page_bytes);
        for place in &places.places[places.next..places.len] {
            places.next += 1;
            let value = Self::value_at(&mut pages, *place, &*records);
            let Some(value) = value else { return Ok(false) };
            let Some((record, along)) = records.next_record() else { return Ok(false) };
            each(along, change_mirror(value, |value| next(value, record))?)?;
        }
        Ok(places.len == STEP)
    }

    /// The value of the next record's key, if it is in a page which has been written to in this epoch.
    #[inline(always)]
    fn value_at<'a>(pages: &'a mut Near<'_>, place: Place, records: &impl Ahead) -> Option<&'a mut V::Mirror> {
        let key = records.encoding()?;
        let (page, mut at) = (pages.part(place.page as usize, 0)?.bytes(), place.at as usize);
        if at == 0 || !is_of_key(page, at, key, Self::VALUE_BYTES) {
            at = Self::elsewhere(page, records.hashes().next()?, key)?;
        }
        let len = match key {
            Encoding::Short(key) => key.len(),
            Encoding::Long(key) => key.len(),
        };
        V::Mirror::mut_from_prefix(page.get_mut(at + ENTRY_BYTES + len..)?).ok().map(|(value, _)| value)
    }

    /// Behind others in its page.
    #[cold]
    #[inline(never)]
    fn elsewhere(page: &[u8], hash: u64, key: Encoding<'_>) -> Option<usize> {
        let mut search = Layout::Heap.shape_of(page).search(page, hash);
        std::iter::from_fn(|| search.next(page).map(|slot| usize::from(u16_at(page, slot))))
            .find(|&at| is_of_key(page, at, key, Self::VALUE_BYTES))
    }
}
