//! A table whose pages are still in the snapshot: its directory out of tags, and what is checked of a page when it comes.
//! Against damage there are the checksums; this is against files that are made to hurt, so that nothing behind this door can
//! panic or loop.

use super::buckets::Buckets;
use super::directory::EachBucket;
use super::head::{BUCKET, CHAINED, Head, LONG};
use super::layout::Layout;
use super::restore::IDS_MAX;
use super::room::Region;
use super::root::Root;
use super::sane::page_is_sane;
use super::{HashRange, StateError};
use crate::page::{PageError, PageId, PageSource, Pages, Pool};
use std::sync::Arc;

impl Buckets {
    /// Takes a part as it is, without reading its pages.
    pub fn adopt_absent(&mut self, pool: &Pool, root: &Root, source: &Arc<dyn PageSource>) -> Result<(), StateError> {
        self.adopt_directory(&Tagged::of(source, &self.range)?)?;
        self.len = root.len;
        self.pages = Pages::restore_absent(pool, checked(source, self.layout));
        Ok(())
    }
}

/// The buckets of a part, by the tags of its pages.
pub(super) fn buckets_of(source: &Arc<dyn PageSource>, range: &HashRange) -> Result<Vec<(PageId, Region)>, StateError> {
    let tagged = Tagged::of(source, range)?;
    let mut buckets = Vec::with_capacity(tagged.count as usize);
    tagged.each(|id, region| buckets.push((id, region)));
    Ok(buckets)
}

/// The buckets of a part, read off the tags of its pages, which have been checked.
struct Tagged<'a> {
    source: &'a Arc<dyn PageSource>,
    count: u64,
    deepest: u32,
}

impl<'a> Tagged<'a> {
    fn of(source: &'a Arc<dyn PageSource>, range: &HashRange) -> Result<Self, StateError> {
        let (mut count, mut deepest, mut wrong) = (0, 0, None);
        source.each(&mut |first, tags| {
            for (id, &tag) in (first..=PageId::MAX).zip(tags) {
                let head = Head::of_tag(tag);
                let region = region_of(&head);
                let is_sane = match head.kind {
                    BUCKET | CHAINED => region.is_within(range),
                    kind => kind == LONG,
                };
                if id >= IDS_MAX || head.tag() != tag || !is_sane {
                    wrong.get_or_insert((id, tag));
                } else if head.kind == BUCKET {
                    (count, deepest) = (count + 1, region.depth.max(deepest));
                }
            }
        });
        match wrong {
            Some((id, tag)) => {
                Err(StateError::corrupt(format!("{} has a tag that cannot be: {tag:#x}", source.name(id))))
            }
            None => Ok(Self { source, count, deepest }),
        }
    }
}

impl EachBucket for Tagged<'_> {
    fn each(&self, mut visit: impl FnMut(PageId, Region)) {
        self.source.each(&mut |first, tags| {
            for (id, &tag) in (first..).zip(tags) {
                let head = Head::of_tag(tag);
                if head.kind == BUCKET {
                    visit(id, region_of(&head));
                }
            }
        });
    }

    fn extent(&self) -> (u64, u32) {
        (self.count, self.deepest)
    }
}

fn region_of(head: &Head) -> Region {
    Region { prefix: head.prefix, depth: u32::from(head.depth) }
}

/// The same pages, each checked when it comes.
pub(super) fn checked(source: &Arc<dyn PageSource>, layout: Layout) -> Arc<dyn PageSource> {
    Arc::new(Checking { source: source.clone(), layout })
}

/// Checks each page that comes.
struct Checking {
    source: Arc<dyn PageSource>,
    layout: Layout,
}

impl Checking {
    fn check(&self, id: PageId, page: &[u8], tag: u64) -> Result<u64, PageError> {
        let head = Head::load(page);
        let is_of_tag = head.tag() == tag && head.prefix == Head::of_tag(tag).prefix;
        if is_of_tag && (head.kind == LONG || page_is_sane(self.layout, page)) {
            return Ok(tag);
        }
        Err(PageError::Corrupt { what: format!("{} has a header that cannot be: {head:?}", self.name(id)) })
    }
}

impl PageSource for Checking {
    fn pages(&self) -> Box<dyn Iterator<Item = (PageId, u64)> + '_> {
        self.source.pages()
    }

    fn live(&self) -> u32 {
        self.source.live()
    }

    fn count(&self) -> u32 {
        self.source.count()
    }

    fn each(&self, visit: &mut dyn FnMut(PageId, &[u64])) {
        self.source.each(visit);
    }

    fn read(&self, id: PageId, into: &mut [u8]) -> Result<u64, PageError> {
        let tag = self.source.read(id, into)?;
        self.check(id, into, tag)
    }

    fn read_many(&self, ids: &[PageId], into: &mut [u8]) -> Result<Vec<u64>, PageError> {
        let tags = self.source.read_many(ids, into)?;
        let pages = into.chunks(into.len().checked_div(ids.len()).unwrap_or(1).max(1));
        ids.iter().zip(pages).zip(&tags).try_for_each(|((id, page), tag)| self.check(*id, page, *tag).map(drop))?;
        Ok(tags)
    }

    fn name(&self, id: PageId) -> String {
        self.source.name(id)
    }
}
