//! At another parallelism: a table out of what several tasks have left, or a part of what one has. It does not know where
//! the old pages are.
//!
//! No more of them is read than the table needs, and none is held longer than that takes: whole pages go from a buffer of
//! some MiB to where they stay, the few that are taken apart are let go of bucket by bucket. So beside the new table there is
//! no second one in memory.

use super::StateError;
use super::absent::{buckets_of, checked};
use super::buckets::Buckets;
use super::chain::{Chain, Source};
use super::directory::Depths;
use super::head::Head;
use super::layout::Layout;
use super::restore::Checked;
use super::room::Region;
use super::root::Root;
use super::scan::{whole_key, whole_value};
use crate::page::{PageId, PageSource, Pages, Pool};
use std::cell::RefCell;
use std::sync::Arc;

/// What is read at a time of pages that are copied whole.
const PORTION_BYTES: usize = 4 << 20;

/// What a task has left, to be dealt out.
pub(super) trait Old: Source {
    fn root(&self) -> &Root;
    fn layout(&self) -> Layout;
    /// Its buckets, each with what the header of its first page says.
    fn buckets(&self) -> Vec<(PageId, Region)>;
    /// Shows these pages, in their order.
    fn show(&self, ids: &[PageId], each: &mut Show<'_>) -> Result<(), StateError>;
    /// What has been looked at as a [`Source`] is not needed any more.
    fn let_go(&mut self) {}
}

type Show<'a> = dyn FnMut(PageId, &[u8]) -> Result<(), StateError> + 'a;

impl Old for Checked<'_> {
    fn root(&self) -> &Root {
        &self.root
    }
    fn layout(&self) -> Layout {
        self.layout
    }
    fn buckets(&self) -> Vec<(PageId, Region)> {
        self.buckets.iter().map(|&id| (id, self.region(id))).collect()
    }
    fn show(&self, ids: &[PageId], each: &mut Show<'_>) -> Result<(), StateError> {
        ids.iter().try_for_each(|id| each(*id, self.pages[id]))
    }
}

/// A part whose pages are where their source has them. Of its structure only so much is checked as is looked at.
pub(super) struct Lying {
    root: Root,
    layout: Layout,
    buckets: Vec<(PageId, Region)>,
    source: Arc<dyn PageSource>,
    /// The pages that are looked at one by one, and which of them have come.
    pages: Pages,
    came: RefCell<Vec<PageId>>,
}

impl Lying {
    /// `page_bytes`: those of the store and of the new table.
    pub fn new(root: Root, source: &Arc<dyn PageSource>, page_bytes: usize) -> Result<Self, StateError> {
        if root.page_bytes as usize != page_bytes {
            return Err(StateError::corrupt(format!("a root of pages of {} bytes", root.page_bytes)));
        }
        let layout = Layout::of(root.page_bytes as usize, root.key_bytes, root.value_bytes);
        let (buckets, source) = (buckets_of(source, &root.range)?, checked(source, layout));
        let pages = Pages::restore_absent(&Pool::new(root.page_bytes as usize, usize::MAX), source.clone());
        Ok(Self { root, layout, buckets, source, pages, came: RefCell::default() })
    }
}

impl Source for Lying {
    fn page(&self, id: PageId) -> Result<Option<&[u8]>, StateError> {
        if self.pages.is_absent(id) {
            self.came.borrow_mut().push(id);
        }
        self.pages.page(id)
    }
}

impl Old for Lying {
    fn root(&self) -> &Root {
        &self.root
    }
    fn layout(&self) -> Layout {
        self.layout
    }
    fn buckets(&self) -> Vec<(PageId, Region)> {
        self.buckets.clone()
    }

    fn show(&self, ids: &[PageId], each: &mut Show<'_>) -> Result<(), StateError> {
        let page_bytes = self.root.page_bytes as usize;
        let portion = (PORTION_BYTES / page_bytes).max(1);
        let mut bytes = vec![0; portion.min(ids.len()) * page_bytes];
        for ids in ids.chunks(portion) {
            let bytes = &mut bytes[..ids.len() * page_bytes];
            self.source.read_many(ids, bytes)?;
            ids.iter().zip(bytes.chunks(page_bytes)).try_for_each(|(id, page)| each(*id, page))?;
        }
        Ok(())
    }

    /// No bucket has a page in common with another: who finds one that has been let go of finds none.
    fn let_go(&mut self) {
        self.came.get_mut().drain(..).for_each(|id| self.pages.free(id));
    }
}

impl Buckets {
    /// Copies what of the parts lies in the table's range: page by page where a page lies in it wholly and can be copied
    /// without looking at its entries, else entry by entry.
    pub(super) fn deal_out(&mut self, parts: &mut [impl Old]) -> Result<(), StateError> {
        let range = self.range;
        // A page on the edge of its old range has a prefix that a neighbour's page may have too.
        let is_whole = |root: &Root, region: Region| {
            let hashes = region.hashes();
            range.covers(&hashes) && root.range.covers(&hashes)
        };
        let (mut whole, mut by_entry) = (Vec::new(), Vec::new());
        for (at, part) in parts.iter().enumerate() {
            for (id, region) in part.buckets().into_iter().filter(|(_, region)| region.hashes().meets(&range)) {
                if is_whole(part.root(), region) { whole.push((at, id, region)) } else { by_entry.push((at, id)) }
            }
        }
        let depths = Depths::of(range, &whole.iter().map(|&(_, id, region)| (id, region)));
        self.directory.grow(depths.depth, whole.len() as u64);
        for of_part in whole.chunk_by(|(one, ..), (other, ..)| one == other) {
            self.take_over(parts, of_part, &depths, &mut by_entry)?;
        }
        for (prefix, depth) in self.directory.holes() {
            self.new_bucket(Region { prefix, depth })?;
        }
        for (at, id) in by_entry {
            self.deal_out_entries(&parts[at], id)?;
            parts[at].let_go();
        }
        Ok(())
    }

    /// Makes buckets in the place of old ones of one part, with their entries; those whose entries cannot come with their page
    /// are left to be dealt out.
    fn take_over(
        &mut self,
        parts: &[impl Old],
        whole: &[(usize, PageId, Region)],
        depths: &Depths,
        by_entry: &mut Vec<(usize, PageId)>,
    ) -> Result<(), StateError> {
        let Some((at, ..)) = whole.first() else { return Ok(()) };
        let (admitted, deep): (Vec<_>, Vec<_>) = whole.iter().partition(|(.., region)| depths.admit(*region));
        by_entry.extend(deep.into_iter().map(|(at, id, _)| (at, id)));
        let ids: Vec<PageId> = admitted.iter().map(|(_, id, _)| *id).collect();
        let mut regions = admitted.iter().map(|(.., region)| *region);
        parts[*at].show(&ids, &mut |id, page| {
            let region = regions.next().expect("there is one for each page");
            let head = Head::load(page);
            if head.count == 0 && head.next.is_none() {
                // A hole: it becomes as few buckets as there can be.
                return Ok(());
            }
            if !self.new_bucket(region)? {
                return Err(StateError::corrupt(format!("page {id} has a prefix that another page has too")));
            }
            if head.next.is_some() || head.long_entries > 0 || page.len() != self.pages.page_bytes() {
                by_entry.push((*at, id));
                return Ok(());
            }
            self.pages.write(self.directory.bucket_of(region.prefix))?.copy_from_slice(page);
            self.len += u64::from(head.count);
            Ok(())
        })
    }

    /// Copies the entries of a bucket that are ours.
    fn deal_out_entries(&mut self, part: &impl Old, bucket: PageId) -> Result<(), StateError> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut chain = Chain::new(part, bucket);
        while let Some((_, page)) = chain.next()? {
            for entry in part.layout().entries(page) {
                let hash = entry.hash(&self.hasher);
                if self.range.contains(hash) {
                    let key = whole_key(part, &entry, &mut key)?;
                    self.put(hash, key, whole_value(part, &entry, &mut value)?)?;
                }
            }
        }
        Ok(())
    }
}
