//! Going through a table page by page, in the order of hash prefixes, so that it can be left off anywhere and taken up
//! again after a restore, at any parallelism.

use super::buckets::Buckets;
use super::chain::{Chain, Source};
use super::entry::Entry;
use super::head::Head;
use super::range::hashes_of;
use super::room::Region;
use super::{StateError, Table, long};
use crate::record::Record;

impl Buckets {
    /// Calls `each` with hash, key and value of the entries of the bucket of `from` whose hash is not below it and not above
    /// `to`; long parts are put together first. Says the next bucket's lowest hash.
    fn scan<E: From<StateError>>(
        &self,
        from: u64,
        to: u64,
        mut each: impl FnMut(u64, &[u8], &[u8]) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        let bucket = self.directory.bucket_of(from);
        let head = Head::load(self.pages.read(bucket).map_err(StateError::from)?);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut chain = Chain::new(&self.pages, bucket);
        while let Some((_, page)) = chain.next()? {
            for entry in self.layout.entries(page) {
                let hash = entry.hash(&self.hasher);
                if (from..=to).contains(&hash) {
                    each(
                        hash,
                        whole_key(&self.pages, &entry, &mut key)?,
                        whole_value(&self.pages, &entry, &mut value)?,
                    )?;
                }
            }
        }
        let end = Region { prefix: head.prefix, depth: u32::from(head.depth) }.hashes().end_inclusive;
        Ok((end < to.min(self.range.end_inclusive)).then(|| end + 1))
    }
}

/// An entry's key, put together in `scratch` if it is long.
pub(super) fn whole_key<'a>(
    source: &impl Source,
    entry: &Entry<'a>,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], StateError> {
    whole(source, entry.long_key(), entry.key, scratch)
}

/// An entry's value, put together in `scratch` if it is long.
pub(super) fn whole_value<'a>(
    source: &impl Source,
    entry: &Entry<'a>,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], StateError> {
    whole(source, entry.long_value(), entry.value, scratch)
}

fn whole<'a>(
    source: &impl Source,
    long: Option<super::entry::LongRef>,
    part: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], StateError> {
    let Some(long) = long else { return Ok(part) };
    scratch.clear();
    long::read(source, long, scratch)?;
    Ok(scratch)
}

impl<K: Record, V: Record> Table<K, V> {
    /// Goes through one page: calls `each` with hash, key and value of all entries that share the page of hash `from` and
    /// have no lower hash. Says from which hash to go on, or None at the end. Start with the start of the task's range.
    ///
    /// A call goes through all hashes from `from` up to the one that it says, whatever the pages are like then, and the next call
    /// goes on from there. So each entry that is there all the time comes exactly once, and an entry that comes or goes in
    /// between comes once or not at all; also if pages split or merge, or if a snapshot is taken in between and the rest is
    /// done after a restore, at whatever parallelism.
    ///
    /// # Errors
    /// That of `each`, or an entry cannot be read.
    ///
    /// # Panics
    /// `from` is outside of the task's range.
    pub fn scan<E: From<StateError>>(
        &self,
        from: u64,
        mut each: impl FnMut(u64, K, V) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        self.scan_to(from, u64::MAX, &mut each)
    }

    /// Goes through a key group: calls `each` with hash, key and value of all its entries.
    ///
    /// # Errors
    /// That of `each`, or an entry cannot be read.
    ///
    /// # Panics
    /// The group is not the task's.
    pub fn scan_group<E: From<StateError>>(
        &self,
        group: u32,
        mut each: impl FnMut(u64, K, V) -> Result<(), E>,
    ) -> Result<(), E> {
        let hashes = hashes_of(group);
        let mut from = Some(hashes.start);
        while let Some(start) = from {
            from = self.scan_to(start, hashes.end_inclusive, &mut each)?;
        }
        Ok(())
    }

    fn scan_to<E: From<StateError>>(
        &self,
        from: u64,
        to: u64,
        each: &mut impl FnMut(u64, K, V) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        self.buckets.scan(from, to, |hash, mut key, mut value| {
            let key = K::decode(&mut key).map_err(StateError::from)?;
            let value = V::decode(&mut value).map_err(StateError::from)?;
            each(hash, key, value)
        })
    }
}
