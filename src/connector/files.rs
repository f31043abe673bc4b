//! Output files that hold each record exactly once (protocols, rules 40 to 43).
//!
//! 1. A writer appends to a hidden pending file and closes it at the cut; an epoch in which it wrote nothing has none.
//! 2. Before the epoch is durable, the part and its name are.
//! 3. When it is durable, the part is renamed, and the new name is made durable **before** the commit returns: the next
//!    snapshot does not list the part any more, so nobody would rename it again.
//! 4. After a restore the listed parts are committed again. One that has its final name already is done; one that has
//!    neither name is an error. Then every pending part of this store is removed: it is not listed.
//! 5. A job that goes back takes back its committed parts: they are moved aside, into a subfolder that is named after the
//!    epoch by which it went back, and never removed. What belongs to the epoch that it goes back to is brought back from
//!    there, if it was moved aside before: so one can go back, and back again.
//! 6. All parts of a folder have one format: who reads the folder in one of two would miss the rest.

use super::folder::{Folder, check, foreign, io_error};
use super::part_name::{PartName, Pending, epoch_of};
use super::{Format, Rows};
use crate::error::{ConnectorError, Failed};
use crate::operator::{Committer, Part, Place, Sink, WentBack, Writer};
use crate::record::Record;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::marker::PhantomData;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const BUFFER_BYTES: usize = 128 << 10;

/// A folder of output files. Made by `Csv::exactly_once` and `JsonLines::exactly_once`.
#[derive(Debug)]
pub struct Files<T> {
    path: PathBuf,
    format: Format,
    prepared: Arc<Prepared>,
    item: PhantomData<fn(T)>,
}

/// Parts that are closed to writing and not synced yet. They stay open until they are: if a file is closed first, the
/// kernel may forget that writing it back has failed.
type Prepared = Mutex<BTreeMap<PartName, File>>;

impl<T: Record> Files<T> {
    pub(super) fn new(path: &Path, format: Format) -> Result<Self, ConnectorError> {
        check(path)?;
        Ok(Self { path: path.to_owned(), format, prepared: Arc::default(), item: PhantomData })
    }
}

impl<T: Record> Sink for Files<T> {
    type In = T;
    type Writer = FilesWriter<T>;

    fn exactly_once(&self) -> bool {
        true
    }

    fn claim(&self, place: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        let folder = Folder::claim(&self.path, place)?;
        // What an earlier run in this process has left open is not of this one.
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(Box::new(FilesCommitter {
            folder,
            newest_epoch: place.newest_epoch,
            format: self.format,
            prepared: self.prepared.clone(),
        }))
    }

    fn writer(&self, place: &Place, task: u32) -> Result<Self::Writer, ConnectorError> {
        let store_id = place.store_id.ok_or_else(|| foreign(&self.path, "it has not been claimed"))?;
        Ok(FilesWriter {
            folder: self.path.clone(),
            store_id,
            next: Pending { task, attempt: place.attempt, sequence: 0, format: self.format },
            rows: Rows::new(self.format),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            open: None,
            prepared: place.sync.then(|| self.prepared.clone()),
        })
    }
}

/// Writes the part of one task.
#[derive(Debug)]
pub struct FilesWriter<T> {
    folder: PathBuf,
    store_id: [u8; 16],
    /// The part under way.
    next: Pending,
    rows: Rows<T>,
    buffer: Vec<u8>,
    /// Its file, once the buffer has been full.
    open: Option<File>,
    /// None where nothing is synced.
    prepared: Option<Arc<Prepared>>,
}

impl<T: Record> FilesWriter<T> {
    #[cold]
    fn spill(&mut self) -> Result<(), ConnectorError> {
        let path = self.folder.join(self.next.name(&self.store_id));
        if self.open.is_none() {
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).mode(0o600).open(&path);
            self.open = Some(file.map_err(io_error(&path, "create"))?);
        }
        if let Some(file) = &mut self.open {
            file.write_all(&self.buffer).map_err(io_error(&path, "write"))?;
        }
        self.buffer.clear();
        Ok(())
    }
}

impl<T: Record> Writer for FilesWriter<T> {
    type In = T;

    #[inline]
    fn write(&mut self, record: T) -> Result<(), Failed> {
        self.rows.append(&record, &mut self.buffer);
        if self.buffer.len() >= BUFFER_BYTES {
            self.spill()?;
        }
        Ok(())
    }

    fn prepare(&mut self, epoch: u64) -> Result<Option<Part>, Failed> {
        if self.buffer.is_empty() && self.open.is_none() {
            return Ok(None);
        }
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        let name = PartName { epoch, pending: self.next.clone() };
        self.next.sequence += 1;
        let part = name.to_part();
        if let (Some(prepared), Some(file)) = (&self.prepared, self.open.take()) {
            prepared.lock().unwrap_or_else(PoisonError::into_inner).insert(name, file);
        }
        Ok(Some(part))
    }
}

struct FilesCommitter {
    folder: Folder,
    newest_epoch: u64,
    format: Format,
    prepared: Arc<Prepared>,
}

impl FilesCommitter {
    fn name(&self, part: &Part) -> Result<PartName, ConnectorError> {
        PartName::of(part).map_err(|error| foreign(&self.folder.path, format!("the snapshot lists a part: {error}")))
    }

    /// Where a part lies before and after its commit.
    fn paths(&self, name: &PartName) -> (PathBuf, PathBuf) {
        let folder = &self.folder;
        (folder.path.join(name.pending.name(&folder.store_id)), folder.path.join(name.committed()))
    }

    /// Rule 6.
    fn check_format(&self, listed: &[Part]) -> Result<(), ConnectorError> {
        let mut names = self.folder.committed()?;
        for part in listed {
            names.push(self.name(part)?.committed().into());
        }
        let extension = self.format.extension();
        match names.iter().find(|name| Path::new(name).extension() != Some(extension.as_ref())) {
            None => Ok(()),
            Some(other) => {
                let other = other.display();
                let what =
                    format!("it holds {other}, and {extension} is asked for now: go on with the format that was");
                Err(foreign(&self.folder.path, what))
            }
        }
    }

    fn sync_part(&self, name: &PartName) -> Result<(), ConnectorError> {
        let (pending, committed) = self.paths(name);
        let open = self.prepared.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        let file = match open.map_or_else(|| File::open(&pending), Ok) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound && exists(&committed)? => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(self.missing(name)),
            Err(error) => return Err(io_error(&pending, "open")(error)),
        };
        file.sync_all().map_err(io_error(&pending, "sync"))
    }

    fn rename(&self, name: &PartName) -> Result<(), ConnectorError> {
        let (pending, committed) = self.paths(name);
        match (exists(&pending)?, exists(&committed)?) {
            (true, false) => std::fs::rename(&pending, &committed).map_err(io_error(&pending, "rename")),
            (false, true) => Ok(()),
            (false, false) => Err(self.missing(name)),
            (true, true) => {
                let what = format!("{} is there both pending and committed: it is not ours", name.committed());
                Err(foreign(&self.folder.path, what))
            }
        }
    }

    /// Are there results that the store does not know of?
    fn check_known(&self) -> Result<(), ConnectorError> {
        let mut unknown = self.folder.committed()?;
        unknown.retain(|name| epoch_of(name).is_some_and(|epoch| epoch > self.newest_epoch));
        unknown.sort();
        let Some(first) = unknown.first() else { return Ok(()) };
        let what = format!(
            "{} ({} in all) is of a later epoch than {newest}, the newest in the state folder: that has lost checkpoints, or is \
             a copy from before; to go on from it, move these files away (every `part-EPOCH-…` of an epoch above {newest}): \
             their results will be made again",
            first.display(),
            unknown.len(),
            newest = self.newest_epoch
        );
        Err(foreign(&self.folder.path, what))
    }

    fn missing(&self, name: &PartName) -> ConnectorError {
        let what = format!(
            "{} is missing, and so is its pending form {}: somebody has removed it; its records are lost",
            name.committed(),
            name.pending.name(&self.folder.store_id)
        );
        foreign(&self.folder.path, what)
    }
}

fn exists(path: &Path) -> Result<bool, ConnectorError> {
    path.try_exists().map_err(io_error(path, "find"))
}

impl Committer for FilesCommitter {
    fn recover(&mut self, listed: &[Part]) -> Result<(), ConnectorError> {
        self.check_format(listed)?;
        self.check_known()?;
        for part in listed {
            self.rename(&self.name(part)?)?;
        }
        // Names first: what is removed below must not be what a power failure would have turned back into pending.
        self.folder.sync()?;
        for path in self.folder.pending()? {
            std::fs::remove_file(&path).map_err(io_error(&path, "remove"))?;
        }
        self.folder.sync()
    }

    fn can_retract(&self) -> bool {
        true
    }

    fn retract(&mut self, back: &WentBack) -> Result<(), ConnectorError> {
        let committed = self.folder.committed()?;
        let taken = |name: &&OsString| epoch_of(name).is_some_and(|epoch| back.takes_back(epoch));
        self.folder.supersede(back.as_epoch(), committed.iter().filter(taken))?;
        for (by, name) in self.folder.superseded()? {
            if epoch_of(&name).is_some_and(|epoch| back.brings_back(epoch)) {
                self.folder.bring_back(by, &name)?;
            }
        }
        self.folder.sync()
    }

    fn sync(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        if parts.is_empty() || !self.folder.is_synced() {
            return Ok(());
        }
        for part in parts {
            self.sync_part(&self.name(part)?)?;
        }
        self.folder.sync()
    }

    fn commit(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        if parts.is_empty() {
            return Ok(());
        }
        for part in parts {
            self.rename(&self.name(part)?)?;
        }
        self.folder.sync()
    }
}
