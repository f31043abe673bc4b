//! Sinks: where results leave, exactly once in two phases, or plainly.
//!
//! An exactly-once sink prepares a [`Part`] at each cut. The snapshot of epoch e lists all parts not yet committed, of
//! all tasks and of all epochs up to e. When e is durable the coordinator commits them; after a restore it commits the
//! listed ones again, before any writer opens, and removes what is pending and not listed (protocols, rules 40 to 43).

use crate::error::{ConnectorError, Failed};
use crate::record::Record;

/// The job's place at a sink: who writes there, and from where it goes on.
#[derive(Clone, Debug)]
pub struct Place {
    /// The id of the store; none for a job without one.
    pub store_id: Option<[u8; 16]>,
    /// True if the job goes on from a snapshot, false if it starts afresh.
    pub restored: bool,
    /// The newest epoch of the store, 0 for none: whatever is committed is of this one or an earlier one. A sink that finds
    /// more has results that the store does not know of, and that would come again.
    pub newest_epoch: u64,
    /// Rises by one with each start of the job: keeps the parts of two starts apart.
    pub attempt: u32,
    /// False where only processes crash: nothing needs to be synced.
    pub sync: bool,
}

/// Where results leave.
///
/// A sink of one's own, exactly once, whole: a table in memory stands for a database that takes a transaction at a time. The
/// parts are small, so they hold the rows themselves, and the checkpoint keeps them: then nothing pending is ever left behind.
///
/// ```
/// use snapring::connector::Generate;
/// use snapring::error::{ConnectorError, Failed};
/// use snapring::operator::{Committer, Part, Place, Sink, Writer};
/// use snapring::record::{from_bytes, to_bytes};
/// use snapring::{Checkpoints, Config, Dataflow};
/// use std::collections::BTreeMap;
/// use std::sync::{Arc, Mutex};
///
/// /// Names a part: no other has this epoch, task and attempt.
/// type Id = (u64, u32, u32);
///
/// #[derive(Clone, Default)]
/// struct Database(Arc<Mutex<BTreeMap<Id, Vec<u64>>>>);
///
/// impl Sink for Database {
///     type In = u64;
///     type Writer = Transaction;
///
///     fn exactly_once(&self) -> bool {
///         true
///     }
///
///     fn claim(&self, _: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
///         Ok(Box::new(self.clone())) // a real one is locked here: `Place` says for whom
///     }
///
///     fn writer(&self, place: &Place, task: u32) -> Result<Transaction, ConnectorError> {
///         Ok(Transaction { task, attempt: place.attempt, rows: Vec::new() })
///     }
/// }
///
/// struct Transaction {
///     task: u32,
///     attempt: u32,
///     rows: Vec<u64>,
/// }
///
/// impl Writer for Transaction {
///     type In = u64;
///
///     fn write(&mut self, row: u64) -> Result<(), Failed> {
///         self.rows.push(row);
///         Ok(())
///     }
///
///     fn prepare(&mut self, epoch: u64) -> Result<Option<Part>, Failed> {
///         if self.rows.is_empty() {
///             return Ok(None);
///         }
///         let id: Id = (epoch, self.task, self.attempt);
///         Ok(Some(Part(to_bytes(&(id, std::mem::take(&mut self.rows))))))
///     }
/// }
///
/// impl Committer for Database {
///     fn recover(&mut self, listed: &[Part]) -> Result<(), ConnectorError> {
///         self.commit(listed) // again, perhaps; and of what is not listed nothing is left
///     }
///
///     fn sync(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
///         Ok(()) // the checkpoint that lists them holds them
///     }
///
///     fn commit(&mut self, parts: &[Part]) -> Result<(), ConnectorError> {
///         for part in parts {
///             let (id, rows) = from_bytes::<(Id, Vec<u64>)>(&part.0).map_err(|error| {
///                 ConnectorError::Foreign { path: "database".into(), reason: format!("no part of ours: {error}") }
///             })?;
///             self.0.lock().unwrap().entry(id).or_insert(rows); // the same part twice is one
///         }
///         Ok(())
///     }
/// }
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let state = folder.path().join("state");
/// let database = Database::default();
/// let rows = || database.0.lock().unwrap().values().flatten().copied().collect::<Vec<u64>>();
/// let start = |tasks| {
///     let flow = Dataflow::new("numbers");
///     flow.source("numbers", Generate::new(1000, 4, |index| index)).sink("rows", database.clone());
///     let checkpoints = Checkpoints::on_demand().to(&state);
///     flow.into_local(Config::new().unpinned_workers(1).parallelism(tasks).batch_len_max(10).checkpoints(checkpoints))
/// };
/// let mut job = start(3)?;
/// let checkpoint = job.checkpoint()?;
/// while checkpoint.try_wait()?.is_none() {
///     job.step()?;
/// }
/// drop(job); // as if the process had died
/// assert!(rows().len() < 1000);
/// start(2)?.run()?;
/// let mut rows = rows();
/// rows.sort();
/// assert_eq!(rows, (0..1000).collect::<Vec<u64>>());
/// # Ok::<(), snapring::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a sink",
    note = "to write text, name the form and the way: `Csv::exactly_once(folder)`, `JsonLines::stdout()` …",
    note = "for a look at results: `Collect::new()`; the module `snapring::connector` lists all sinks"
)]
pub trait Sink: Send + Sync + 'static {
    /// What it takes.
    type In: Record;
    /// What one task writes with.
    type Writer: Writer<In = Self::In>;

    /// True if it can only work with checkpoints: it publishes nothing until an epoch is durable.
    fn exactly_once(&self) -> bool;

    /// Called once, before anything else: claims the place, or refuses it.
    ///
    /// # Errors
    /// The place is missing, not writable, in use, or belongs to another store.
    fn claim(&self, place: &Place) -> Result<Box<dyn Committer>, ConnectorError>;

    /// The writer of a task; called after [`Committer::recover`].
    ///
    /// # Errors
    /// The place is not writable.
    fn writer(&self, place: &Place, task: u32) -> Result<Self::Writer, ConnectorError>;
}

/// What one task writes with.
pub trait Writer: Send + 'static {
    /// What it takes.
    type In: Record;

    /// Takes one record of the epoch under way.
    ///
    /// # Errors
    /// The system refused.
    fn write(&mut self, record: Self::In) -> Result<(), Failed>;

    /// Called after each batch and whenever the task falls idle: plain sinks let go of what they hold.
    ///
    /// # Errors
    /// The system refused.
    fn flush(&mut self) -> Result<(), Failed> {
        Ok(())
    }

    /// At the cut: closes what has been written since the last one. None if that is nothing, or if the sink is plain.
    ///
    /// # Errors
    /// The system refused.
    fn prepare(&mut self, epoch: u64) -> Result<Option<Part>, Failed>;
}

/// A prepared part: what the committer needs to know to commit it, at any later time, in any process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part(pub Vec<u8>);

/// A job has gone back from a newer epoch to an older one (protocols, rule 41): what was committed for epochs that the older
/// one does not build on will be made again.
#[derive(Clone, Debug, PartialEq, Eq, Record)]
pub struct WentBack {
    /// The epoch that the job goes on from.
    pub to: u64,
    /// The newest epoch that there was.
    pub from: u64,
    /// The epochs up to `from` that `to` does not build on: ranges, each with its first and its last. More than those after
    /// `to`, if `to` is itself an epoch by which somebody went back.
    pub undone: Vec<(u64, u64)>,
}

impl WentBack {
    /// From an epoch of which `undone` is said already.
    pub(crate) fn new(to: u64, from: u64, mut undone: Vec<(u64, u64)>) -> Self {
        undone.push((to + 1, from));
        Self { to, from, undone }
    }

    /// The epoch that says so: it has the content of `to`, and is the newest from then on.
    #[must_use]
    pub fn as_epoch(&self) -> u64 {
        self.from + 1
    }

    /// Whether what was committed for an epoch is taken back: it will be made again.
    #[must_use]
    pub fn takes_back(&self, epoch: u64) -> bool {
        self.undone.iter().any(|(first, last)| (*first..=*last).contains(&epoch))
    }

    /// Whether what was committed for an epoch, and taken back at an earlier time, is committed again: it is part of what
    /// this job goes back to.
    #[must_use]
    pub fn brings_back(&self, epoch: u64) -> bool {
        epoch <= self.from && !self.takes_back(epoch)
    }
}

/// Commits the parts of all tasks of one sink. Lives with the coordinator.
pub trait Committer: Send {
    /// After a restore (or a fresh start, with nothing listed): commits the listed parts, whatever of that was done
    /// before, and removes pending parts of the same store that are not listed.
    ///
    /// # Errors
    /// A listed part is missing, or the system refused.
    fn recover(&mut self, listed: &[Part]) -> Result<(), ConnectorError>;

    /// Whether committed parts can be taken back. If not, a job that has this sink goes back only where the user accepts
    /// duplicates.
    fn can_retract(&self) -> bool {
        false
    }

    /// The job has gone back: what is committed becomes what it was at the epoch that the job goes on from. Parts of epochs
    /// that it does not build on are taken back, and what an earlier way back took of those that it does is brought back.
    /// Comes before [`Committer::recover`], and again at a later start if the first one may not have come to its end: what is done already stays done.
    ///
    /// # Errors
    /// The system refused.
    fn retract(&mut self, _: &WentBack) -> Result<(), ConnectorError> {
        Ok(())
    }

    /// Makes parts durable, before the epoch that lists them is.
    ///
    /// # Errors
    /// The system refused.
    fn sync(&mut self, parts: &[Part]) -> Result<(), ConnectorError>;

    /// Publishes parts: the epoch that lists them is durable.
    ///
    /// # Errors
    /// The system refused.
    fn commit(&mut self, parts: &[Part]) -> Result<(), ConnectorError>;
}
