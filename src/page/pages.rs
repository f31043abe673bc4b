//! The pages of one state, by id, with the epoch of each: copy-on-write and what is dirty. See the rules at the head of
//! the room.

#![allow(unsafe_code)]

mod absent;
mod near;
mod view;

pub use near::Near;
pub use view::{CutPages, WholePages};

use super::buffer::Buffer;
use super::list::IdList;
use super::pool::Outstanding;
use super::{FrozenPage, FrozenPages, PageError, PageId, PageSource, Pool, PoolExhausted};
use near::NearList;
use std::cell::{Cell, OnceCell};
use std::sync::Arc;

/// Not an epoch: the page is as its source has it. Zero: so an entry of zeros is that of an absent page.
const SOURCE: u32 = 0;
/// Older than every epoch.
const NEVER: u32 = 1;

/// Room is made in advance for so many pages.
const AHEAD_MAX: usize = 1 << 18;

/// 16 bytes a page.
struct Entry {
    /// Empty: the page is absent (rule 7), or else the id is free. A cell, so that reading can bring a page in.
    buffer: OnceCell<Buffer>,
    /// The epoch of the last write, or `SOURCE`.
    epoch: u32,
    /// Its place in the dirty list, or in the list of freed ids; true only if that list agrees.
    place: u32,
}

const _: () = assert!(size_of::<Entry>() == 16);

impl Entry {
    fn free() -> Self {
        Self { buffer: OnceCell::new(), epoch: NEVER, place: 0 }
    }

    /// A page that is where its source has it.
    const fn absent() -> Self {
        Self { buffer: OnceCell::new(), epoch: SOURCE, place: 0 }
    }

    fn is_absent(&self) -> bool {
        self.epoch == SOURCE && self.buffer.get().is_none()
    }

    fn is_live(&self) -> bool {
        self.epoch == SOURCE || self.buffer.get().is_some()
    }
}

/// A freeze of which it is not known whether it became durable.
struct Undecided {
    changed: Vec<PageId>,
    freed: Vec<PageId>,
}

/// The pages of one state.
pub struct Pages {
    pool: Pool,
    page_bytes: usize,
    entries: Vec<Entry>,
    /// The current epoch: bumped by each freeze.
    now: u32,
    free_ids: Vec<PageId>,
    /// Changed since the last durable freeze, and, place by place, their handles.
    dirty: IdList,
    handles: Vec<(PageId, FrozenPage)>,
    /// Freed since the last durable freeze and not in use again.
    freed: IdList,
    undecided: Option<Undecided>,
    any_durable: bool,
    copies: u64,
    /// How many pages are absent, and where they are; none when all have come.
    absent: Cell<u32>,
    source: Option<Arc<dyn PageSource>>,
    /// No page below is absent.
    hydrated_to: PageId,
    /// A cut of all pages that is being taken.
    cut: Option<Box<view::Cut>>,
    near: NearList,
}

impl Pages {
    /// No pages yet.
    pub fn new(pool: &Pool) -> Self {
        let ahead = Self::ahead(pool);
        Self {
            pool: pool.clone(),
            page_bytes: pool.page_bytes(),
            entries: Vec::with_capacity(ahead),
            now: NEVER + 1,
            free_ids: Vec::new(),
            dirty: IdList(Vec::with_capacity(ahead)),
            handles: Vec::with_capacity(ahead),
            freed: IdList::default(),
            undecided: None,
            any_durable: false,
            copies: 0,
            absent: Cell::new(0),
            source: None,
            hydrated_to: 0,
            cut: None,
            near: NearList::default(),
        }
    }

    /// So many entries there is room for. Addresses, not memory: what grows page by page is never moved, which would be a step in
    /// somebody's latency.
    fn ahead(pool: &Pool) -> usize {
        (pool.limit_bytes() / pool.page_bytes()).min(AHEAD_MAX)
    }

    /// The pages of a durable freeze, under their old ids: none of them is dirty. Each id comes once.
    ///
    /// # Errors
    /// The pool is exhausted.
    ///
    /// # Panics
    /// An id comes twice, or a page has another length than those of the pool.
    pub fn restore<'a>(
        pool: &Pool,
        pages: impl IntoIterator<Item = (PageId, &'a [u8])>,
    ) -> Result<Self, PoolExhausted> {
        let mut this = Self::new(pool);
        this.any_durable = true;
        for (id, bytes) in pages {
            let mut buffer = pool.take()?;
            buffer.fill(bytes);
            if this.count() <= id {
                this.entries.resize_with(id as usize + 1, Entry::free);
            }
            let before = this.entries[id as usize].buffer.set(buffer);
            assert!(before.is_ok(), "page {id} comes twice");
        }
        this.free_ids = (0..this.count()).rev().filter(|&id| !this.is_live(id)).collect();
        Ok(this)
    }

    /// A new page, all zeros. It is dirty.
    ///
    /// # Errors
    /// The pool is exhausted.
    pub fn allocate(&mut self) -> Result<PageId, PoolExhausted> {
        let mut buffer = self.pool.take()?;
        buffer.zero();
        self.near.forget();
        let id = self.free_ids.pop().unwrap_or(self.count());
        if id == self.count() {
            self.entries.push(Entry::free());
        }
        self.unlist_freed(id);
        self.handles.push((id, FrozenPage::new(buffer.share())));
        let place = self.dirty.push(id);
        self.entries[id as usize] = Entry { buffer: buffer.into(), epoch: self.now, place };
        Ok(id)
    }

    /// Gives a page up. Freezes that hold it keep it.
    ///
    /// # Panics
    /// There is no such page.
    pub fn free(&mut self, id: PageId) {
        if self.cut.is_some() && self.is_live(id) {
            self.save_for_view(id);
        }
        self.near.forget();
        let entry = &mut self.entries[id as usize];
        *self.absent.get_mut() -= u32::from(entry.is_absent());
        assert!(entry.is_live(), "page {id} is not allocated");
        (entry.buffer, entry.epoch) = (OnceCell::new(), NEVER);
        let place = entry.place;
        if self.dirty.contains(id, place) {
            self.handles.swap_remove(place as usize);
            if let Some(moved) = self.dirty.remove(place) {
                self.entries[moved as usize].place = place;
            }
        }
        self.entries[id as usize].place = self.freed.push(id);
        self.free_ids.push(id);
    }

    /// Takes an id out of the list of freed ones, if it is there.
    fn unlist_freed(&mut self, id: PageId) {
        let place = self.entries[id as usize].place;
        if self.freed.contains(id, place)
            && let Some(moved) = self.freed.remove(place)
        {
            self.entries[moved as usize].place = place;
        }
    }

    /// Whether there is a page of this id.
    pub fn is_live(&self, id: PageId) -> bool {
        self.entries.get(id as usize).is_some_and(Entry::is_live)
    }

    /// Whether the next freeze hands a page over.
    pub fn is_dirty(&self, id: PageId) -> bool {
        self.entries.get(id as usize).is_some_and(|entry| self.dirty.contains(id, entry.place))
    }

    /// All ids are below.
    pub fn count(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Pages that there are.
    pub fn live(&self) -> u32 {
        self.count() - self.free_ids.len() as u32
    }

    /// Bytes of each page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// How many pages have been copied because a frozen handle was alive at their first write of an epoch.
    pub fn copies(&self) -> u64 {
        self.copies
    }

    /// A page's bytes.
    ///
    /// # Errors
    /// The page is absent, and its source cannot read it or the pool is exhausted.
    ///
    /// # Panics
    /// There is no such page.
    #[inline]
    pub fn read(&self, id: PageId) -> Result<&[u8], PageError> {
        let buffer = match self.entries[id as usize].buffer.get() {
            Some(buffer) => buffer,
            None => self.fetch(id)?,
        };
        // SAFETY: the length is that of our pool, and a buffer is filled before it is entered. Only we write, through
        // `&mut self`.
        Ok(unsafe { buffer.bytes(self.page_bytes) })
    }

    /// The same for who can do without: None if the page is absent.
    ///
    /// # Panics
    /// There is no such page.
    #[inline(always)]
    pub fn here(&self, id: PageId) -> Option<&[u8]> {
        // SAFETY: as in `read`.
        self.entries[id as usize].buffer.get().map(|buffer| unsafe { buffer.bytes(self.page_bytes) })
    }

    /// A page's bytes, to be changed. The page is dirty from now on. Its first write after a freeze copies the page,
    /// if the frozen one is still in somebody's hands.
    ///
    /// # Errors
    /// A copy is needed and the pool is exhausted, or as for [`Pages::read`]; nothing has changed.
    ///
    /// # Panics
    /// There is no such page.
    #[inline]
    pub fn write(&mut self, id: PageId) -> Result<&mut [u8], PageError> {
        if self.entries[id as usize].epoch != self.now {
            self.first_write(id)?;
        }
        Ok(self.written(id).unwrap_or_else(|| not_allocated(id)))
    }

    /// The same for a page that has been written to in this epoch. None for all others, even if there is no such page.
    #[inline(always)]
    pub fn written(&mut self, id: PageId) -> Option<&mut [u8]> {
        let entry = self.entries.get(id as usize).filter(|entry| entry.epoch == self.now)?;
        // SAFETY: who sets an entry's epoch to now has put a buffer in; who takes that out sets the epoch to `NEVER`.
        let buffer = unsafe { entry.buffer.get().unwrap_unchecked() };
        // SAFETY: as in `read`; and as the page's epoch is now, all handles but ours and the one in the dirty list (which
        // nobody can reach before the next freeze, through `&mut self`) are gone, or were never of this buffer. The address
        // stands for ours: it stays in its entry as long as `self` is borrowed.
        Some(unsafe { std::slice::from_raw_parts_mut(buffer.start().as_ptr(), self.page_bytes) })
    }

    /// Makes a page writable in place and dirty.
    #[cold]
    #[inline(never)]
    fn first_write(&mut self, id: PageId) -> Result<(), PageError> {
        self.read(id)?;
        if self.cut.is_some() {
            self.save_for_view(id);
        }
        let entry = &mut self.entries[id as usize];
        let Some(buffer) = entry.buffer.get_mut() else { not_allocated(id) };
        let is_dirty = self.dirty.contains(id, entry.place);
        // The Acquire in `handles` goes with the Release with which a frozen page is dropped. Nobody but us makes new
        // handles, so a count that is ours alone stays so.
        let is_shared = || buffer.handles() > 1 + u32::from(is_dirty);
        // While a page is waited for, the frozen one may go: then no copy is needed.
        let copy = if is_shared() { self.pool.take_while(is_shared)? } else { None };
        if let Some(mut copy) = copy {
            // SAFETY: as in `read`.
            copy.fill(unsafe { buffer.bytes(self.page_bytes) });
            *buffer = copy;
            self.copies += 1;
            if is_dirty {
                self.handles[entry.place as usize].1 = FrozenPage::new(buffer.share());
            }
        }
        if !is_dirty {
            self.handles.push((id, FrozenPage::new(buffer.share())));
            entry.place = self.dirty.push(id);
        }
        entry.epoch = self.now;
        self.near.forget();
        Ok(())
    }

    /// Asks the processor to fetch what lies around a byte of a page, for a write that is to come.
    #[inline]
    pub fn prefetch(&self, id: PageId, offset: usize) {
        #[cfg(target_arch = "x86_64")]
        if let Some(buffer) = self.entries[id as usize].buffer.get() {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a hint reads nothing and never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(buffer.start().as_ptr().wrapping_add(offset).cast()) };
        }
        // No stable intrinsic elsewhere: the loads that follow are independent, which is most of the gain.
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (id, offset);
    }

    /// Hands over all that is dirty. An earlier freeze that is still undecided counts as given up.
    pub fn freeze(&mut self) -> FrozenPages {
        self.abandon();
        let changed = std::mem::take(&mut self.handles);
        self.handles.reserve(changed.len());
        let freed = std::mem::take(&mut self.freed.0);
        self.undecided = Some(Undecided { changed: std::mem::take(&mut self.dirty.0), freed: freed.clone() });
        self.dirty.0.reserve(changed.len());
        self.next_epoch();
        FrozenPages {
            outstanding: if changed.is_empty() { Outstanding::default() } else { self.pool.outstanding() },
            changed,
            freed: if self.any_durable { freed } else { Vec::new() },
            page_bytes: self.page_bytes as u32,
            count: self.count(),
            full: !self.any_durable,
            tag_of: |_| 0,
        }
    }

    fn next_epoch(&mut self) {
        self.near.forget();
        self.now = self.now.wrapping_add(1);
        if self.now == SOURCE {
            // Once in four thousand million freezes, so that no page's epoch is ever taken for a later one.
            let written = self.entries.iter_mut().filter(|entry| entry.epoch != SOURCE);
            written.for_each(|entry| entry.epoch = NEVER);
            self.now = NEVER + 1;
            if let Some(cut) = &mut self.cut {
                cut.failed = Some(PageError::Unreadable { what: "a view fell on the turn of epochs".to_owned() });
            }
        }
    }

    /// The last freeze has become durable: what it handed over need not be written again.
    pub fn durable(&mut self) {
        self.any_durable |= self.undecided.take().is_some();
    }

    /// The last freeze was given up: what it handed over is dirty again.
    pub fn abandon(&mut self) {
        let Some(undecided) = self.undecided.take() else { return };
        for id in undecided.changed {
            let entry = &mut self.entries[id as usize];
            // Freed since: it is in the list of freed ids, or in use again and dirty.
            if let Some(buffer) = entry.buffer.get()
                && !self.dirty.contains(id, entry.place)
            {
                self.handles.push((id, FrozenPage::new(buffer.share())));
                entry.place = self.dirty.push(id);
            }
        }
        for id in undecided.freed {
            let entry = &mut self.entries[id as usize];
            if !entry.is_live() && !self.freed.contains(id, entry.place) {
                entry.place = self.freed.push(id);
            }
        }
    }
}

#[cold]
fn not_allocated(id: PageId) -> ! {
    panic!("page {id} is not allocated")
}
