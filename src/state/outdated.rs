//! What of a table is still as a program with another type of value has left it: buckets that go over into the table when
//! they are needed. It knows neither Rust types nor when that is.
//!
//! 1. A key is in the table or in one outdated part, never in two. Before anything is written under a key, the buckets of
//!    its hash are brought over, each whole: so where a bucket stands here, the table has no key of its region.
//! 2. If pages run out or a value cannot be read while a bucket is brought over, what has come of it is taken out again.
//! 3. Its pages are never written, only freed: of a cut the store gets a root and the pages that are no more.
//! 4. Buckets go in any order, so the directory is a map of those that are left. They are brought over ahead of need in an
//!    order that spreads over the range: one after the other they would make the table narrow and deep.

use super::absent::{buckets_of, checked};
use super::buckets::{Buckets, Place};
use super::chain::{Chain, Source, chain};
use super::head::Head;
use super::layout::Layout;
use super::restore::{Checked, Part, PartPages};
use super::room::Region;
use super::root::Root;
use super::scan::{whole_key, whole_value};
use super::{HashRange, Hasher, StateError, long};
use crate::page::{CutPages, FrozenPages, PageId, Pages, Pool};
use crate::record::{Evolution, Schema};
use std::collections::BTreeMap;

/// What one task has left of a table whose values have another type now.
pub struct OldPart<'a> {
    /// What its owner calls it.
    pub name: String,
    /// The type of its keys and values, and those that they have had or would have had since, up to today.
    pub schemas: Vec<Schema>,
    /// What becomes of its values.
    pub evolution: Evolution,
    /// Root and pages.
    pub part: Part<'a>,
}

/// A part of a table that waits for its keys to be touched.
pub struct Outdated {
    name: String,
    schemas: Vec<Schema>,
    evolution: Evolution,
    /// What its cuts say, but for the number of entries.
    root: Root,
    pages: Pages,
    layout: Layout,
    hasher: Hasher,
    len: u64,
    buckets: Scattered,
    /// How many have been brought over ahead of need.
    brought: u64,
}

impl OldPart<'_> {
    /// The root, if it is of a table by this hasher with such keys.
    pub(super) fn root(&self, hasher: Hasher, key_bytes: Option<usize>) -> Result<Root, StateError> {
        let root = Root::decode(self.part.root)?;
        let job = (key_bytes, hasher.seed(), hasher.is_of_elements());
        if (root.key_bytes, root.seed, root.of_elements) == job {
            return Ok(root);
        }
        let what = format!("`{}` is of a table by another hash function or with other keys: {root:?}", self.name);
        Err(StateError::Mismatch { what })
    }

    /// Moves what lies in a table's range into it, all of it.
    pub(super) fn deal_out(&self, root: Root, into: &mut Buckets) -> Result<(), StateError> {
        let part = Checked::all_here(root, &self.part.pages, into.hasher)?;
        let mut buckets = part.buckets.clone();
        buckets.sort_by_key(|id| Head::load(part.pages[id]).prefix.reverse_bits());
        let mut value = Vec::new();
        for bucket in buckets {
            each_entry(&part, part.layout, into.hasher, bucket, |hash, key, old| {
                if !into.range.contains(hash) {
                    return Ok(());
                }
                value.clear();
                self.evolution.apply(old, &mut value)?;
                add(into, hash, key, &value)
            })?;
        }
        Ok(())
    }
}

impl Outdated {
    /// Takes a part as it is; its pages may be absent.
    pub(super) fn adopt(pool: &Pool, hasher: Hasher, root: Root, old: OldPart<'_>) -> Result<Self, StateError> {
        let layout = Layout::of(root.page_bytes as usize, root.key_bytes, root.value_bytes);
        let (pages, buckets) = match &old.part.pages {
            PartPages::Absent(source) => {
                let buckets = buckets_of(source, &root.range)?;
                (Pages::restore_absent(pool, checked(source, layout)), buckets)
            }
            pages @ PartPages::Here(_) => {
                let part = Checked::all_here(root, pages, hasher)?;
                let buckets = part.buckets.iter().map(|&id| (id, part.region(id))).collect();
                (Pages::restore(pool, part.pages.iter().map(|(&id, &bytes)| (id, bytes)))?, buckets)
            }
        };
        let buckets = Scattered::of(root.range, &buckets)?;
        let OldPart { name, schemas, evolution, .. } = old;
        Ok(Self { name, schemas, evolution, root, pages, layout, hasher, len: root.len, buckets, brought: 0 })
    }

    /// What its owner calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// See [`OldPart::schemas`].
    pub fn schemas(&self) -> &[Schema] {
        &self.schemas
    }

    /// What becomes of its values.
    pub fn evolution(&self) -> &Evolution {
        &self.evolution
    }

    /// No bucket is left.
    pub(super) fn is_empty(&self) -> bool {
        self.buckets.0.is_empty()
    }

    /// Nobody needs it any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_empty() && !self.pages.is_viewed()
    }

    /// Keys that are left.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn pages(&self) -> &Pages {
        &self.pages
    }

    pub(super) fn pages_mut(&mut self) -> &mut Pages {
        &mut self.pages
    }

    /// Hands over a root and which pages are no more: see [`super::Table::freeze`].
    pub fn freeze(&mut self) -> (Vec<u8>, FrozenPages) {
        let tag_of = |page: &[u8]| Head::load(page).tag();
        (self.root().encode(), FrozenPages { tag_of, ..self.pages.freeze() })
    }

    /// See [`super::Table::begin_view`].
    pub fn begin_view(&mut self) -> Vec<u8> {
        self.pages.begin_view();
        self.root().encode()
    }

    /// See [`super::Table::view_step`].
    ///
    /// # Errors
    /// A page that is still in the snapshot cannot be read: the cut is given up.
    pub fn view_step(&mut self, pages: u32) -> Result<Option<CutPages>, StateError> {
        Ok(self.pages.view_step(pages)?)
    }

    fn root(&self) -> Root {
        Root { len: self.len, ..self.root }
    }

    /// Moves the bucket of a hash into the table, if there is one.
    pub(super) fn bring_over(&mut self, hash: u64, into: &mut Buckets) -> Result<(), StateError> {
        self.buckets.bucket_of(hash).map_or(Ok(()), |bucket| self.bring(bucket, into))
    }

    /// Moves any bucket into the table.
    pub(super) fn bring_any(&mut self, into: &mut Buckets) -> Result<(), StateError> {
        let HashRange { start, end_inclusive } = self.root.range;
        let step = (u128::from(self.brought.reverse_bits()) * u128::from(end_inclusive - start)) >> 64;
        let Some(bucket) = self.buckets.bucket_from(start + step as u64) else { return Ok(()) };
        self.bring(bucket, into)?;
        self.brought += 1;
        Ok(())
    }

    fn bring(&mut self, bucket: Bucket, into: &mut Buckets) -> Result<(), StateError> {
        let going = self.pages_of(bucket)?;
        let (mut moved, mut value) = (0, Vec::new());
        let evolution = &self.evolution;
        let result = each_entry(&self.pages, self.layout, self.hasher, bucket.first, |hash, key, old| {
            if !bucket.hashes.contains(hash) {
                return Err(StateError::corrupt(format!("page {} has an entry that belongs elsewhere", bucket.first)));
            }
            value.clear();
            evolution.apply(old, &mut value)?;
            add(into, hash, key, &value)?;
            moved += 1;
            Ok(())
        });
        if let Err(error) = result {
            self.take_back(bucket, moved, into)?;
            return Err(error);
        }
        going.into_iter().for_each(|id| self.pages.free(id));
        self.buckets.0.remove(&bucket.hashes.start);
        self.len = self.len.saturating_sub(moved);
        Ok(())
    }

    /// Takes the first entries of a bucket out of the table again. They have just been put in, so that no page is needed.
    fn take_back(&self, bucket: Bucket, mut moved: u64, into: &mut Buckets) -> Result<(), StateError> {
        each_entry(&self.pages, self.layout, self.hasher, bucket.first, |hash, key, _| {
            if moved > 0 {
                moved -= 1;
                let place = into.locate(hash, key)?.expect("it has been put in");
                into.remove(hash, place)?;
            }
            Ok(())
        })
    }

    /// All pages of a bucket, those of long keys and values too, each once.
    fn pages_of(&self, bucket: Bucket) -> Result<Vec<PageId>, StateError> {
        let mut ids = chain(&self.pages, bucket.first)?;
        for at in 0..ids.len() {
            for entry in self.layout.entries(self.pages.read(ids[at])?) {
                for part in [entry.long_key(), entry.long_value()].into_iter().flatten() {
                    ids.extend(long::pages_of(&self.pages, part)?);
                }
            }
        }
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        match sorted.is_sorted_by(|a, b| a < b) {
            true => Ok(ids),
            false => Err(StateError::corrupt(format!("the bucket of page {} has a page twice", bucket.first))),
        }
    }

    /// Puts what the value of a key has become into `out`. Whether there is one.
    pub(super) fn get(&self, hash: u64, key: &[u8], out: &mut Vec<u8>) -> Result<bool, StateError> {
        let Some(bucket) = self.buckets.bucket_of(hash) else { return Ok(false) };
        let place = Buckets::find(&self.pages, self.layout, bucket.first, hash, key)?;
        let Some(Place { page, slot }) = place else { return Ok(false) };
        let entry = self.layout.entry(self.pages.read(page)?, slot);
        let mut scratch = Vec::new();
        out.clear();
        self.evolution.apply(whole_value(&self.pages, &entry, &mut scratch)?, out)?;
        Ok(true)
    }

    /// Calls `each` with hash, key and what the value has become of all entries of the bucket of a hash, if there is one.
    pub(super) fn each_of<E: From<StateError>>(
        &self,
        hash: u64,
        mut each: impl FnMut(u64, &[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(bucket) = self.buckets.bucket_of(hash) else { return Ok(()) };
        let mut value = Vec::new();
        each_entry(&self.pages, self.layout, self.hasher, bucket.first, |hash, key, old| {
            value.clear();
            self.evolution.apply(old, &mut value).map_err(StateError::from)?;
            each(hash, key, &value)
        })
    }

    /// See [`Scattered::reach`].
    pub(super) fn reach(&self, hash: u64) -> u64 {
        self.buckets.reach(hash)
    }
}

/// The buckets that are left, by their lowest hash within the range.
pub(super) struct Scattered(BTreeMap<u64, Bucket>);

#[derive(Clone, Copy)]
pub(super) struct Bucket {
    pub first: PageId,
    hashes: HashRange,
}

impl Scattered {
    pub fn of(range: HashRange, buckets: &[(PageId, Region)]) -> Result<Self, StateError> {
        let twice = |first: PageId| StateError::corrupt(format!("page {first} has a prefix that another page has too"));
        let mut map = BTreeMap::new();
        for &(first, region) in buckets {
            let HashRange { start, end_inclusive } = region.hashes();
            let hashes =
                HashRange { start: start.max(range.start), end_inclusive: end_inclusive.min(range.end_inclusive) };
            if map.insert(hashes.start, Bucket { first, hashes }).is_some() {
                return Err(twice(first));
            }
        }
        let mut end = None;
        for bucket in map.values() {
            if end.is_some_and(|end| bucket.hashes.start <= end) {
                return Err(twice(bucket.first));
            }
            end = Some(bucket.hashes.end_inclusive);
        }
        Ok(Self(map))
    }

    /// The bucket of a hash.
    pub fn bucket_of(&self, hash: u64) -> Option<Bucket> {
        let (_, bucket) = self.0.range(..=hash).next_back()?;
        bucket.hashes.contains(hash).then_some(*bucket)
    }

    /// The first bucket from a hash on, round the end.
    fn bucket_from(&self, hash: u64) -> Option<Bucket> {
        self.0.range(hash..).chain(&self.0).next().map(|(_, bucket)| *bucket)
    }

    /// The highest hash up to which nothing changes: the bucket of `hash` goes so far, or the next one begins behind it.
    fn reach(&self, hash: u64) -> u64 {
        match self.bucket_of(hash) {
            Some(bucket) => bucket.hashes.end_inclusive,
            None => self.0.range(hash..).next().map_or(u64::MAX, |(start, _)| start - 1),
        }
    }
}

/// Calls `each` with hash, key and value of every entry of a bucket; long parts are put together first.
fn each_entry<E: From<StateError>>(
    source: &impl Source,
    layout: Layout,
    hasher: Hasher,
    bucket: PageId,
    mut each: impl FnMut(u64, &[u8], &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut chain = Chain::new(source, bucket);
    while let Some((_, page)) = chain.next()? {
        for entry in layout.entries(page) {
            let hash = entry.hash(&hasher);
            each(hash, whole_key(source, &entry, &mut key)?, whole_value(source, &entry, &mut value)?)?;
        }
    }
    Ok(())
}

/// Adds a key that the table does not have.
fn add(into: &mut Buckets, hash: u64, key: &[u8], value: &[u8]) -> Result<(), StateError> {
    match into.locate(hash, key)? {
        None => into.put_at(None, hash, key, value),
        Some(place) => Err(StateError::corrupt(format!("a key of page {} is in an outdated part too", place.page))),
    }
}
