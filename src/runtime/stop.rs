//! Ways to end a running job, each within a time, and what is left when it ends.
//!
//! 1. No way takes longer than its deadline. A worker that does not return from user code by then is left behind, and said
//!    so; it touches nothing that is shared, and ends when that code returns.
//! 2. What is durable stays durable, however a job ends: only what came after its last checkpoint is done again.

use super::coordinator::CheckpointReport;
use super::gauges::Whereabouts;
use super::job::{Job, Summary};
use super::pending::{Pending, Unmade, Wanted};
use super::savepoint::PendingSavepoint;
use crate::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a job left when it was stopped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stopped {
    /// What it did.
    pub summary: Summary,
    /// The checkpoint that was made for the stop; or why none was.
    pub checkpoint: Result<CheckpointReport, String>,
    /// The file of the savepoint, if one was asked for; or why it is not there.
    pub savepoint: Option<Result<PathBuf, String>>,
    /// Threads that did not return in time, and where they are. They end when the user code there returns.
    pub late: Vec<String>,
    /// Batches and marks that lay in rings between tasks: not processed by the last checkpoint, so they come again.
    pub batches_left: u64,
    /// Parts that sinks had prepared and that are not committed. The next start commits or removes them.
    pub parts_left: u64,
}

/// A moment by which to be done.
#[derive(Clone, Copy)]
struct Deadline {
    begin: Instant,
    time: Duration,
}

impl Deadline {
    fn new(time: Duration) -> Self {
        Self { begin: Instant::now(), time }
    }

    fn left(&self) -> Duration {
        self.time.saturating_sub(self.begin.elapsed())
    }

    /// What is left for an orderly end: workers need a moment to return.
    fn left_in_order(&self) -> Duration {
        self.left().saturating_sub((self.time / 10).min(Duration::from_millis(100)))
    }
}

const NO_CHECKPOINTS: &str = "the job was started without checkpoints";
const WITHOUT: &str = "none was asked for";

fn late(until: Deadline) -> String {
    format!("it was not durable within {:?}", until.time)
}

impl Job {
    /// Ends the input here: sources read nothing more, everything flows through, operators emit what they emit at the end,
    /// and results are committed. The job is finished then: a start from its state folder finds nothing left to do. If that
    /// takes longer than `deadline`, or fails, the job is stopped as it stands, and can go on from its last checkpoint: one from
    /// before, for while it drains it makes none but the last.
    ///
    /// # Errors
    /// The job had failed, or failed while it drained: a restart does not follow then.
    pub fn drain(self, deadline: Duration) -> Result<Stopped, Error> {
        let until = Deadline::new(deadline);
        self.control.drain();
        self.control.wait_over(until.left_in_order());
        let status = self.control.ledger.status();
        let checkpoint = match status.last {
            Some(last) if status.ended => Ok(last),
            _ if status.ended => Err(NO_CHECKPOINTS.to_owned()),
            _ => Err(format!("the job did not drain within {deadline:?}")),
        };
        self.end(until, checkpoint, None)
    }

    /// Stops where the job stands: with checkpoints, takes a last one and waits until it is durable. The next start goes on
    /// from there.
    ///
    /// # Errors
    /// The job had failed.
    pub fn stop(self, deadline: Duration) -> Result<Stopped, Error> {
        let until = Deadline::new(deadline);
        let checkpoint = self.last_checkpoint(until);
        self.end(until, checkpoint, None)
    }

    /// As [`Job::stop`], with a [savepoint](Job::savepoint) of the last checkpoint in `file`.
    ///
    /// # Errors
    /// The job had failed.
    pub fn stop_with_savepoint(self, file: impl AsRef<Path>, deadline: Duration) -> Result<Stopped, Error> {
        let until = Deadline::new(deadline);
        let asked = self.ask_savepoint(file.as_ref(), Wanted::AsLast);
        let checkpoint = match &asked {
            Ok(pending) => match pending.checkpoint_within(until.left_in_order()) {
                Some(result) => result.or_else(|unmade| self.last_of_all(&unmade)),
                None => Err(late(until)),
            },
            // The job is to stop in order all the same.
            Err(_) => self.last_checkpoint(until),
        };
        self.end(until, checkpoint, Some(asked.map_err(|error| error.to_string())))
    }

    /// Stops at once. What has happened since the last checkpoint will happen again after a restart. As dropping the job
    /// does, but within a time.
    ///
    /// # Errors
    /// The job had failed.
    pub fn abort(self, deadline: Duration) -> Result<Stopped, Error> {
        self.end(Deadline::new(deadline), Err(WITHOUT.to_owned()), None)
    }

    fn last_checkpoint(&self, until: Deadline) -> Result<CheckpointReport, String> {
        if !self.control.shared().checkpointing {
            return Err(NO_CHECKPOINTS.to_owned());
        }
        loop {
            let pending = Pending::ask(&self.control.shared(), &self.events, Wanted::AsLast);
            let pending = pending.map_err(|error| error.to_string())?;
            match pending.wait_for(until.left_in_order()) {
                Some(Ok(report)) => return Ok(report),
                // It goes on: the next one will do.
                Some(Err(Unmade::Restarted)) => {}
                Some(Err(unmade)) => return self.last_of_all(&unmade),
                None => return Err(late(until)),
            }
        }
    }

    /// If the job ended by itself meanwhile its last checkpoint is there.
    fn last_of_all(&self, unmade: &Unmade) -> Result<CheckpointReport, String> {
        let status = self.control.ledger.status();
        status.last.filter(|_| status.ended).ok_or_else(|| unmade.to_string())
    }

    fn end(
        mut self,
        until: Deadline,
        checkpoint: Result<CheckpointReport, String>,
        savepoint: Option<Result<PendingSavepoint, String>>,
    ) -> Result<Stopped, Error> {
        self.control.stop();
        let is_over = self.control.wait_over(until.left());
        let late = if is_over { Vec::new() } else { self.late() };
        let savepoint = savepoint.map(|asked| {
            let mut pending = asked?;
            if let Err(reason) = &checkpoint {
                return Err(format!("there was no checkpoint to copy: {reason}"));
            }
            let result = pending.wait_for(until.left());
            let result = result.ok_or_else(|| format!("it was not copied within {:?}", until.time))?;
            result.map(|report| report.path).map_err(|error| error.to_string())
        });
        if is_over {
            self.join()?;
        } else {
            // Left behind.
            self.supervisor = None;
        }
        let batches_left = self.control.dials().filled();
        let parts_left = self.control.ledger.status().parts;
        Ok(Stopped { summary: self.summary(), checkpoint, savepoint, late, batches_left, parts_left })
    }

    /// Where threads are that have not returned.
    fn late(&self) -> Vec<String> {
        let dials = self.control.dials();
        let workers = dials.pulses.iter().enumerate().filter_map(|(worker, pulse)| match pulse.look().1 {
            Whereabouts::Gone => None,
            Whereabouts::Between => Some(format!("worker {worker}")),
            Whereabouts::In(task) => Some(format!("worker {worker}: in {}", dials.place(task))),
        });
        let coordinator = self.control.ledger.place().map(|place| format!("the coordinator: in {place}"));
        workers.chain(coordinator).collect()
    }
}
