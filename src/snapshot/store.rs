//! The store itself: opening, what it holds, reading it back. Committing is in `commit`. It must not know folders, nor
//! how a sink writes.

use super::fault::{Fault, io};
use super::folder;
use super::format::{Geometry, Nodes, TableEntry, sizes_fit};
use super::head::{Head, format, read_head};
use super::recover::{Base, read_table, recover};
use super::restored::{Reading, Restored, read_epoch};
use super::sink::Sink;
use super::space::{Blocks, Space};
use super::sums::Sums;
use super::tree::Forest;
use crate::error::StoreError;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// What a commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Loss of power: a commit returns when the disk has it.
    #[default]
    PowerLoss,
    /// The end of the process, by whatever signal: a commit returns when the system has it.
    ProcessCrash,
}

/// How a store writes its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SinkKind {
    /// Through mappings of its segments.
    #[default]
    Mapped,
    /// By system calls.
    Pwrite,
}

/// How to make or open a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// How many checkpoints to keep, the newest; at least 2.
    pub keep: u32,
    /// What a commit survives.
    pub durability: Durability,
    /// The size of pages, fixed when the store is made: a power of two from 4 KiB to 64 KiB.
    pub page_bytes: u32,
    /// By how much the file grows at least, fixed when the store is made: a multiple of 64 KiB, up to 1 GiB.
    pub segment_bytes: u64,
    /// How to write.
    pub sink: SinkKind,
    /// Threads for checksums of large sets; 0 leaves it to the machine, 1 uses the caller's. They are made by the
    /// thread that first needs them, which must not be pinned to a core.
    pub threads: usize,
    /// The id of a new store; a random one if there is none.
    pub id: Option<[u8; 16]>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            keep: 3,
            durability: Durability::default(),
            page_bytes: 16 << 10,
            segment_bytes: 4 << 20,
            sink: SinkKind::default(),
            threads: 0,
            id: None,
        }
    }
}

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
    pub(super) path: PathBuf,
    pub(super) sink: Box<dyn Sink>,
    pub(super) options: StoreOptions,
    pub(super) id: [u8; 16],
    pub(super) sequence: u64,
    pub(super) table: Vec<TableEntry>,
    pub(super) table_blocks: Vec<u32>,
    pub(super) space: Space,
    pub(super) base: Result<Base, String>,
    pub(super) dying: BTreeMap<u64, Blocks>,
    /// The first write or sync that failed.
    pub(super) latched: Option<String>,
    pub(super) sums: Sums,
    /// Held until the store is dropped.
    _lock: Option<File>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
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
        let folder = folder::open(dir, &options)?;
        Self::load(folder.path, folder.sink, options, Some(folder.lock))
    }

    /// Opens the store in `sink`, or makes one there if it is empty: for simulations. Nothing keeps others away.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(mut sink: Box<dyn Sink>, options: StoreOptions) -> Result<Self, StoreError> {
        let path = PathBuf::from("simulated");
        check_options(&path, &options)?;
        let len = sink.len_bytes().map_err(|error| Fault::Io("read the length of", error).at(&path))?;
        if len == 0 {
            let id = options.id.unwrap_or_default();
            format(&mut *sink, id, options.page_bytes, options.segment_bytes).map_err(|fault| fault.at(&path))?;
        }
        Self::load(path, sink, options, None)
    }

    /// Reads the file anew, with the lock kept: after a commit that failed, the epoch it was to make durable may be there.
    pub(crate) fn reopen(self) -> Result<Self, StoreError> {
        let Self { path, sink, options, _lock, .. } = self;
        Self::load(path, sink, options, _lock)
    }

    fn load(
        path: PathBuf,
        mut sink: Box<dyn Sink>,
        options: StoreOptions,
        lock: Option<File>,
    ) -> Result<Self, StoreError> {
        if options.durability == Durability::PowerLoss {
            // Rule 6: what is seen here may have been on its way when its writer was killed.
            sink.sync().map_err(io("sync")).map_err(|fault| fault.at(&path))?;
        }
        let Head { id, meta, geometry } = read_head(&*sink).map_err(|fault| fault.at(&path))?;
        check_sizes(&path, geometry, &options)?;
        let (table, blocks) =
            read_table(Forest { source: &*sink, geometry }, &meta).map_err(|fault| fault.at(&path))?;
        let newest = meta.newest.get();
        let found = recover(&*sink, geometry, &table, blocks, newest).map_err(|fault| fault.at(&path))?;
        Ok(Self {
            path,
            sink,
            id,
            sequence: meta.sequence.get(),
            table,
            table_blocks: found.table,
            space: found.space,
            base: found.base,
            dying: found.dying,
            latched: None,
            sums: Sums::new(options.threads),
            options,
            _lock: lock,
        })
    }

    /// Which store this is: drawn when it was made.
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// Bytes of each page.
    pub fn page_bytes(&self) -> u32 {
        self.geometry().page_bytes
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kept epochs, oldest first.
    pub fn epochs(&self) -> Vec<EpochInfo> {
        infos(&self.table, self.geometry())
    }

    /// The newest kept epoch.
    pub fn newest(&self) -> Option<u64> {
        self.table.last().map(|entry| entry.epoch.get())
    }

    /// Reads a kept epoch and verifies every block of it.
    ///
    /// # Errors
    /// `NoEpoch`; `Corrupt`, naming epoch, entry and page; `Io`.
    pub fn read(&self, epoch: u64) -> Result<Restored, StoreError> {
        let entry = find(&self.table, epoch, &self.path)?;
        read_epoch(self.forest(), entry, Reading::Now(&self.sums)).map_err(|fault| fault.at(&self.path))
    }

    /// Reads record and page maps of a kept epoch, not its pages: each of these is verified when it is read. The next
    /// checkpoint must build on this epoch (it is the newest, or see [`Store::base_on`]), or pages that have not been read
    /// may be written over. In a file of version 1 the pages have no tags, and are read as [`Store::read`] does.
    ///
    /// # Errors
    /// `NoEpoch`; `Corrupt`, naming epoch and entry; `Io`.
    pub fn restore(&self, epoch: u64) -> Result<Restored, StoreError> {
        if self.geometry().map_nodes() == Nodes::Plain {
            return self.read(epoch);
        }
        let entry = find(&self.table, epoch, &self.path)?;
        let file = self.sink.reader().map_err(io("open")).map_err(|fault| fault.at(&self.path))?;
        read_epoch(self.forest(), entry, Reading::Later(&file, &self.path)).map_err(|fault| fault.at(&self.path))
    }

    /// Lets the next checkpoint build on `epoch` instead of the newest one: for a job that was restored from there. No
    /// epoch is lost by it before it expires, and nothing is written.
    ///
    /// # Errors
    /// `NoEpoch`; `Corrupt`: its maps are damaged; `Io`.
    pub fn base_on(&mut self, epoch: u64) -> Result<(), StoreError> {
        find(&self.table, epoch, &self.path)?;
        let found = recover(&*self.sink, self.geometry(), &self.table, self.table_blocks.clone(), epoch);
        let found = found.map_err(|fault| fault.at(&self.path))?;
        if let Err(what) = found.base {
            return Err(StoreError::Corrupt { path: self.path.clone(), what: format!("epoch {epoch}, {what}") });
        }
        (self.space, self.base, self.dying) = (found.space, found.base, found.dying);
        Ok(())
    }

    /// Compares what the store has in memory with what its file says.
    #[doc(hidden)]
    pub fn audit(&self) -> Result<Audit, StoreError> {
        let (free, pages, split, nodes) = self.space.counts();
        let exact = self.recount()?.same_as(&self.space);
        Ok(Audit { frames: self.geometry().frames(), free, pages, split, nodes, exact })
    }

    /// The blocks that the kept epochs and the newest epoch table have in the file, by the file alone.
    #[doc(hidden)]
    pub fn blocks_in_use(&self) -> Result<Vec<u32>, StoreError> {
        Ok(self.recount()?.blocks_taken())
    }

    fn recount(&self) -> Result<Space, StoreError> {
        let newest = self.newest().unwrap_or(0);
        let found = recover(&*self.sink, self.geometry(), &self.table, self.table_blocks.clone(), newest);
        Ok(found.map_err(|fault| fault.at(&self.path))?.space)
    }

    pub(super) fn geometry(&self) -> Geometry {
        self.space.geometry()
    }

    fn forest(&self) -> Forest<'_> {
        Forest { source: &*self.sink, geometry: self.geometry() }
    }
}

/// The entry of a kept epoch.
pub(super) fn find<'a>(table: &'a [TableEntry], epoch: u64, path: &Path) -> Result<&'a TableEntry, StoreError> {
    table.iter().find(|entry| entry.epoch.get() == epoch).ok_or_else(|| StoreError::NoEpoch {
        path: path.into(),
        epoch,
        kept: table.iter().map(|entry| entry.epoch.get()).collect(),
    })
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

fn check_options(path: &Path, options: &StoreOptions) -> Result<(), StoreError> {
    let (page, segment) = (options.page_bytes, options.segment_bytes);
    if sizes_fit(page, segment) && options.keep >= 2 {
        return Ok(());
    }
    let reason = format!(
        "cannot keep {} checkpoints with pages of {page} and segments of {segment} bytes: keep at least 2; pages are a \
         power of two from 4096 to 65536, segments a multiple of 65536 up to 1073741824",
        options.keep
    );
    Err(StoreError::Mismatch { path: path.into(), reason })
}

fn check_sizes(path: &Path, geometry: Geometry, options: &StoreOptions) -> Result<(), StoreError> {
    if geometry.page_bytes == options.page_bytes {
        return Ok(());
    }
    let reason = format!(
        "made with pages of {} bytes and opened with {}: open it with the former, or name a new folder",
        geometry.page_bytes, options.page_bytes
    );
    Err(StoreError::Mismatch { path: path.into(), reason })
}
