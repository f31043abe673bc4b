//! A set of page ids that can be handed over whole in constant time: each page's entry says where in the list it
//! stands, and the list itself says whether that is (still) true, so nothing has to be wiped when the list goes.

use super::PageId;

/// Ids in no order. The caller keeps each id's place.
#[derive(Default)]
pub(super) struct IdList(pub(super) Vec<PageId>);

impl IdList {
    /// Whether `id` is in the list; `place` is what the last `push` (or `moved`) said, or anything.
    pub(super) fn contains(&self, id: PageId, place: u32) -> bool {
        self.0.get(place as usize) == Some(&id)
    }

    /// Adds an id that is not in the list, and says its place.
    pub(super) fn push(&mut self, id: PageId) -> u32 {
        self.0.push(id);
        (self.0.len() - 1) as u32
    }

    /// Takes out the id at a place; the id that now has the place, if any, is to be told.
    pub(super) fn remove(&mut self, place: u32) -> Option<PageId> {
        self.0.swap_remove(place as usize);
        self.0.get(place as usize).copied()
    }
}
