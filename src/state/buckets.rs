//! The table without types: hashes and encoded keys and values, in buckets of pages. It knows no Rust type and no scan.

use super::chain::{Chain, Source};
use super::directory::Directory;
use super::entry::{ENTRY_BYTES, Entry, Found, KEY_LONG, LongRef, VALUE_LONG};
use super::head::{Head, count_of, u16_at};
use super::layout::{Layout, OFFSET_BYTES};
use super::room::Scratch;
use super::{HashRange, Hasher, StateError, long};
use crate::page::{PageId, Pages};

/// Where an entry is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub page: PageId,
    /// Offset of the slot.
    pub slot: usize,
}

/// Tables up to this size lie in the cache.
const NEAR_BYTES: usize = 1 << 20;

pub(super) struct Buckets {
    pub pages: Pages,
    pub directory: Directory,
    pub layout: Layout,
    pub hasher: Hasher,
    pub range: HashRange,
    /// Entries.
    pub len: u64,
    /// Buckets: what the directory points to.
    pub buckets: u64,
    /// How often an entry of a heap may have moved or gone.
    pub moves: u64,
    pub scratch: Scratch,
}

impl Buckets {
    /// Bytes of the pages in use.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.pages.live() as usize * self.pages.page_bytes()
    }

    /// Whether all of it lies in the cache: there is nothing to fetch ahead.
    #[inline]
    pub fn is_near(&self) -> bool {
        self.bytes() <= NEAR_BYTES
    }

    /// The longest key that lies in its bucket's page. With `value_bytes_max` it is small enough that an empty page takes
    /// any entry, whatever the number of its groups.
    #[inline]
    pub fn key_bytes_max(&self) -> usize {
        self.pages.page_bytes() / 8
    }

    /// The longest value that lies in its bucket's page.
    #[inline]
    pub fn value_bytes_max(&self) -> usize {
        self.pages.page_bytes() / 4
    }

    /// Looks a key up in all pages of its bucket.
    pub fn locate(&self, hash: u64, key: &[u8]) -> Result<Option<Place>, StateError> {
        Self::find(&self.pages, self.layout, self.directory.bucket_of(hash), hash, key)
    }

    /// The same in pages that need not be those of a table.
    pub fn find(
        source: &impl Source,
        layout: Layout,
        bucket: PageId,
        hash: u64,
        key: &[u8],
    ) -> Result<Option<Place>, StateError> {
        let mut chain = Chain::new(source, bucket);
        while let Some((id, page)) = chain.next()? {
            let mut failed = None;
            let is_key = |slot| {
                let entry = layout.entry(page, slot);
                match entry.long_key() {
                    Some(long) if entry.long_key_hash() == Some(hash) => {
                        // A look-up that cannot go on stops as one that has found its key.
                        long::equals(source, long, key).unwrap_or_else(|error| {
                            failed = Some(error);
                            true
                        })
                    }
                    Some(_) => false,
                    None => entry.key == key,
                }
            };
            let found = layout.shape_of(page).find(page, hash, is_key);
            match (failed, found) {
                (Some(error), _) => return Err(error),
                (None, Some(slot)) => return Ok(Some(Place { page: id, slot })),
                (None, None) => {}
            }
        }
        Ok(None)
    }

    /// The entry at a place.
    pub fn entry(&self, place: Place) -> Result<Entry<'_>, StateError> {
        Ok(self.layout.entry(self.pages.read(place.page)?, place.slot))
    }

    /// Puts the encoding of an entry's value into `out`.
    pub fn read_value(&self, place: Place, out: &mut Vec<u8>) -> Result<(), StateError> {
        out.clear();
        let entry = self.entry(place)?;
        match entry.long_value() {
            Some(long) => long::read(&self.pages, long, out),
            None => {
                out.extend_from_slice(entry.value);
                Ok(())
            }
        }
    }

    /// Sets the value of a key. If pages run out, nothing has changed.
    pub fn put(&mut self, hash: u64, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.put_at(self.locate(hash, key)?, hash, key, value)
    }

    /// The same for a key that is at `place`, or nowhere.
    pub fn put_at(&mut self, place: Option<Place>, hash: u64, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        if let Some(place) = place
            && self.overwrite(place, value)?
        {
            return Ok(());
        }
        let mut long = Vec::new();
        let result = self.put_anew(place, hash, key, value, &mut long);
        if result.is_err() {
            for made in long {
                self.free(long::pages_of(&self.pages, made)?);
            }
        }
        result
    }

    /// Sets the value of a key that was found in a page of its bucket, where it has too little room.
    pub fn grow(&mut self, id: PageId, found: Found, hash: u64, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.moves += 1;
        let value_bytes_max = self.value_bytes_max();
        if value.len() <= value_bytes_max {
            let entry = Entry { key, value, value_room: room_for_growing(value.len()).min(value_bytes_max), flags: 0 };
            if move_within(self.pages.write(id)?, found, &entry) {
                return Ok(());
            }
        }
        self.put_at(Some(Place { page: id, slot: found.slot }), hash, key, value)
    }

    /// Writes a value over the one that is there, if it fits.
    fn overwrite(&mut self, place: Place, value: &[u8]) -> Result<bool, StateError> {
        let (layout, value_bytes_max) = (self.layout, self.value_bytes_max());
        self.pages.write(place.page)?;
        let Layout::Heap = layout else {
            let page = self.pages.write(place.page)?;
            let at = place.slot + layout.entry(page, place.slot).key.len();
            page[at..at + value.len()].copy_from_slice(value);
            return Ok(true);
        };
        let entry = self.entry(place)?;
        let part = match entry.long_value() {
            Some(long) if value.len() > value_bytes_max => long::write(&mut self.pages, Some(long), value)?.part(),
            None if value.len() <= entry.value_room.min(value_bytes_max) => {
                overwrite_part(self.pages.write(place.page)?, place.slot, value);
                return Ok(true);
            }
            _ => return Ok(false),
        };
        overwrite_part(self.pages.write(place.page)?, place.slot, &part);
        Ok(true)
    }

    /// Adds an entry, in place of the one at `place` if there is one. Long parts that were made on the way go to `long`.
    fn put_anew(
        &mut self,
        place: Option<Place>,
        hash: u64,
        key: &[u8],
        value: &[u8],
        long: &mut Vec<LongRef>,
    ) -> Result<(), StateError> {
        self.moves += u64::from(place.is_some());
        let (key_part, value_part);
        let room = if place.is_some() { room_for_growing(value.len()) } else { value.len() };
        let mut entry = Entry { key, value, value_room: room.min(self.value_bytes_max()), flags: 0 };
        if self.layout == Layout::Heap && key.len() > self.key_bytes_max() {
            entry.flags |= KEY_LONG;
            key_part = match place {
                Some(place) => self.entry(place)?.key.try_into().map_err(|_| {
                    StateError::corrupt(format!("page {} has a long key that is not marked as one", place.page))
                })?,
                None => {
                    let key = long::write(&mut self.pages, None, key)?;
                    long.push(key);
                    key.key_part(hash)
                }
            };
            entry.key = &key_part;
        }
        if self.layout == Layout::Heap && value.len() > self.value_bytes_max() {
            entry.flags |= VALUE_LONG;
            let value = long::write(&mut self.pages, None, value)?;
            long.push(value);
            value_part = value.part();
            (entry.value, entry.value_room) = (&value_part, value_part.len());
        }
        let page = self.ensure_room(hash, entry.bytes())?;
        match place {
            Some(_) => self.cut_old(hash, key)?,
            None => self.len += 1,
        }
        // Cannot fail: `ensure_room` has written to the page in this epoch.
        self.layout.add(self.pages.write(page)?, hash, &entry);
        Ok(())
    }

    /// Takes out an entry that another one is to replace: a long key stays, a long value goes.
    fn cut_old(&mut self, hash: u64, key: &[u8]) -> Result<(), StateError> {
        let place = self.locate(hash, key)?.expect("making room loses no entry");
        let long_value = self.entry(place)?.long_value();
        let freed = long_value.map_or(Ok(Vec::new()), |long| long::pages_of(&self.pages, long))?;
        self.layout.cut(self.pages.write(place.page)?, hash, place.slot);
        self.free(freed);
        Ok(())
    }

    fn free(&mut self, pages: Vec<PageId>) {
        pages.into_iter().for_each(|id| self.pages.free(id));
    }

    /// Takes an entry out of the table, and gives back pages that are then no longer needed. If pages run out, nothing has
    /// changed.
    pub fn remove(&mut self, hash: u64, place: Place) -> Result<(), StateError> {
        self.moves += 1;
        let entry = self.entry(place)?;
        let mut freed = Vec::new();
        for long in [entry.long_key(), entry.long_value()].into_iter().flatten() {
            freed.extend(long::pages_of(&self.pages, long)?);
        }
        let page = self.pages.write(place.page)?;
        self.layout.cut(page, hash, place.slot);
        let (count, limit) = (count_of(page), self.layout.shape_of(page).limit());
        self.free(freed);
        self.one_less(hash, place.page, count, limit);
        Ok(())
    }
}

/// Values that have grown once will grow again.
fn room_for_growing(value_bytes: usize) -> usize {
    value_bytes + value_bytes / 2
}

/// Puts another entry of the same key, with nothing long in it, in the place of one that was found, if the page's heap has
/// room for both.
fn move_within(page: &mut [u8], found: Found, entry: &Entry<'_>) -> bool {
    let mut head = Head::load(page);
    let low = head.heap_low as usize;
    if low < Layout::Heap.shape_of(page).end() + entry.bytes() {
        return false;
    }
    head.heap_low -= entry.bytes() as u32;
    head.heap_dead += (ENTRY_BYTES + found.sizes.key + found.sizes.room) as u32;
    head.store(page);
    entry.store(page, head.heap_low as usize);
    page[found.slot..found.slot + OFFSET_BYTES].copy_from_slice(&(head.heap_low as u16).to_le_bytes());
    true
}

/// Sets the value part of an entry that has room for it.
pub(super) fn overwrite_part(page: &mut [u8], slot: usize, value: &[u8]) {
    let at = usize::from(u16_at(page, slot));
    let value_at = at + ENTRY_BYTES + usize::from(u16_at(page, at));
    page[at + 2..at + 4].copy_from_slice(&(value.len() as u16).to_le_bytes());
    page[value_at..value_at + value.len()].copy_from_slice(value);
}
