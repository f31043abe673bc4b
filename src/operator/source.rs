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
///
/// A source of one's own, whole: a file of 4-byte numbers. A job is left behind in the middle of it, and another goes on.
///
/// ```
/// use snapring::connector::Memory;
/// use snapring::error::{ConnectorError, Failed};
/// use snapring::operator::{Emit, Read, Reader, Source, Split};
/// use snapring::{Checkpoints, Config, Dataflow};
/// use std::fs::File;
/// use std::io::{self, BufReader, Read as _, Seek, SeekFrom};
/// use std::path::PathBuf;
///
/// struct Numbers {
///     path: PathBuf,
/// }
///
/// struct NumbersReader {
///     file: BufReader<File>,
///     path: PathBuf,
///     /// The index of the next number: it is the offset.
///     next: u64,
/// }
///
/// fn failed(path: &PathBuf, action: &'static str, error: io::Error) -> ConnectorError {
///     ConnectorError::Io { path: path.clone(), action, error }
/// }
///
/// impl Source for Numbers {
///     type Item = u32;
///     type Reader = NumbersReader;
///
///     // One piece. A source that is to be read by several tasks at once gives several, each with its range.
///     fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
///         let bytes = std::fs::metadata(&self.path).map_err(|error| failed(&self.path, "open", error))?.len();
///         let descriptor = bytes.to_le_bytes().to_vec(); // to know the file again
///         Ok(vec![Split { id: 0, name: self.path.display().to_string(), descriptor }])
///     }
///
///     fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError> {
///         if self.splits()? == splits {
///             return Ok(());
///         }
///         Err(ConnectorError::Changed { path: self.path.clone(), what: "it has another length".to_owned() })
///     }
///
///     fn open(&self, _: &Split, offset: u64) -> Result<NumbersReader, ConnectorError> {
///         let path = self.path.clone();
///         let mut file = BufReader::new(File::open(&path).map_err(|error| failed(&path, "open", error))?);
///         file.seek(SeekFrom::Start(offset * 4)).map_err(|error| failed(&path, "seek", error))?;
///         Ok(NumbersReader { file, path, next: offset })
///     }
/// }
///
/// impl Reader for NumbersReader {
///     type Item = u32;
///
///     fn read<E: Emit<u32>>(&mut self, max: usize, out: &mut E) -> Result<Read, Failed> {
///         for _ in 0..max {
///             let mut number = [0; 4];
///             match self.file.read_exact(&mut number) {
///                 Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Read::Done),
///                 other => other.map_err(|error| failed(&self.path, "read", error))?,
///             }
///             self.next += 1;
///             out.emit(u32::from_le_bytes(number))?;
///         }
///         Ok(Read::More)
///     }
///
///     fn offset(&self) -> u64 {
///         self.next
///     }
/// }
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let (path, state) = (folder.path().join("numbers"), folder.path().join("state"));
/// std::fs::write(&path, (0..1000u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).unwrap();
/// let results = Memory::new();
/// let draw = || {
///     let flow = Dataflow::new("numbers");
///     flow.source("numbers", Numbers { path: path.clone() }).sink("results", results.clone());
///     flow
/// };
/// let config = || {
///     let checkpoints = Checkpoints::on_demand().to(&state);
///     Config::new().unpinned_workers(1).batch_len_max(10).checkpoints(checkpoints)
/// };
/// let mut job = draw().into_local(config())?;
/// let checkpoint = job.checkpoint()?;
/// while checkpoint.try_wait()?.is_none() {
///     job.step()?;
/// }
/// drop(job); // as if the process had died
/// assert!(results.committed().len() < 1000);
/// draw().into_local(config())?.run()?;
/// assert_eq!(results.committed(), (0..1000).collect::<Vec<u32>>());
/// # Ok::<(), snapring::Error>(())
/// ```
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
