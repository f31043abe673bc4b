//! Replayable sources: input that can say where it is and go back there.

use super::{Emit, Skipped};
use crate::error::{ConnectorError, Failed};
use crate::record::Record;

/// A piece of an input. Splits are fixed when a job first starts, kept in every snapshot, and dealt out to however many
/// tasks there are; they never follow from the parallelism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Unique within the source, from 0.
    pub id: u32,
    /// What a person would call it: `flights.csv[8388608..16777216]`.
    pub name: String,
    /// What [`Source::open`] and [`Source::verify`] need to know again: path, range, length, fingerprint.
    pub descriptor: Vec<u8>,
}

/// An input that can be read again from any offset that it has given out.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a source",
    note = "for records that are there already: `Items::new(records)`; the module `snapring::connector` lists all sources"
)]
pub trait Source: Send + Sync + 'static {
    /// What it gives.
    type Item: Record;
    /// What reads one split.
    type Reader: Reader<Item = Self::Item>;

    /// The pieces of the input. Asked once, when a job starts without a snapshot.
    ///
    /// # Errors
    /// The input is missing, unreadable or not of the right form.
    fn splits(&self) -> Result<Vec<Split>, ConnectorError>;

    /// Asked once at a restore, with the splits in the snapshot: are these still the same input?
    ///
    /// # Errors
    /// [`ConnectorError::Changed`] names what differs: a file that is shorter, longer, other, or no longer asked for.
    fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError>;

    /// Opens a split at an offset: 0, or one that [`Reader::offset`] returned.
    ///
    /// # Errors
    /// The input is missing or unreadable.
    fn open(&self, split: &Split, offset: u64) -> Result<Self::Reader, ConnectorError>;
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// There may be more.
    More,
    /// Nothing now, perhaps later.
    Pending,
    /// The split is at its end.
    Done,
}

/// Reads one split.
pub trait Reader: Send + 'static {
    /// What it gives.
    type Item: Record;

    /// Emits at most `max` records.
    ///
    /// # Errors
    /// What the input or the records met. The job then stops.
    fn read<E: Emit<Self::Item>>(&mut self, max: usize, out: &mut E) -> Result<Read, Failed>;

    /// Where the next record begins. Only needs to be right between two calls of `read`.
    fn offset(&self) -> u64;

    /// The lines that were skipped since this was last called; nothing, for a source that skips none. Called after each
    /// `read`: what it returns is counted in the job's summary, and kept in checkpoints beside the offset.
    fn take_skipped(&mut self) -> Skipped {
        Skipped::default()
    }
}
