//! A checkpoint that was asked for.

use super::coordinator::{CheckpointReport, Event};
use super::shared::Shared;
use crate::error::{Cause, Error, Failure};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// A checkpoint that was asked for, of all that had happened by then.
#[must_use = "the checkpoint is durable only when `wait` has returned"]
#[derive(Debug)]
pub struct Pending(Receiver<Result<CheckpointReport, Unmade>>);

/// Where the answer goes.
pub(crate) type Answer = Sender<Result<CheckpointReport, Unmade>>;

/// Why a checkpoint was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unmade {
    /// Out of time, or out of room.
    #[error("{0}")]
    GivenUp(String),
    #[error("the job failed and went back to its newest checkpoint before this one was made: ask again")]
    Restarted,
    #[error("the job ended before the checkpoint was made")]
    Ended,
}

impl Pending {
    pub(super) fn ask(shared: &Shared, events: &Sender<Event>) -> Result<Self, Error> {
        if !shared.checkpointing {
            return Err(refused("the job was started without checkpoints"));
        }
        let (answer, answered) = channel();
        // If the coordinator has gone, so has its end of `answer`, and waiting says that the job ended.
        let _ = events.send(Event::Demand(answer));
        Ok(Self(answered))
    }

    /// Waits until the checkpoint is durable. Not for a [`Local`](super::Local) job, which does nothing meanwhile.
    ///
    /// # Errors
    /// It was given up, or the job was restarted or ended before it was made.
    pub fn wait(self) -> Result<CheckpointReport, Error> {
        self.0.recv().unwrap_or(Err(Unmade::Ended)).map_err(|unmade| refused(&unmade.to_string()))
    }

    /// Whether the checkpoint is durable by now; none: not yet.
    ///
    /// # Errors
    /// As [`Pending::wait`].
    pub fn try_wait(&self) -> Result<Option<CheckpointReport>, Error> {
        let result = match self.0.try_recv() {
            Ok(result) => result.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Unmade::Ended),
        };
        result.map_err(|unmade| refused(&unmade.to_string()))
    }
}

pub(super) fn refused(reason: &str) -> Error {
    Error::Job(Box::new(Failure::new(Cause::Checkpoint(reason.to_owned()))))
}
