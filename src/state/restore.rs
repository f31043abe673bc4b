//! Out of snapshots: checking what a table has left, and adopting it. What comes in has passed its
//! checksums, but it is checked again so far that nothing behind this door can panic or loop on it.

use super::buckets::Buckets;
use super::chain::Source;
use super::deal::Lying;
use super::directory::{Directory, EachBucket};
use super::entry::Entry;
use super::head::{BUCKET, CHAINED, HEAD_BYTES, Head, LONG};
use super::layout::Layout;
use super::room::Region;
use super::root::Root;
use super::sane::page_is_sane;
use super::{Hasher, StateError};
use crate::page::{PageId, PageSource, Pages, Pool};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Page ids are below this: a wrong one must not make a huge side table.
pub(super) const IDS_MAX: PageId = 1 << 28;

/// What one task's table has left in a snapshot.
#[derive(Clone)]
pub struct Part<'a> {
    /// Its root.
    pub root: &'a [u8],
    /// All its pages.
    pub pages: PartPages<'a>,
}

/// The pages of a part.
#[derive(Clone)]
pub enum PartPages<'a> {
    /// Their bytes.
    Here(Vec<(PageId, &'a [u8])>),
    /// They stay where they are until they are needed: that is now, if the table is to have another range than the part. Then all
    /// parts must be so.
    Absent(Arc<dyn PageSource>),
}

/// A part whose structure has been checked.
pub(super) struct Checked<'a> {
    pub root: Root,
    pub layout: Layout,
    pub pages: HashMap<PageId, &'a [u8]>,
    /// First pages of all buckets.
    pub buckets: Vec<PageId>,
}

impl Source for Checked<'_> {
    fn page(&self, id: PageId) -> Result<Option<&[u8]>, StateError> {
        Ok(self.pages.get(&id).copied())
    }
}

impl Buckets {
    /// Fills an empty table whose directory is all holes. See [`super::Table::restore`].
    pub fn restore(
        mut self,
        pool: &Pool,
        key_bytes: Option<usize>,
        value_bytes: Option<usize>,
        parts: &[Part<'_>],
    ) -> Result<Self, StateError> {
        let mut ours = Vec::new();
        for part in parts {
            let root = Root::decode(part.root)?;
            let job = (key_bytes, value_bytes, self.hasher.seed(), self.hasher.is_of_elements());
            if (root.key_bytes, root.value_bytes, root.seed, root.of_elements) != job {
                let what = format!(
                    "it has keys of {:?} and values of {:?} bytes, hash seed {:#x} and elements {}; the job has {key_bytes:?}, \
                     {value_bytes:?}, {:#x} and {}",
                    root.key_bytes, root.value_bytes, root.seed, root.of_elements, job.2, job.3
                );
                return Err(StateError::Mismatch { what });
            }
            if root.range.meets(&self.range) {
                ours.push((root, &part.pages));
            }
        }
        let fits = |root: &Root| root.range == self.range && root.page_bytes as usize == pool.page_bytes();
        match ours.as_slice() {
            [(root, PartPages::Absent(source))] if fits(root) => self.adopt_absent(pool, root, source)?,
            [(root, PartPages::Here(pages))] if fits(root) => {
                self.adopt(pool, &Checked::new(*root, pages, self.hasher)?)?;
            }
            parts if parts.iter().all(|(_, pages)| matches!(pages, PartPages::Absent(_))) => {
                let lying = |(root, pages): &(Root, &PartPages<'_>)| match pages {
                    PartPages::Absent(source) => Some(Lying::new(*root, source, pool.page_bytes())),
                    PartPages::Here(_) => None,
                };
                self.deal_out(&mut parts.iter().filter_map(lying).collect::<Result<Vec<_>, _>>()?)?;
            }
            parts => {
                let parts = parts.iter().map(|(root, pages)| Checked::all_here(*root, pages, self.hasher));
                self.deal_out(&mut parts.collect::<Result<Vec<_>, _>>()?)?;
            }
        }
        Ok(self)
    }

    /// Takes a part as it is.
    fn adopt(&mut self, pool: &Pool, part: &Checked<'_>) -> Result<(), StateError> {
        self.adopt_directory(&part.buckets.iter().map(|&id| (id, part.region(id))))?;
        self.pages = Pages::restore(pool, part.pages.iter().map(|(&id, &bytes)| (id, bytes)))?;
        self.len = part.root.len;
        Ok(())
    }

    /// Makes the directory of these buckets and no others.
    pub fn adopt_directory(&mut self, buckets: &impl EachBucket) -> Result<(), StateError> {
        (self.directory, self.buckets) = Directory::of(self.range, buckets)?;
        Ok(())
    }
}

impl<'a> Checked<'a> {
    pub fn all_here(root: Root, pages: &PartPages<'a>, hasher: Hasher) -> Result<Self, StateError> {
        match pages {
            PartPages::Here(pages) => Self::new(root, pages, hasher),
            PartPages::Absent(_) => {
                Err(StateError::corrupt(format!("a root of the hashes {:?}, which are not the task's", root.range)))
            }
        }
    }

    /// Every page is reached exactly once, from the buckets; every offset lies within its page; every entry belongs to
    /// its bucket; and there are as many entries as the root says.
    fn new(root: Root, from: &[(PageId, &'a [u8])], hasher: Hasher) -> Result<Self, StateError> {
        let layout = Layout::of(root.page_bytes as usize, root.key_bytes, root.value_bytes);
        let mut pages = HashMap::with_capacity(from.len());
        for &(id, page) in from {
            if id >= IDS_MAX || page.len() != root.page_bytes as usize || pages.insert(id, page).is_some() {
                return Err(StateError::corrupt(format!("page {id} has a wrong size or id, or is there twice")));
            }
        }
        let mut buckets: Vec<_> = from.iter().filter(|(_, page)| page[0] == BUCKET).map(|&(id, _)| id).collect();
        buckets.sort_by_key(|id| Head::load(pages[id]).prefix);
        let this = Self { root, layout, pages, buckets };
        let mut seen = HashSet::with_capacity(this.pages.len());
        let mut count = 0;
        for &bucket in &this.buckets {
            count += this.check_bucket(bucket, hasher, &mut seen)?;
        }
        if seen.len() != this.pages.len() || count != root.len {
            let what = format!(
                "{} of {} pages and {count} of {} entries can be reached",
                seen.len(),
                this.pages.len(),
                root.len
            );
            return Err(StateError::corrupt(what));
        }
        Ok(this)
    }

    /// What the header of a bucket's page says.
    pub fn region(&self, bucket: PageId) -> Region {
        let head = Head::load(self.pages[&bucket]);
        Region { prefix: head.prefix, depth: u32::from(head.depth) }
    }

    /// Checks all pages of a bucket, and says how many entries they have.
    fn check_bucket(&self, bucket: PageId, hasher: Hasher, seen: &mut HashSet<PageId>) -> Result<u64, StateError> {
        let region = self.region(bucket);
        if !region.is_within(&self.root.range) {
            return Err(StateError::corrupt(format!("page {bucket} has a prefix that cannot be: {region:?}")));
        }
        let mut count = 0;
        let (mut next, mut kind) = (Some(bucket), BUCKET);
        while let Some(id) = next {
            let page = self.step(id, kind, seen)?;
            self.check_page(id, page)?;
            for entry in self.layout.entries(page) {
                self.check_entry(id, &entry, region, hasher, seen)?;
                count += 1;
            }
            (next, kind) = (Head::load(page).next, CHAINED);
        }
        Ok(count)
    }

    /// A page that is reached for the first time and is of this kind.
    fn step(&self, id: PageId, kind: u8, seen: &mut HashSet<PageId>) -> Result<&'a [u8], StateError> {
        match self.pages.get(&id) {
            Some(page) if page[0] == kind && seen.insert(id) => Ok(page),
            _ => Err(StateError::corrupt(format!("page {id} is not there, not of kind {kind}, or in use twice"))),
        }
    }

    /// Whether all that a page's header and slots refer to lies within it.
    fn check_page(&self, id: PageId, page: &[u8]) -> Result<(), StateError> {
        if page_is_sane(self.layout, page) {
            return Ok(());
        }
        Err(StateError::corrupt(format!("page {id} has a header that cannot be: {:?}", Head::load(page))))
    }

    /// Whether an entry belongs to its bucket, and its long parts are there.
    fn check_entry(
        &self,
        id: PageId,
        entry: &Entry<'_>,
        region: Region,
        hasher: Hasher,
        seen: &mut HashSet<PageId>,
    ) -> Result<(), StateError> {
        let hash = entry.hash(&hasher);
        if !region.hashes().contains(hash) || !self.root.range.contains(hash) {
            return Err(StateError::corrupt(format!("page {id} has an entry that belongs elsewhere")));
        }
        for long in [entry.long_key(), entry.long_value()].into_iter().flatten() {
            let (mut next, mut left) = (Some(long.first), long.len as usize);
            while let Some(id) = next {
                next = Head::load(self.step(id, LONG, seen)?).next;
                left = left.saturating_sub(self.root.page_bytes as usize - HEAD_BYTES);
            }
            if left > 0 {
                return Err(StateError::corrupt(format!(
                    "page {id} has a value of {} bytes that ends early",
                    long.len
                )));
            }
        }
        Ok(())
    }
}
