//! Why a job stopped: the first error, with its place.

use super::{ConnectorError, StateError, StoreError};
use std::fmt;
use std::path::PathBuf;

/// The first error of a job: what, and where.
#[derive(Debug)]
pub struct Failure {
    /// The operator as drawn, if one is to blame.
    pub operator: Option<String>,
    /// The task: its index within the operator.
    pub task: Option<u32>,
    /// The epoch that was under way: records since the last barrier belong to it.
    pub epoch: Option<u64>,
    /// The record: how many the task had taken in when it happened, counted from 1.
    pub record: Option<u64>,
    /// The record as text (JSON). Known where records are handed on one by one: in the attempts after a failure, and
    /// throughout a job that is configured to be careful.
    pub text: Option<String>,
    /// What followed, where the job was restarted and failed again.
    pub again: Option<Again>,
    /// What happened.
    pub cause: Cause,
}

/// What restarts came to.
#[derive(Debug)]
pub struct Again {
    /// Attempts in a row, the first included, that ended without a new durable epoch.
    pub attempts: u32,
    /// The last error, if it was another one.
    pub last: Option<Box<super::Error>>,
}

/// What happened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// User code returned an error.
    #[error("{0}")]
    User(Box<dyn std::error::Error + Send + Sync>),
    /// User code panicked.
    #[error("panicked: {0}")]
    Panic(String),
    /// What the program pushes cannot be had.
    #[error("{0}")]
    Input(String),
    /// A ring's other end is gone without a reason given.
    #[error("a neighbouring task is gone without having ended its stream")]
    NeighbourGone,
    /// A record was to go round in a loop that had ended: an operator in it emits into it from its `on_end`.
    #[error(
        "the loop `{feedback}` had ended when a record was to go round in it once more: an operator in it emits into the loop when \
         its input ends. Emit there only what leaves the loop"
    )]
    AfterLoop {
        /// The name of the feedback.
        feedback: String,
    },
    /// A source or a sink failed.
    #[error(transparent)]
    Connector(#[from] ConnectorError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Output waiting in an outbox went over its limit.
    #[error(
        "one batch made more than {limit_bytes} bytes of waiting output: emit less per record, or raise `outbox_bytes_max`"
    )]
    OutboxFull {
        /// The limit.
        limit_bytes: usize,
    },
    /// What waits in a loop went over its limit.
    #[error(
        "more than {limit_bytes} bytes of records wait in a loop, which grows without bound if it sends round more than it \
         takes: let fewer records go round, or raise the limit (`Config::spill`)"
    )]
    LoopFull {
        /// The limit.
        limit_bytes: u64,
    },
    /// The file failed in which records wait that came round a loop, or that a restore brought.
    #[error(
        "{}: cannot {action} the file for waiting records: {error}; make room there or give it another folder, or let more \
         of them wait in memory (`Config::spill`)", folder.display()
    )]
    Spill {
        /// Where the file is; it has no name.
        folder: PathBuf,
        /// What was tried: "create", "write to", "read".
        action: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
    /// State could not be kept.
    #[error(transparent)]
    State(#[from] StateError),
    /// A checkpoint that was asked for was not made.
    #[error("{0}")]
    Checkpoint(String),
    /// The system gave no thread.
    #[error("cannot start a thread: {0}")]
    Thread(String),
    /// A last checkpoint could not be made.
    #[error("the last checkpoint could not be made: {0}")]
    LastCheckpoint(String),
}

impl Failure {
    /// A failure without a place yet; the runtime adds what it knows on the way out.
    pub fn new(cause: impl Into<Cause>) -> Self {
        Self { operator: None, task: None, epoch: None, record: None, text: None, again: None, cause: cause.into() }
    }

    /// Names the operator, unless one is named already: the innermost knows best.
    #[must_use]
    pub fn at(mut self, operator: &str) -> Self {
        self.operator.get_or_insert_with(|| operator.to_owned());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operator) = &self.operator {
            write!(f, "operator `{operator}`")?;
            for (name, value) in [("task", self.task.map(u64::from)), ("epoch", self.epoch), ("record", self.record)] {
                if let Some(value) = value {
                    write!(f, ", {name} {value}")?;
                }
            }
            f.write_str(": ")?;
        }
        self.cause.fmt(f)?;
        if let Some(text) = &self.text {
            write!(f, "; the record: {text}")?;
        }
        let Some(again) = &self.again else { return Ok(()) };
        write!(f, "; {} attempts in a row failed without a new checkpoint", again.attempts)?;
        again.last.as_ref().map_or(Ok(()), |last| write!(f, ", the last with: {last}"))
    }
}

impl std::error::Error for Failure {}

/// Proof that a failure has been made: what `?` carries out of a batch. One pointer, so that a hot loop pays nothing.
#[derive(Debug)]
pub struct Failed(pub Box<Failure>);

impl<C: Into<Cause>> From<C> for Failed {
    #[cold]
    fn from(cause: C) -> Self {
        Self(Box::new(Failure::new(cause)))
    }
}

impl Failed {
    /// An error of user code, be it a text.
    #[cold]
    pub fn user(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Cause::User(error.into()).into()
    }

    /// Names the operator, unless one is named already.
    #[cold]
    #[must_use]
    pub fn at(self, operator: &str) -> Self {
        Self(Box::new(self.0.at(operator)))
    }
}
