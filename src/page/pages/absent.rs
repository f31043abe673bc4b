//! Pages that are still where their source has them (rule 7 of the room).

#![allow(unsafe_code)]

use super::{Entry, Pages, not_allocated};
use crate::page::buffer::Buffer;
use crate::page::large::in_huge_pages;
use crate::page::list::IdList;
use crate::page::{FrozenPage, PageError, PageId, PageSource, Pool};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

const _: () = {
    // SAFETY: all bytes of an empty cell of a pointer and of two numbers are initialized, or this would not compile.
    let bytes: [u64; 2] = unsafe { std::mem::transmute(Entry::absent()) };
    assert!(bytes[0] == 0 && bytes[1] == 0);
};

/// So many absent pages, with room for more: memory that is not touched before a page is.
fn absent_entries(count: u32, ahead: usize) -> Vec<Entry> {
    let (count, room) = (count as usize, count as usize + ahead);
    let layout = Layout::array::<Entry>(room).expect("there are addresses enough");
    if room == 0 {
        return Vec::new();
    }
    // SAFETY: it is not empty.
    let first = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
    // Of small ones, almost each page that comes first would bring in one more.
    in_huge_pages(first, count * size_of::<Entry>());
    // SAFETY: the global allocator gave it for this layout, and an entry of zeros is `Entry::absent()`, as has been looked at when
    // this was compiled.
    unsafe { Vec::from_raw_parts(first.as_ptr().cast(), count, room) }
}

impl Pages {
    /// The pages of a durable freeze without reading any: all are absent, none is dirty.
    ///
    /// # Panics
    /// The source names an id twice, or not in their order.
    pub fn restore_absent(pool: &Pool, source: Arc<dyn PageSource>) -> Self {
        let mut this = Self::new(pool);
        this.any_durable = true;
        let (live, count) = (source.live(), source.count());
        this.absent.set(live);
        this.entries = absent_entries(count, Self::ahead(pool));
        // If there is a page of each id, none need be looked at.
        if live != count {
            let mut next = 0;
            source.each(&mut |first, notes| {
                assert!(first >= next, "page {first} comes twice");
                this.free_ids.extend(next..first);
                next = first + notes.len() as PageId;
            });
            this.free_ids.iter().for_each(|&id| this.entries[id as usize] = Entry::free());
            // The lowest is the first to be used again.
            this.free_ids.reverse();
        }
        assert_eq!(live + this.free_ids.len() as u32, count, "as many pages as the source says");
        this.source = Some(source);
        this
    }

    /// Brings an absent page in.
    #[cold]
    #[inline(never)]
    pub(super) fn fetch(&self, id: PageId) -> Result<&Buffer, PageError> {
        let entry = &self.entries[id as usize];
        let Some(source) = self.source.as_ref().filter(|_| entry.is_absent()) else { not_allocated(id) };
        let mut buffer = self.pool.take()?;
        buffer.zero();
        // SAFETY: the length is that of our pool, all bytes are zero, and nobody else has a handle yet.
        source.read(id, unsafe { buffer.bytes_mut(self.page_bytes) })?;
        self.absent.set(self.absent.get() - 1);
        Ok(entry.buffer.get_or_init(|| buffer))
    }

    /// Brings in up to `pages` absent pages. True if none is left: then the source is let go of.
    ///
    /// # Errors
    /// As for [`Pages::read`]; other pages are as they were.
    pub fn hydrate(&mut self, pages: u32) -> Result<bool, PageError> {
        let mut left = pages;
        while left > 0 && self.absent.get() > 0 {
            if self.entries[self.hydrated_to as usize].is_absent() {
                self.fetch(self.hydrated_to)?;
                left -= 1;
            }
            self.hydrated_to += 1;
        }
        if self.absent.get() == 0 {
            self.source = None;
        }
        Ok(self.source.is_none())
    }

    /// Whether a page is absent.
    pub fn is_absent(&self, id: PageId) -> bool {
        self.entries.get(id as usize).is_some_and(Entry::is_absent)
    }

    /// How many pages are absent.
    pub fn absent(&self) -> u32 {
        self.absent.get()
    }

    /// Nothing counts as durable any more: the next freeze hands over all there is. For a store that begins a new file, where
    /// nothing is to build on. All absent pages are brought in first.
    ///
    /// # Errors
    /// As for [`Pages::read`]; what is durable is as it was.
    pub fn renew(&mut self) -> Result<(), PageError> {
        self.hydrate(u32::MAX)?;
        self.abandon();
        for (id, entry) in (0..).zip(&mut self.entries) {
            if let Some(buffer) = entry.buffer.get()
                && !self.dirty.contains(id, entry.place)
            {
                self.handles.push((id, FrozenPage::new(buffer.share())));
                entry.place = self.dirty.push(id);
            }
        }
        (self.freed, self.any_durable) = (IdList::default(), false);
        Ok(())
    }
}
