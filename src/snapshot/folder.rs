//! A store on disk: its folder, its lock, and a file that is there whole or not at all. It must not know what is in
//! the file beyond its head.
//!
//! A new file is written under another name, synced, renamed, and its folder synced: a crash leaves no half-made
//! store, only a leftover that the next start removes. Folder and files are for their owner only.

use super::head::{format, read_head};
use super::mapped::MappedSink;
use super::pwrite::PwriteSink;
use super::sink::Sink;
use super::store::{SinkKind, StoreOptions};
use crate::error::StoreError;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file of a store within its folder.
pub const STORE_FILE: &str = "generation-1.snap";
const NEW_FILE: &str = "generation-1.snap.new";
const LOCK_FILE: &str = "lock";

/// An open folder: nobody else writes there while the lock lives.
pub(super) struct Folder {
    pub path: PathBuf,
    pub sink: Box<dyn Sink>,
    pub lock: File,
}

pub(super) fn open(dir: &Path, options: &StoreOptions) -> Result<Folder, StoreError> {
    make_dir(dir)?;
    refuse_strangers(dir)?;
    let lock = lock(&dir.join(LOCK_FILE))?;
    // Once more: who held the lock before may have made a store meanwhile.
    refuse_strangers(dir)?;
    let path = dir.join(STORE_FILE);
    let sink = if exists(&path)? { open_file(&path, options)? } else { create(dir, &path, options)? };
    Ok(Folder { path, sink, lock })
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |error| StoreError::Io { path, action, error }
}

fn make_dir(dir: &Path) -> Result<(), StoreError> {
    match fs::metadata(dir) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(StoreError::Foreign {
            path: dir.into(),
            reason: "a file, not a folder: name a folder for the state".into(),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
            DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed(dir, "create"))?;
            // Each new folder is an entry of the one above, which has to reach the disk too.
            missing.into_iter().filter(|dir| !dir.as_os_str().is_empty()).try_for_each(|dir| sync_dir(&dir.join("..")))
        }
        Err(error) => Err(failed(dir, "open")(error)),
    }
}

/// A folder without a store must be empty, or it is somebody's.
fn refuse_strangers(dir: &Path) -> Result<(), StoreError> {
    let mut strangers = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed(dir, "read"))? {
        let name = entry.map_err(failed(dir, "read"))?.file_name();
        if name == STORE_FILE {
            return Ok(());
        }
        if name != LOCK_FILE && name != NEW_FILE {
            strangers.push(name.display().to_string());
        }
    }
    strangers.sort();
    match &strangers[..] {
        [] => Ok(()),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            let reason = format!("not a store, but holds other files (`{first}`{more}): name an empty or a new folder");
            Err(StoreError::Foreign { path: dir.into(), reason })
        }
    }
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(path).map_err(failed(path, "open"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: path.into() }),
        Err(TryLockError::Error(error)) => Err(failed(path, "lock")(error)),
    }
}

fn exists(path: &Path) -> Result<bool, StoreError> {
    path.try_exists().map_err(failed(path, "open"))
}

fn open_file(path: &Path, options: &StoreOptions) -> Result<Box<dyn Sink>, StoreError> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed(path, "open"))?;
    let file = PwriteSink::new(file);
    // The length is checked before anything is mapped.
    let head = read_head(&file).map_err(|fault| fault.at(path))?;
    Ok(match options.sink {
        SinkKind::Pwrite => Box::new(file),
        SinkKind::Mapped => {
            let mapped = MappedSink::new(file.into_file(), head.geometry.file_bytes());
            Box::new(mapped.map_err(failed(path, "map"))?)
        }
    })
}

fn create(dir: &Path, path: &Path, options: &StoreOptions) -> Result<Box<dyn Sink>, StoreError> {
    let new = dir.join(NEW_FILE);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&new, "remove")(error)),
        _ => {}
    }
    let mut opening = OpenOptions::new();
    let file =
        opening.create_new(true).read(true).write(true).mode(0o600).open(&new).map_err(failed(&new, "create"))?;
    let mut sink: Box<dyn Sink> = match options.sink {
        SinkKind::Pwrite => Box::new(PwriteSink::new(file)),
        SinkKind::Mapped => Box::new(MappedSink::new(file, 0).map_err(failed(&new, "map"))?),
    };
    let id = options.id.map_or_else(random_id, Ok).map_err(failed(Path::new(RANDOM), "read"))?;
    let made = format(&mut *sink, id, options.page_bytes, options.segment_bytes);
    if let Err(fault) = made {
        // Best effort: a leftover does no harm.
        let _ = fs::remove_file(&new);
        return Err(fault.at(&new));
    }
    fs::rename(&new, path).map_err(failed(&new, "rename"))?;
    sync_dir(dir)?;
    Ok(sink)
}

const RANDOM: &str = "/dev/urandom";

/// An id that no other store has.
fn random_id() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    File::open(RANDOM)?.read_exact(&mut id)?;
    Ok(id)
}

fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed(dir, "sync"))
}
