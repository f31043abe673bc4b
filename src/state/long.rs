//! Byte strings that are too long for a bucket's page: chains of pages of their own.

use super::StateError;
use super::chain::{Source, page_of_kind};
use super::entry::LongRef;
use super::head::{HEAD_BYTES, Head, LONG};
use crate::page::{PageId, Pages};

/// The parts of a long byte string, in order.
struct Parts<'a, S> {
    source: &'a S,
    next: Option<PageId>,
    left: usize,
}

impl<'a, S: Source> Parts<'a, S> {
    fn new(source: &'a S, long: LongRef) -> Self {
        Self { source, next: Some(long.first), left: long.len as usize }
    }

    /// The next part, with the page that it is in.
    fn next(&mut self) -> Result<Option<(PageId, &'a [u8])>, StateError> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(id) = self.next else {
            return Err(StateError::corrupt(format!("a key or value ends {} bytes early", self.left)));
        };
        let page = page_of_kind(self.source, id, LONG)?;
        self.next = Head::load(page).next;
        let part = &page[HEAD_BYTES..][..self.left.min(page.len() - HEAD_BYTES)];
        self.left -= part.len();
        Ok(Some((id, part)))
    }
}

/// Appends the bytes to `out`.
pub(super) fn read(source: &impl Source, long: LongRef, out: &mut Vec<u8>) -> Result<(), StateError> {
    let mut parts = Parts::new(source, long);
    while let Some((_, part)) = parts.next()? {
        out.extend_from_slice(part);
    }
    Ok(())
}

/// Whether the bytes are these.
pub(super) fn equals(source: &impl Source, long: LongRef, mut bytes: &[u8]) -> Result<bool, StateError> {
    if long.len as usize != bytes.len() {
        return Ok(false);
    }
    let mut parts = Parts::new(source, long);
    while let Some((_, part)) = parts.next()? {
        let (head, rest) = bytes.split_at(part.len());
        if head != part {
            return Ok(false);
        }
        bytes = rest;
    }
    Ok(true)
}

/// The pages of a long byte string.
pub(super) fn pages_of(source: &impl Source, long: LongRef) -> Result<Vec<PageId>, StateError> {
    let (mut parts, mut ids) = (Parts::new(source, long), Vec::new());
    while let Some((id, _)) = parts.next()? {
        ids.push(id);
    }
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    if !sorted.is_sorted_by(|a, b| a < b) {
        return Err(StateError::corrupt(format!("page {} is twice in a key or value", long.first)));
    }
    Ok(ids)
}

/// Writes bytes (not none) to a new chain, or over an old one. If pages run out, nothing has changed.
pub(super) fn write(pages: &mut Pages, old: Option<LongRef>, bytes: &[u8]) -> Result<LongRef, StateError> {
    let len = u32::try_from(bytes.len()).map_err(|_| StateError::TooLong { bytes: bytes.len() })?;
    let part_bytes = pages.page_bytes() - HEAD_BYTES;
    let mut ids = old.map_or(Ok(Vec::new()), |old| pages_of(pages, old))?;
    let kept = ids.len();
    if let Err(error) = claim(pages, &mut ids, bytes.len().div_ceil(part_bytes)) {
        ids.drain(kept..).for_each(|id| pages.free(id));
        return Err(error);
    }
    for id in ids.drain(bytes.len().div_ceil(part_bytes)..) {
        pages.free(id);
    }
    for (index, part) in bytes.chunks(part_bytes).enumerate() {
        let head = Head { kind: LONG, next: ids.get(index + 1).copied(), ..Head::default() };
        let page = pages.write(ids[index])?;
        head.store(page);
        page[HEAD_BYTES..][..part.len()].copy_from_slice(part);
        page[HEAD_BYTES + part.len()..].fill(0);
    }
    Ok(LongRef { first: ids[0], len })
}

/// Makes the first `count` pages writable, adding new ones: afterwards no write can fail.
fn claim(pages: &mut Pages, ids: &mut Vec<PageId>, count: usize) -> Result<(), StateError> {
    for &id in ids.iter().take(count) {
        pages.write(id)?;
    }
    while ids.len() < count {
        ids.push(pages.allocate()?);
    }
    Ok(())
}
