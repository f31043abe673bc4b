//! What a store writes to and reads from: one file, seen as bytes. It must not know what the bytes mean, but that
//! those below `HEAD_BYTES` are never mapped.

use super::sums::Sums;
use std::io;
use std::sync::Arc;

/// Neighbouring pieces of the file that are to be written.
pub struct Run<'a> {
    /// Where the first of them goes.
    pub offset_bytes: u64,
    /// One after the other.
    pub parts: &'a [&'a [u8]],
    /// The crc32c of each, once it has been written.
    pub sums: &'a mut [u32],
}

impl Run<'_> {
    /// Where it ends.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.len_bytes()
    }

    /// All parts together.
    pub fn len_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Takes the checksum of each part. To be called once they have been written: the copy waits for what it reads while it
    /// writes, and leaves it in the cache; a checksum taken first would wait for the same by itself.
    pub fn sum(&mut self) {
        self.sums.iter_mut().zip(self.parts).for_each(|(sum, part)| *sum = crc32c::crc32c(part));
    }
}

/// Whether what has been written leaves for the disk before the sync that takes care of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// There will be no sync, or soon.
    Not,
    /// If that is less work than what it wins.
    IfCheap,
    /// So that the disk is not given all at once.
    Always,
}

/// Where a store is read from.
pub trait ReadAt: Send + Sync {
    /// The length of the file.
    ///
    /// # Errors
    /// The system refused.
    fn len_bytes(&self) -> io::Result<u64>;

    /// Reads exactly `into.len()` bytes at `offset_bytes`.
    ///
    /// # Errors
    /// The file ends too early, or the system refused.
    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()>;
}

/// Where a store is written to.
pub trait Sink: ReadAt {
    /// Makes the file `to_bytes` long, and the part from `from_bytes` on allocated, so that a later write cannot run
    /// out of space. What is in the new part does not matter.
    ///
    /// # Errors
    /// `StorageFull`: there is no room, and what the file held is as it was. Or the system refused.
    fn grow(&mut self, from_bytes: u64, to_bytes: u64) -> io::Result<()>;

    /// Writes `parts` one after the other from `offset_bytes` on.
    ///
    /// # Errors
    /// The system refused; any part may have been written.
    fn write(&mut self, offset_bytes: u64, parts: &[&[u8]]) -> io::Result<()>;

    /// Writes runs, which ascend and do not overlap, and takes the checksum of each of their parts on the way; by the threads
    /// of `sums`, if the sink can.
    ///
    /// # Errors
    /// The system refused; any part may have been written.
    fn write_runs(&mut self, runs: &mut [Run<'_>], _sums: &Sums, _ahead: Ahead) -> io::Result<()> {
        runs.iter_mut().try_for_each(|run| {
            self.write(run.offset_bytes, run.parts)?;
            run.sum();
            Ok(())
        })
    }

    /// Returns when all that was written, and the length, is on the disk.
    ///
    /// # Errors
    /// The system refused. What was written since the last sync is lost or not, and a later sync says nothing about it.
    fn sync(&mut self) -> io::Result<()>;

    /// Another handle to read the same file, for as long as somebody wants to.
    ///
    /// # Errors
    /// The system refused.
    fn reader(&self) -> io::Result<Arc<dyn ReadAt>>;
}
