//! Following a running job: how far it is, what the user should hear of, and whether it is to end. What is to be told of it
//! at its end is gathered here, for a job that has been waited for is gone.

use crate::audit::Audits;
use crate::metrics::Fills;
use crate::notices::Notices;
use crate::outcome::Wrong;
use crate::progress::Progress;
use crate::saving::Saving;
use crate::signals::{Signals, Stop};
use snapring::runtime::{Job, Metrics};
use std::time::{Duration, Instant};

/// Looking at the numbers costs some locks.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

pub struct Follow<'a> {
    signals: &'a Signals,
    progress: Progress,
    audits: Option<&'a mut Audits>,
    saving: Saving,
    notices: Notices,
    fills: Fills,
    began: Instant,
    looked: Option<Instant>,
}

/// What was seen of a job.
pub struct Seen {
    pub metrics: Metrics,
    pub fills: Fills,
    pub warnings: Vec<String>,
    /// Why the last of the checkpoints that were given up was.
    pub given_up_reason: Option<String>,
}

/// What became of a last checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    Made,
    /// The job has come to its end by itself meanwhile.
    Over,
    /// It was given up, or the job is about to end.
    Failed,
    /// The job has failed meanwhile, and is back at its newest checkpoint.
    Restarted,
    Late,
}

impl<'a> Follow<'a> {
    pub fn new(signals: &'a Signals, progress: Progress, audits: Option<&'a mut Audits>, saving: Saving) -> Self {
        let (notices, fills) = (Notices::new(), Fills::default());
        Self { signals, progress, audits, saving, notices, fills, began: Instant::now(), looked: None }
    }

    /// Waits for the end of the job, or for a signal that comes before it.
    pub fn run(&mut self, job: &Job) -> Result<Option<Stop>, Wrong> {
        while !job.is_over() {
            if let Some(stop) = self.signals.stop() {
                return Ok(Some(stop));
            }
            self.step(job)?;
        }
        Ok(None)
    }

    /// Takes a last checkpoint. A second signal does not come back here.
    pub fn last_checkpoint(&mut self, job: &Job, until: Instant) -> Result<Last, Wrong> {
        let restarts = job.metrics().restarts;
        let pending = job.checkpoint()?;
        loop {
            match pending.try_wait() {
                Ok(Some(_)) => return Ok(Last::Made),
                _ if job.is_over() => return Ok(Last::Over),
                Err(_) if job.metrics().restarts > restarts => return Ok(Last::Restarted),
                Err(_) => return Ok(Last::Failed),
                Ok(None) if Instant::now() >= until => return Ok(Last::Late),
                Ok(None) => self.step(job)?,
            }
        }
    }

    fn step(&mut self, job: &Job) -> Result<(), Wrong> {
        self.progress.show(|| job.progress());
        let asked = if self.signals.take_savepoint() { self.saving.ask(job) } else { None };
        asked.into_iter().chain(self.saving.look()).for_each(|line| self.progress.say(&line));
        if let Some(audits) = &mut self.audits {
            let newest = job.progress().last_checkpoint.map(|last| last.epoch);
            audits.look(newest, |line| self.progress.say(line))?;
        }
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOKS_EVERY) {
            self.looked = Some(Instant::now());
            let metrics = self.look(job);
            self.fills.add(&metrics);
        }
        // So that looking late adds at most half a percent to what is measured.
        std::thread::sleep((self.began.elapsed() / 200).clamp(Duration::from_millis(1), Duration::from_millis(20)));
        Ok(())
    }

    /// Says what is new.
    fn look(&mut self, job: &Job) -> Metrics {
        let metrics = job.metrics();
        for line in self.notices.look(job.warnings(), &metrics, Instant::now()) {
            self.progress.say(&line);
        }
        metrics
    }

    pub fn say(&self, line: &str) {
        self.progress.say(line);
    }

    /// The last look. A savepoint that is under way is waited for.
    pub fn end(mut self, job: &Job) -> Seen {
        let metrics = self.look(job);
        if let Some(line) = self.saving.end() {
            self.progress.say(&line);
        }
        if let Some(line) = self.notices.end() {
            self.progress.say(&line);
        }
        let Notices { warnings, reason: given_up_reason, .. } = self.notices;
        Seen { metrics, fills: self.fills, warnings, given_up_reason }
    }
}
