//! A table whose pages are still in the snapshot: its directory out of tags, and what is checked of a page when it comes.
//! Against damage there are the checksums; this is against files that are made to hurt, so that nothing behind this door can
//! panic or loop.

use super::buckets::{Buckets, Layout};
use super::head::{BUCKET, CHAINED, Head, LONG};
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
        check_tags(source, &self.range)?;
        self.adopt_directory(&|visit| each_bucket(source, visit))?;
        self.len = root.len;
        self.pages = Pages::restore_absent(pool, checked(source, self.layout));
        Ok(())
    }
}

/// The buckets of a part, by the tags of its pages.
pub(super) fn buckets_of(source: &Arc<dyn PageSource>, range: &HashRange) -> Result<Vec<(PageId, Region)>, StateError> {
    check_tags(source, range)?;
    let mut buckets = Vec::new();
    each_bucket(source, &mut |id, region| buckets.push((id, region)));
    Ok(buckets)
}

/// Whether the tags of a part's pages can be.
fn check_tags(source: &Arc<dyn PageSource>, range: &HashRange) -> Result<(), StateError> {
    let mut wrong = None;
    source.each(&mut |id, tag| {
        let head = Head::of_tag(tag);
        let is_sane = id < IDS_MAX
            && head.tag() == tag
            && match head.kind {
                BUCKET | CHAINED => region_of(&head).is_within(range),
                kind => kind == LONG,
            };
        if !is_sane {
            wrong.get_or_insert((id, tag));
        }
    });
    match wrong {
        Some((id, tag)) => Err(StateError::corrupt(format!("{} has a tag that cannot be: {tag:#x}", source.name(id)))),
        None => Ok(()),
    }
}

/// The buckets of a part, by the tags of its pages, which have been checked.
fn each_bucket(source: &Arc<dyn PageSource>, visit: &mut dyn FnMut(PageId, Region)) {
    source.each(&mut |id, tag| {
        let head = Head::of_tag(tag);
        if head.kind == BUCKET {
            visit(id, region_of(&head));
        }
    });
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

    fn each(&self, visit: &mut dyn FnMut(PageId, u64)) {
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
