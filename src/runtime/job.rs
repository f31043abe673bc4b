//! A job on threads of its own.

use super::coordinator::{CheckpointReport, Coordination, Event, Status};
use super::panics::caught;
use super::pending::Pending;
use super::shared::Shared;
use super::task::Task;
use super::{Config, Made, affinity, worker};
use crate::channel::Idle;
use crate::error::{Cause, Error, Failed, Failure};
use core_affinity::CoreId;
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running job. Dropping it stops it: results since the last checkpoint are made again when it is started anew.
pub struct Job {
    shared: Arc<Shared>,
    events: Sender<Event>,
    coordinator: Option<JoinHandle<Result<(), Box<Failure>>>>,
    workers: Vec<JoinHandle<()>>,
    status: Arc<Mutex<Status>>,
    restored: Option<u64>,
    finished_before: bool,
    warnings: Vec<String>,
}

/// How far a job has come.
#[derive(Clone, Copy, Debug)]
pub struct JobProgress {
    /// Records read by all sources since the start.
    pub records: u64,
    /// The last durable checkpoint of this start.
    pub last_checkpoint: Option<CheckpointReport>,
}

/// What a job did, from its start to its end.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Records read by all sources.
    pub records: u64,
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
    /// Bytes written for them.
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
    pub(crate) fn start(made: Made) -> Result<Self, Error> {
        let Made { config, shared, tasks, coordination, events, cores, restored, finished } = made;
        let mut job = Self {
            shared,
            events,
            coordinator: None,
            workers: Vec::new(),
            status: Arc::default(),
            restored,
            finished_before: finished,
            warnings: Vec::new(),
        };
        if !finished {
            job.start_coordinator(coordination, cores.clone())?;
            job.start_workers(&config, tasks, &cores)?;
        }
        Ok(job)
    }

    fn start_coordinator(&mut self, coordination: Coordination, cores: Vec<Option<CoreId>>) -> Result<(), Error> {
        let (shared, status) = (self.shared.clone(), self.status.clone());
        self.coordinator = Some(spawn("snapring-coord", move || {
            affinity::keep_off(&cores);
            // Whatever happens, the workers get to know that nobody listens any more.
            let result = caught(|| coordinate(coordination, &status).map_err(Failed));
            shared.stop();
            result.map_err(|Failed(failure)| failure)
        })?);
        Ok(())
    }

    fn start_workers(
        &mut self,
        config: &Config,
        tasks: Vec<(usize, Task)>,
        cores: &[Option<CoreId>],
    ) -> Result<(), Error> {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let idles: Vec<Idle> = cores.iter().map(|_| Idle::new(config.wait, cores.len(), available)).collect();
        self.shared.set_wakers(idles.iter().map(Idle::waker).collect());
        let mut tasks_of: Vec<Vec<_>> = cores.iter().map(|_| Vec::new()).collect();
        tasks.into_iter().for_each(|(worker, task)| tasks_of[worker].push(task));
        let (refused, refusals) = channel();
        for (number, ((tasks, idle), core)) in tasks_of.into_iter().zip(idles).zip(cores.iter().copied()).enumerate() {
            let (shared, events, refused) = (self.shared.clone(), self.events.clone(), refused.clone());
            self.workers.push(spawn(&format!("snapring-{number}"), move || {
                let is_refused = core.is_some_and(|core| !affinity::pin(core));
                let _ = refused.send(is_refused.then_some(core).flatten());
                // `start` listens until every worker has said its word.
                drop(refused);
                worker::work(tasks, &shared, &events, idle);
            })?);
        }
        drop(refused);
        let warning =
            |core: CoreId| format!("the system refused to pin a worker to core {}: it runs unpinned", core.id);
        self.warnings.extend(refusals.iter().flatten().map(warning));
        Ok(())
    }

    /// What the user should know though the job runs: a core that could not be pinned.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The epoch that the job went on from, if it did.
    #[must_use]
    pub fn restored_epoch(&self) -> Option<u64> {
        self.restored
    }

    /// How far the job has come.
    #[must_use]
    pub fn progress(&self) -> JobProgress {
        JobProgress { records: self.shared.meter.records(), last_checkpoint: self.status().last }
    }

    /// Whether the job has ended, one way or the other: [`Job::wait`] returns at once.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.coordinator.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Asks for a checkpoint of all that has happened so far.
    ///
    /// # Errors
    /// The job has no checkpoints.
    pub fn checkpoint(&self) -> Result<Pending, Error> {
        Pending::ask(&self.shared, &self.events)
    }

    /// Waits until the input has ended and all results are out, or until the job fails.
    ///
    /// # Errors
    /// The first failure.
    pub fn wait(mut self) -> Result<Summary, Error> {
        self.join()?;
        Ok(self.summary())
    }

    /// Stops where the job stands: with checkpoints, takes a last one and waits until it is durable.
    ///
    /// # Errors
    /// The job had failed, or the checkpoint could not be made; the job is stopped all the same.
    pub fn stop(mut self) -> Result<Summary, Error> {
        let checkpoint =
            if self.shared.checkpointing && !self.is_over() { self.checkpoint()?.wait().map(|_| ()) } else { Ok(()) };
        self.shared.stop();
        self.join()?;
        // Unless the job ended by itself meanwhile: then its last checkpoint is there.
        match checkpoint {
            Err(_) if self.status().ended => Ok(self.summary()),
            Err(error) => Err(error),
            Ok(()) => Ok(self.summary()),
        }
    }

    /// Stops at once. What has happened since the last checkpoint will happen again after a restart.
    pub fn abort(self) {}

    fn join(&mut self) -> Result<(), Error> {
        let result = self.coordinator.take().map_or(Ok(Ok(())), JoinHandle::join);
        self.shared.stop();
        for worker in self.workers.drain(..) {
            // A worker's panics are caught step by step; one that gets here is from a `drop` after the first failure.
            let _ = worker.join();
        }
        match result {
            Ok(result) => result.map_err(Error::Job),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn summary(&self) -> Summary {
        let (status, meter) = (self.status(), &self.shared.meter);
        Summary {
            records: meter.records(),
            elapsed: Duration::from_nanos(meter.clock().now_ns()),
            first_record: meter.first_record_ns().map(Duration::from_nanos),
            resident_bytes_at_first_record: meter.first_resident_bytes(),
            checkpoints: status.checkpoints,
            given_up: status.given_up,
            last_epoch: status.last.map(|last| last.epoch).or(self.restored),
            checkpoint_bytes: status.checkpoint_bytes,
            restored_epoch: self.restored,
            finished_before: self.finished_before,
        }
    }

    fn status(&self) -> Status {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.shared.stop();
        // The failure, if there is one, has nobody left to hear it.
        let _ = self.join();
    }
}

fn spawn<T: Send + 'static>(name: &str, run: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, Error> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|error| Error::Job(Box::new(Failure::new(Cause::Thread(error.to_string())))))
}

/// The coordinator's loop: sleeps until something is heard or due.
fn coordinate(mut coordination: Coordination, status: &Mutex<Status>) -> Result<(), Box<Failure>> {
    const LOOKS_EVERY: Duration = Duration::from_millis(20);
    let clock = coordination.shared.meter.clock().clone();
    loop {
        // The word first: who sees it finds the event that was sent ahead of it.
        let stopping = coordination.shared.is_stopping();
        let over = coordination.poll(clock.now_ns())?;
        *status.lock().unwrap_or_else(PoisonError::into_inner) = coordination.status;
        if over || stopping {
            return Ok(());
        }
        let due = coordination.machine.due_ns().map(|due| Duration::from_nanos(due.saturating_sub(clock.now_ns())));
        match coordination.events.recv_timeout(due.unwrap_or(LOOKS_EVERY).min(LOOKS_EVERY)) {
            Ok(event) => coordination.hear(event, clock.now_ns())?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
