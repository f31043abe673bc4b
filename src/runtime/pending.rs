//! A checkpoint that was asked for.

use super::coordinator::{CheckpointReport, Event};
use super::shared::Shared;
use crate::error::{Cause, Error, Failure};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// A checkpoint that was asked for, of all that had happened by then.
#[must_use = "the checkpoint is durable only when `wait` has returned"]
#[derive(Debug)]
pub struct Pending(Receiver<Result<CheckpointReport, String>>);

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
    /// It was given up, or the job ended before it was made.
    pub fn wait(self) -> Result<CheckpointReport, Error> {
        self.0.recv().map_err(|_| refused(ENDED))?.map_err(|reason| refused(&reason))
    }

    /// Whether the checkpoint is durable by now; none: not yet.
    ///
    /// # Errors
    /// As [`Pending::wait`].
    pub fn try_wait(&self) -> Result<Option<CheckpointReport>, Error> {
        match self.0.try_recv() {
            Ok(result) => result.map(Some).map_err(|reason| refused(&reason)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(refused(ENDED)),
        }
    }
}

const ENDED: &str = "the job ended before the checkpoint was made";

pub(super) fn refused(reason: &str) -> Error {
    Error::Job(Box::new(Failure::new(Cause::Checkpoint(reason.to_owned()))))
}
