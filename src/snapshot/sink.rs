//! What a store writes to and reads from: one file, seen as bytes. It must not know what the bytes mean, but that
//! those below `HEAD_BYTES` are never mapped.

use std::io;
use std::sync::Arc;

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
