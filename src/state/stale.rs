//! Finding values that are too old, a bucket at a time, without decoding what is to stay. It removes nothing: whether that is
//! worth it, its caller says.

use super::scan::whole_value;
use super::{StateError, Table};
use crate::record::Record;

/// What [`Table::stale`] has seen of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Entries.
    pub entries: u64,
    /// The next freeze hands the bucket over anyway.
    pub is_dirty: bool,
    /// The lowest hash of the next bucket; none: this was the last.
    pub next: Option<u64>,
}

impl<K: Record, V: Record> Table<K, V> {
    /// Looks through the bucket of hash `from`, in a table whose values begin with a `u64`: keys of values whose number is at
    /// most `bound` are added to `found`, with their hashes. A bucket that is still in its snapshot is passed over.
    ///
    /// # Errors
    /// An entry cannot be read.
    ///
    /// # Panics
    /// `from` is outside of the task's range.
    pub fn stale(&self, from: u64, bound: u64, found: &mut Vec<(u64, K)>) -> Result<Looked, StateError> {
        let buckets = &self.buckets;
        let bucket = buckets.directory.bucket_of(from);
        let end = buckets.directory.end_of(from);
        let next = (end < buckets.range.end_inclusive).then(|| end + 1);
        let mut looked = Looked { entries: 0, is_dirty: buckets.pages.is_dirty(bucket), next };
        if buckets.pages.is_absent(bucket) {
            return Ok(looked);
        }
        let mut scratch = Vec::new();
        let mut chain = super::chain::Chain::new(&buckets.pages, bucket);
        while let Some((_, page)) = chain.next()? {
            for entry in buckets.layout.entries(page) {
                looked.entries += 1;
                let value = whole_value(&buckets.pages, &entry, &mut scratch)?;
                let number = value.first_chunk().map_or(u64::MAX, |number| u64::from_le_bytes(*number));
                if number <= bound {
                    let mut long = Vec::new();
                    let mut key = super::scan::whole_key(&buckets.pages, &entry, &mut long)?;
                    found.push((entry.hash(&buckets.hasher), K::decode(&mut key)?));
                }
            }
        }
        Ok(looked)
    }
}
