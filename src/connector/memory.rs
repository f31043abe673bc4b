//! An exactly-once sink in memory: what the file sink does, with a map for a folder. It survives a simulated crash as a
//! folder would: what is prepared and not committed stays pending until somebody recovers.

use crate::error::{ConnectorError, Failed};
use crate::operator::{Committer, Part, Place, Sink, WentBack, Writer};
use crate::record::Record;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// An exactly-once sink whose parts are kept in memory, encoded. A clone is another handle of the same memory.
#[derive(Debug)]
pub struct Memory<T> {
    shelf: Arc<Mutex<Shelf>>,
    item: PhantomData<fn() -> T>,
}

/// What stands for the folder.
#[derive(Debug, Default)]
struct Shelf {
    owner: Option<[u8; 16]>,
    in_use: Weak<()>,
    /// By name, which begins with the epoch.
    parts: BTreeMap<Vec<u8>, Stored>,
}

#[derive(Debug)]
struct Stored {
    epoch: u64,
    encoded: Vec<u8>,
    /// Counted, as there are records without a byte.
    records: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Pending,
    Synced,
    Committed,
    /// A job that went back by this epoch has taken it back.
    Superseded,
}

fn lock(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Record> Memory<T> {
    /// An empty one.
    pub fn new() -> Self {
        Self { shelf: Arc::default(), item: PhantomData }
    }

    /// The committed records, in the order of epoch, task and attempt.
    ///
    /// # Panics
    /// If a record does not decode from its own encoding.
    pub fn committed(&self) -> Vec<T> {
        let shelf = lock(&self.shelf);
        let mut records = Vec::new();
        for stored in shelf.parts.values().filter(|stored| stored.state == State::Committed) {
            let mut input = stored.encoded.as_slice();
            for _ in 0..stored.records {
                records.push(T::decode(&mut input).expect("a record decodes from its own encoding"));
            }
        }
        records
    }

    /// The names of the parts that are prepared and not committed.
    pub fn pending(&self) -> Vec<String> {
        let shelf = lock(&self.shelf);
        let pending = shelf.parts.iter().filter(|(_, stored)| stored.state < State::Committed);
        pending.map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// What a power failure does beside the crash: pending parts that were not synced are gone.
    pub fn lose_power(&self) {
        lock(&self.shelf).parts.retain(|_, stored| stored.state != State::Pending);
    }
}

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        Self { shelf: self.shelf.clone(), item: PhantomData }
    }
}

impl<T: Record> Default for Memory<T> {
    fn default() -> Self {
        Self::new()
    }
}

fn foreign(reason: impl Into<String>) -> ConnectorError {
    ConnectorError::Foreign { path: PathBuf::from("memory"), reason: reason.into() }
}

impl<T: Record> Sink for Memory<T> {
    type In = T;
    type Writer = MemoryWriter<T>;

    fn exactly_once(&self) -> bool {
        true
    }

    fn claim(&self, place: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        let Some(id) = place.store_id else {
            return Err(foreign("an exactly-once sink needs a job with checkpoints"));
        };
        let mut shelf = lock(&self.shelf);
        if shelf.in_use.strong_count() > 0 {
            return Err(foreign("in use by another job, or by another sink of this one"));
        }
        let own = shelf.owner == Some(id);
        if place.restored && !own {
            return Err(foreign("it does not belong to the store that the job goes on from"));
        }
        if !place.restored && shelf.parts.values().any(|stored| !own || stored.state == State::Committed) {
            return Err(foreign("it holds parts already, and the job starts afresh"));
        }
        let lock = Arc::new(());
        shelf.owner = Some(id);
        shelf.in_use = Arc::downgrade(&lock);
        Ok(Box::new(MemoryCommitter { shelf: self.shelf.clone(), newest_epoch: place.newest_epoch, _lock: lock }))
    }

    fn writer(&self, place: &Place, task: u32) -> Result<Self::Writer, ConnectorError> {
        let (shelf, attempt) = (self.shelf.clone(), place.attempt);
        Ok(MemoryWriter { shelf, task, attempt, open: Vec::new(), records: 0, item: PhantomData })
    }
}

/// Encodes records into the part under way.
#[derive(Debug)]
pub struct MemoryWriter<T> {
    shelf: Arc<Mutex<Shelf>>,
    task: u32,
    attempt: u32,
    open: Vec<u8>,
    records: u64,
    item: PhantomData<fn(T)>,
}

impl<T: Record> Writer for MemoryWriter<T> {
    type In = T;

    fn write(&mut self, record: T) -> Result<(), Failed> {
        record.encode(&mut self.open);
        self.records += 1;
        Ok(())
    }

    fn prepare(&mut self, epoch: u64) -> Result<Option<Part>, Failed> {
        if self.records == 0 {
            return Ok(None);
        }
        let name = format!("part-{epoch:010}-{:04}-{:04}", self.task, self.attempt).into_bytes();
        let (encoded, records) = (std::mem::take(&mut self.open), std::mem::take(&mut self.records));
        let stored = Stored { epoch, encoded, records, state: State::Pending };
        match lock(&self.shelf).parts.insert(name.clone(), stored) {
            None => Ok(Some(Part(name))),
            Some(_) => Err(foreign(format!("{} is there already", String::from_utf8_lossy(&name))).into()),
        }
    }
}

struct MemoryCommitter {
    shelf: Arc<Mutex<Shelf>>,
    newest_epoch: u64,
    _lock: Arc<()>,
}

impl MemoryCommitter {
    fn raise(&self, parts: &[Part], to: State) -> Result<(), ConnectorError> {
        let mut shelf = lock(&self.shelf);
        for Part(name) in parts {
            match shelf.parts.get_mut(name) {
                Some(stored) if stored.state == State::Committed => {}
                Some(stored) => stored.state = to,
                None => return Err(foreign(format!("{} is missing", String::from_utf8_lossy(name)))),
            }
        }
        Ok(())
    }
}

impl Committer for MemoryCommitter {
    fn recover(&mut self, listed: &[Part]) -> Result<(), ConnectorError> {
        let is_unknown = |stored: &Stored| stored.state == State::Committed && stored.epoch > self.newest_epoch;
        if lock(&self.shelf).parts.values().any(is_unknown) {
            return Err(foreign("it holds results of epochs that the store does not have any more"));
        }
        self.raise(listed, State::Committed)?;
        lock(&self.shelf).parts.retain(|_, stored| stored.state >= State::Committed);
        Ok(())
    }

    fn can_retract(&self) -> bool {
        true
    }

    fn retract(&mut self, back: &WentBack) -> Result<(), ConnectorError> {
        for stored in lock(&self.shelf).parts.values_mut() {
            match stored.state {
                State::Committed if back.takes_back(stored.epoch) => stored.state = State::Superseded,
                State::Superseded if back.brings_back(stored.epoch) => stored.state = State::Committed,
                _ => {}
            }
        }
        Ok(())
    }

    fn sync(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        self.raise(parts, State::Synced)
    }

    fn commit(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
        self.raise(parts, State::Committed)
    }
}
