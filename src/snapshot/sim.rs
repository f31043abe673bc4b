//! A disk in memory that crashes, fails and fills up when told to: what the store's tests and the simulator of the
//! whole runtime write to. It must not know what the bytes mean.
//!
//! 1. Writes go to the live image at once; a sync makes the durable image equal to it.
//! 2. A crash leaves the durable image and any subset, chosen by the caller, of the sectors of 512 bytes written since,
//!    each in its order; likewise growth. The write at which it happens may be there in part, the sync not at all.
//! 3. A failed write may have written anything of it. What a failed sync should have covered is lost or not, and no
//!    later sync makes it durable.
//! 4. Everything is counted and decided by call number (grow, write and sync count, reads do not), so a run can be
//!    repeated.

use super::sink::{ReadAt, Sink};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

const SECTOR_BYTES: usize = 512;

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

/// A change that is not durable yet.
#[derive(Clone)]
enum Pending {
    Grow(u64),
    Sector { at_bytes: u64, bytes: Box<[u8; SECTOR_BYTES]> },
}

#[derive(Clone, Default)]
struct Disk {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Rule 3: may be there after a crash, whatever is synced.
    lost: Vec<Pending>,
    pending: Vec<Pending>,
    calls: u64,
    incidents: BTreeMap<u64, Incident>,
    down: bool,
    /// Without a sync there is no store yet: the new file was never renamed.
    synced: bool,
    guarded: Vec<Range<u64>>,
    full_above_bytes: Option<u64>,
}

/// A handle of a simulated disk; clones are the same disk, and each is a sink.
#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<Disk>>);

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// A disk on which `bytes` are durable.
    pub fn with_image(bytes: Vec<u8>) -> Self {
        let disk = Disk { live: bytes.clone(), durable: bytes, synced: true, ..Disk::default() };
        Self(Arc::new(Mutex::new(disk)))
    }

    /// Another disk in the same state, with nothing to happen to it.
    pub fn fork(&self) -> Self {
        let disk = Disk { incidents: BTreeMap::new(), guarded: Vec::new(), ..self.disk().clone() };
        Self(Arc::new(Mutex::new(disk)))
    }

    /// What a reader sees now.
    pub fn image(&self) -> Vec<u8> {
        self.disk().live.clone()
    }

    /// Calls so far; the next one has this number.
    pub fn calls(&self) -> u64 {
        self.disk().calls
    }

    /// Lets something happen at a call.
    pub fn at(&self, call: u64, incident: Incident) {
        self.disk().incidents.insert(call, incident);
    }

    /// Growing beyond this is refused as on a full disk.
    pub fn full_above(&self, bytes: Option<u64>) {
        self.disk().full_above_bytes = bytes;
    }

    /// From now on, a write that touches one of these ranges panics.
    pub fn guard(&self, ranges: Vec<Range<u64>>) {
        self.disk().guarded = ranges;
    }

    /// How many choices the next crash has.
    pub fn undecided(&self) -> usize {
        let disk = self.disk();
        disk.lost.len() + disk.pending.len()
    }

    /// The machine stops, if it has not yet, and comes back. `survives` is asked for each undecided change, in order.
    pub fn crash(&self, mut survives: impl FnMut(usize) -> bool) {
        let mut disk = self.disk();
        let mut image = std::mem::take(&mut disk.durable);
        let undecided = std::mem::take(&mut disk.lost).into_iter().chain(std::mem::take(&mut disk.pending));
        for (_, change) in undecided.enumerate().filter(|(i, _)| survives(*i)) {
            change.apply(&mut image);
        }
        if !disk.synced {
            image.clear();
        }
        disk.live.clone_from(&image);
        disk.durable = image;
        disk.down = false;
        disk.incidents.clear();
    }

    /// The process is killed and another one starts: the system still has what was written, synced or not.
    pub fn kill(&self) {
        let mut disk = self.disk();
        if !disk.synced {
            disk.live.clear();
            disk.pending.clear();
        }
        disk.down = false;
        disk.incidents.clear();
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        // A guarded write panics with the lock held; the disk is still good to look at.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Pending {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Grow(len) => image.resize((*len as usize).max(image.len()), 0),
            Self::Sector { at_bytes, bytes } => {
                // Beyond a length that did not make it, nothing did.
                let at = *at_bytes as usize;
                if let Some(sector) = image.get_mut(at..at + SECTOR_BYTES) {
                    sector.copy_from_slice(&bytes[..]);
                }
            }
        }
    }
}

impl Disk {
    /// Counts a call; `Err` if it is not to succeed, after `partly` has been done to it.
    fn call(&mut self, partly: impl FnOnce(&mut Self)) -> io::Result<()> {
        if self.down {
            return Err(io::Error::other("the simulated machine is down"));
        }
        let incident = self.incidents.get(&self.calls).copied();
        self.calls += 1;
        let Some(incident) = incident else { return Ok(()) };
        partly(self);
        match incident {
            Incident::Fail => Err(io::Error::other("simulated failure")),
            Incident::Full => Err(io::ErrorKind::StorageFull.into()),
            Incident::Crash => {
                self.down = true;
                Err(io::Error::other("the simulated machine has crashed"))
            }
        }
    }

    fn put(&mut self, at_bytes: u64, bytes: &[u8]) {
        let at = at_bytes as usize;
        self.live[at..at + bytes.len()].copy_from_slice(bytes);
        let first = at / SECTOR_BYTES * SECTOR_BYTES;
        for at in (first..at + bytes.len()).step_by(SECTOR_BYTES) {
            let mut sector = Box::new([0; SECTOR_BYTES]);
            sector.copy_from_slice(&self.live[at..at + SECTOR_BYTES]);
            self.pending.push(Pending::Sector { at_bytes: at as u64, bytes: sector });
        }
    }
}

impl ReadAt for SimDisk {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.disk().live.len() as u64)
    }

    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        let disk = self.disk();
        let at = usize::try_from(offset_bytes).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let bytes = at.checked_add(into.len()).and_then(|end| disk.live.get(at..end));
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl Sink for SimDisk {
    fn grow(&mut self, _from_bytes: u64, to_bytes: u64) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call(|_| ())?;
        if disk.full_above_bytes.is_some_and(|limit| to_bytes > limit) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let grow = Pending::Grow(to_bytes);
        grow.apply(&mut disk.live);
        disk.pending.push(grow);
        Ok(())
    }

    fn write(&mut self, offset_bytes: u64, parts: &[&[u8]]) -> io::Result<()> {
        let mut disk = self.disk();
        let bytes = parts.concat();
        let range = offset_bytes..offset_bytes + bytes.len() as u64;
        let guarded = |guard: &&Range<u64>| guard.start < range.end && range.start < guard.end;
        if let Some(guard) = disk.guarded.iter().find(guarded) {
            panic!("bytes {range:?} were written over {guard:?}, which is in use");
        }
        disk.call(|disk| {
            // At a crash the whole of it is undecided; a failure stops half-way.
            let crash = disk.incidents.get(&(disk.calls - 1)) == Some(&Incident::Crash);
            let len = if crash { bytes.len() } else { bytes.len() / 2 };
            disk.put(offset_bytes, &bytes[..len]);
        })?;
        disk.put(offset_bytes, &bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call(|disk| {
            let crash = disk.incidents.get(&(disk.calls - 1)) == Some(&Incident::Crash);
            if !crash {
                let mut pending = std::mem::take(&mut disk.pending);
                disk.lost.append(&mut pending);
            }
        })?;
        let mut image = std::mem::take(&mut disk.durable);
        std::mem::take(&mut disk.pending).iter().for_each(|change| change.apply(&mut image));
        disk.durable = image;
        disk.synced = true;
        Ok(())
    }

    fn reader(&self) -> io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(self.clone()))
    }
}
