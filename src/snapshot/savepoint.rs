//! A copy of a store, as a store of its own. It must not know what is in the files.
//!
//! It is made under another name in the same folder, synced, and renamed: it is there whole or not at all. While it is
//! made, the store is open and locked, and nobody writes.

use super::store::Store;
use crate::error::StoreError;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Between two looks whether the copy is still wanted.
const CHUNK_BYTES: usize = 4 << 20;

impl Store {
    /// Copies the store into `folder`, which must be new or empty, for as long as it `is_wanted`. The copy has the same id.
    ///
    /// # Errors
    /// `Foreign`: the folder holds something, or the store is simulated. `Io`, `NoSpace`; nothing is left behind then.
    pub(crate) fn copy_to(&self, folder: &Path, is_wanted: &dyn Fn() -> bool) -> Result<(), StoreError> {
        refuse_strangers(folder)?;
        let Some(from) = self.path().parent().filter(|from| !from.as_os_str().is_empty()) else {
            return Err(foreign(self.path(), "the store has no folder that could be copied"));
        };
        let partial = partial_of(folder)?;
        let copied = copy(from, &partial, is_wanted).and_then(|()| put(&partial, folder));
        if copied.is_err() {
            // What cannot be removed now is removed by the next attempt.
            let _ = fs::remove_dir_all(&partial);
        }
        copied
    }
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::NoSpace { path, bytes: CHUNK_BYTES as u64 },
        _ => StoreError::Io { path, action, error },
    }
}

fn foreign(path: &Path, reason: &str) -> StoreError {
    StoreError::Foreign { path: path.to_owned(), reason: reason.to_owned() }
}

fn refuse_strangers(folder: &Path) -> Result<(), StoreError> {
    match fs::read_dir(folder) {
        Ok(entries) => match entries.count() {
            0 => Ok(()),
            _ => Err(foreign(folder, "it holds something already: name a new or an empty folder for the savepoint")),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(folder, "read")(error)),
    }
}

/// Where the copy is made: beside its place, so that it can be renamed.
fn partial_of(folder: &Path) -> Result<PathBuf, StoreError> {
    let name = folder.file_name().ok_or_else(|| foreign(folder, "it has no name: name a new folder"))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".partial");
    Ok(folder.with_file_name(hidden))
}

fn parent_of(folder: &Path) -> &Path {
    folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn copy(from: &Path, partial: &Path, is_wanted: &dyn Fn() -> bool) -> Result<(), StoreError> {
    match fs::remove_dir_all(partial) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(partial, "remove")(error)),
        _ => {}
    }
    DirBuilder::new().recursive(true).mode(0o700).create(partial).map_err(failed(partial, "create"))?;
    for entry in fs::read_dir(from).map_err(failed(from, "read"))? {
        let entry = entry.map_err(failed(from, "read"))?;
        // The lock has no content, and is made anew.
        let has_content = entry.metadata().map_err(failed(&entry.path(), "read"))?.len() > 0;
        if has_content && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            copy_file(&entry.path(), &partial.join(entry.file_name()), is_wanted)?;
        }
    }
    sync(partial)
}

fn copy_file(from: &Path, to: &Path, is_wanted: &dyn Fn() -> bool) -> Result<(), StoreError> {
    let mut source = File::open(from).map_err(failed(from, "open"))?;
    let mut target =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(failed(to, "create"))?;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        if !is_wanted() {
            return Err(failed(to, "write")(io::Error::new(ErrorKind::TimedOut, "nobody waits for it any more")));
        }
        match source.read(&mut chunk).map_err(failed(from, "read"))? {
            0 => break,
            read => target.write_all(&chunk[..read]).map_err(failed(to, "write"))?,
        }
    }
    target.sync_all().map_err(failed(to, "sync"))
}

/// Gives the copy its name. An empty folder gives way to it.
fn put(partial: &Path, folder: &Path) -> Result<(), StoreError> {
    fs::rename(partial, folder).map_err(failed(folder, "rename the copy to"))?;
    sync(parent_of(folder))
}

fn sync(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder, "sync"))
}
