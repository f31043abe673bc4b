//! Where absent pages are: what a set of pages asks for one when it is touched for the first time. It knows no file.

use super::{PageError, PageId};

/// The pages of one state as a snapshot has them. They do not change while this lives.
pub trait PageSource: Send + Sync {
    /// Each page's id, in ascending order, and what was noted about it when it was stored.
    fn pages(&self) -> Box<dyn Iterator<Item = (PageId, u64)> + '_>;

    /// How many there are.
    fn live(&self) -> u32 {
        self.pages().count() as u32
    }

    /// All ids are below.
    fn count(&self) -> u32 {
        self.pages().last().map_or(0, |(id, _)| id + 1)
    }

    /// All pages, neighbours together: the first id of a run, and what was noted about each of its pages.
    fn each(&self, visit: &mut dyn FnMut(PageId, &[u64])) {
        self.pages().for_each(|(id, note)| visit(id, &[note]));
    }

    /// Reads a page that there is, verified against its checksum, and says what was noted about it.
    ///
    /// # Errors
    /// It is damaged, or the system refused; the message names file, epoch, state and page.
    fn read(&self, id: PageId, into: &mut [u8]) -> Result<u64, PageError>;

    /// Reads pages that there are, one behind the other into `into`, as [`PageSource::read`] does; neighbours together.
    ///
    /// # Errors
    /// As there.
    fn read_many(&self, ids: &[PageId], into: &mut [u8]) -> Result<Vec<u64>, PageError> {
        let page_bytes = into.len().checked_div(ids.len()).unwrap_or(1).max(1);
        ids.iter().zip(into.chunks_mut(page_bytes)).map(|(id, page)| self.read(*id, page)).collect()
    }

    /// A page's name for messages: file, epoch, state and page.
    fn name(&self, id: PageId) -> String;
}
