//! What a freeze hands over. It may go to another thread; nothing in it changes any more.

#![allow(unsafe_code)]

use super::PageId;
use super::buffer::Buffer;
use super::pool::Outstanding;
use std::fmt;
use std::ops::Deref;

/// A page as it was when it was frozen. Dropping it lets the owner write the page in place again.
pub struct FrozenPage(Buffer);

impl FrozenPage {
    pub(super) fn new(buffer: Buffer) -> Self {
        Self(buffer)
    }
}

impl Deref for FrozenPage {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the length is that of the buffer's pool. A page is filled before it gets a second handle; and as long
        // as this one lives outside of `Pages`, the owner writes to a copy.
        unsafe { self.0.bytes(self.0.page_bytes()) }
    }
}

impl fmt::Debug for FrozenPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrozenPage({} bytes)", self.len())
    }
}

/// All that changed since the last durable freeze of the same pages.
#[derive(Debug)]
pub struct FrozenPages {
    /// Pages that changed, in no order, each once.
    pub changed: Vec<(PageId, FrozenPage)>,
    /// Pages that are no more, each once; none of them is in `changed`. Some may never have been in a durable freeze.
    pub freed: Vec<PageId>,
    /// Bytes of each page.
    pub page_bytes: u32,
    /// All ids are below.
    pub count: u32,
    /// Nothing of these pages is durable yet, so `changed` is all there is.
    pub full: bool,
    /// What is to be noted about a page beside where it is stored, out of its bytes: enough for its owner to go on without
    /// reading all pages.
    pub tag_of: fn(&[u8]) -> u64,
    /// Tells the pool when all this is gone. The last field: it is dropped after the pages.
    #[expect(dead_code, reason = "it works by being dropped")]
    pub(crate) outstanding: Outstanding,
}

impl FrozenPages {
    /// Pages that no [`super::Pages`] has handed over: what is to stand in a store, put together by hand.
    pub fn of(changed: Vec<(PageId, FrozenPage)>, freed: Vec<PageId>, page_bytes: u32, count: u32, full: bool) -> Self {
        Self { changed, freed, page_bytes, count, full, tag_of: |_| 0, outstanding: Outstanding::default() }
    }
}
