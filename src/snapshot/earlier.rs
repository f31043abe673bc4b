//! Generations that are only read: what there is beside the one that is written. It must not write.

use super::fault::{Fault, io};
use super::format::{Geometry, TableEntry};
use super::generation::Generation;
use super::head::{Head, read_head};
use super::home::Generations;
use super::map::PageMap;
use super::recover::{Key, read_table, recover};
use super::sink::ReadAt;
use super::tree::Forest;
use crate::error::StoreError;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A generation that is read only: a later one has taken its place.
pub(super) struct Earlier {
    pub number: u32,
    pub path: PathBuf,
    pub source: Arc<dyn ReadAt>,
    pub geometry: Geometry,
    /// Those of its epochs that count.
    pub table: Vec<TableEntry>,
}

impl Earlier {
    /// The maps of an epoch.
    pub fn maps(&self, epoch: u64) -> Result<HashMap<Key, PageMap>, Fault> {
        let entry: Vec<_> = self.table.iter().filter(|entry| entry.epoch.get() == epoch).copied().collect();
        match recover(&*self.source, self.geometry, &entry, Vec::new(), epoch)?.base {
            Ok(base) => Ok(base.maps),
            Err(what) => Err(Fault::Corrupt(what)),
        }
    }
}

impl From<Generation> for Earlier {
    fn from(was: Generation) -> Self {
        let geometry = was.geometry();
        let source: Box<dyn ReadAt> = was.sink;
        Self { number: was.number, path: was.path, source: source.into(), geometry, table: was.table }
    }
}

/// Where an epoch lies.
pub(super) struct Found<'a> {
    pub path: &'a Path,
    pub forest: Forest<'a>,
    pub entry: &'a TableEntry,
}

/// Opens earlier generations for reading, oldest first. Those that are needed to know the newest epoch must be readable;
/// the others may be what a failing disk has left, and are left out.
pub(super) fn read_earlier(
    home: &dyn Generations,
    numbers: &[u32],
    newest: &Head,
    mut known: bool,
) -> Result<Vec<Earlier>, StoreError> {
    let (mut files, mut limit) = (Vec::new(), newest.follows);
    for number in numbers.iter().rev() {
        match read_one(home, *number, newest.id, &mut limit) {
            Ok(file) => {
                known |= !file.table.is_empty();
                files.push(file);
            }
            // Without it, it is not known which epochs of those before it count.
            Err(_) if known => break,
            Err(error) => return Err(error),
        }
    }
    files.reverse();
    Ok(files)
}

/// Epochs above `limit` were never acknowledged: a later generation was begun without them.
fn read_one(home: &dyn Generations, number: u32, id: [u8; 16], limit: &mut u64) -> Result<Earlier, StoreError> {
    let path = home.path(number);
    let at = |fault: Fault| fault.at(&path);
    let source = home.open(number).map_err(io("open")).map_err(at)?;
    let head = read_head(&*source).map_err(at)?;
    if head.id != id {
        return Err(at(Fault::Foreign("the file of another store: move it away".into())));
    }
    let (mut table, _) = read_table(Forest { source: &*source, geometry: head.geometry }, &head.meta).map_err(at)?;
    table.retain(|entry| entry.epoch.get() <= *limit);
    *limit = head.follows.min(*limit);
    Ok(Earlier { number, path: path.clone(), source: source.into(), geometry: head.geometry, table })
}

/// The epoch, in the newest file that has it.
pub(super) fn find(files: &[Earlier], epoch: u64) -> Result<Found<'_>, StoreError> {
    let is_it = |entry: &&TableEntry| entry.epoch.get() == epoch;
    let found = files.iter().rev().find_map(|file| Some((file, file.table.iter().find(is_it)?)));
    let (file, entry) = found.ok_or_else(|| StoreError::NoEpoch {
        path: files.last().map(|file| file.path.clone()).unwrap_or_default(),
        epoch,
        kept: files.iter().flat_map(|file| &file.table).map(|entry| entry.epoch.get()).collect(),
    })?;
    Ok(Found { path: &file.path, forest: Forest { source: &*file.source, geometry: file.geometry }, entry })
}
