//! An attempt to run a job: what it is made of, and what one leaves to the next. It must not know how it is made.
//!
//! A job without restarts has one. After a failure, everything that has run is thrown away (tasks, rings, state, what
//! was said about epochs), and what is in [`Kept`] goes on.

use super::Config;
use super::coordinator::{Coordination, Event};
use super::gauges::Dials;
use super::ledger::Ledger;
use super::panics::caught;
use super::pending::Unmade;
use super::shared::Shared;
use super::task::Task;
use crate::error::{Error, Failed};
use crate::snapshot::Store;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What makes attempts.
pub(crate) trait Make: Send {
    /// The job's name.
    fn name(&self) -> &str;

    /// How the job runs.
    fn config(&self) -> &Config;

    /// Makes an attempt that goes on from the newest epoch in the store, or afresh if there is none. What it takes of
    /// `kept`, it takes only if nothing fails. Runs user code: sources, and the places of sinks.
    ///
    /// # Errors
    /// The store, an input or an output cannot be opened, or the snapshot does not fit.
    fn make(&self, kept: &mut Kept) -> Result<Made, Error>;
}

/// An attempt that is ready to run.
pub(crate) struct Made {
    pub(crate) shared: Arc<Shared>,
    /// With the worker that each belongs to.
    pub(crate) tasks: Vec<(usize, Task)>,
    pub(crate) dials: Dials,
    pub(crate) coordination: Coordination,
    /// One for each worker; none: it is not pinned.
    pub(crate) cores: Vec<Option<core_affinity::CoreId>>,
    /// The epoch that it goes on from.
    pub(crate) restored: Option<u64>,
    /// The snapshot says that the job has finished: nothing is left to do.
    pub(crate) finished: bool,
}

/// What outlasts an attempt.
pub(crate) struct Kept {
    /// Open, with its lock; none: the job has no checkpoints.
    pub(crate) store: Option<Store>,
    /// What is said to the coordinator, whichever attempt is under way.
    pub(crate) heard: Option<Receiver<Event>>,
    /// The words of the last attempt: its count and its clock go on.
    pub(crate) before: Option<Arc<Shared>>,
    /// The number of the last attempt.
    pub(crate) attempt: u32,
    /// What checkpoints have come to.
    pub(crate) ledger: Arc<Ledger>,
}

impl Kept {
    /// Before the first attempt; and the end that speaks to the coordinator.
    pub(crate) fn new(store: Option<Store>) -> (Self, Sender<Event>) {
        let (events, heard) = channel();
        let kept = Self { store, heard: Some(heard), before: None, attempt: 0, ledger: Arc::default() };
        (kept, events)
    }

    /// Makes the next attempt; a panic of user code in it becomes an error.
    pub(super) fn next(&mut self, maker: &dyn Make) -> Result<Made, Error> {
        match caught(|| Ok(maker.make(self))) {
            Ok(made) => made,
            Err(Failed(failure)) => Err(Error::Job(failure)),
        }
    }

    /// Takes back what an attempt was lent, when its workers have gone.
    pub(super) fn take_back(&mut self, mut coordination: Coordination) {
        coordination.refuse_demands(&Unmade::Restarted);
        self.before = Some(coordination.shared.clone());
        let (store, heard) = coordination.dissolve();
        (self.store, self.heard) = (store, Some(heard));
    }
}
