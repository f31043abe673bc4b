//! A store on disk: its folder, its lock, and files that are there whole or not at all. It must not know what is in the
//! files.
//!
//! A new file is written under another name, synced, renamed, and its folder synced: a crash leaves no half-made
//! generation, only a leftover that the next one of its number replaces. Folder and files are for their owner only.

use super::held::{self, Claims, PINS_DIR, Pinned};
use super::home::{Generations, Home};
use super::mapped::MappedSink;
use super::options::SinkKind;
use super::pin::Hold;
use super::pwrite::PwriteSink;
use super::sink::{ReadAt, Sink};
use crate::error::StoreError;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The first file of a store within its folder.
pub const STORE_FILE: &str = "generation-1.snap";
const NEW_SUFFIX: &str = ".new";
const LOCK_FILE: &str = "lock";

fn file_name(generation: u32) -> String {
    format!("generation-{generation}.snap")
}

/// The generation that a file of this name is; the same with [`NEW_SUFFIX`] is one that was never finished.
fn generation_of(name: &str) -> Option<u32> {
    let number = name.strip_prefix("generation-")?.strip_suffix(".snap")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

/// A folder to read from. The writer may be at work.
#[derive(Debug)]
pub(super) struct Reading(PathBuf);

impl Reading {
    pub fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }
}

impl Generations for Reading {
    fn list(&self) -> io::Result<Vec<u32>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            found.extend(entry?.file_name().to_str().and_then(generation_of));
        }
        found.sort_unstable();
        Ok(found)
    }

    fn path(&self, generation: u32) -> PathBuf {
        self.0.join(file_name(generation))
    }

    fn open(&self, generation: u32) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(ReadFile(File::open(self.path(generation))?)))
    }

    fn pin(&self, epoch: u64) -> Pinned {
        held::pin(&self.0.join(PINS_DIR), epoch)
    }
}

struct ReadFile(File);

impl ReadAt for ReadFile {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, offset_bytes)
    }
}

/// A folder that is ours to write to.
pub(super) struct Folder {
    dir: Reading,
    kind: SinkKind,
    /// Held until the store and all pins are dropped.
    lock: Arc<Lock>,
    /// Which file the one that is written to is: device and number.
    written: Option<(u64, u64)>,
    /// The same of one that is begun.
    begun: Option<(u64, u64)>,
    /// Epochs that are about to expire.
    claims: Claims,
}

impl Folder {
    /// Makes the folder if it is not there, and keeps everybody else from writing to it.
    pub fn claim(dir: &Path, kind: SinkKind) -> Result<Self, StoreError> {
        make_dir(dir)?;
        refuse_strangers(dir)?;
        let lock = lock(&dir.join(LOCK_FILE))?;
        // Once more: who held the lock before may have made a store meanwhile.
        refuse_strangers(dir)?;
        let lock = Arc::new(Lock(lock));
        Ok(Self { dir: Reading::new(dir), kind, lock, written: None, begun: None, claims: Claims::default() })
    }

    fn new_path(&self, generation: u32) -> PathBuf {
        self.dir.0.join(file_name(generation) + NEW_SUFFIX)
    }

    fn sink(&self, file: File, len_bytes: u64) -> io::Result<Box<dyn Sink>> {
        Ok(match self.kind {
            SinkKind::Pwrite => Box::new(PwriteSink::new(file)),
            SinkKind::Mapped => Box::new(MappedSink::new(file, len_bytes)?),
        })
    }
}

struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone would leave it to a child process that another thread is about to start: until it runs a program
        // of its own it has a copy. If this fails, closing is what is left.
        let _ = self.0.unlock();
    }
}

pub(super) fn identity(meta: &fs::Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

impl Generations for Folder {
    fn list(&self) -> io::Result<Vec<u32>> {
        self.dir.list()
    }
    fn path(&self, generation: u32) -> PathBuf {
        self.dir.path(generation)
    }
    fn open(&self, generation: u32) -> io::Result<Box<dyn ReadAt>> {
        self.dir.open(generation)
    }
    fn pin(&self, epoch: u64) -> Pinned {
        self.dir.pin(epoch)
    }
}

impl Home for Folder {
    fn open_to_write(&mut self, generation: u32, len_bytes: u64) -> io::Result<Box<dyn Sink>> {
        let file = OpenOptions::new().read(true).write(true).open(self.path(generation))?;
        self.written = Some(identity(&file.metadata()?));
        self.sink(file, len_bytes)
    }

    fn begin(&mut self, generation: u32) -> io::Result<Box<dyn Sink>> {
        self.check_lock()?;
        let new = self.new_path(generation);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().create_new(true).read(true).write(true).mode(0o600).open(&new)?;
        self.begun = Some(identity(&file.metadata()?));
        self.sink(file, 0)
    }

    fn publish(&mut self, generation: u32) -> io::Result<()> {
        self.written = self.begun.take();
        fs::rename(self.new_path(generation), self.path(generation))?;
        self.sync_names()
    }

    fn sync_names(&mut self) -> io::Result<()> {
        File::open(&self.dir.0)?.sync_all()
    }

    fn remove(&mut self, generation: u32) -> io::Result<()> {
        for path in [self.path(generation), self.new_path(generation)] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn hold(&self) -> Hold {
        self.lock.clone()
    }

    fn check(&self, generation: u32) -> io::Result<()> {
        self.check_lock()?;
        match fs::metadata(self.path(generation)) {
            Ok(found) if Some(identity(&found)) == self.written => Ok(()),
            Ok(_) => Err(io::Error::other("somebody has put another file in its place while it was in use")),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(io::Error::new(ErrorKind::NotFound, "somebody has removed the file while it was in use"))
            }
            Err(error) => Err(error),
        }
    }

    fn claim(&mut self, epoch: u64) -> bool {
        self.claims.claim(&self.dir.0.join(PINS_DIR), epoch)
    }

    fn let_go(&mut self) {
        self.claims.let_go();
    }
}

impl Folder {
    /// What is at our place now may be another's.
    fn check_lock(&self) -> io::Result<()> {
        match fs::metadata(self.dir.0.join(LOCK_FILE)) {
            Ok(found) if identity(&found) == identity(&self.lock.0.metadata()?) => Ok(()),
            Ok(_) => Err(io::Error::other("the folder is another one than when it was opened: bring back the old one")),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let what = "somebody has removed the folder, or the lock in it, while it was in use: bring it back";
                Err(io::Error::new(ErrorKind::NotFound, what))
            }
            Err(error) => Err(error),
        }
    }
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
        let name = entry.map_err(failed(dir, "read"))?.file_name().to_string_lossy().into_owned();
        if generation_of(&name).is_some() {
            return Ok(());
        }
        let unfinished = name.strip_suffix(NEW_SUFFIX).is_some_and(|name| generation_of(name).is_some());
        if name != LOCK_FILE && name != PINS_DIR && !unfinished {
            strangers.push(name);
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

/// An id that no other store has.
pub(super) fn random_id() -> Result<[u8; 16], StoreError> {
    const RANDOM: &str = "/dev/urandom";
    let mut id = [0; 16];
    File::open(RANDOM).and_then(|mut file| file.read_exact(&mut id)).map_err(failed(Path::new(RANDOM), "read"))?;
    Ok(id)
}

/// Makes the names in a folder durable.
pub(super) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed(dir, "sync"))
}
