//! The pages of one entry where they lie in the file: what is known of them is the map, and each is read and checked when it
//! is asked for. It must not know what a page means.
//!
//! Nothing is held here that keeps their blocks from being used again, and nothing needs to: the blocks are those of the
//! epoch on which the next checkpoints build, and a checkpoint passes on, unwritten, every page that its owner has not
//! changed. A page that has not been read has not been changed, so its block is reached by every later epoch.

use super::fault::{Fault, io};
use super::format::{Geometry, TaggedSlot, offset_of};
use super::leaves::Leaves;
use super::restored::read_pages;
use super::sink::ReadAt;
use super::sums::Sums;
use super::tree::Forest;
use crate::error::StoreError;
use crate::page::{PageError, PageId, PageSource};
use std::path::PathBuf;
use std::sync::Arc;

/// Pages in the file.
pub(super) struct StoredPages {
    pub file: Arc<dyn ReadAt>,
    pub path: PathBuf,
    pub geometry: Geometry,
    /// Epoch, operator, state, task: for messages.
    pub place: String,
    pub leaves: Arc<Leaves>,
    pub sums: Arc<Sums>,
}

impl StoredPages {
    /// All pages, one behind the other.
    pub fn read_all(&self) -> Result<Vec<u8>, StoreError> {
        let slots: Vec<_> = self.leaves.iter().collect();
        let mut bytes = vec![0; slots.len() * self.geometry.page_bytes as usize];
        let read = read_pages(self.forest(), &slots, &mut bytes, &self.sums);
        read.map_err(|fault| fault.within(|| self.place.clone()).at(&self.path))?;
        Ok(bytes)
    }

    fn forest(&self) -> Forest<'_> {
        Forest { source: &*self.file, geometry: self.geometry }
    }

    fn slot(&self, id: PageId) -> Result<TaggedSlot, PageError> {
        let none = || PageError::Corrupt { what: format!("{} is not in the map", self.name(id)) };
        self.leaves.get(id).ok_or_else(none)
    }

    fn read_slot(&self, slot: TaggedSlot, into: &mut [u8]) -> Result<(), Fault> {
        let offset_bytes = offset_of(slot.block());
        self.file.read(offset_bytes, into).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Fault::Corrupt(format!("at block {}: the file ends before it, it was truncated", slot.block()))
            }
            _ => io("read")(error),
        })?;
        if crc32c::crc32c(into) == slot.crc() {
            return Ok(());
        }
        Err(Fault::Corrupt(format!("at block {}: checksum does not match", slot.block())))
    }
}

impl PageSource for StoredPages {
    fn pages(&self) -> Box<dyn Iterator<Item = (PageId, u64)> + '_> {
        Box::new(self.leaves.iter().map(|(id, slot)| (id, slot.tag.get())))
    }

    fn live(&self) -> u32 {
        self.leaves.len() as u32
    }

    fn count(&self) -> u32 {
        self.leaves.count()
    }

    fn each(&self, visit: &mut dyn FnMut(PageId, &[u64])) {
        let mut tags = Vec::new();
        self.leaves.runs(|first, slots| {
            tags.clear();
            tags.extend(slots.iter().map(|slot| slot.tag.get()));
            visit(first, &tags);
        });
    }

    fn read_many(&self, ids: &[PageId], into: &mut [u8]) -> Result<Vec<u64>, PageError> {
        assert_eq!(into.len(), ids.len() * self.geometry.page_bytes as usize, "so long are the pages");
        let slots = ids.iter().map(|id| Ok((*id, self.slot(*id)?))).collect::<Result<Vec<_>, PageError>>()?;
        let read = read_pages(self.forest(), &slots, into, &self.sums);
        read.map_err(|fault| {
            let is_unreadable = matches!(fault, Fault::Io(..));
            let what = fault.within(|| self.place.clone()).at(&self.path).to_string();
            if is_unreadable { PageError::Unreadable { what } } else { PageError::Corrupt { what } }
        })?;
        Ok(slots.iter().map(|(_, slot)| slot.tag.get()).collect())
    }

    fn read(&self, id: PageId, into: &mut [u8]) -> Result<u64, PageError> {
        let slot = self.slot(id)?;
        self.read_slot(slot, into).map_err(|fault| match fault {
            Fault::Io(action, error) => {
                PageError::Unreadable { what: format!("{}: cannot {action} it: {error}", self.name(id)) }
            }
            Fault::Corrupt(what) | Fault::Foreign(what) => {
                PageError::Corrupt { what: format!("{} {what}", self.name(id)) }
            }
        })?;
        Ok(slot.tag.get())
    }

    fn name(&self, id: PageId) -> String {
        format!("{}: {}, page {id}", self.path.display(), self.place)
    }
}
