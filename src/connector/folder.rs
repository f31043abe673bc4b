//! An output folder: whose it is, and what parts lie in it. Knows no record.
//!
//! 1. A folder belongs to one store. The file `.snapring-output` in it holds the store's id, and a lock on that file
//!    keeps out every other job, and every other sink of the same job.
//! 2. A job that goes on from a snapshot takes only the folder of its store. Another one would hold half of the output.
//! 3. A job that starts afresh takes a folder without parts, or one in which nothing but its own store's pending parts
//!    lie: it was stopped before its first checkpoint. Committed parts are never added to by a second run.
//! 4. The id is durable before the first part is made.

use super::part_name::{Kind, hex, kind, superseded_by, superseding};
use crate::error::ConnectorError;
use crate::operator::Place;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const ID_FILE: &str = ".snapring-output";
const ID_TEXT: &str = "snapring output folder 1, store ";

/// A claimed folder. The claim ends when it is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    pub path: PathBuf,
    pub store_id: [u8; 16],
    /// The folder itself, kept open to be synced; none where nothing needs to be.
    handle: Option<File>,
    lock: File,
}

/// Who the id file names.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    Store([u8; 16]),
    Unknown,
}

pub(super) fn io_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> ConnectorError {
    move |error| ConnectorError::Io { path: path.to_owned(), action, error }
}

pub(super) fn foreign(path: &Path, reason: impl Into<String>) -> ConnectorError {
    ConnectorError::Foreign { path: path.to_owned(), reason: reason.into() }
}

const NOT_RESTORED: &str = "this output folder does not belong to the state folder that the job goes on from: \
    give it the folder of its first start, or start with a new state folder and a new output folder";
const GONE: &str = "this output folder is missing, and the job goes on from a checkpoint or a savepoint, which belongs to the \
    output of the job that made it: name that folder or a copy of it, or start afresh with a new state folder";
const NOT_FRESH: &str = "the job starts afresh, and this output folder holds parts already: \
    give it an empty folder, or the state folder that the parts were made with";

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing alone would leave it to a child process that another thread is about to start: until it runs a program
        // of its own it has a copy. If this fails, closing is what is left.
        let _ = self.lock.unlock();
    }
}

impl Folder {
    /// Claims a folder by rules 1 to 4; makes it if it is missing.
    pub fn claim(path: &Path, place: &Place) -> Result<Self, ConnectorError> {
        let store_id = place.store_id.ok_or_else(|| {
            foreign(path, "output that is exactly-once needs checkpoints: give the job a state folder")
        })?;
        if place.restored && !path.try_exists().map_err(io_error(path, "find"))? {
            return Err(foreign(path, GONE));
        }
        make(path, place.sync)?;
        let id_path = path.join(ID_FILE);
        if !id_path.try_exists().map_err(io_error(&id_path, "open"))? {
            // Nothing is left behind in a folder that is refused.
            allowed(path, place, &Owner::Nobody, &store_id)?;
        }
        let (mut lock, owner) = lock_and_read(path, &id_path)?;
        allowed(path, place, &owner, &store_id)?;
        let handle = if place.sync { Some(File::open(path).map_err(io_error(path, "open"))?) } else { None };
        if owner != Owner::Store(store_id) {
            write_id(&mut lock, &store_id, place.sync).map_err(io_error(&id_path, "write"))?;
        }
        let folder = Self { path: path.to_owned(), store_id, handle, lock };
        folder.sync()?;
        Ok(folder)
    }

    /// Makes names durable: of files made, renamed and removed.
    pub fn sync(&self) -> Result<(), ConnectorError> {
        match &self.handle {
            Some(handle) => handle.sync_all().map_err(io_error(&self.path, "sync")),
            None => Ok(()),
        }
    }

    /// Whether anything has to be synced.
    pub fn is_synced(&self) -> bool {
        self.handle.is_some()
    }

    /// The pending parts of this store.
    pub fn pending(&self) -> Result<Vec<PathBuf>, ConnectorError> {
        let names = self.names(Kind::PendingOwn)?.into_iter();
        Ok(names.map(|name| self.path.join(name)).collect())
    }

    /// The names of the committed parts.
    pub fn committed(&self) -> Result<Vec<OsString>, ConnectorError> {
        self.names(Kind::Committed)
    }

    /// Moves committed parts aside: a job has gone back by the epoch `by`.
    pub fn supersede<'a>(&self, by: u64, mut parts: impl Iterator<Item = &'a OsString>) -> Result<(), ConnectorError> {
        let Some(first) = parts.next() else { return Ok(()) };
        let aside = self.path.join(superseded_by(by));
        make(&aside, self.is_synced())?;
        for name in std::iter::once(first).chain(parts) {
            self.move_part(name, &self.path, &aside)?;
        }
        // The new names first: a file must not be in neither place.
        if self.is_synced() { sync_folder(&aside) } else { Ok(()) }
    }

    /// Moves a part back from where it was moved aside.
    pub fn bring_back(&self, by: u64, name: &OsStr) -> Result<(), ConnectorError> {
        self.move_part(name, &self.path.join(superseded_by(by)), &self.path)
    }

    fn move_part(&self, name: &OsStr, from: &Path, to: &Path) -> Result<(), ConnectorError> {
        let (from, to) = (from.join(name), to.join(name));
        if to.try_exists().map_err(io_error(&to, "find"))? {
            let what = format!("{} is there as well as {}: one of them is not ours", from.display(), to.display());
            return Err(foreign(&self.path, what));
        }
        std::fs::rename(&from, &to).map_err(io_error(&from, "move"))
    }

    /// All parts that were moved aside, each with the epoch by which a job went back.
    pub fn superseded(&self) -> Result<Vec<(u64, OsString)>, ConnectorError> {
        let mut found = Vec::new();
        for subfolder in names(&self.path)? {
            if let Some(by) = subfolder.to_str().and_then(superseding) {
                found.extend(names(&self.path.join(subfolder))?.into_iter().map(|name| (by, name)));
            }
        }
        Ok(found)
    }

    fn names(&self, of: Kind) -> Result<Vec<OsString>, ConnectorError> {
        let names = names(&self.path)?.into_iter();
        Ok(names.filter(|name| kind(name.as_bytes(), &self.store_id) == of).collect())
    }
}

/// Refuses a path that is something else than a folder. What is missing can still be made.
pub(super) fn check(path: &Path) -> Result<(), ConnectorError> {
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_dir() => {
            let error = io::Error::new(io::ErrorKind::NotADirectory, "it is a file: name a folder for the output");
            Err(io_error(path, "write to")(error))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_error(path, "open")(error)),
    }
}

fn make(path: &Path, sync: bool) -> Result<(), ConnectorError> {
    check(path)?;
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error(path, "create"))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if sync {
        sync_folder(parent)?;
    }
    Ok(())
}

fn sync_folder(path: &Path) -> Result<(), ConnectorError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(io_error(path, "sync"))
}

fn names(path: &Path) -> Result<Vec<OsString>, ConnectorError> {
    let entries = std::fs::read_dir(path).map_err(io_error(path, "list"))?;
    entries.map(|entry| Ok(entry.map_err(io_error(path, "list"))?.file_name())).collect()
}

/// Rules 2 and 3.
fn allowed(path: &Path, place: &Place, owner: &Owner, store_id: &[u8; 16]) -> Result<(), ConnectorError> {
    let own = *owner == Owner::Store(*store_id);
    if place.restored {
        return if own { Ok(()) } else { Err(foreign(path, NOT_RESTORED)) };
    }
    if *owner == Owner::Unknown {
        let reason = format!("{ID_FILE} in this folder is not of this version: give the job another output folder");
        return Err(foreign(path, reason));
    }
    for name in names(path)? {
        match kind(name.as_bytes(), store_id) {
            Kind::Else => {}
            Kind::PendingOwn if own => {}
            _ => return Err(foreign(path, format!("{NOT_FRESH} (it holds {})", name.display()))),
        }
    }
    Ok(())
}

/// Rule 1.
fn lock_and_read(path: &Path, id_path: &Path) -> Result<(File, Owner), ConnectorError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(id_path).map_err(io_error(id_path, "open"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(foreign(path, "this output folder is in use by another job, or by another sink of this one"));
        }
        Err(TryLockError::Error(error)) => return Err(io_error(id_path, "lock")(error)),
    }
    let mut bytes = Vec::new();
    // One byte more than there should be, not the whole of some huge file.
    let wanted = (ID_TEXT.len() + 34) as u64;
    (&mut file).take(wanted).read_to_end(&mut bytes).map_err(io_error(id_path, "read"))?;
    Ok((file, owner(&bytes)))
}

fn owner(bytes: &[u8]) -> Owner {
    let text = String::from_utf8_lossy(bytes);
    let id = text.strip_prefix(ID_TEXT).and_then(|text| text.strip_suffix('\n')).filter(|hex| hex.len() == 32);
    match id.map(|hex| u128::from_str_radix(hex, 16)) {
        Some(Ok(id)) => Owner::Store(id.to_be_bytes()),
        // Torn while it was written for the first time: by rule 4 there is no part yet.
        None if ID_TEXT.starts_with(&*text) || (text.starts_with(ID_TEXT) && bytes.len() < ID_TEXT.len() + 33) => {
            Owner::Nobody
        }
        _ => Owner::Unknown,
    }
}

fn write_id(file: &mut File, store_id: &[u8; 16], sync: bool) -> io::Result<()> {
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(format!("{ID_TEXT}{}\n", hex(store_id)).as_bytes())?;
    if sync { file.sync_all() } else { Ok(()) }
}
