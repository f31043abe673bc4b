//! A whole run of a simulated job: starts, steps, incidents, crashes, until it has finished. It must not know what the job
//! computes.
//!
//! 1. Everything follows from the seed: which task steps next, when a checkpoint is asked for, which write fails, when the
//!    crash comes, how many tasks the next start has.
//! 2. An undisturbed run of the same job, in a world of its own, tells how long it is: crashes come within that.
//! 3. The last start is an undisturbed one too, and finishes: otherwise the job is stuck.
//! 4. No start may go on from an older epoch than one that was reported as durable, and in the end no part may be left
//!    pending.

use super::looks::Looks;
use super::trip::TRIPPED;
use super::world::Length;
use super::{Fault, Incident, Trip, World};
use crate::dataflow::Dataflow;
use crate::error::{Cause, Error, RestoreError};
use crate::operator::Progress;
use crate::runtime::{Local, Pending};
use crate::snapshot::{Generations, Reader};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// No job of a test takes as many steps.
pub(super) const STUCK_AFTER: u64 = 3_000_000;

#[derive(PartialEq, Eq)]
enum Outcome {
    Finished,
    Crashed,
}

pub(super) type Draw<'a> = &'a dyn Fn(&mut World) -> Dataflow;

impl World {
    /// Runs the job to its end, through crashes.
    pub(super) fn live(&mut self, draw: Draw<'_>) -> Result<(), Fault> {
        let mut undisturbed = Self::new(self.seed(), self.tasks.clone());
        undisturbed.run(draw, false)?;
        self.length = undisturbed.length;
        for _ in 0..self.random.below(6) {
            if self.run(draw, true)? == Outcome::Finished {
                break;
            }
            self.crash();
            self.seen.crashes += 1;
        }
        // Where the job finished before its crash came, that is called off; going on then finds nothing left to do.
        self.disk.kill();
        self.run(draw, false)?;
        self.seen.new_files = u64::from(self.disk.list().is_ok_and(|files| files != [1]));
        if let Some((part, sink)) = self.pending() {
            panic!("part {part} is left pending in the sink `{sink}`");
        }
        Ok(())
    }

    pub(super) fn how(&self) -> String {
        format!("seed {}: this seed alone repeats it", self.seed())
    }

    /// One start of the job: until it is finished, or until a crash, which comes after some steps or at a write.
    fn run(&mut self, draw: Draw<'_>, may_crash: bool) -> Result<Outcome, Fault> {
        let clock = Arc::new(AtomicU64::new(0));
        if may_crash {
            self.plan_incidents();
        }
        // A disk that is full for a while declines checkpoints; the job runs on. The last one must find room.
        let used_bytes = self.disk.used_bytes();
        let full = may_crash && self.random.one_in(if used_bytes == 0 { 16 } else { 4 });
        self.disk.full_above(full.then_some(used_bytes));
        let Length { steps, calls } = self.length;
        let steps = if may_crash { self.random.below(steps) } else { STUCK_AFTER };
        let fails = may_crash && self.random.one_in(2);
        self.trip = Trip::new(self.random.next(), if fails { self.random.below(7) } else { 0 }, 1 + calls / 3);
        let outcome = self.start(draw, &clock).and_then(|mut job| {
            let outcome = self.drive(&mut job, &clock, steps);
            self.seen.restarts += u64::from(job.restarts());
            outcome
        });
        match outcome {
            Ok(Outcome::Crashed) if !may_crash => Err(Fault::Stuck { steps, run: self.how() }),
            Ok(outcome) => Ok(outcome),
            Err(error) if may_crash && (is_of_the_store(&error) || is_tripped(&error)) => Ok(Outcome::Crashed),
            Err(error) => Err(Fault::Job { error: error.to_string(), run: self.how() }),
        }
    }

    fn plan_incidents(&mut self) {
        let random = &mut self.random;
        if random.one_in(2) {
            self.disk.at(self.disk.calls() + random.below(60), Incident::Crash);
        }
        // Writes and syncs that fail cost their checkpoints, and no more than that.
        if random.one_in(3) {
            for _ in 0..random.between(1, 4) {
                let first = self.disk.calls() + random.below(80);
                for call in first..first + random.between(1, 3) {
                    self.disk.at(call, if random.one_in(3) { Incident::Full } else { Incident::Fail });
                }
            }
        }
    }

    fn start(&mut self, draw: Draw<'_>, clock: &Arc<AtomicU64>) -> Result<Local, Error> {
        let flow = draw(self);
        let config = self.config(clock, true)?;
        let job = match flow.into_local(config) {
            // A sink that takes nothing back goes on from the newest checkpoint only.
            Err(Error::Restore(RestoreError::NoRetraction { .. })) => {
                self.seen.went_back -= 1;
                let flow = draw(self);
                let config = self.config(clock, false)?;
                flow.into_local(config)?
            }
            started => started?,
        };
        let restored = job.restored_epoch();
        self.seen.restores += u64::from(restored.is_some());
        assert!(restored.unwrap_or(0) >= self.promised, "epoch {} was promised, {restored:?} is there", self.promised);
        Ok(job)
    }

    fn drive(&mut self, job: &mut Local, clock: &AtomicU64, steps: u64) -> Result<Outcome, Error> {
        // A job whose epochs come from nobody but the clock, if at all, must come to its end as well.
        let asks = !self.random.one_in(3);
        let asks_once_in = 2 + self.length.steps / 30;
        let mut asked: Option<Pending> = None;
        let (mut looks, looks_once_in) = (Looks::default(), 10 + asks_once_in);
        for step in 0..steps {
            clock.fetch_add(self.random.below(3), Ordering::Relaxed);
            let stepped = job.step();
            // An answer given before a crash, in the same step even, holds after it.
            asked = asked.and_then(|pending| self.hear(pending));
            self.audit(job);
            looks.go_on(job, &mut self.random, &self.disk, looks_once_in);
            if stepped? == Progress::Done {
                self.note(&looks);
                assert!(asked.is_none(), "the job is over, and whoever asked for a checkpoint hears nothing");
                self.length = Length { steps: step + 1, calls: self.trip.calls() };
                return Ok(Outcome::Finished);
            }
            if asks && asked.is_none() && self.random.one_in(asks_once_in) {
                asked = Some(job.checkpoint()?);
            }
        }
        self.note(&looks);
        Ok(Outcome::Crashed)
    }

    /// Takes in what views have come to.
    fn note(&mut self, looks: &Looks) {
        looks.end();
        self.seen.views += looks.taken;
        self.seen.views_compared += looks.compared;
        self.seen.views_short += looks.short;
    }

    /// Shows a checkpoint that has become durable to whoever wants to see it. One that went with a crash is none.
    fn audit(&mut self, job: &Local) {
        let Some(audit) = self.audit.clone() else { return };
        let Some(report) = job.progress().last_checkpoint.filter(|last| last.epoch > self.audited) else { return };
        self.audited = report.epoch;
        if let Ok(reader) = Reader::open_on(Box::new(self.disk.clone())) {
            audit(&reader, report.epoch);
            self.seen.audited += 1;
        }
    }

    /// Takes the answer, if there is one.
    fn hear(&mut self, pending: Pending) -> Option<Pending> {
        match pending.try_wait() {
            Ok(None) => return Some(pending),
            Ok(Some(report)) => {
                self.promised = report.epoch;
                self.seen.durable += 1;
            }
            Err(error) => {
                self.seen.given_up += 1;
                self.seen.failed += u64::from(error.to_string().contains("simulated failure"));
            }
        }
        None
    }

    fn crash(&mut self) {
        let random = &mut self.random;
        if !self.power_fails {
            self.disk.kill();
        } else {
            self.disk.crash(|_| random.one_in(2));
            self.lose_power();
        }
    }
}

fn is_of_the_store(error: &Error) -> bool {
    match error {
        Error::Store(_) => true,
        Error::Job(failure) => matches!(failure.cause, Cause::Store(_)),
        _ => false,
    }
}

/// Restarts did not help.
fn is_tripped(error: &Error) -> bool {
    let Error::Job(failure) = error else { return false };
    matches!(&failure.cause, Cause::Panic(message) if message.starts_with(TRIPPED))
}
