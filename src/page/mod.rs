//! Pages of state and their frozen handles.

use std::ops::Deref;
use std::sync::Arc;

/// The number of a page within the state that owns it.
pub type PageId = u32;

/// A page as it was when it was frozen.
#[derive(Clone, Debug)]
pub struct FrozenPage(Arc<[u8]>);

impl FrozenPage {
    /// A frozen page that holds a copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl Deref for FrozenPage {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// What a freeze hands over: the pages that changed since the last durable freeze.
#[derive(Clone, Debug)]
pub struct FrozenPages {
    /// Changed pages, each id once.
    pub changed: Vec<(PageId, FrozenPage)>,
    /// Pages that are no more.
    pub freed: Vec<PageId>,
    /// The size of every page.
    pub page_bytes: u32,
    /// All ids are below.
    pub count: u32,
    /// `changed` holds every page there is.
    pub full: bool,
}
