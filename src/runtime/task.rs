//! A task: the thing that runs. It reads a batch at a time, follows the epochs, emits what is left when its input has
//! ended, and finishes. What flows through it, it does not know: that is its [`Body`].
//!
//! The rules it keeps (numbers as in the project's protocols):
//!
//! - **3.** A cut falls between two batches or between two portions of a long emission: each step is one of these.
//! - **4.** While leftovers wait, nothing is read; cuts, aborts and flushing go on.
//! - **9.** It finishes when all is emitted, its outbox is empty and no epoch in which it has frozen is under way. Its
//!   final snapshot goes to the coordinator before End goes to its consumers.

use super::coordinator::{Event, TaskSnapshot};
use super::gauges::{TaskGauge, TaskState};
use super::hydration::Hydration;
use super::panics::caught;
use super::shared::Shared;
use crate::checkpoint::{Cut, InputKind, Protocol, TaskCut};
use crate::error::{Cause, Failed, Failure};
use crate::marks::Mark;
use crate::operator::{Link, Progress, Visit, take_left};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// The root of a task: what it reads from, and the pipes behind it.
pub(crate) trait Body: Send {
    /// Number of inputs; a source has none.
    fn inputs(&self) -> usize;
    /// Takes at most one batch or mark, and counts in `taken` the records that it hands on.
    fn poll(&mut self, cut: &TaskCut, taken: &mut u64) -> Result<Took, Failed>;
    /// Whether `poll` would take something, as far as that is known without trying.
    fn is_ready(&self, _: &TaskCut) -> bool {
        true
    }

    /// The record under way, where it is known: after a failure, for its report.
    fn text(&self) -> Option<String> {
        None
    }
    /// Whether it waits for something that wakes nobody.
    fn polls(&self) -> bool {
        false
    }
    /// The pipes.
    fn link(&mut self) -> &mut dyn Link;
    /// The task has failed: tells all neighbours.
    fn poison(&mut self) {
        self.link().poison();
    }
    /// Everything with state, itself included.
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed>;
}

/// What a body took in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Took {
    Records,
    Mark(usize, Mark),
    Nothing,
    /// A source is at its end.
    Ended,
    /// A ring's other end has gone without an End.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reading,
    /// All inputs have ended; operators emit what is left.
    Emitting,
    /// All is emitted; waits until it may finish.
    Finishing,
    /// End is sent; the outbox empties.
    Leaving,
}

/// After so many batches without a pause, partial batches go all the same: a lane that is rarely used must not wait for ever.
const BATCHES_BEFORE_PUBLISH: u32 = 32;

pub(crate) struct Task {
    /// Over the whole job.
    number: u32,
    /// Of its chain.
    name: Arc<str>,
    /// Within its chain.
    index: u32,
    body: Box<dyn Body>,
    cut: TaskCut,
    phase: Phase,
    /// The last epoch in which it froze, if its outcome has not been acted on.
    undecided: Option<u64>,
    taken: u64,
    unpublished: u32,
    gauge: Arc<TaskGauge>,
    /// What the gauge shows.
    shown: TaskState,
    hydration: Hydration,
}

impl Task {
    /// Goes on from `epoch`; `hydrates`: it reads restored state ahead of its need.
    pub(crate) fn new(
        number: u32,
        name: Arc<str>,
        index: u32,
        body: Box<dyn Body>,
        epoch: u64,
        hydrates: bool,
    ) -> Self {
        let cut = TaskCut::new(Protocol::Aligned, &vec![InputKind::Forward; body.inputs()], false, epoch);
        let (gauge, shown) = (Arc::<TaskGauge>::default(), TaskState::Idle);
        let (phase, hydration) = (Phase::Reading, Hydration::new(hydrates));
        gauge.show(shown);
        Self {
            number,
            name,
            index,
            body,
            cut,
            phase,
            undecided: None,
            taken: 0,
            unpublished: 0,
            gauge,
            shown,
            hydration,
        }
    }

    /// Over the whole job.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// What it shows of itself.
    pub(crate) fn gauge(&self) -> &Arc<TaskGauge> {
        &self.gauge
    }

    fn show(&mut self, state: TaskState) {
        if self.shown != state {
            self.shown = state;
            self.gauge.show(state);
        }
    }

    /// One step. A panic of user code becomes a failure; both name the place.
    pub(crate) fn step(&mut self, shared: &Shared, events: &Sender<Event>) -> Result<Progress, Box<Failure>> {
        caught(|| self.try_step(shared, events)).map_err(|failed| self.placed(failed))
    }

    /// Whether it waits for something that wakes nobody.
    pub(crate) fn polls(&self) -> bool {
        self.phase == Phase::Reading && self.body.polls()
    }

    /// It is done, and lets go of what it was made of: that is user code too.
    pub(crate) fn leave(self) -> Result<(), Box<Failure>> {
        let Self { name, index, body, .. } = self;
        let dropped = caught(|| {
            drop(body);
            Ok(())
        });
        dropped.map_err(|failed| Box::new(Failure { task: Some(index), ..*failed.at(&name).0 }))
    }

    fn placed(&self, failed: Failed) -> Box<Failure> {
        let mut failure = failed.at(&self.name).0;
        failure.task.get_or_insert(self.index);
        failure.epoch.get_or_insert(self.cut.frozen() + 1);
        // Some operators take in several before they look at the first.
        failure.record.get_or_insert(self.taken.saturating_sub(take_left()));
        failure.text = failure.text.take().or_else(|| self.body.text());
        failure
    }

    /// The task has failed, and the reason is known: tells all neighbours.
    pub(crate) fn poison(&mut self) {
        self.body.poison();
    }

    fn try_step(&mut self, shared: &Shared, events: &Sender<Event>) -> Result<Progress, Failed> {
        self.follow_epochs(shared, events)?;
        if !self.body.link().flush() {
            if self.phase != Phase::Leaving {
                self.show(TaskState::BlockedByOutput);
            }
            return if self.body.link().is_broken() { Self::broken(shared) } else { Ok(Progress::None) };
        }
        match self.phase {
            Phase::Reading => self.read(shared, events),
            Phase::Emitting => {
                self.show(TaskState::Busy);
                if self.body.link().end()? == Progress::Done {
                    self.phase = Phase::Finishing;
                }
                Ok(Progress::Made)
            }
            Phase::Finishing => self.finish(shared, events),
            Phase::Leaving => Ok(Progress::Done),
        }
    }

    fn follow_epochs(&mut self, shared: &Shared, events: &Sender<Event>) -> Result<(), Failed> {
        self.cut.aborted_to(shared.aborted_to());
        // Its final snapshot stands for it, or is about to: where epochs follow each other without a pause, a task that
        // froze in each of them instead would never finish.
        if self.phase == Phase::Leaving || self.may_finish(shared) {
            return Ok(());
        }
        let cut = self.cut.requested(shared.requested());
        self.act(cut, shared, events)
    }

    fn read(&mut self, shared: &Shared, events: &Sender<Event>) -> Result<Progress, Failed> {
        match self.body.poll(&self.cut, &mut self.taken)? {
            Took::Records => {
                self.show(TaskState::Busy);
                self.gauge.took_batch(self.taken);
                self.unpublished += 1;
                // Nothing more to read: what there is goes now, not when the next step finds the same.
                if self.unpublished >= BATCHES_BEFORE_PUBLISH || !self.body.is_ready(&self.cut) {
                    self.publish()?;
                }
                if self.hydration.is_due() {
                    self.hydrate()?;
                }
            }
            Took::Mark(input, Mark::Barrier(epoch)) => {
                let cut = self.cut.barrier(input, epoch);
                self.act(cut, shared, events)?;
            }
            Took::Mark(input, Mark::End) => {
                let cut = self.cut.ended(input);
                self.act(cut, shared, events)?;
                if self.cut.all_ended() {
                    self.phase = Phase::Emitting;
                }
            }
            // No operator tells the time of events yet.
            Took::Mark(_, Mark::Watermark(_) | Mark::Lap(_)) => {}
            Took::Ended => self.phase = Phase::Emitting,
            Took::Nothing => {
                self.publish()?;
                self.show(if self.cut.is_aligning() { TaskState::BlockedByAlignment } else { TaskState::Idle });
                if self.hydration.is_done() {
                    return Ok(Progress::None);
                }
                self.hydrate()?;
            }
            Took::Broken => return Self::broken(shared),
        }
        Ok(Progress::Made)
    }

    /// A neighbour has gone. The one that failed has said why before; any other must not go unnoticed.
    fn broken(shared: &Shared) -> Result<Progress, Failed> {
        if shared.is_stopping() { Ok(Progress::None) } else { Err(Cause::NeighbourGone.into()) }
    }

    /// Reads a page of each state ahead of its need.
    fn hydrate(&mut self) -> Result<(), Failed> {
        let mut done = true;
        self.body.visit(&mut |stateful| {
            done &= stateful.hydrate().map_err(|failed| failed.at(stateful.name()))?;
            Ok(())
        })?;
        self.hydration.note(done);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), Failed> {
        self.unpublished = 0;
        self.body.link().publish()
    }

    fn act(&mut self, cut: Cut, shared: &Shared, events: &Sender<Event>) -> Result<(), Failed> {
        let Cut::Freeze(epoch) = cut else { return Ok(()) };
        let snapshot = self.freeze(epoch, shared)?;
        self.body.link().mark(Mark::Barrier(epoch));
        self.report(events, Event::Snapshot { task: self.number, epoch, snapshot });
        Ok(())
    }

    fn finish(&mut self, shared: &Shared, events: &Sender<Event>) -> Result<Progress, Failed> {
        if !self.may_finish(shared) {
            self.show(TaskState::Idle);
            return Ok(Progress::None);
        }
        let snapshot = self.freeze(shared.closed_to() + 1, shared)?;
        self.report(events, Event::Finished { task: self.number, snapshot });
        self.body.link().mark(Mark::End);
        self.phase = Phase::Leaving;
        self.show(TaskState::Finished);
        Ok(Progress::Made)
    }

    /// Rule 9; the outbox is the caller's to look at.
    fn may_finish(&self, shared: &Shared) -> bool {
        self.phase == Phase::Finishing && self.cut.may_finish(shared.closed_to())
    }

    fn freeze(&mut self, epoch: u64, shared: &Shared) -> Result<TaskSnapshot, Failed> {
        let mut snapshot = TaskSnapshot::default();
        if !shared.checkpointing {
            return Ok(snapshot);
        }
        // At most one epoch is under way, and none can become durable without this task: the word tells of just this one.
        let settled = self.undecided.replace(epoch).map(|last| shared.durable_to() >= last);
        let full = shared.is_full(epoch);
        self.body.visit(&mut |stateful| {
            if let Some(durable) = settled {
                stateful.settle(durable);
            }
            if full {
                stateful.forget()?;
            }
            let frozen = stateful.freeze(epoch)?;
            snapshot.entries.extend(frozen.entries);
            snapshot.parts.extend(frozen.part.map(|part| (stateful.name().into(), part)));
            Ok(())
        })?;
        Ok(snapshot)
    }

    fn report(&self, events: &Sender<Event>, event: Event) {
        // Nobody listens any more only when the job is being stopped.
        let _ = events.send(event);
    }
}
