//! A checkpoint, or a view, that was asked for.

use super::coordinator::{CheckpointReport, Event};
use super::shared::Shared;
use super::view::View;
use crate::error::{Cause, Error, Failure};
use crate::snapshot::{Pin, Store};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

/// A checkpoint or a view that was asked for, of all that had happened by then.
#[must_use = "a checkpoint is durable, and a view is there, only when `wait` has returned"]
#[derive(Debug)]
pub struct Pending<T = CheckpointReport>(Receiver<Result<T, Unmade>>);

/// Where the answer goes.
pub(crate) enum Answer {
    Durable(Sender<Result<CheckpointReport, Unmade>>),
    /// To somebody who wants it to stay.
    Pinned(Sender<Result<(CheckpointReport, Pin), Unmade>>),
}

impl Answer {
    /// Gives it, with a pin of the epoch where one is wanted. Who no longer waits for it does not need it.
    pub(crate) fn give(&self, result: &Result<CheckpointReport, Unmade>, store: Option<&Store>) {
        match self {
            Self::Durable(answer) => {
                let _ = answer.send(result.clone());
            }
            Self::Pinned(answer) => {
                let pin = |report: CheckpointReport| match store.map(|store| store.pin(report.epoch)) {
                    Some(Ok(pin)) => Ok((report, pin)),
                    Some(Err(error)) => Err(Unmade::GivenUp(error.to_string())),
                    None => Err(Unmade::Ended),
                };
                let _ = answer.send(result.clone().and_then(pin));
            }
        }
    }
}

/// Why a checkpoint was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unmade {
    /// Out of time, or out of room.
    #[error("{0}")]
    GivenUp(String),
    #[error("the job failed and went back to its newest checkpoint before it was made: ask again")]
    Restarted,
    #[error("the job ended before it was made")]
    Ended,
}

impl Pending<View> {
    pub(super) fn ask_view(events: &Sender<Event>) -> Self {
        let (answer, answered) = channel();
        // As for a checkpoint.
        let _ = events.send(Event::View(answer));
        Self(answered)
    }
}

/// What a checkpoint is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The job goes on.
    Meanwhile,
    /// It ends with it.
    AsLast,
}

impl Wanted {
    fn ask(self, events: &Sender<Event>, answer: Answer) {
        // If the coordinator has gone, so has its end of `answer`, and waiting says that the job ended.
        let _ = events.send(match self {
            Self::Meanwhile => Event::Demand(answer),
            Self::AsLast => Event::Last(answer),
        });
    }
}

impl Pending {
    pub(super) fn ask(shared: &Shared, events: &Sender<Event>, wanted: Wanted) -> Result<Self, Error> {
        if !shared.checkpointing {
            return Err(refused("the job was started without checkpoints"));
        }
        let (answer, answered) = channel();
        wanted.ask(events, Answer::Durable(answer));
        Ok(Self(answered))
    }
}

impl Pending<(CheckpointReport, Pin)> {
    pub(super) fn ask_pinned(events: &Sender<Event>, wanted: Wanted) -> Self {
        let (answer, answered) = channel();
        wanted.ask(events, Answer::Pinned(answer));
        Self(answered)
    }
}

impl<T> Pending<T> {
    /// Waits until the checkpoint is durable, or the view is there. Not for a [`Local`](super::Local) job, which does nothing meanwhile.
    ///
    /// # Errors
    /// It was given up, or the job was restarted or ended before it was made.
    pub fn wait(self) -> Result<T, Error> {
        self.0.recv().unwrap_or(Err(Unmade::Ended)).map_err(|unmade| refused(&unmade.to_string()))
    }

    /// The same without waiting; none: not yet.
    ///
    /// # Errors
    /// As [`Pending::wait`].
    pub fn try_wait(&self) -> Result<Option<T>, Error> {
        let result = match self.0.try_recv() {
            Ok(result) => result.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Unmade::Ended),
        };
        result.map_err(|unmade| refused(&unmade.to_string()))
    }

    /// Waits no longer than `time`; none: it has no answer yet.
    pub(super) fn wait_for(&self, time: Duration) -> Option<Result<T, Unmade>> {
        match self.0.recv_timeout(time) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(Unmade::Ended)),
        }
    }
}

pub(super) fn refused(reason: &str) -> Error {
    Error::Job(Box::new(Failure::new(Cause::Checkpoint(reason.to_owned()))))
}
