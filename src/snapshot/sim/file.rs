//! One file of the simulated disk. It must not know what becomes of its name.

use super::{Incident, SimDisk};
use crate::snapshot::sink::{ReadAt, Sink};
use std::io;
use std::ops::Range;
use std::sync::Arc;

const SECTOR_BYTES: usize = 512;

/// A change that is not durable yet.
#[derive(Clone)]
enum Pending {
    Grow(u64),
    Sector { at_bytes: u64, bytes: Box<[u8; SECTOR_BYTES]> },
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

#[derive(Clone, Default)]
pub(super) struct File {
    pub live: Vec<u8>,
    pub durable: Vec<u8>,
    /// Rule 3: may be there after a crash, whatever is synced.
    lost: Vec<Pending>,
    pending: Vec<Pending>,
}

impl File {
    /// One that is durable.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { live: bytes.clone(), durable: bytes, ..Self::default() }
    }

    pub fn undecided(&self) -> usize {
        self.lost.len() + self.pending.len()
    }

    pub fn crash(&mut self, survives: &mut impl FnMut() -> bool) {
        let undecided = std::mem::take(&mut self.lost).into_iter().chain(std::mem::take(&mut self.pending));
        for change in undecided.filter(|_| survives()) {
            change.apply(&mut self.durable);
        }
        self.live.clone_from(&self.durable);
    }

    /// Only what there is: somebody may have shortened the file.
    fn put(&mut self, at_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        let at = at_bytes as usize;
        let place = self.live.get_mut(at..at + bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        place.copy_from_slice(bytes);
        let first = at / SECTOR_BYTES * SECTOR_BYTES;
        for at in (first..at + bytes.len()).step_by(SECTOR_BYTES) {
            let mut sector = Box::new([0; SECTOR_BYTES]);
            sector.copy_from_slice(&self.live[at..at + SECTOR_BYTES]);
            self.pending.push(Pending::Sector { at_bytes: at as u64, bytes: sector });
        }
        Ok(())
    }
}

/// A handle of a file, which holds on to it when it is removed.
pub(super) struct SimFile {
    pub disk: SimDisk,
    pub number: usize,
}

impl ReadAt for SimFile {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.disk.disk().files[self.number].live.len() as u64)
    }

    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        let disk = self.disk.disk();
        let at = usize::try_from(offset_bytes).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let bytes = at.checked_add(into.len()).and_then(|end| disk.files[self.number].live.get(at..end));
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl Sink for SimFile {
    fn reader(&self) -> io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(Self { disk: self.disk.clone(), number: self.number }))
    }

    fn grow(&mut self, _from_bytes: u64, to_bytes: u64) -> io::Result<()> {
        let mut disk = self.disk.disk();
        let incident = disk.count()?;
        disk.end(incident)?;
        if disk.full_above_bytes.is_some_and(|limit| disk.used_bytes(Some(self.number)) + to_bytes > limit) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let grow = Pending::Grow(to_bytes);
        let file = &mut disk.files[self.number];
        grow.apply(&mut file.live);
        file.pending.push(grow);
        Ok(())
    }

    fn write(&mut self, offset_bytes: u64, parts: &[&[u8]]) -> io::Result<()> {
        let mut disk = self.disk.disk();
        let bytes = parts.concat();
        let range = offset_bytes..offset_bytes + bytes.len() as u64;
        let guarded = |guard: &&Range<u64>| guard.start < range.end && range.start < guard.end;
        if let (true, Some(guard)) = (disk.guarded.0 == self.number, disk.guarded.1.iter().find(guarded)) {
            panic!("bytes {range:?} were written over {guard:?}, which is in use");
        }
        let incident = disk.count()?;
        // At a crash the whole of it is undecided; a failure stops half-way.
        let half = incident.is_some_and(|incident| incident != Incident::Crash);
        let len = if half { bytes.len() / 2 } else { bytes.len() };
        disk.files[self.number].put(offset_bytes, &bytes[..len])?;
        disk.end(incident)
    }

    fn sync(&mut self) -> io::Result<()> {
        let takes = self.disk.disk().sync_takes;
        std::thread::sleep(takes);
        let mut disk = self.disk.disk();
        let incident = disk.count()?;
        let file = &mut disk.files[self.number];
        match incident {
            None => {
                let pending = std::mem::take(&mut file.pending);
                pending.iter().for_each(|change| change.apply(&mut file.durable));
            }
            Some(Incident::Crash) => {}
            Some(_) => file.lost.append(&mut file.pending),
        }
        disk.end(incident)
    }
}
