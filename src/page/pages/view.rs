//! A cut of all pages, taken while they go on changing (rule 8 of the room).

use super::Pages;
use crate::page::pool::{Loan, Outstanding};
use crate::page::{FrozenPage, PageError, PageId, PoolExhausted};

/// A cut that is being taken.
pub(super) struct Cut {
    /// The epoch that began with it: pages written since then are not as they were.
    now: u32,
    /// Pages below have been handed over, or are no part of it.
    next: PageId,
    /// All pages of the cut are below.
    end: PageId,
    whole: Loan<WholePages>,
    /// A page was freed that could not be read first.
    pub(super) failed: Option<PageError>,
}

/// All pages as they were at one moment, in no order; one may be there twice. As long as this lives, who changes one copies it,
/// and who finds the pool exhausted waits for it to go.
pub struct WholePages {
    pages: Vec<(PageId, FrozenPage)>,
    outstanding: Outstanding,
}

/// The same as part of something that is not complete: who finds the pool exhausted waits for a while, as he may have to go on
/// with that himself, and then has all of it let go of.
pub struct CutPages(Loan<WholePages>);

impl CutPages {
    /// Whoever has them now can let go of them at any time: they are worth waiting for without end. None: they are gone.
    pub fn hand_over(self) -> Option<WholePages> {
        self.0.keep(|whole| whole.outstanding.complete())
    }
}

impl WholePages {
    /// Takes the pages out one by one; the token goes when this does.
    pub fn drain(&mut self) -> impl Iterator<Item = (PageId, FrozenPage)> {
        self.pages.drain(..)
    }
}

impl Pages {
    /// Whether a cut is being taken.
    pub fn is_viewed(&self) -> bool {
        self.cut.is_some()
    }

    /// Begins a cut of all pages as they are now; an earlier one that is not complete is let go of. Nothing is copied or
    /// listed here: that is done by [`Pages::view_step`] and by who changes a page first.
    pub fn begin_view(&mut self) {
        self.next_epoch();
        let (now, end) = (self.now, self.count());
        let whole = WholePages { pages: Vec::new(), outstanding: self.pool.outstanding().under_way() };
        self.cut = Some(Box::new(Cut { now, next: 0, end, whole: self.pool.lend(whole), failed: None }));
    }

    /// Goes on with the cut, by so many ids. All pages, if that was the last of them; none: there is more to do, or nothing
    /// has been begun.
    ///
    /// # Errors
    /// A page is absent and cannot be read, or what the cut had was needed for other pages (`Exhausted`). The cut is given up.
    pub fn view_step(&mut self, ids: u32) -> Result<Option<CutPages>, PageError> {
        let Some(mut cut) = self.cut.take() else { return Ok(None) };
        if let Some(error) = cut.failed.take() {
            return Err(error);
        }
        let stop = cut.end.min(cut.next.saturating_add(ids));
        for id in cut.next..stop {
            if self.is_live(id) && cut.has(self.entries[id as usize].epoch) {
                self.read(id)?;
                cut.take(id, self);
            }
        }
        cut.next = stop;
        // Meanwhile, or just now for one of these pages.
        if cut.whole.get().is_none() {
            return Err(PoolExhausted { limit_bytes: self.pool.limit_bytes() }.into());
        }
        if stop == cut.end {
            return Ok(Some(CutPages(cut.whole)));
        }
        self.cut = Some(cut);
        Ok(None)
    }

    /// Lets go of a cut that is not complete.
    pub fn drop_view(&mut self) {
        self.cut = None;
    }

    /// A page is about to change for the first time in this epoch, or to go: the cut takes it first, if it is a part of that.
    #[cold]
    pub(super) fn save_for_view(&mut self, id: PageId) {
        let Some(mut cut) = self.cut.take() else { return };
        if id >= cut.next && id < cut.end && cut.has(self.entries[id as usize].epoch) {
            match self.read(id).map(|_| ()) {
                Ok(()) => cut.take(id, self),
                Err(error) => cut.failed = Some(error),
            }
        }
        self.cut = Some(cut);
    }
}

impl Cut {
    /// Whether a page that was last written in `epoch` is as it was at the cut.
    fn has(&self, epoch: u32) -> bool {
        epoch < self.now
    }

    fn take(&mut self, id: PageId, pages: &Pages) {
        let buffer = pages.entries[id as usize].buffer.get().expect("it has just been read");
        if let Some(whole) = self.whole.get().as_mut() {
            whole.pages.push((id, FrozenPage::new(buffer.share())));
        }
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests;
