//! A table as it was at a cut, whole and for reading only: what a view is made of. It knows no types and no pool.

use super::buckets::{Buckets, Place};
use super::chain::{Chain, Source};
use super::directory::Directory;
use super::head::{BUCKET, Head};
use super::layout::Layout;
use super::outdated::Scattered;
use super::room::Region;
use super::root::Root;
use super::scan::{whole_key, whole_value};
use super::{HashRange, Hasher, StateError};
use crate::page::{FrozenPage, PageId, WholePages};

/// One task's table at a cut. It may be looked into by any thread.
pub struct FrozenTable {
    root: Root,
    layout: Layout,
    hasher: Hasher,
    /// By id.
    pages: Vec<Option<FrozenPage>>,
    directory: Places,
    /// First pages of all buckets.
    buckets: Vec<PageId>,
    /// For what it says to the pool.
    _whole: WholePages,
}

/// Which bucket holds a hash.
enum Places {
    All(Directory),
    /// Of a part that is outdated, some buckets may be gone.
    Some(Scattered),
}

impl Source for FrozenTable {
    fn page(&self, id: PageId) -> Result<Option<&[u8]>, StateError> {
        Ok(self.pages.get(id as usize).and_then(Option::as_deref))
    }
}

impl FrozenTable {
    /// Of a root and all pages that go with it. The cost grows with the number of pages.
    ///
    /// # Errors
    /// `Corrupt`, `Mismatch`: they are not what a table of this version hands over.
    pub fn new(root: &[u8], pages: WholePages) -> Result<Self, StateError> {
        Self::of(root, pages, |range, buckets| {
            Directory::of(range, &buckets.iter().copied()).map(|(directory, _)| Places::All(directory))
        })
    }

    /// The same of a part that is outdated.
    ///
    /// # Errors
    /// As for [`FrozenTable::new`].
    pub fn outdated(root: &[u8], pages: WholePages) -> Result<Self, StateError> {
        Self::of(root, pages, |range, buckets| Scattered::of(range, buckets).map(Places::Some))
    }

    fn of(
        root: &[u8],
        mut pages: WholePages,
        places: impl FnOnce(HashRange, &[(PageId, Region)]) -> Result<Places, StateError>,
    ) -> Result<Self, StateError> {
        let root = Root::decode(root)?;
        let layout = Layout::of(root.page_bytes as usize, root.key_bytes, root.value_bytes);
        let mut by_id = Vec::new();
        let mut buckets = Vec::new();
        for (id, page) in pages.drain() {
            if by_id.len() <= id as usize {
                by_id.resize_with(id as usize + 1, || None);
            }
            // One may be there twice: it was to be written to when the pool was exhausted.
            if page[0] == BUCKET && by_id[id as usize].is_none() {
                let head = Head::load(&page);
                buckets.push((id, Region { prefix: head.prefix, depth: u32::from(head.depth) }));
            }
            by_id[id as usize] = Some(page);
        }
        let directory = places(root.range, &buckets)?;
        let buckets = buckets.into_iter().map(|(id, _)| id).collect();
        Ok(Self { root, layout, hasher: root.hasher(), pages: by_id, directory, buckets, _whole: pages })
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.root.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hashes that the table is for.
    #[must_use]
    pub fn range(&self) -> HashRange {
        self.root.range
    }

    /// The hash of a key's encoding.
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_bytes(key)
    }

    /// Puts the encoding of a key's value into `out`. Whether there is one.
    ///
    /// # Errors
    /// `Corrupt`: it cannot be put together.
    ///
    /// # Panics
    /// The hash is not in the table's range.
    pub fn get(&self, hash: u64, key: &[u8], out: &mut Vec<u8>) -> Result<bool, StateError> {
        out.clear();
        let bucket = match &self.directory {
            Places::All(directory) => directory.bucket_of(hash),
            Places::Some(buckets) => match buckets.bucket_of(hash) {
                Some(bucket) => bucket.first,
                None => return Ok(false),
            },
        };
        let Some(Place { page, slot }) = Buckets::find(self, self.layout, bucket, hash, key)? else { return Ok(false) };
        let page = self.page(page)?.expect("it has just been looked into");
        let entry = self.layout.entry(page, slot);
        let mut scratch = Vec::new();
        out.extend_from_slice(whole_value(self, &entry, &mut scratch)?);
        Ok(true)
    }

    /// Calls `each` with the encodings of key and value of each entry, in no order that means anything.
    ///
    /// # Errors
    /// That of `each`, or an entry cannot be put together.
    pub fn each<E: From<StateError>>(&self, mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>) -> Result<(), E> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for &bucket in &self.buckets {
            let mut chain = Chain::new(self, bucket);
            while let Some((_, page)) = chain.next()? {
                for entry in self.layout.entries(page) {
                    each(whole_key(self, &entry, &mut key)?, whole_value(self, &entry, &mut value)?)?;
                }
            }
        }
        Ok(())
    }
}
