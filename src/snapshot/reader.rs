//! Reading a store that may be in use, without its lock: what the inspector does. While an epoch is read it is pinned, so that
//! its writer does not let it expire; where it cannot be, it may, and then that is what the error says. It must not write to
//! the store, nor map, nor make its writer wait.

use super::codec::place;
use super::earlier::{Earlier, Found, find, read_earlier};
use super::edge_part::EdgePart;
use super::fault::{Fault, io};
use super::folder::{Reading, STORE_FILE};
use super::format::TableEntry;
use super::head::{Head, read_head};
use super::held::Pinned;
use super::home::Generations;
use super::leaves::{Leaves, Seen};
use super::recover::read_table;
use super::restored::{Restored, Take, read_epoch, read_pages, read_record};
use super::savepoint::Alone;
use super::sink::ReadAt;
use super::store::{EpochInfo, infos};
use super::sums::Sums;
use super::tree::Forest;
use crate::error::StoreError;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// How often a head is read again when the store moves on meanwhile.
const TRIES: u32 = 8;

/// How often, and after how long, an epoch that the writer is about to let expire is looked at again: for as long as a commit
/// may take that fails in the end.
const PIN_TRIES: u32 = 200;
const PIN_PAUSE: Duration = Duration::from_millis(5);

/// A store open for reading.
pub struct Reader {
    home: Box<dyn Generations>,
    id: [u8; 16],
    /// Oldest first.
    files: Vec<Earlier>,
    sums: Sums,
}

/// An epoch that stays for as long as this lives: its writer, be it another process, does not let it expire. The end of this
/// process, however it comes, ends it.
pub struct Held {
    /// None: it may not be pinned here, and may expire.
    pin: Option<Box<dyn Send + Sync>>,
}

impl Held {
    /// Whether it is held: not if the folder may not be written to.
    pub fn is_held(&self) -> bool {
        self.pin.is_some()
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("is_held", &self.is_held()).finish()
    }
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

impl Reader {
    /// Opens the store in `dir`; or that in a file by itself, as a savepoint is.
    ///
    /// # Errors
    /// `Foreign`: there is none, or that of a newer version. `Corrupt`, `Io`.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let none = || {
            let reason = format!(
                "no store here (no `{STORE_FILE}`): name the folder that a job was given for its state, or a savepoint"
            );
            StoreError::Foreign { path: dir.into(), reason }
        };
        if dir.is_file() {
            return Self::open_on(Box::new(Alone(dir.to_owned())));
        }
        let home = Reading::new(dir);
        match home.list() {
            Ok(list) if list.is_empty() => Err(none()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Err(none()),
            Err(error) => Err(io("open")(error).at(dir)),
            Ok(_) => Self::open_on(Box::new(home)),
        }
    }

    /// Opens the store in `home`: for simulations.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open_on(home: Box<dyn Generations>) -> Result<Self, StoreError> {
        let (id, files) = read_all(&*home)?;
        Ok(Self { home, id, files, sums: Sums::new(0) })
    }

    /// Looks for epochs that have been committed since.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        (self.id, self.files) = read_all(&*self.home)?;
        Ok(())
    }

    /// Which store this is.
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// Bytes of each page.
    pub fn page_bytes(&self) -> u32 {
        self.files.last().map_or(0, |file| file.geometry.page_bytes)
    }

    /// The kept epochs, oldest first.
    pub fn epochs(&self) -> Vec<EpochInfo> {
        self.files.iter().flat_map(|file| infos(&file.table, file.geometry)).collect()
    }

    /// Keeps an epoch from expiring until what is given back is dropped. Each of the methods that read does so by itself; this
    /// is for who reads more than once. The writer never waits for it: it lets the epoch expire with a later commit.
    ///
    /// # Errors
    /// `NoEpoch`, also if it has expired meanwhile; as [`Reader::open`].
    pub fn hold(&self, epoch: u64) -> Result<Held, StoreError> {
        find(&self.files, epoch)?;
        for _ in 0..PIN_TRIES {
            let pin = match self.home.pin(epoch) {
                Pinned::Held(pin) => Some(pin),
                Pinned::Unpinned => return Ok(Held { pin: None }),
                Pinned::Expiring => None,
            };
            find(&read_all(&*self.home)?.1, epoch)?;
            if pin.is_some() {
                return Ok(Held { pin });
            }
            std::thread::sleep(PIN_PAUSE);
        }
        Ok(Held { pin: None })
    }

    /// Reads a kept epoch and verifies every block of it.
    ///
    /// # Errors
    /// `NoEpoch`, also if it has expired meanwhile; `Corrupt`, naming epoch, entry and page; `Io`.
    pub fn read(&self, epoch: u64) -> Result<Restored, StoreError> {
        let _held = self.hold(epoch)?;
        let found = find(&self.files, epoch)?;
        read_epoch(found.forest, found.entry, Take::Now(&self.sums)).map_err(|fault| self.unless_expired(&found, fault))
    }

    /// What the runtime says about a kept epoch.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn header(&self, epoch: u64) -> Result<Vec<u8>, StoreError> {
        let _held = self.hold(epoch)?;
        let found = find(&self.files, epoch)?;
        let record = read_record(found.forest, found.entry).map_err(|fault| self.unless_expired(&found, fault))?;
        Ok(record.header)
    }

    /// What a kept epoch holds of channels, in the order in which tasks have handed it in. No page is read.
    ///
    /// # Errors
    /// `NoEpoch`, also if it has expired meanwhile; `Corrupt`, naming epoch and entry; `Io`.
    pub fn channels(&self, epoch: u64) -> Result<Vec<EdgePart>, StoreError> {
        let _held = self.hold(epoch)?;
        let found = find(&self.files, epoch)?;
        let record = read_record(found.forest, found.entry).map_err(|fault| fault.within(|| format!("epoch {epoch}")));
        let edges = record.and_then(|record| {
            let edge = |entry| EdgePart::of(found.path, epoch, entry).transpose();
            record.entries.iter().filter_map(edge).collect()
        });
        edges.map_err(|fault| self.unless_expired(&found, fault))
    }

    /// Reads everything of a kept epoch, and lists what is damaged instead of stopping at it.
    ///
    /// # Errors
    /// `NoEpoch`, also if it has expired meanwhile; `Io`.
    pub fn verify(&self, epoch: u64) -> Result<EpochReport, StoreError> {
        let _held = self.hold(epoch)?;
        let found = find(&self.files, epoch)?;
        let report = self.examine(&found).map_err(|fault| fault.at(found.path))?;
        if !report.damage.is_empty() {
            find(&read_all(&*self.home)?.1, epoch)?;
        }
        Ok(report)
    }

    fn examine(&self, found: &Found<'_>) -> Result<EpochReport, Fault> {
        let Found { forest, entry, .. } = *found;
        let mut report = EpochReport { epoch: entry.epoch.get(), entries: 0, pages_good: 0, damage: Vec::new() };
        let Some(record) = note(read_record(forest, entry), &mut report)? else { return Ok(report) };
        let mut page = vec![0; forest.geometry.page_bytes as usize];
        let mut seen = Seen::new(forest.geometry);
        for entry in record.entries {
            report.entries += 1;
            let Some(map) = entry.map else { continue };
            let name = || place(&entry.operator, &entry.state, entry.task, entry.tasks);
            let pages = Leaves::read(forest, &map, &mut seen, &self.sums).map_err(|fault| fault.within(name));
            for slot in note(pages, &mut report)?.unwrap_or_default().iter() {
                let read = read_pages(forest, &[slot], &mut page, &self.sums).map_err(|fault| fault.within(name));
                report.pages_good += u64::from(note(read, &mut report)?.is_some());
            }
        }
        Ok(report)
    }

    /// Damage in an epoch that is gone is no damage.
    fn unless_expired(&self, found: &Found<'_>, fault: Fault) -> StoreError {
        let now = match fault {
            Fault::Corrupt(_) => read_all(&*self.home).ok(),
            _ => None,
        };
        let expired = now.and_then(|(_, files)| find(&files, found.entry.epoch.get()).err());
        expired.unwrap_or_else(|| fault.at(found.path))
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

/// All generations of a store, oldest first, with its id.
fn read_all(home: &dyn Generations) -> Result<([u8; 16], Vec<Earlier>), StoreError> {
    let mut tries = 1;
    loop {
        let list = home.list().map_err(|error| io("list the generations beside")(error).at(&home.path(1)))?;
        let result = read_listed(home, &list);
        // A writer may begin a generation and remove those before it.
        let moved = || home.list().is_ok_and(|now| now != list);
        if result.is_ok() || tries == TRIES || !moved() {
            return result;
        }
        tries += 1;
    }
}

fn read_listed(home: &dyn Generations, list: &[u32]) -> Result<([u8; 16], Vec<Earlier>), StoreError> {
    let (number, before) = list.split_last().unwrap_or((&1, &[]));
    let path = home.path(*number);
    let at = |fault: Fault| fault.at(&path);
    let source = home.open(*number).map_err(io("open")).map_err(at)?;
    let (head, table) = read_newest(&*source).map_err(at)?;
    let mut files = read_earlier(home, before, &head, !table.is_empty())?;
    let geometry = head.geometry;
    files.push(Earlier { number: *number, path: path.clone(), source: source.into(), geometry, table });
    Ok((head.id, files))
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
