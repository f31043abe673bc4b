//! One file of a store, open for writing: what it holds, and what there is in memory beside it. Committing is in
//! `commit`. It must not know of other generations, nor how a sink writes.

use super::fault::{Fault, io, is_full};
use super::format::{Geometry, HEAD_BYTES, Superblock, TableEntry};
use super::head::{format, read_head};
use super::home::Home;
use super::recover::{Base, read_table, recover};
use super::sink::Sink;
use super::space::{Blocks, Space};
use super::tree::Forest;
use crate::error::StoreError;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The generation that is written.
pub(super) struct Generation {
    pub number: u32,
    pub path: PathBuf,
    pub sink: Box<dyn Sink>,
    pub id: [u8; 16],
    /// Epochs of earlier generations count up to this one.
    pub follows: u64,
    pub sequence: u64,
    pub table: Vec<TableEntry>,
    pub table_blocks: Vec<u32>,
    pub space: Space,
    /// `Err`: the epoch is damaged, and only full snapshots can follow.
    pub base: Result<Base, String>,
    pub dying: BTreeMap<u64, Blocks>,
    /// There was no room to spare (rule 13).
    pub is_tight: bool,
    /// What is taken, what dies and what to build on have been found in the file (rule 7). Until then all is taken.
    pub is_known: bool,
}

impl Generation {
    /// Makes a new generation, durably.
    pub fn make(home: &mut dyn Home, number: u32, superblock: &Superblock) -> Result<Self, StoreError> {
        let path = home.path(number);
        Self::try_make(home, number, superblock).map_err(|fault| {
            // Best effort: a leftover only takes room.
            let _ = home.remove(number);
            match fault {
                Fault::Io(_, error) if is_full(&error) => {
                    let bytes = HEAD_BYTES + superblock.segment_bytes.get();
                    StoreError::NoSpace { path: path.clone(), bytes }
                }
                other => other.at(&path),
            }
        })
    }

    fn try_make(home: &mut dyn Home, number: u32, superblock: &Superblock) -> Result<Self, Fault> {
        let mut sink = home.begin(number).map_err(io("create"))?;
        format(&mut *sink, superblock)?;
        home.publish(number).map_err(io("rename"))?;
        Self::load(number, home.path(number), sink)
    }

    /// Opens a generation that is there. The file is as long as its meta says: that has been checked.
    pub fn open(home: &mut dyn Home, number: u32, len_bytes: u64) -> Result<Self, StoreError> {
        let path = home.path(number);
        let sink = home.open_to_write(number, len_bytes).map_err(io("open")).map_err(|fault| fault.at(&path))?;
        Self::load(number, path.clone(), sink).map_err(|fault| fault.at(&path))
    }

    /// Reads head and epoch table, and no map: see [`Generation::build_on`].
    pub fn load(number: u32, path: PathBuf, sink: Box<dyn Sink>) -> Result<Self, Fault> {
        let head = read_head(&*sink)?;
        let forest = Forest { source: &*sink, geometry: head.geometry };
        let (table, table_blocks) = read_table(forest, &head.meta)?;
        Ok(Self {
            number,
            path,
            sink,
            id: head.id,
            follows: head.follows,
            sequence: head.meta.sequence.get(),
            table,
            table_blocks,
            space: Space::all_taken(head.geometry),
            base: Ok(Base::default()),
            dying: BTreeMap::new(),
            is_tight: false,
            is_known: false,
        })
    }

    /// Finds out what is taken, and lets the next checkpoint build on this epoch; 0: on none.
    pub fn build_on(&mut self, epoch: u64) -> Result<(), StoreError> {
        let found = recover(&*self.sink, self.geometry(), &self.table, self.table_blocks.clone(), epoch);
        let found = found.map_err(|fault| fault.at(&self.path))?;
        (self.space, self.base, self.dying, self.is_known) = (found.space, found.base, found.dying, true);
        Ok(())
    }

    /// The blocks that are in use, by the file alone.
    pub fn recount(&self) -> Result<Space, StoreError> {
        let newest = self.newest().unwrap_or(0);
        let found = recover(&*self.sink, self.geometry(), &self.table, self.table_blocks.clone(), newest);
        Ok(found.map_err(|fault| fault.at(&self.path))?.space)
    }

    pub fn newest(&self) -> Option<u64> {
        self.table.last().map(|entry| entry.epoch.get())
    }

    pub fn geometry(&self) -> Geometry {
        self.space.geometry()
    }
}
