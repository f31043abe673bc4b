//! Reading a store that may be in use, without its lock: what the inspector does. Nothing is pinned: an epoch may
//! expire while it is read, and then that is what the error says. It must not write, nor map.

use super::codec::place;
use super::fault::{Fault, io};
use super::folder::STORE_FILE;
use super::format::TableEntry;
use super::head::{Head, read_head};
use super::recover::read_table;
use super::restored::{Reading, Restored, Seen, list_pages, read_epoch, read_pages, read_record};
use super::sink::ReadAt;
use super::store::{EpochInfo, find, infos};
use super::sums::Sums;
use super::tree::Forest;
use crate::error::StoreError;
use std::fs::File;
use std::io::{self as stdio, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// How often a head is read again when the store moves on meanwhile.
const TRIES: u32 = 8;

/// A store open for reading.
pub struct Reader {
    path: PathBuf,
    source: Box<dyn ReadAt>,
    head: Head,
    table: Vec<TableEntry>,
    sums: Sums,
}

/// What verifying an epoch found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochReport {
    /// Its number.
    pub epoch: u64,
    /// Entries that were looked at.
    pub entries: u64,
    /// Pages that are as they were written.
    pub pages_good: u64,
    /// What is damaged, by name.
    pub damage: Vec<String>,
}

struct ReadFile(File);

impl ReadAt for ReadFile {
    fn len_bytes(&self) -> stdio::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> stdio::Result<()> {
        self.0.read_exact_at(into, offset_bytes)
    }
}

impl Reader {
    /// Opens the store in `dir`.
    ///
    /// # Errors
    /// `Foreign`: there is none, or that of a newer version. `Corrupt`, `Io`.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(STORE_FILE);
        let file = File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                StoreError::Foreign { path: dir.into(), reason: format!("no store here: there is no `{STORE_FILE}`") }
            }
            _ => io("open")(error).at(&path),
        })?;
        Self::load(path, Box::new(ReadFile(file)))
    }

    /// Opens the store in `source`: for simulations.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open_on(source: Box<dyn ReadAt>) -> Result<Self, StoreError> {
        Self::load(PathBuf::from("simulated"), source)
    }

    fn load(path: PathBuf, source: Box<dyn ReadAt>) -> Result<Self, StoreError> {
        let (head, table) = read_newest(&*source).map_err(|fault| fault.at(&path))?;
        Ok(Self { path, source, head, table, sums: Sums::new(0) })
    }

    /// Looks for epochs that have been committed since.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        (self.head, self.table) = read_newest(&*self.source).map_err(|fault| fault.at(&self.path))?;
        Ok(())
    }

    /// Which store this is.
    pub fn id(&self) -> [u8; 16] {
        self.head.id
    }

    /// The kept epochs, oldest first.
    pub fn epochs(&self) -> Vec<EpochInfo> {
        infos(&self.table, self.head.geometry)
    }

    /// Reads a kept epoch and verifies every block of it.
    ///
    /// # Errors
    /// `NoEpoch`, also if it has expired meanwhile; `Corrupt`, naming epoch, entry and page; `Io`.
    pub fn read(&self, epoch: u64) -> Result<Restored, StoreError> {
        let entry = find(&self.table, epoch, &self.path)?;
        match read_epoch(self.forest(), entry, Reading::Now(&self.sums)) {
            Ok(restored) => Ok(restored),
            Err(fault) => Err(self.unless_expired(epoch, fault)),
        }
    }

    /// Reads everything of a kept epoch, and lists what is damaged instead of stopping at it.
    ///
    /// # Errors
    /// `NoEpoch`, also if it has expired meanwhile; `Io`.
    pub fn verify(&self, epoch: u64) -> Result<EpochReport, StoreError> {
        let entry = find(&self.table, epoch, &self.path)?;
        let report = self.examine(entry).map_err(|fault| fault.at(&self.path))?;
        if !report.damage.is_empty() {
            let (_, table) = read_newest(&*self.source).map_err(|fault| fault.at(&self.path))?;
            find(&table, epoch, &self.path)?;
        }
        Ok(report)
    }

    fn examine(&self, entry: &TableEntry) -> Result<EpochReport, Fault> {
        let mut report = EpochReport { epoch: entry.epoch.get(), entries: 0, pages_good: 0, damage: Vec::new() };
        let Some(record) = note(read_record(self.forest(), entry), &mut report)? else { return Ok(report) };
        let mut page = vec![0; self.head.geometry.page_bytes as usize];
        let mut seen = Seen::new(self.head.geometry);
        for entry in record.entries {
            report.entries += 1;
            let Some(map) = entry.map else { continue };
            let name = || place(&entry.operator, &entry.state, entry.task, entry.tasks);
            let pages = list_pages(self.forest(), &map, &mut seen).map_err(|fault| fault.within(name));
            for slot in note(pages, &mut report)?.unwrap_or_default() {
                let read =
                    read_pages(self.forest(), &[slot], &mut page, &self.sums).map_err(|fault| fault.within(name));
                report.pages_good += u64::from(note(read, &mut report)?.is_some());
            }
        }
        Ok(report)
    }

    /// Damage in an epoch that is gone is no damage.
    fn unless_expired(&self, epoch: u64, fault: Fault) -> StoreError {
        match (fault, read_newest(&*self.source)) {
            (fault @ Fault::Corrupt(_), Ok((_, table))) => {
                find(&table, epoch, &self.path).err().unwrap_or_else(|| fault.at(&self.path))
            }
            (fault, _) => fault.at(&self.path),
        }
    }

    fn forest(&self) -> Forest<'_> {
        Forest { source: &*self.source, geometry: self.head.geometry }
    }
}

/// Writes damage into the report; other errors end it.
fn note<T>(result: Result<T, Fault>, report: &mut EpochReport) -> Result<Option<T>, Fault> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Corrupt(what)) => {
            report.damage.push(format!("epoch {}, {what}", report.epoch));
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

/// The newest head and its epoch table. A writer may overwrite the table of a head that is no more the newest.
fn read_newest(source: &dyn ReadAt) -> Result<(Head, Vec<TableEntry>), Fault> {
    let mut tries = 1;
    loop {
        let head = read_head(source)?;
        match read_table(Forest { source, geometry: head.geometry }, &head.meta) {
            Ok((table, _)) => return Ok((head, table)),
            Err(fault) => {
                let moved = read_head(source)?.meta.sequence.get() != head.meta.sequence.get();
                if !moved || tries == TRIES {
                    return Err(fault);
                }
                tries += 1;
            }
        }
    }
}
