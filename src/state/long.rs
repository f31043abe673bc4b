//! Byte strings that are too long for a bucket's page: chains of pages of their own.

use super::StateError;
use super::entry::LongRef;
use super::head::{HEAD_BYTES, Head, LONG};
use crate::page::{PageId, Pages};

/// Pages by id: those of a table, or those of a snapshot that is being read.
pub(super) trait Source {
    /// A page, if there is one.
    fn page(&self, id: PageId) -> Option<&[u8]>;
}

impl Source for Pages {
    fn page(&self, id: PageId) -> Option<&[u8]> {
        self.is_live(id).then(|| self.read(id))
    }
}

/// The parts of a long byte string, in order; it ends early where the chain is broken.
fn parts(source: &impl Source, long: LongRef) -> impl Iterator<Item = &[u8]> {
    let (mut next, mut left) = (Some(long.first), long.len as usize);
    std::iter::from_fn(move || {
        let page = source.page(next.filter(|_| left > 0)?)?;
        next = Head::load(page).next;
        let part = &page[HEAD_BYTES..][..left.min(page.len() - HEAD_BYTES)];
        left -= part.len();
        Some(part)
    })
}

/// Appends the bytes to `out`.
pub(super) fn read(source: &impl Source, long: LongRef, out: &mut Vec<u8>) -> Result<(), StateError> {
    let before = out.len();
    parts(source, long).for_each(|part| out.extend_from_slice(part));
    if out.len() - before == long.len as usize {
        return Ok(());
    }
    Err(StateError::corrupt(format!("a value of {} bytes ends early", long.len)))
}

/// Whether the bytes are these.
pub(super) fn equals(source: &impl Source, long: LongRef, mut bytes: &[u8]) -> bool {
    long.len as usize == bytes.len()
        && parts(source, long).all(|part| {
            let (head, rest) = bytes.split_at(part.len());
            bytes = rest;
            head == part
        })
        && bytes.is_empty()
}

/// The pages of a chain.
pub(super) fn chain(source: &impl Source, first: PageId) -> Vec<PageId> {
    std::iter::successors(Some(first), |&id| Head::load(source.page(id)?).next).collect()
}

/// Writes bytes (not none) to a new chain, or over an old one. If pages run out, nothing has changed.
pub(super) fn write(pages: &mut Pages, old: Option<LongRef>, bytes: &[u8]) -> Result<LongRef, StateError> {
    let len = u32::try_from(bytes.len()).map_err(|_| StateError::TooLong { bytes: bytes.len() })?;
    let part_bytes = pages.page_bytes() - HEAD_BYTES;
    let mut ids = old.map_or(Vec::new(), |old| chain(pages, old.first));
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

/// Gives a chain up.
pub(super) fn free(pages: &mut Pages, long: LongRef) {
    for id in chain(pages, long.first) {
        pages.free(id);
    }
}
