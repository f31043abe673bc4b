//! A disk in memory that crashes, fails and fills up when told to: what the store's tests and the simulator of the
//! whole runtime write to. It must not know what the bytes mean.
//!
//! 1. Writes go to the live image of a file at once; a sync makes its durable image equal to it. Likewise names: a file
//!    is published at once, and that is durable when the call returns; a removal is durable with the next sync of names.
//! 2. A crash leaves what is durable and any subset, chosen by the caller, of the sectors of 512 bytes written since, each
//!    in its order; likewise growth and names. The write at which it happens may be there in part, the sync not at all.
//! 3. A failed write may have written anything of it. What a failed sync should have covered is lost or not, and no
//!    later sync makes it durable. (Names are different: file systems keep a journal of them, and stop without it.)
//! 4. Whoever reads the disk is another process, whose pins stay when the writer is killed and go when the machine stops.
//! 5. Everything is counted and decided by call number (whatever changes something counts, reads do not), so a run can
//!    be repeated.

mod file;

use super::held::Pinned;
use super::home::{Generations, Home};
use super::pin::Hold;
use super::sink::{ReadAt, Sink};
use file::{File, SimFile};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What happens at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// It fails as a bad disk does; a write is done by half.
    Fail,
    /// The disk is full; a write is done by half.
    Full,
    /// The machine stops: this call and all that follow fail, until [`SimDisk::crash`].
    Crash,
}

/// A generation begins or ends to be one.
#[derive(Clone, Copy)]
enum Naming {
    Publish(u32, usize),
    Remove(u32),
}

type Names = BTreeMap<u32, usize>;

impl Naming {
    fn apply(self, names: &mut Names) {
        match self {
            Self::Publish(generation, file) => names.insert(generation, file),
            Self::Remove(generation) => names.remove(&generation),
        };
    }
}

#[derive(Clone, Default)]
struct Disk {
    /// All that were ever made: who has one open may use it, named or not.
    files: Vec<File>,
    names: Names,
    durable_names: Names,
    pending_names: Vec<Naming>,
    /// Begun, and not published.
    begun: Option<usize>,
    /// Open for writing, if the writer still knows it as one of its own.
    written: Option<usize>,
    calls: u64,
    incidents: BTreeMap<u64, Incident>,
    down: bool,
    guarded: (usize, Vec<Range<u64>>),
    full_above_bytes: Option<u64>,
    /// Epochs that readers have pinned, each with a number of its own.
    pins: BTreeSet<(u64, u64)>,
    next_pin: u64,
    /// Epochs that the writer has claimed.
    claimed: Vec<u64>,
    sync_takes: Duration,
}

/// A handle of a simulated disk; clones are the same disk, and each is the home of a store.
#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<Disk>>);

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// A disk on which `bytes` are durable, as generation 1.
    pub fn with_image(bytes: Vec<u8>) -> Self {
        let names = Names::from([(1, 0)]);
        let disk = Disk { files: vec![File::of(bytes)], names: names.clone(), durable_names: names, ..Disk::default() };
        Self(Arc::new(Mutex::new(disk)))
    }

    /// Another disk in the same state, with nothing to happen to it.
    pub fn fork(&self) -> Self {
        let disk = Disk { incidents: BTreeMap::new(), guarded: Default::default(), ..self.disk().clone() };
        Self(Arc::new(Mutex::new(disk)))
    }

    /// What a reader sees now in the newest generation.
    pub fn image(&self) -> Vec<u8> {
        let disk = self.disk();
        disk.names.last_key_value().map(|(_, file)| disk.files[*file].live.clone()).unwrap_or_default()
    }

    /// Bytes of all generations together.
    pub fn used_bytes(&self) -> u64 {
        self.disk().used_bytes(None)
    }

    /// Calls so far; the next one has this number.
    pub fn calls(&self) -> u64 {
        self.disk().calls
    }

    /// Lets something happen at a call.
    pub fn at(&self, call: u64, incident: Incident) {
        self.disk().incidents.insert(call, incident);
    }

    /// Growing all generations together beyond this is refused as on a full disk.
    pub fn full_above(&self, bytes: Option<u64>) {
        self.disk().full_above_bytes = bytes;
    }

    /// From now on each sync of a file takes so long.
    pub fn slow_down(&self, sync_takes: Duration) {
        self.disk().sync_takes = sync_takes;
    }

    /// From now on, a write that touches one of these ranges of the newest generation panics.
    pub fn guard(&self, ranges: Vec<Range<u64>>) {
        let mut disk = self.disk();
        let newest = disk.names.values().last().copied().unwrap_or(0);
        disk.guarded = (newest, ranges);
    }

    /// Somebody else changes the bytes of a generation, or its length.
    pub fn tamper(&self, generation: u32, change: impl FnOnce(&mut Vec<u8>)) {
        let mut disk = self.disk();
        let file = disk.names[&generation];
        let file = &mut disk.files[file];
        change(&mut file.live);
        file.durable.clone_from(&file.live);
    }

    /// Somebody else removes a generation.
    pub fn vanish(&self, generation: u32) {
        let mut disk = self.disk();
        disk.names.remove(&generation);
        disk.durable_names.remove(&generation);
    }

    /// How many choices the next crash has.
    pub fn undecided(&self) -> usize {
        let disk = self.disk();
        disk.files.iter().map(File::undecided).sum::<usize>() + disk.pending_names.len()
    }

    /// The machine stops, if it has not yet, and comes back. `survives` is asked for each undecided change, in order.
    pub fn crash(&self, mut survives: impl FnMut(usize) -> bool) {
        let mut disk = self.disk();
        let mut number = 0;
        let mut survives = || {
            number += 1;
            survives(number - 1)
        };
        disk.files.iter_mut().for_each(|file| file.crash(&mut survives));
        for naming in std::mem::take(&mut disk.pending_names).into_iter().filter(|_| survives()) {
            naming.apply(&mut disk.durable_names);
        }
        disk.names = disk.durable_names.clone();
        disk.pins.clear();
        disk.restart();
    }

    /// The process is killed and another one starts: the system still has what was written, synced or not.
    pub fn kill(&self) {
        self.disk().restart();
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        // A guarded write panics with the lock held; the disk is still good to look at.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn file(&self, number: usize) -> SimFile {
        SimFile { disk: self.clone(), number }
    }
}

impl Disk {
    fn restart(&mut self) {
        (self.down, self.begun, self.written) = (false, None, None);
        self.claimed.clear();
        self.incidents.clear();
    }

    /// Of the files that take room, but for one.
    fn used_bytes(&self, but: Option<usize>) -> u64 {
        let files = self.names.values().chain(&self.begun).filter(|file| Some(**file) != but);
        files.map(|file| self.files[*file].live.len() as u64).sum()
    }

    /// Counts a call, and says what happens at it.
    fn count(&mut self) -> io::Result<Option<Incident>> {
        if self.down {
            return Err(io::Error::other("the simulated machine is down"));
        }
        self.calls += 1;
        Ok(self.incidents.get(&(self.calls - 1)).copied())
    }

    /// How a call ends at which something happens.
    fn end(&mut self, incident: Option<Incident>) -> io::Result<()> {
        match incident {
            None => Ok(()),
            Some(Incident::Fail) => Err(io::Error::other("simulated failure")),
            Some(Incident::Full) => Err(io::ErrorKind::StorageFull.into()),
            Some(Incident::Crash) => {
                self.down = true;
                Err(io::Error::other("the simulated machine has crashed"))
            }
        }
    }

    fn sync_names(&mut self, incident: Option<Incident>) {
        if incident.is_none() {
            let pending = std::mem::take(&mut self.pending_names);
            pending.into_iter().for_each(|naming| naming.apply(&mut self.durable_names));
        }
    }

    fn name(&mut self, naming: Naming) {
        naming.apply(&mut self.names);
        self.pending_names.push(naming);
    }
}

impl Generations for SimDisk {
    fn list(&self) -> io::Result<Vec<u32>> {
        Ok(self.disk().names.keys().copied().collect())
    }

    fn path(&self, generation: u32) -> PathBuf {
        PathBuf::from(format!("simulated-{generation}"))
    }

    fn open(&self, generation: u32) -> io::Result<Box<dyn ReadAt>> {
        let file = self.disk().names.get(&generation).copied().ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(self.file(file)))
    }

    fn pin(&self, epoch: u64) -> Pinned {
        let mut disk = self.disk();
        if disk.claimed.contains(&epoch) {
            return Pinned::Expiring;
        }
        let number = disk.next_pin;
        disk.next_pin += 1;
        disk.pins.insert((epoch, number));
        Pinned::Held(Box::new(SimPin { disk: self.clone(), pin: (epoch, number) }))
    }
}

/// A pin of a reader.
struct SimPin {
    disk: SimDisk,
    pin: (u64, u64),
}

impl Drop for SimPin {
    fn drop(&mut self) {
        self.disk.disk().pins.remove(&self.pin);
    }
}

impl Home for SimDisk {
    fn open_to_write(&mut self, generation: u32, _: u64) -> io::Result<Box<dyn Sink>> {
        let mut disk = self.disk();
        let file = disk.names.get(&generation).copied().ok_or(io::ErrorKind::NotFound)?;
        disk.written = Some(file);
        Ok(Box::new(self.file(file)))
    }

    fn begin(&mut self, _: u32) -> io::Result<Box<dyn Sink>> {
        let mut disk = self.disk();
        let incident = disk.count()?;
        disk.end(incident)?;
        disk.files.push(File::default());
        let file = disk.files.len() - 1;
        disk.begun = Some(file);
        Ok(Box::new(self.file(file)))
    }

    fn publish(&mut self, generation: u32) -> io::Result<()> {
        let mut disk = self.disk();
        let incident = disk.count()?;
        let file = disk.begun.take().expect("what is published has been begun");
        disk.written = Some(file);
        disk.name(Naming::Publish(generation, file));
        disk.sync_names(incident);
        disk.end(incident)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        let mut disk = self.disk();
        let incident = disk.count()?;
        disk.sync_names(incident);
        disk.end(incident)
    }

    fn remove(&mut self, generation: u32) -> io::Result<()> {
        let mut disk = self.disk();
        let incident = disk.count()?;
        if incident.is_none_or(|incident| incident == Incident::Crash) && disk.names.contains_key(&generation) {
            disk.name(Naming::Remove(generation));
        }
        disk.begun = None;
        disk.end(incident)
    }

    fn hold(&self) -> Hold {
        Arc::new(())
    }

    fn check(&self, generation: u32) -> io::Result<()> {
        let disk = self.disk();
        let same = disk.names.get(&generation).is_some_and(|file| disk.written == Some(*file));
        if same { Ok(()) } else { Err(io::Error::new(io::ErrorKind::NotFound, "somebody has removed the file")) }
    }

    fn claim(&mut self, epoch: u64) -> bool {
        let mut disk = self.disk();
        let is_pinned = disk.pins.range((epoch, 0)..=(epoch, u64::MAX)).next().is_some();
        let could = disk.count().and_then(|incident| disk.end(incident));
        if is_pinned || could.is_err() {
            return false;
        }
        disk.claimed.push(epoch);
        true
    }

    fn let_go(&mut self) {
        self.disk().claimed.clear();
    }
}
