//! Where the files of a store are, one for each generation: a folder, or a simulated disk. It must not know what is in
//! them.

use super::held::Pinned;
use super::pin::Hold;
use super::sink::{ReadAt, Sink};
use std::io;
use std::path::PathBuf;

/// The generations of a store, to be read.
pub trait Generations: Send + Sync {
    /// Their numbers, ascending. A file that was never finished is none.
    ///
    /// # Errors
    /// The system refused.
    fn list(&self) -> io::Result<Vec<u32>>;

    /// The file of a generation, for messages.
    fn path(&self, generation: u32) -> PathBuf;

    /// Opens a generation for reading.
    ///
    /// # Errors
    /// The system refused; `NotFound`: it has been removed meanwhile.
    fn open(&self, generation: u32) -> io::Result<Box<dyn ReadAt>>;

    /// Keeps the writer, be it another process, from letting this epoch expire. It may have done so before: whoever asks
    /// looks again.
    fn pin(&self, epoch: u64) -> Pinned;
}

/// The generations of a store, to be written; nobody else writes there while this lives.
pub trait Home: Generations {
    /// Opens a generation of at least `len_bytes` for writing.
    ///
    /// # Errors
    /// The system refused.
    fn open_to_write(&mut self, generation: u32, len_bytes: u64) -> io::Result<Box<dyn Sink>>;

    /// Begins a new, empty generation, in the place of one that was begun and not published. It is none before it is
    /// published.
    ///
    /// # Errors
    /// The system refused.
    fn begin(&mut self, generation: u32) -> io::Result<Box<dyn Sink>>;

    /// Makes the generation that was begun one of the store, durably; its bytes are synced.
    ///
    /// # Errors
    /// The system refused; it may be one or not.
    fn publish(&mut self, generation: u32) -> io::Result<()>;

    /// Makes the names that there are durable.
    ///
    /// # Errors
    /// The system refused.
    fn sync_names(&mut self) -> io::Result<()>;

    /// Removes a generation, or what was begun of it. Who has it open may still read it.
    ///
    /// # Errors
    /// The system refused.
    fn remove(&mut self, generation: u32) -> io::Result<()>;

    /// Whether this is still the place that was opened, and the file of this generation the one that is open: somebody
    /// may have moved or removed them.
    ///
    /// # Errors
    /// It is not, and what to do about it; or the system refused.
    fn check(&self, generation: u32) -> io::Result<()>;

    /// Keeps everybody else from writing here, also when this is gone.
    fn hold(&self) -> Hold;

    /// Whether nobody else reads this epoch, so that it may expire; then nobody begins to until [`Home::let_go`]. Never
    /// waits.
    fn claim(&mut self, epoch: u64) -> bool;

    /// The epochs that were claimed have expired, or have not.
    fn let_go(&mut self);
}
