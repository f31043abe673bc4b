//! The pages of one entry where they lie in the file: what is known of them is the map, and each is read and checked when it
//! is asked for. It must not know what a page means.
//!
//! Nothing is held here that keeps their blocks from being used again, and nothing needs to: the blocks are those of the
//! epoch on which the next checkpoints build, and a checkpoint passes on, unwritten, every page that its owner has not
//! changed. A page that has not been read has not been changed, so its block is reached by every later epoch.

use super::fault::{Fault, io};
use super::format::{Geometry, TaggedSlot, offset_of};
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
    /// By ascending id.
    pub slots: Vec<(PageId, TaggedSlot)>,
}

impl StoredPages {
    /// All pages, one behind the other.
    pub fn read_all(&self) -> Result<Vec<u8>, StoreError> {
        let forest = Forest { source: &*self.file, geometry: self.geometry };
        let mut bytes = vec![0; self.slots.len() * self.geometry.page_bytes as usize];
        let read = read_pages(forest, &self.slots, &mut bytes, &Sums::new(0));
        read.map_err(|fault| fault.within(|| self.place.clone()).at(&self.path))?;
        Ok(bytes)
    }

    fn slot(&self, id: PageId) -> Option<TaggedSlot> {
        let at = self.slots.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.slots[at].1)
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
        Box::new(self.slots.iter().map(|(id, slot)| (*id, slot.tag.get())))
    }

    fn read(&self, id: PageId, into: &mut [u8]) -> Result<u64, PageError> {
        let Some(slot) = self.slot(id) else {
            return Err(PageError::Corrupt { what: format!("{} is not in the map", self.name(id)) });
        };
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
