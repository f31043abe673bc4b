//! The pages of a bucket, one after the other. What a snapshot says is not trusted: a chain made to hurt ends in an error.

use super::StateError;
use super::head::{BUCKET, CHAINED, Head};
use crate::page::{PageId, Pages};

/// Pages by id: those of a table, or those of a snapshot that is being read.
pub(super) trait Source {
    /// A page, if there is one.
    fn page(&self, id: PageId) -> Result<Option<&[u8]>, StateError>;
}

impl Source for Pages {
    #[inline]
    fn page(&self, id: PageId) -> Result<Option<&[u8]>, StateError> {
        if self.is_live(id) { Ok(Some(self.read(id)?)) } else { Ok(None) }
    }
}

/// A page of this kind.
pub(super) fn page_of_kind(source: &impl Source, id: PageId, kind: u8) -> Result<&[u8], StateError> {
    match source.page(id)? {
        Some(page) if page[0] == kind => Ok(page),
        _ => Err(StateError::corrupt(format!("page {id} is not there, or not of kind {kind}"))),
    }
}

/// A walk along the pages of a bucket. They are all of one region, which no other bucket has.
pub(super) struct Chain<'a, S> {
    source: &'a S,
    next: Option<PageId>,
    /// Prefix and depth, from the first page.
    region: Option<(u64, u8)>,
    walked: u64,
    /// The page met last when so many had been that the number was a power of two: a walk in circles comes by there again
    /// (R. Brent, 1980).
    mark: Option<PageId>,
}

impl<'a, S: Source> Chain<'a, S> {
    pub fn new(source: &'a S, bucket: PageId) -> Self {
        Self { source, next: Some(bucket), region: None, walked: 0, mark: None }
    }

    /// The next page, if there is one.
    pub fn next(&mut self) -> Result<Option<(PageId, &'a [u8])>, StateError> {
        let Some(id) = self.next else { return Ok(None) };
        let kind = if self.walked == 0 { BUCKET } else { CHAINED };
        let page = page_of_kind(self.source, id, kind)?;
        let head = Head::load(page);
        let region = (head.prefix, head.depth);
        if *self.region.get_or_insert(region) != region || self.mark == Some(id) {
            return Err(StateError::corrupt(format!("page {id} is in a chain where it does not belong")));
        }
        self.walked += 1;
        if self.walked.is_power_of_two() {
            self.mark = Some(id);
        }
        self.next = head.next;
        Ok(Some((id, page)))
    }
}

/// The pages of a bucket.
pub(super) fn chain(source: &impl Source, bucket: PageId) -> Result<Vec<PageId>, StateError> {
    let (mut walk, mut ids) = (Chain::new(source, bucket), Vec::new());
    while let Some((id, _)) = walk.next()? {
        ids.push(id);
    }
    Ok(ids)
}
