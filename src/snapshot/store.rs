//! The store itself: its generations, what they hold, reading it back. Committing is in `commit`. It must not know how
//! a sink writes.

use super::codec::EpochRecord;
use super::earlier::{Earlier, Found, read_earlier};
use super::fault::{Fault, io};
use super::folder::{Folder, random_id};
use super::format::{Geometry, Nodes, Superblock, TableEntry};
use super::generation::Generation;
use super::head::read_head;
use super::home::Home;
use super::map::PageMap;
use super::options::{Durability, StoreOptions, check_options, check_sizes};
use super::pin::Pins;
use super::recover::Key;
use super::renamed::Renamed;
use super::restored::{Restored, Take, outline, read_epoch, read_record, verify_epoch};
use super::sink::ReadAt;
use super::sums::Sums;
use super::tree::Forest;
use crate::error::StoreError;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A kept epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochInfo {
    /// Its number.
    pub epoch: u64,
    /// What it would take by itself: pages and record.
    pub bytes: u64,
    /// Pages of all its entries.
    pub pages: u64,
    /// Its entries.
    pub entries: u32,
}

/// A store open for writing; nobody else writes to it.
pub struct Store {
    pub(super) home: Box<dyn Home>,
    pub(super) options: StoreOptions,
    id: [u8; 16],
    pub(super) current: Generation,
    /// Oldest first; those that can be read.
    pub(super) earlier: Vec<Earlier>,
    /// No file of an earlier generation is left, readable or not.
    pub(super) alone: bool,
    /// The epoch on which the next checkpoint builds; 0: on none.
    pub(super) base_epoch: u64,
    /// Where its pages are, if not in the current generation.
    pub(super) origin: Option<Origin>,
    /// A write or sync of the current generation has failed: the next checkpoint goes to a new one.
    pub(super) failed: bool,
    /// Pages of the base could not be read back: only full snapshots can follow.
    pub(super) unreadable: Option<String>,
    pub(super) sums: Arc<Sums>,
    pub(super) pins: Pins,
    /// States that go on under other names.
    pub(super) renamed: Vec<Renamed>,
}

/// An epoch of an earlier generation that the next checkpoint builds on: what it does not bring itself is copied.
pub(super) struct Origin {
    /// Among the earlier ones.
    pub at: usize,
    pub maps: HashMap<Key, PageMap>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.current.path).finish_non_exhaustive()
    }
}

/// How the blocks of a store are used; for tests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Room for pages, all told.
    pub frames: u32,
    /// Frames that nothing uses.
    pub free: u32,
    /// Frames that hold a page.
    pub pages: u32,
    /// Frames that are split into nodes.
    pub split: u32,
    /// Nodes.
    pub nodes: u32,
    /// The file says the same as the memory.
    pub exact: bool,
}

impl Store {
    /// Opens the store in `dir`, or makes one there if the folder is empty or not there yet.
    ///
    /// # Errors
    /// `Locked`: another has it. `Foreign`: it is no store, or that of a newer version. `Mismatch`: another page size.
    /// `Corrupt`: head or epoch table are damaged, or the file is truncated. `Io`, `NoSpace`.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        check_options(dir, &options)?;
        let folder = Folder::claim(dir, options.sink)?;
        let id = options.id.map_or_else(random_id, Ok)?;
        Self::open_on(Box::new(folder), StoreOptions { id: Some(id), ..options })
    }

    /// Opens the store in `home`, or makes one there if there is none: for simulations.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(mut home: Box<dyn Home>, options: StoreOptions) -> Result<Self, StoreError> {
        let place = home.path(1);
        check_options(&place, &options)?;
        if options.durability == Durability::PowerLoss {
            // Rule 6: the names that are seen here may have been on their way when their writer was killed.
            home.sync_names().map_err(io("sync the folder of")).map_err(|fault| fault.at(&place))?;
        }
        let list = home.list().map_err(io("list the generations of")).map_err(|fault| fault.at(&place))?;
        let (current, earlier) = match list.split_last() {
            None => {
                let id = options.id.unwrap_or_default();
                let superblock = Superblock::new(id, options.page_bytes, options.segment_bytes);
                (Generation::make(&mut *home, 1, &superblock)?, Vec::new())
            }
            Some((newest, earlier)) => Self::load(&mut *home, *newest, earlier, &options)?,
        };
        let newest = current.newest().or_else(|| newest_of(&earlier));
        Ok(Self {
            home,
            id: current.id,
            current,
            earlier,
            alone: list.len() <= 1,
            base_epoch: newest.unwrap_or(0),
            origin: None,
            failed: false,
            unreadable: None,
            sums: Arc::new(Sums::new(options.writer_threads)),
            pins: Pins::default(),
            renamed: Vec::new(),
            options,
        })
    }

    fn load(
        home: &mut dyn Home,
        newest: u32,
        earlier: &[u32],
        options: &StoreOptions,
    ) -> Result<(Generation, Vec<Earlier>), StoreError> {
        let path = home.path(newest);
        let at = |fault: Fault| fault.at(&path);
        let source = home.open(newest).map_err(io("open")).map_err(at)?;
        let head = read_head(&*source).map_err(at)?;
        check_sizes(&path, head.geometry, options)?;
        let mut current = Generation::open(home, newest, head.geometry.file_bytes())?;
        if options.durability == Durability::PowerLoss {
            // Rule 6: what is seen here may have been on its way when its writer was killed.
            current.sink.sync().map_err(io("sync")).map_err(at)?;
        }
        let earlier = read_earlier(home, earlier, &head, !current.table.is_empty())?;
        Ok((current, earlier))
    }

    /// Which store this is: drawn when it was made.
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// Bytes of each page.
    pub fn page_bytes(&self) -> u32 {
        self.current.geometry().page_bytes
    }

    /// The file that is written.
    pub fn path(&self) -> &Path {
        &self.current.path
    }

    /// The kept epochs, oldest first.
    pub fn epochs(&self) -> Vec<EpochInfo> {
        let mut epochs: Vec<_> = self.earlier.iter().flat_map(|file| infos(&file.table, file.geometry)).collect();
        epochs.extend(infos(&self.current.table, self.current.geometry()));
        epochs
    }

    /// The newest kept epoch.
    pub fn newest(&self) -> Option<u64> {
        self.current.newest().or_else(|| newest_of(&self.earlier))
    }

    /// Reads a kept epoch and verifies every block of it.
    ///
    /// # Errors
    /// `NoEpoch`; `Corrupt`, naming epoch, entry and page; `Io`.
    pub fn read(&self, epoch: u64) -> Result<Restored, StoreError> {
        let found = self.find(epoch)?;
        read_epoch(found.forest, found.entry, Take::Now(&self.sums)).map_err(|fault| fault.at(found.path))
    }

    /// Reads every page of a kept epoch, verifies it, and keeps none.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn verify(&self, epoch: u64) -> Result<(), StoreError> {
        let found = self.find(epoch)?;
        verify_epoch(found.forest, found.entry, &self.sums).map_err(|fault| fault.at(found.path))
    }

    /// Reads record and page maps of a kept epoch, not its pages: each of these is verified when it is read. The next
    /// checkpoint must build on this epoch (it is the newest, or see [`Store::base_on`]), or pages that have not been read
    /// may be written over. In a file of version 1 the pages have no tags, and those of an earlier generation are few or
    /// failing: both are read as [`Store::read`] does.
    ///
    /// # Errors
    /// `NoEpoch`; `Corrupt`, naming epoch and entry; `Io`.
    pub fn restore(&self, epoch: u64) -> Result<Restored, StoreError> {
        let found = self.find(epoch)?;
        let current = &self.current;
        if current.geometry().map_nodes() == Nodes::Plain || found.path != current.path {
            return self.read(epoch);
        }
        let at = |fault: Fault| fault.at(&current.path);
        let file = current.sink.reader().map_err(io("open")).map_err(at)?;
        read_epoch(found.forest, found.entry, Take::Later(&file, &current.path, &self.sums)).map_err(at)
    }

    /// Lets the next checkpoint build on `epoch` instead of the newest one: for a job that was restored from there. No
    /// epoch is lost by it before it expires, and nothing is written.
    ///
    /// # Errors
    /// `NoEpoch`; `Corrupt`: its maps are damaged; `Io`.
    pub fn base_on(&mut self, epoch: u64) -> Result<(), StoreError> {
        let path = self.find(epoch)?.path.to_owned();
        (self.base_epoch, self.unreadable) = (epoch, None);
        self.find_base()?;
        match &self.current.base {
            Ok(_) => Ok(()),
            Err(what) => Err(StoreError::Corrupt { path, what: format!("epoch {epoch}, {what}") }),
        }
    }

    /// What the runtime says about a kept epoch.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn header(&self, epoch: u64) -> Result<Vec<u8>, StoreError> {
        Ok(self.record(epoch)?.header)
    }

    /// Reads the small things of a kept epoch, and none of its pages: its entries come without them.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn outline(&self, epoch: u64) -> Result<Restored, StoreError> {
        Ok(outline(self.record(epoch)?, self.page_bytes()))
    }

    pub(super) fn record(&self, epoch: u64) -> Result<EpochRecord, StoreError> {
        let found = self.find(epoch)?;
        read_record(found.forest, found.entry).map_err(|fault| fault.at(found.path))
    }

    /// The next checkpoint must be full: the epoch that it would build on is damaged. Known from the first commit on, which
    /// may be refused for it.
    pub fn needs_full(&self) -> bool {
        self.current.base.is_err()
    }

    /// Rule 7: before the first commit.
    pub(super) fn prepare(&mut self) -> Result<(), StoreError> {
        if self.current.is_known { Ok(()) } else { self.find_base() }
    }

    /// Reads the maps of the epoch that the next checkpoint builds on, and what the others reach.
    pub(super) fn find_base(&mut self) -> Result<(), StoreError> {
        let epoch = self.base_epoch;
        let has = |file: &Earlier| file.table.iter().any(|entry| entry.epoch.get() == epoch);
        let here = self.current.table.iter().any(|entry| entry.epoch.get() == epoch);
        self.current.build_on(if here { epoch } else { 0 })?;
        self.origin = None;
        if here || epoch == 0 {
            return Ok(());
        }
        let maps = match (self.earlier.iter().position(has), self.unreadable.clone()) {
            (_, Some(what)) => Err(what),
            (None, None) => Err(format!("epoch {epoch} cannot be read any more")),
            // Whatever keeps it from being read: full snapshots do not need it.
            (Some(at), None) => match self.earlier[at].maps(epoch) {
                Ok(maps) => Ok(Origin { at, maps }),
                Err(fault) => Err(fault.at(&self.earlier[at].path).to_string()),
            },
        };
        match maps {
            Ok(origin) => self.origin = Some(origin),
            Err(what) => self.current.base = Err(what),
        }
        Ok(())
    }

    /// Compares what the store has in memory with what its file says.
    #[doc(hidden)]
    pub fn audit(&self) -> Result<Audit, StoreError> {
        let (current, found) = (&self.current, self.current.recount()?);
        // As long as nothing is known, nothing may be taken.
        let (space, exact) = match current.is_known {
            true => (&current.space, found.same_as(&current.space)),
            false => (&found, current.space.free_frames() == 0),
        };
        let (free, pages, split, nodes) = space.counts();
        Ok(Audit { frames: current.geometry().frames(), free, pages, split, nodes, exact })
    }

    /// The blocks that the kept epochs and the newest epoch table have in the current file, by the file alone.
    #[doc(hidden)]
    pub fn blocks_in_use(&self) -> Result<Vec<u32>, StoreError> {
        Ok(self.current.recount()?.blocks_taken())
    }

    pub(super) fn find(&self, epoch: u64) -> Result<Found<'_>, StoreError> {
        let is_it = |entry: &&TableEntry| entry.epoch.get() == epoch;
        let current = &self.current;
        if let Some(entry) = current.table.iter().find(is_it) {
            let forest = Forest { source: &*current.sink, geometry: current.geometry() };
            return Ok(Found { path: &current.path, forest, entry });
        }
        let earlier = self.earlier.iter().find_map(|file| Some((file, file.table.iter().find(is_it)?)));
        let (file, entry) = earlier.ok_or_else(|| StoreError::NoEpoch {
            path: current.path.clone(),
            epoch,
            kept: self.epochs().iter().map(|info| info.epoch).collect(),
        })?;
        Ok(Found { path: &file.path, forest: Forest { source: &*file.source, geometry: file.geometry }, entry })
    }

    /// Where an epoch lies, for somebody who reads it beside the store.
    pub(super) fn shared(&self, epoch: u64) -> Result<(PathBuf, Arc<dyn ReadAt>, Geometry, TableEntry), StoreError> {
        let Found { path, forest, entry } = self.find(epoch)?;
        let file = match self.earlier.iter().find(|file| file.path == path) {
            Some(file) => file.source.clone(),
            None => self.current.sink.reader().map_err(io("open")).map_err(|fault| fault.at(path))?,
        };
        Ok((path.to_owned(), file, forest.geometry, *entry))
    }
}

fn newest_of(earlier: &[Earlier]) -> Option<u64> {
    let last = earlier.iter().rev().find_map(|file| file.table.last());
    last.map(|entry| entry.epoch.get())
}

pub(super) fn infos(table: &[TableEntry], geometry: Geometry) -> Vec<EpochInfo> {
    let info = |entry: &TableEntry| EpochInfo {
        epoch: entry.epoch.get(),
        // Saturating: the numbers come from a file.
        bytes: entry
            .pages
            .get()
            .saturating_mul(u64::from(geometry.page_bytes))
            .saturating_add(entry.record.bytes.get()),
        pages: entry.pages.get(),
        entries: entry.entries.get(),
    };
    table.iter().map(info).collect()
}
