//! A job on the caller's thread: the same tasks and the same coordinator, one step at a time. Embedders drive it from a
//! loop of their own; with a seed, a clock that a test turns and a simulated store, a run can be repeated exactly.

use super::coordinator::{Coordination, Event};
use super::pending::{Pending, refused};
use super::shared::Shared;
use super::task::Task;
use super::{JobProgress, Made};
use crate::error::{Error, Failure};
use crate::operator::{Progress, Skipped};
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A job that runs when it is told to.
pub struct Local {
    shared: Arc<Shared>,
    tasks: Vec<Task>,
    coordination: Coordination,
    events: Sender<Event>,
    /// The task that steps next, if nothing is drawn.
    next: usize,
    /// Steps without progress since the last one that made some.
    quiet: usize,
    random: Option<SplitMix>,
    restored: Option<u64>,
    over: bool,
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local")
            .field("progress", &self.progress())
            .field("restored_epoch", &self.restored)
            .finish_non_exhaustive()
    }
}

impl Local {
    pub(crate) fn new(made: Made) -> Self {
        let Made { config, shared, tasks, coordination, events, restored, finished, .. } = made;
        let tasks = tasks.into_iter().map(|(_, task)| task).collect();
        let random = config.seed.map(SplitMix);
        Self { shared, tasks, coordination, events, next: 0, quiet: 0, random, restored, over: finished }
    }

    /// Steps one task, and does what is due of a checkpoint, its writing included. `None` is returned when no task had
    /// anything to do for a whole round; `Done` when the job is over, all its results committed.
    ///
    /// # Errors
    /// The first failure. The job is over then.
    pub fn step(&mut self) -> Result<Progress, Error> {
        if self.over {
            return Ok(Progress::Done);
        }
        let progress = self.step_task().and_then(|progress| {
            self.over = self.coordination.poll(self.shared.meter.clock().now_ns())?;
            Ok(progress)
        });
        match progress {
            Ok(_) if self.over => Ok(Progress::Done),
            Ok(progress) => Ok(self.after(progress)),
            Err(failure) => {
                self.over = true;
                self.shared.stop();
                // The first failure is the one to report, whatever else goes wrong now.
                self.tasks.drain(..).for_each(|task| drop(task.leave()));
                Err(Error::Job(failure))
            }
        }
    }

    /// Steps until the job is over.
    ///
    /// # Errors
    /// The first failure.
    pub fn run(&mut self) -> Result<(), Error> {
        while self.step()? != Progress::Done {}
        Ok(())
    }

    /// Asks for a checkpoint of all that has happened so far. It is made by the steps that follow; see
    /// [`Pending::try_wait`].
    ///
    /// # Errors
    /// The job has no checkpoints, or is over.
    pub fn checkpoint(&self) -> Result<Pending, Error> {
        if self.over {
            return Err(refused("the job is over"));
        }
        Pending::ask(&self.shared, &self.events)
    }

    /// The epoch that the job went on from, if it did.
    #[must_use]
    pub fn restored_epoch(&self) -> Option<u64> {
        self.restored
    }

    /// How far the job has come.
    #[must_use]
    pub fn progress(&self) -> JobProgress {
        JobProgress { records: self.shared.meter.records(), last_checkpoint: self.coordination.status.last }
    }

    /// The lines that have been skipped so far because they were no records, those before the restored epoch too.
    #[must_use]
    pub fn skipped(&self) -> Skipped {
        self.shared.meter.all_skipped()
    }

    fn step_task(&mut self) -> Result<Progress, Box<Failure>> {
        if self.tasks.is_empty() {
            return Ok(Progress::None);
        }
        let index = match &mut self.random {
            Some(random) => (random.next() % self.tasks.len() as u64) as usize,
            None => self.next % self.tasks.len(),
        };
        self.next = index + 1;
        let progress = self.tasks[index].step(&self.shared, &self.events)?;
        if progress != Progress::Done {
            return Ok(progress);
        }
        self.next = index;
        self.tasks.remove(index).leave()?;
        Ok(Progress::Made)
    }

    fn after(&mut self, progress: Progress) -> Progress {
        self.quiet = if progress == Progress::Made { 0 } else { self.quiet + 1 };
        if self.quiet < self.tasks.len() { Progress::Made } else { Progress::None }
    }
}

/// S. Vigna's SplitMix64: a whole run follows from its seed.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
