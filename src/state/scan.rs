//! Going through a table page by page, in the order of hash prefixes, so that it can be left off anywhere and taken up
//! again after a restore, at any parallelism.

use super::buckets::Buckets;
use super::chain::{Chain, Source};
use super::entry::Entry;
use super::head::Head;
use super::room::Region;
use super::{StateError, Table, long};
use crate::record::Record;

impl Buckets {
    /// Calls `each` with hash, key and value of the entries of the bucket of `from` whose hash is not below it; long parts
    /// are put together first. Says the next bucket's lowest hash.
    fn scan<E: From<StateError>>(
        &self,
        from: u64,
        mut each: impl FnMut(u64, &[u8], &[u8]) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        let bucket = self.directory.bucket_of(from);
        let head = Head::load(self.pages.read(bucket).map_err(StateError::from)?);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut chain = Chain::new(&self.pages, bucket);
        while let Some((_, page)) = chain.next()? {
            for entry in self.layout.entries(page) {
                let hash = self.hash_of(&entry);
                if hash >= from {
                    each(
                        hash,
                        whole_key(&self.pages, &entry, &mut key)?,
                        whole_value(&self.pages, &entry, &mut value)?,
                    )?;
                }
            }
        }
        let end = Region { prefix: head.prefix, depth: u32::from(head.depth) }.hashes().end_inclusive;
        Ok((end < self.range.end_inclusive).then(|| end + 1))
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
    /// As long as nothing else changes, each entry comes exactly once, also if a snapshot is taken in between and the rest
    /// is done after a restore, at whatever parallelism.
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
        self.buckets.scan(from, |hash, mut key, mut value| {
            let key = K::decode(&mut key).map_err(StateError::from)?;
            let value = V::decode(&mut value).map_err(StateError::from)?;
            each(hash, key, value)
        })
    }
}
