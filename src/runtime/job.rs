//! A job on threads of its own.

use super::attempt::{Kept, Make};
use super::control::Control;
use super::coordinator::{CheckpointReport, Event};
use super::diagnosis::Diagnosis;
use super::metrics::Metrics;
use super::pending::{Pending, Wanted, refused};
use super::restart::Retry;
use super::supervisor::{Supervisor, spawn};
use super::views::PendingView;
use crate::error::{Error, Failure};
use crate::operator::Skipped;
use crate::snapshot::Store;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running job. Dropping it stops it and waits for its threads: results since the last checkpoint are made again when it is started anew.
pub struct Job {
    pub(super) control: Arc<Control>,
    pub(super) events: Sender<Event>,
    pub(super) supervisor: Option<JoinHandle<Result<(), Box<Failure>>>>,
    restored: Option<u64>,
    finished_before: bool,
}

/// How far a job has come.
#[derive(Clone, Copy, Debug)]
pub struct JobProgress {
    /// Records read by all sources since the start; what is read again after a failure counts again.
    pub records: u64,
    /// The last durable checkpoint of this start.
    pub last_checkpoint: Option<CheckpointReport>,
}

/// What a job did, from its start to its end.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Records read by all sources; what is read again after a failure counts again.
    pub records: u64,
    /// Lines that were no records and were skipped, each counted once: those before the restored epoch too.
    pub skipped: Skipped,
    /// From the start to the end.
    pub elapsed: Duration,
    /// From the start to the first record read, if there was one.
    pub first_record: Option<Duration>,
    /// Bytes of the process that were in memory at that moment.
    pub resident_bytes_at_first_record: Option<u64>,
    /// Durable checkpoints.
    pub checkpoints: u64,
    /// The epoch of the last of them.
    pub last_epoch: Option<u64>,
    /// Checkpoints that were given up: out of time, or out of room.
    pub given_up: u64,
    /// Restarts after failures.
    pub restarts: u32,
    /// Bytes written for checkpoints.
    pub checkpoint_bytes: u64,
    /// The epoch that the job went on from.
    pub restored_epoch: Option<u64>,
    /// The state folder held a finished job: nothing was left to do.
    pub finished_before: bool,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("progress", &self.progress())
            .field("restored_epoch", &self.restored)
            .finish_non_exhaustive()
    }
}

impl Job {
    pub(crate) fn start(maker: Box<dyn Make>, store: Option<Store>) -> Result<Self, Error> {
        let (mut kept, events) = Kept::new(store);
        let made = kept.next(&*maker)?;
        let control = Arc::new(Control::new(made.shared.clone(), kept.ledger.clone()));
        let (restored, finished_before) = (made.restored, made.finished);
        let mut job =
            Self { control: control.clone(), events: events.clone(), supervisor: None, restored, finished_before };
        if !finished_before {
            let retry = Retry::new(maker.config().restart);
            let supervisor = Supervisor { maker, kept, control, events, retry };
            let (started, is_started) = channel();
            job.supervisor = Some(spawn("snapring-coord", move || supervisor.run(made, &started))?);
            is_started.recv().unwrap_or(Ok(()))?;
        } else {
            control.over();
        }
        Ok(job)
    }

    /// The job in numbers.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let Control { ledger, .. } = &*self.control;
        Metrics::of(
            &self.control.dials(),
            ledger,
            &self.control.shared(),
            self.control.restarts(),
            self.control.stalls(),
        )
    }

    /// What each task waits for at this moment, and the circle of tasks that wait for each other, if there is one.
    #[must_use]
    pub fn diagnosis(&self) -> Diagnosis {
        Diagnosis::of(&self.metrics())
    }

    /// What the user should know though the job runs, oldest first: cores that could not be pinned, workers that did not
    /// come back from user code, or did after all, a job that stands still, and failures that a restart follows. The newest
    /// 100 are kept.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.control.warnings()
    }

    /// The epoch that the job went on from when it was started, if it did.
    #[must_use]
    pub fn restored_epoch(&self) -> Option<u64> {
        self.restored
    }

    /// How far the job has come.
    #[must_use]
    pub fn progress(&self) -> JobProgress {
        JobProgress {
            records: self.control.shared().meter.records(),
            last_checkpoint: self.control.ledger.status().last,
        }
    }

    /// The lines that have been skipped so far because they were no records: see [`Summary::skipped`].
    #[must_use]
    pub fn skipped(&self) -> Skipped {
        self.control.shared().meter.all_skipped()
    }

    /// Whether the job has ended, one way or the other: [`Job::wait`] returns at once.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.supervisor.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the job has ended, one way or the other, at most for `timeout`. Says whether it has.
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> bool {
        self.is_over() || self.control.wait_over(timeout)
    }

    /// Asks for a checkpoint of all that has happened so far.
    ///
    /// # Errors
    /// The job has no checkpoints.
    pub fn checkpoint(&self) -> Result<Pending, Error> {
        Pending::ask(&self.control.shared(), &self.events, Wanted::Meanwhile)
    }

    /// Asks for a view of all keyed state, of all that has happened so far. It takes about as long as a checkpoint's cut and a
    /// pass over the list of pages, and writes nothing.
    ///
    /// # Errors
    /// The job is over.
    pub fn view(&self) -> Result<PendingView, Error> {
        if self.is_over() {
            return Err(refused("the job is over: there is nothing to look at"));
        }
        Ok(PendingView::ask_view(&self.events))
    }

    /// Waits until the input has ended and all results are out, or until the job fails.
    ///
    /// # Errors
    /// The first failure.
    pub fn wait(mut self) -> Result<Summary, Error> {
        self.join()?;
        Ok(self.summary())
    }

    pub(super) fn join(&mut self) -> Result<(), Error> {
        match self.supervisor.take().map_or(Ok(Ok(())), JoinHandle::join) {
            Ok(result) => result.map_err(Error::Job),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    pub(super) fn summary(&self) -> Summary {
        let (status, shared) = (self.control.ledger.status(), self.control.shared());
        let meter = &shared.meter;
        Summary {
            records: meter.records(),
            skipped: meter.all_skipped(),
            elapsed: Duration::from_nanos(meter.clock().now_ns()),
            first_record: meter.first_record_ns().map(Duration::from_nanos),
            resident_bytes_at_first_record: meter.first_resident_bytes(),
            checkpoints: status.checkpoints,
            given_up: status.given_up,
            restarts: self.control.restarts(),
            last_epoch: status.last.map(|last| last.epoch).or(self.restored),
            checkpoint_bytes: status.checkpoint_bytes,
            restored_epoch: self.restored,
            finished_before: self.finished_before,
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.control.stop();
        // The failure, if there is one, has nobody left to hear it.
        let _ = self.join();
    }
}
