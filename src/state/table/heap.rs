//! The way of every record whose key or value has a variable length. A key is found by its bytes, a value of fixed width is
//! changed where it lies, another one in memory that is kept; whatever needs more than one page goes the long way.

use super::{Table, change, decode};
use crate::page::fetch_ahead;
use crate::record::Record;
use crate::state::StateError;
use crate::state::buckets::Layout;
use crate::state::entry::{VALUE_LONG, find_short};
use crate::state::head::{next_of, u16_at};

/// Above this many pages their headers are not in the cache either.
const HEADERS_ABOVE: u32 = 4096;
/// Keys that are fetched in step.
pub(super) const STEP: usize = 64;

impl<K: Record, V: Record> Table<K, V> {
    /// Asks the processor to fetch headers, then groups, then entries: each says where the next is.
    pub(super) fn prefetch_heap(&self, mut hashes: impl Iterator<Item = u64>) {
        if self.buckets.is_near() {
            return;
        }
        let (pages, directory) = (&self.buckets.pages, &self.buckets.directory);
        let are_headers_far = pages.live() > HEADERS_ABOVE;
        let mut step: [(u64, usize, &[u8]); STEP] = [(0, 0, &[]); STEP];
        loop {
            let mut len = 0;
            for (place, hash) in step.iter_mut().zip(hashes.by_ref()) {
                // A page that cannot be read is met again, and told of, by the update.
                let page = pages.read(directory.bucket_of(hash)).unwrap_or_default();
                if are_headers_far {
                    fetch_ahead(page, 0);
                }
                *place = (hash, 0, page);
                len += 1;
            }
            let step = &mut step[..len];
            for (hash, home, page) in step.iter_mut().filter(|(.., page)| !page.is_empty()) {
                *home = Layout::Heap.shape_of(page).home(*hash);
                fetch_ahead(page, *home);
            }
            for &(hash, home, page) in step.iter().filter(|(.., page)| !page.is_empty()) {
                if let Some(slot) = Layout::Heap.shape_of(page).first_at(page, home, hash) {
                    let entry = usize::from(u16_at(page, slot));
                    fetch_ahead(page, entry);
                    fetch_ahead(page, entry + 32);
                }
            }
            if len < STEP {
                return;
            }
        }
    }

    /// [`Table::upsert`] in the heap's layout.
    #[inline]
    pub(super) fn upsert_heap<T, R>(
        &mut self,
        hash: u64,
        key: &[u8],
        record: T,
        first: impl FnOnce(T) -> (V, R),
        next: impl FnOnce(&mut V, T) -> R,
    ) -> Result<R, StateError> {
        if key.len() > self.buckets.key_bytes_max() {
            return self.upsert_elsewhere(hash, key, record, first, next);
        }
        let bucket = self.buckets.directory.bucket_of(hash);
        let page = self.buckets.pages.write(bucket)?;
        let Some(found) = find_short(page, hash, key) else {
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
