//! A job on the caller's thread: the same tasks and the same coordinator, one step at a time. Embedders drive it from a
//! loop of their own; with a seed, a clock that a test turns and a simulated store, a run can be repeated exactly.

use super::JobProgress;
use super::attempt::{Kept, Made, Make};
use super::coordinator::{Coordination, Event};
use super::gauges::Dials;
use super::metrics::Metrics;
use super::pending::{Pending, Unmade, Wanted, refused};
use super::restart::Retry;
use super::shared::Shared;
use super::task::Task;
use super::views::PendingView;
use super::watch::Watch;
use crate::error::{Error, Failure};
use crate::operator::{Progress, Skipped};
use crate::snapshot::Store;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// A job that runs when it is told to.
pub struct Local {
    maker: Box<dyn Make>,
    kept: Kept,
    retry: Retry,
    /// Of the attempt under way, or of the last one.
    shared: Arc<Shared>,
    dials: Dials,
    watch: Watch,
    events: Sender<Event>,
    stage: Stage,
    random: Option<SplitMix>,
    restored: Option<u64>,
    restarts: u32,
}

enum Stage {
    Runs(Box<Running>),
    /// It has failed, and goes on at this time.
    Pauses(u64),
    Over,
}

/// An attempt under way.
struct Running {
    tasks: Vec<Task>,
    coordination: Coordination,
    /// The epoch that it went on from.
    restored: u64,
    /// The task that steps next, if nothing is drawn.
    next: usize,
    /// Steps without progress since the last one that made some.
    quiet: usize,
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
    pub(crate) fn start(maker: Box<dyn Make>, store: Option<Store>) -> Result<Self, Error> {
        let (mut kept, events) = Kept::new(store);
        let made = kept.next(&*maker)?;
        let config = maker.config();
        let (retry, random) = (Retry::new(config.restart), config.seed.map(SplitMix));
        let (shared, restored) = (made.shared.clone(), made.restored);
        let (mut made, watch) = (made, Watch::idle());
        let dials = std::mem::take(&mut made.dials);
        let stage = Stage::of(made);
        Ok(Self { maker, kept, retry, shared, dials, watch, events, stage, random, restored, restarts: 0 })
    }

    /// Steps one task, and does what is due of a checkpoint, its writing included. `None` is returned when no task had
    /// anything to do for a whole round, or while the job waits to be restarted; `Done` when the job is over, all its
    /// results committed.
    ///
    /// # Errors
    /// The first failure, if no restart follows it. The job is over then.
    pub fn step(&mut self) -> Result<Progress, Error> {
        let now_ns = self.shared.meter.clock().now_ns();
        let stepped = match &mut self.stage {
            Stage::Over => return Ok(Progress::Done),
            Stage::Pauses(until_ns) if now_ns < *until_ns => return Ok(Progress::None),
            Stage::Pauses(_) => return self.go_on(),
            Stage::Runs(running) => running.step(&self.shared, &self.events, &mut self.random),
        };
        self.watch.look(&self.dials, now_ns);
        match stepped {
            Ok(Progress::Done) => {
                self.end();
                Ok(Progress::Done)
            }
            Ok(progress) => Ok(progress),
            Err(failure) => self.failed(failure),
        }
    }

    /// The attempt is over; who hears nothing more of it.
    fn end(&mut self) {
        if let Stage::Runs(running) = std::mem::replace(&mut self.stage, Stage::Over) {
            drop(running.coordination.dissolve());
        }
        self.shared.outside.over(None);
    }

    /// Takes the attempt down, and another follows, if it may.
    fn failed(&mut self, failure: Box<Failure>) -> Result<Progress, Error> {
        self.shared.stop();
        let Stage::Runs(running) = std::mem::replace(&mut self.stage, Stage::Over) else {
            unreachable!("only an attempt under way can fail");
        };
        let Running { tasks, mut coordination, restored, .. } = *running;
        // The first failure is the one to report, whatever else goes wrong now.
        tasks.into_iter().for_each(|task| drop(task.leave()));
        let retried = match self.shared.is_draining() {
            true => Err(failure),
            false => self.retry.failed(Error::Job(failure), self.shared.durable_to() > restored),
        };
        match retried {
            Ok(_) => self.kept.take_back(coordination),
            Err(_) => {
                coordination.refuse_demands(&Unmade::Ended);
                drop(coordination.dissolve());
            }
        }
        self.pause(retried)
    }

    /// Makes the next attempt.
    fn go_on(&mut self) -> Result<Progress, Error> {
        let mut made = match self.kept.next(&*self.maker) {
            Ok(made) => made,
            Err(error) => {
                let retried = self.retry.failed(error, false);
                return self.pause(retried);
            }
        };
        self.restarts += 1;
        (self.shared, self.dials) = (made.shared.clone(), std::mem::take(&mut made.dials));
        self.stage = Stage::of(made);
        Ok(if matches!(self.stage, Stage::Over) { Progress::Done } else { Progress::Made })
    }

    fn pause(&mut self, retried: Result<Duration, Box<Failure>>) -> Result<Progress, Error> {
        self.stage = Stage::Over;
        let pause = retried.map_err(|failure| {
            self.shared.outside.over(Some(failure.to_string()));
            Error::Job(failure)
        })?;
        let pause_ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        self.stage = Stage::Pauses(self.shared.meter.clock().now_ns().saturating_add(pause_ns));
        Ok(Progress::Made)
    }

    /// Steps until the job is over.
    ///
    /// # Errors
    /// The first failure.
    pub fn run(&mut self) -> Result<(), Error> {
        while self.step()? != Progress::Done {
            if let Stage::Pauses(until_ns) = self.stage {
                let left_ns = until_ns.saturating_sub(self.shared.meter.clock().now_ns());
                std::thread::sleep(Duration::from_nanos(left_ns).min(Duration::from_millis(1)));
            }
        }
        Ok(())
    }

    /// Ends the input here: sources read nothing more, and the steps that follow bring the job to its end, its results
    /// committed. A failure on the way is not followed by a restart.
    pub fn drain(&mut self) {
        self.shared.drain();
    }

    /// The job in numbers.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        Metrics::of(&self.dials, &self.kept.ledger, &self.shared, self.restarts, Vec::new())
    }

    /// Asks for a checkpoint of all that has happened so far. It is made by the steps that follow; see
    /// [`Pending::try_wait`].
    ///
    /// # Errors
    /// The job has no checkpoints, or is over.
    pub fn checkpoint(&self) -> Result<Pending, Error> {
        if matches!(self.stage, Stage::Over) {
            return Err(refused("the job is over"));
        }
        Pending::ask(&self.shared, &self.events, Wanted::Meanwhile)
    }

    /// Asks for a view of all keyed state, of all that has happened so far. It is taken by the steps that follow; see
    /// [`Pending::try_wait`].
    ///
    /// # Errors
    /// The job is over.
    pub fn view(&self) -> Result<PendingView, Error> {
        if matches!(self.stage, Stage::Over) {
            return Err(refused("the job is over"));
        }
        Ok(PendingView::ask_view(&self.events))
    }

    /// What there is of a view under way is let go of, as if memory were short. Whether there was anything.
    #[cfg(feature = "testing")]
    pub(crate) fn run_short(&self) -> bool {
        self.shared.memory.recall()
    }

    /// The epoch that the job went on from when it was started, if it did.
    #[must_use]
    pub fn restored_epoch(&self) -> Option<u64> {
        self.restored
    }

    /// How often the job has been restarted after a failure.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// How far the job has come.
    #[must_use]
    pub fn progress(&self) -> JobProgress {
        let last_checkpoint = self.kept.ledger.status().last;
        JobProgress { records: self.shared.meter.records(), last_checkpoint }
    }

    /// The lines that have been skipped so far because they were no records, those before the restored epoch too.
    #[must_use]
    pub fn skipped(&self) -> Skipped {
        self.shared.meter.all_skipped()
    }
}

impl Stage {
    fn of(made: Made) -> Self {
        let Made { tasks, coordination, restored, finished, .. } = made;
        if finished {
            return Self::Over;
        }
        let tasks = tasks.into_iter().map(|(_, task)| task).collect();
        Self::Runs(Box::new(Running { tasks, coordination, restored: restored.unwrap_or(0), next: 0, quiet: 0 }))
    }
}

impl Running {
    fn step(
        &mut self,
        shared: &Shared,
        events: &Sender<Event>,
        random: &mut Option<SplitMix>,
    ) -> Result<Progress, Box<Failure>> {
        let progress = self.step_task(shared, events, random)?;
        if self.coordination.poll(shared.meter.clock().now_ns())? {
            return Ok(Progress::Done);
        }
        self.quiet = if progress == Progress::Made { 0 } else { self.quiet + 1 };
        Ok(if self.quiet < self.tasks.len() { Progress::Made } else { Progress::None })
    }

    fn step_task(
        &mut self,
        shared: &Shared,
        events: &Sender<Event>,
        random: &mut Option<SplitMix>,
    ) -> Result<Progress, Box<Failure>> {
        if self.tasks.is_empty() {
            return Ok(Progress::None);
        }
        let index = match random {
            Some(random) => (random.next() % self.tasks.len() as u64) as usize,
            None => self.next % self.tasks.len(),
        };
        self.next = index + 1;
        let progress = self.tasks[index].step(shared, events)?;
        if progress != Progress::Done {
            return Ok(progress);
        }
        self.next = index;
        self.tasks.remove(index).leave()?;
        Ok(Progress::Made)
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
