//! A table as checkpoints see it: what a freeze hands over, what becomes of that, and pages that are still in the snapshot.

use super::head::Head;
use super::root::Root;
use super::{StateError, Table};
use crate::page::{CutPages, FrozenPages};
use crate::record::Record;

impl<K: Record, V: Record> Table<K, V> {
    /// Hands over a root and all pages that changed since the last durable freeze. An earlier freeze that is still
    /// undecided counts as given up. The cost does not depend on the size of the table.
    pub fn freeze(&mut self) -> (Vec<u8>, FrozenPages) {
        let root = self.root();
        let tag_of = |page: &[u8]| Head::load(page).tag();
        (root.encode(), FrozenPages { tag_of, ..self.buckets.pages.freeze() })
    }

    /// Begins a cut of the whole table as it is now, and hands over its root. The cost does not depend on the size of the
    /// table. An earlier cut that is not complete is let go of.
    pub fn begin_view(&mut self) -> Vec<u8> {
        self.buckets.pages.begin_view();
        self.root().encode()
    }

    /// Goes on with that cut by so many pages, while the table goes on changing. All pages, if these were the last; none: there
    /// is more to do. With the root they are what [`FrozenTable`](super::FrozenTable) is made of.
    ///
    /// # Errors
    /// A page that is still in the snapshot cannot be read: the cut is given up.
    pub fn view_step(&mut self, pages: u32) -> Result<Option<CutPages>, StateError> {
        Ok(self.buckets.pages.view_step(pages)?)
    }

    /// Lets go of a cut that is not complete.
    pub fn drop_view(&mut self) {
        self.buckets.pages.drop_view();
    }

    fn root(&self) -> Root {
        Root {
            of_elements: self.buckets.hasher.is_of_elements(),
            page_bytes: self.buckets.pages.page_bytes() as u32,
            seed: self.buckets.hasher.seed(),
            range: self.buckets.range,
            len: self.buckets.len,
            key_bytes: K::WIDTH,
            value_bytes: V::WIDTH,
        }
    }

    /// Brings in up to `pages` of the pages that are still in the snapshot. True if none is left there: then the snapshot
    /// is let go of.
    ///
    /// # Errors
    /// A page is damaged or cannot be read, or the pool is exhausted; the table has not changed.
    pub fn hydrate(&mut self, pages: u32) -> Result<bool, StateError> {
        Ok(self.buckets.pages.hydrate(pages)?)
    }

    /// Nothing counts as durable any more: the next freeze hands over all there is, and is durable by itself. What is still in
    /// the snapshot is brought in first.
    ///
    /// # Errors
    /// As for [`Table::hydrate`].
    pub fn renew(&mut self) -> Result<(), StateError> {
        Ok(self.buckets.pages.renew()?)
    }

    /// How many of the pages are still in the snapshot.
    pub fn absent_pages(&self) -> u32 {
        self.buckets.pages.absent()
    }

    /// The last freeze has become durable.
    pub fn durable(&mut self) {
        self.buckets.pages.durable();
    }

    /// The last freeze was given up: its pages are dirty again.
    pub fn abandon(&mut self) {
        self.buckets.pages.abandon();
    }
}
