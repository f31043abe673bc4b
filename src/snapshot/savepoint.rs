//! Savepoints: an epoch in one file by itself, and a store that begins with such a file. It must not know what is in pages.
//!
//! 1. A savepoint is a store file: generation 1, which follows nothing and holds one epoch, under the id of the store that
//!    it comes from.
//! 2. It is made under a hidden name beside its place, synced, renamed to a name that nobody has, and its folder synced. So
//!    it is there whole or not at all, wherever its making ends, and what was there before stays. A leftover under the hidden
//!    name is replaced by the next savepoint to the same place.
//! 3. A store takes one in as it makes any new generation: under another name, synced, renamed. The savepoint is only read.
//! 4. Both ways every page and every node is held against its checksum, and only what is reached is copied.

use super::dense::{Target, copy_epochs};
use super::earlier::Found;
use super::fault::{Fault, io, is_full};
use super::folder::{Folder, identity, sync_dir};
use super::format::{Superblock, TableEntry};
use super::head::{Head, read_head};
use super::held::Pinned;
use super::home::{Generations, Home};
use super::options::{StoreOptions, check_options, check_sizes};
use super::pin::Pin;
use super::pwrite::PwriteSink;
use super::recover::read_table;
use super::sink::{Ahead, ReadAt, Run, Sink};
use super::store::Store;
use super::sums::Sums;
use super::tree::Forest;
use crate::error::StoreError;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self as stdio, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// So much may wait in memory for the disk: the syncs of checkpoints would have to wait for it too.
const UNSYNCED_BYTES_MAX: u64 = 32 << 20;

/// How far the copying has come, and whether it is still wanted.
#[derive(Debug, Default)]
pub struct Copying {
    total_bytes: AtomicU64,
    copied_bytes: AtomicU64,
    is_unwanted: AtomicBool,
}

impl Copying {
    /// Bytes that have been copied, and those that there are to copy; 0 of 0 before it has begun.
    pub fn progress(&self) -> (u64, u64) {
        (self.copied_bytes.load(Ordering::Relaxed), self.total_bytes.load(Ordering::Relaxed))
    }

    /// Gives it up: what has been copied is removed.
    pub fn cancel(&self) {
        self.is_unwanted.store(true, Ordering::Relaxed);
    }

    /// Nobody has given it up.
    pub fn is_wanted(&self) -> bool {
        !self.is_unwanted.load(Ordering::Relaxed)
    }
}

impl Pin {
    /// Copies the epoch into a savepoint, and says how long that is.
    ///
    /// # Errors
    /// `Foreign`: something has that name already. `Corrupt`, naming the damaged page of the store; `NoSpace`, `Io`. Nothing
    /// is left behind then.
    pub fn save(&self, file: &Path, copying: &Copying) -> Result<u64, StoreError> {
        let pages_bytes = self.entry.pages.get().saturating_mul(u64::from(self.geometry.page_bytes));
        copying.total_bytes.store(pages_bytes, Ordering::Relaxed);
        let partial = Partial::begin(file)?;
        let superblock = Superblock::of_generation(1, 0, self.id, self.geometry);
        let sink = PwriteSink::new(partial.file.try_clone().map_err(failed(file, "open"))?);
        let mut sink = Watched { sink, copying, unsynced_bytes: 0 };
        let found = Found { path: &self.path, forest: self.forest(), entry: &self.entry };
        let target = Target { sink: &mut sink, path: file, superblock, sums: &Sums::new(0) };
        let bytes = copy_epochs(&[found], target)?;
        partial.finish(file)?;
        Ok(bytes)
    }
}

impl Store {
    /// Opens a new store in `dir`, which must be new or empty, that begins with a savepoint. That is only read. A store that has
    /// begun with this very savepoint and holds nothing else yet is opened as it is: so a start that was refused afterwards
    /// can be tried again.
    ///
    /// # Errors
    /// `Foreign`: the folder holds something else, or the file is no savepoint. `Corrupt`, naming what of it is damaged; as
    /// [`Store::open`]. There is no store then.
    pub fn open_from(savepoint: &Path, dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        check_options(dir, &options)?;
        let saved = Saved::open(savepoint)?;
        Self::begin_on(Box::new(Folder::claim(dir, options.sink)?), &saved, options)
    }

    /// The same in any home: for simulations.
    pub(super) fn begin_on(mut home: Box<dyn Home>, saved: &Saved, options: StoreOptions) -> Result<Self, StoreError> {
        check_sizes(&saved.path, saved.head.geometry, &options)?;
        let path = home.path(1);
        let at = |fault: Fault| fault.at(&path);
        if !home.list().map_err(io("list the generations beside")).map_err(at)?.is_empty() {
            let store = Self::open_on(home, options)?;
            let epochs: Vec<u64> = store.epochs().iter().map(|info| info.epoch).collect();
            if store.id() == saved.head.id && epochs == [saved.entry.epoch.get()] {
                return Ok(store);
            }
            let reason = "there is a store already: leave out the savepoint to go on from that, or name a new folder";
            return Err(foreign(&path, reason));
        }
        let mut sink = home.begin(1).map_err(io("create")).map_err(at)?;
        let superblock = Superblock::of_generation(1, 0, saved.head.id, saved.head.geometry);
        let sums = &Sums::new(options.writer_threads);
        let found = Found { path: &saved.path, forest: saved.forest(), entry: &saved.entry };
        let copied = copy_epochs(&[found], Target { sink: &mut *sink, path: &path, superblock, sums });
        let made = copied.and_then(|_| home.publish(1).map_err(io("rename")).map_err(at));
        if made.is_err() {
            // A leftover only takes room.
            let _ = home.remove(1);
        }
        made?;
        drop(sink);
        Self::open_on(home, options)
    }
}

/// A savepoint that is to be read.
pub(super) struct Saved {
    path: PathBuf,
    file: Box<dyn ReadAt>,
    head: Head,
    entry: TableEntry,
}

impl Saved {
    fn open(path: &Path) -> Result<Self, StoreError> {
        let home = Alone(path.to_owned());
        Self::read(path, home.open(1).map_err(failed(path, "open"))?)
    }

    pub fn read(path: &Path, file: Box<dyn ReadAt>) -> Result<Self, StoreError> {
        let at = |fault: Fault| fault.at(path);
        let head = read_head(&*file).map_err(at)?;
        let (table, _) = read_table(Forest { source: &*file, geometry: head.geometry }, &head.meta).map_err(at)?;
        match table[..] {
            [entry] if head.follows == 0 => Ok(Self { path: path.to_owned(), file, head, entry }),
            _ => {
                let reason =
                    format!("no savepoint: the file of a store, of {} checkpoints or a part of it", table.len());
                Err(foreign(path, &reason))
            }
        }
    }

    fn forest(&self) -> Forest<'_> {
        Forest { source: &*self.file, geometry: self.head.geometry }
    }
}

/// A store file by itself, wherever it lies.
pub(super) struct Alone(pub PathBuf);

impl Generations for Alone {
    fn list(&self) -> stdio::Result<Vec<u32>> {
        Ok(vec![1])
    }
    fn path(&self, _: u32) -> PathBuf {
        self.0.clone()
    }
    fn open(&self, _: u32) -> stdio::Result<Box<dyn ReadAt>> {
        if self.0.is_dir() {
            let what = "it is a folder, and a savepoint is a file, such as --savepoint or `Job::savepoint` has made";
            return Err(stdio::Error::other(what));
        }
        Ok(Box::new(PwriteSink::new(File::open(&self.0)?)))
    }
    fn pin(&self, _: u64) -> Pinned {
        Pinned::Unpinned
    }
}

/// Whether a savepoint can be put there, as far as can be seen ahead.
///
/// # Errors
/// As [`Pin::save`].
pub fn check_savepoint(file: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(file) {
        Ok(_) => return Err(taken(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(file, "create")(error)),
    }
    hidden(file)?;
    fs::metadata(parent_of(file)).map(drop).map_err(failed(parent_of(file), "find the folder"))
}

fn taken(file: &Path) -> StoreError {
    foreign(file, "it is there already: name a new file for the savepoint")
}

fn foreign(path: &Path, reason: &str) -> StoreError {
    StoreError::Foreign { path: path.to_owned(), reason: reason.to_owned() }
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(stdio::Error) -> StoreError {
    let path = path.to_owned();
    move |error| match is_full(&error) {
        true => StoreError::NoSpace { path, bytes: 0 },
        false => StoreError::Io { path, action, error },
    }
}

fn hidden(file: &Path) -> Result<PathBuf, StoreError> {
    let name = file.file_name().ok_or_else(|| foreign(file, "it has no name: name a new file for the savepoint"))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".partial");
    Ok(file.with_file_name(hidden))
}

fn parent_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A savepoint under its hidden name; removed when it is dropped unfinished.
struct Partial {
    path: PathBuf,
    /// Locked: nobody else writes to it.
    file: File,
    is_finished: bool,
}

impl Partial {
    fn begin(file: &Path) -> Result<Self, StoreError> {
        check_savepoint(file)?;
        let path = hidden(file)?;
        loop {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let partial = options.open(&path).map_err(failed(&path, "create"))?;
            match partial.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(foreign(file, "another savepoint is being written there")),
                Err(TryLockError::Error(error)) => return Err(failed(&path, "lock")(error)),
            }
            // Whoever had the lock before may have finished, or given it up, since it was opened.
            let here = partial.metadata().map_err(failed(&path, "open"))?;
            if fs::metadata(&path).is_ok_and(|there| identity(&there) == identity(&here)) {
                let this = Self { path, file: partial, is_finished: false };
                this.file.set_len(0).map_err(failed(file, "empty"))?;
                return Ok(this);
            }
        }
    }

    /// Rule 2. The file has been synced.
    fn finish(mut self, file: &Path) -> Result<(), StoreError> {
        let renamed = match renameat_with(CWD, &self.path, CWD, file, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => return Err(taken(file)),
            // The file system does not know it: then somebody who makes such a file at this moment loses it.
            Err(Errno::INVAL | Errno::NOSYS) => match fs::symlink_metadata(file) {
                Ok(_) => return Err(taken(file)),
                Err(_) => fs::rename(&self.path, file),
            },
            other => other.map_err(stdio::Error::from),
        };
        renamed.map_err(failed(file, "rename the savepoint to"))?;
        self.is_finished = true;
        sync_dir(parent_of(file))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_finished {
            // What cannot be removed now is replaced by the next attempt.
            let _ = fs::remove_file(&self.path);
        }
        // Closing alone would leave the lock to a child process that another thread is about to start.
        let _ = self.file.unlock();
    }
}

/// Counts what is written, and stops when it is not wanted any more.
struct Watched<'a> {
    sink: PwriteSink,
    copying: &'a Copying,
    unsynced_bytes: u64,
}

impl Watched<'_> {
    fn wrote(&mut self, bytes: u64) -> stdio::Result<()> {
        self.unsynced_bytes += bytes;
        if self.unsynced_bytes >= UNSYNCED_BYTES_MAX { self.sync() } else { Ok(()) }
    }

    fn check(&self) -> stdio::Result<()> {
        match self.copying.is_wanted() {
            true => Ok(()),
            false => Err(stdio::Error::new(ErrorKind::TimedOut, "nobody waits for it any more")),
        }
    }
}

impl ReadAt for Watched<'_> {
    fn len_bytes(&self) -> stdio::Result<u64> {
        self.sink.len_bytes()
    }
    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> stdio::Result<()> {
        self.sink.read(offset_bytes, into)
    }
}

impl Sink for Watched<'_> {
    fn grow(&mut self, from_bytes: u64, to_bytes: u64) -> stdio::Result<()> {
        self.sink.grow(from_bytes, to_bytes)
    }

    fn write(&mut self, offset_bytes: u64, parts: &[&[u8]]) -> stdio::Result<()> {
        self.check()?;
        self.sink.write(offset_bytes, parts)?;
        self.wrote(parts.iter().map(|part| part.len() as u64).sum())
    }

    fn write_runs(&mut self, runs: &mut [Run<'_>], sums: &Sums, ahead: Ahead) -> stdio::Result<()> {
        self.check()?;
        self.sink.write_runs(runs, sums, ahead)?;
        let bytes = runs.iter().map(Run::len_bytes).sum();
        self.copying.copied_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.wrote(bytes)
    }

    fn sync(&mut self) -> stdio::Result<()> {
        self.unsynced_bytes = 0;
        self.sink.sync()
    }

    fn reader(&self) -> stdio::Result<Arc<dyn ReadAt>> {
        self.sink.reader()
    }
}
