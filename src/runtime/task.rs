//! A task: the thing that runs. It reads a batch at a time, follows the epochs, emits what is left when its input has
//! ended, and finishes. What flows through it, it does not know: that is its [`Body`].
//!
//! The rules it keeps (numbers as in the project's protocols):
//!
//! - **3.** A cut falls between two batches or between two portions of a long emission: each step is one of these.
//! - **4.** While leftovers wait, nothing is read; cuts, aborts, flushing and the draining of back edges go on.
//! - **9.** It finishes when all is emitted, its outbox is empty and no epoch in which it has frozen is under way. Its
//!   final snapshot goes to the coordinator before End goes to its consumers.
//! - **24.** While it pauses for an epoch that stops the world, it does nothing at all.
//! - **31.** The head of a loop stays until End has come round. A record that is to go round after the loop has ended is an
//!   error, told by who emits it: when it arrives nobody may be there any more.

use super::body::{Body, Took};
use super::component::Component;
use super::coordinator::{Event, TaskSnapshot};
use super::gauges::{TaskGauge, TaskState};
use super::hydration::Hydration;
use super::panics::caught;
use super::rounds::Rounds;
use super::shared::Shared;
use super::viewing::TaskView;
use crate::checkpoint::{Protocol, TaskCut};
use crate::error::{Failed, Failure};
use crate::marks::Mark;
use crate::operator::{Progress, take_left};
use std::sync::Arc;
use std::sync::mpsc::Sender;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
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

/// Which task it is.
pub(crate) struct TaskPlace {
    /// Over the whole job.
    pub(crate) number: u32,
    /// Of its chain.
    pub(crate) name: Arc<str>,
    /// Within its chain.
    pub(crate) index: u32,
}

/// How a task is cut, and how it ends.
pub(crate) struct TaskRules {
    pub(crate) protocol: Protocol,
    /// It takes epochs from the word.
    pub(crate) initiates: bool,
    /// The epoch that it goes on from.
    pub(crate) epoch: u64,
    /// The loop that it is part of.
    pub(crate) component: Option<Arc<Component>>,
}

pub(crate) struct Task {
    /// Over the whole job.
    pub(super) number: u32,
    /// Of its chain.
    name: Arc<str>,
    /// Within its chain.
    index: u32,
    pub(super) body: Box<dyn Body>,
    pub(super) protocol: Protocol,
    pub(super) cut: TaskCut,
    /// The loop that it is part of.
    rounds: Option<Rounds>,
    pub(super) phase: Phase,
    /// The snapshot of the epoch in which it froze last, until its logs are complete.
    pub(super) pending: Option<(u64, TaskSnapshot)>,
    /// The last epoch in which it froze, if its outcome has not been acted on.
    pub(super) undecided: Option<u64>,
    /// It has tried to read since it froze last.
    pub(super) has_moved: bool,
    taken: u64,
    unpublished: u32,
    gauge: Arc<TaskGauge>,
    /// What the gauge shows.
    shown: TaskState,
    hydration: Hydration,
    pub(super) view: TaskView,
}

impl Task {
    /// `hydrates`: it reads restored state ahead of its need.
    pub(crate) fn new(place: TaskPlace, body: Box<dyn Body>, rules: TaskRules, hydrates: bool) -> Self {
        let TaskPlace { number, name, index } = place;
        let TaskRules { protocol, initiates, epoch, component } = rules;
        let cut = TaskCut::new(protocol, &body.inputs(), initiates, epoch);
        let rounds = component.map(|component| Rounds::new(component, &body.inputs(), &body.inside()));
        let (gauge, shown) = (Arc::<TaskGauge>::default(), TaskState::Idle);
        let (phase, hydration) = (Phase::Reading, Hydration::new(hydrates));
        gauge.show(shown);
        Self {
            number,
            name,
            index,
            body,
            protocol,
            cut,
            rounds,
            phase,
            pending: None,
            undecided: None,
            has_moved: true,
            taken: 0,
            unpublished: 0,
            gauge,
            shown,
            hydration,
            view: TaskView::default(),
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
        let stepped = caught(|| {
            let progress = self.try_step(shared, events)?;
            if !self.view.is_under_way() {
                return Ok(progress);
            }
            self.view_on(shared, events)?;
            Ok(Progress::Made)
        });
        stepped.map_err(|failed| self.placed(failed))
    }

    /// An epoch has begun: takes part in it now, if its protocol lets it begin by itself, and not when its turn comes.
    pub(crate) fn begin_epoch(&mut self, shared: &Shared, events: &Sender<Event>) -> Result<(), Box<Failure>> {
        let begun = caught(|| {
            let is_empty = !self.cut.is_paused() && self.body.link().flush();
            self.follow_epochs(shared, events)?;
            self.ask_word(is_empty, shared, events)
        });
        begun.map_err(|failed| self.placed(failed))
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
        let is_empty = !self.cut.is_paused() && self.body.link().flush();
        self.follow_epochs(shared, events)?;
        if self.cut.is_paused() {
            self.show(TaskState::BlockedByAlignment);
            return Ok(Progress::None);
        }
        let cut = match self.phase {
            Phase::Reading => self.body.attend(&mut self.cut, !is_empty)?,
            phase => self.body.absorb(&mut self.cut, phase != Phase::Leaving)?,
        };
        // Once it has handed in its final snapshot, that stands for it.
        if self.phase != Phase::Leaving {
            self.act(cut, shared, events)?;
        }
        self.ask_word(is_empty, shared, events)?;
        self.hand_in(events);
        if self.cut.is_paused() {
            return Ok(Progress::Made);
        }
        if !self.body.link().flush() {
            if self.phase != Phase::Leaving {
                self.show(TaskState::BlockedByOutput);
            }
            if self.body.link().is_broken() {
                shared.check_neighbours()?;
            }
            return Ok(Progress::None);
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
            Phase::Leaving => Ok(if self.cut.all_ended() { Progress::Done } else { Progress::None }),
        }
    }

    fn read(&mut self, shared: &Shared, events: &Sender<Event>) -> Result<Progress, Failed> {
        self.has_moved = true;
        match self.body.poll(&mut self.cut, &mut self.taken)? {
            took @ (Took::Records | Took::InsideRecords) => {
                if let (Took::InsideRecords, Some(rounds)) = (took, &mut self.rounds) {
                    rounds.processed_inside();
                }
                self.took_records(shared)?;
            }
            Took::Mark(input, mark) => self.heed(input, mark, shared, events)?,
            Took::Cut(cut) => self.act(cut, shared, events)?,
            Took::Aside => {}
            Took::Ended => self.begin_to_emit(),
            Took::Nothing => return self.rest(shared),
            Took::Broken => {
                shared.check_neighbours()?;
                return Ok(Progress::None);
            }
        }
        Ok(Progress::Made)
    }

    fn took_records(&mut self, shared: &Shared) -> Result<(), Failed> {
        if self.shown != TaskState::Busy {
            self.show(TaskState::Busy);
            self.body.show_held(&self.cut, false);
        }
        self.gauge.took_batch(self.taken);
        self.unpublished += 1;
        // Nothing more to read: what there is goes now, not when the next step finds the same.
        if self.unpublished >= BATCHES_BEFORE_PUBLISH || !self.body.is_ready(&self.cut) {
            self.publish()?;
        }
        if self.hydration.is_due(|| shared.meter.clock().now_ns()) {
            self.hydrate(shared)?;
        }
        Ok(())
    }

    /// A mark is at the front of an input.
    fn heed(&mut self, input: usize, mark: Mark, shared: &Shared, events: &Sender<Event>) -> Result<(), Failed> {
        match mark {
            Mark::Barrier(epoch) => {
                let cut = self.cut.barrier(input, epoch);
                self.act(cut, shared, events)?;
            }
            Mark::End => {
                let cut = self.cut.ended(input);
                self.act(cut, shared, events)?;
                if let Some(rounds) = &mut self.rounds {
                    rounds.ended(input);
                    self.send_laps(false);
                }
                if self.cut.all_ended() {
                    self.begin_to_emit();
                }
            }
            Mark::Lap(lap) => {
                if let Some(rounds) = &mut self.rounds {
                    rounds.marker(input, lap);
                    self.send_laps(false);
                }
            }
            // No operator tells the time of events yet.
            Mark::Watermark(_) => {}
        }
        Ok(())
    }

    /// There is nothing to read now.
    fn rest(&mut self, shared: &Shared) -> Result<Progress, Failed> {
        self.publish()?;
        let is_aligning = self.cut.is_aligning();
        self.show(if is_aligning { TaskState::BlockedByAlignment } else { TaskState::Idle });
        self.body.show_held(&self.cut, is_aligning || self.rounds.is_some());
        if self.rounds.is_some() && self.go_round() {
            return Ok(Progress::Made);
        }
        if self.hydration.is_done() {
            return Ok(Progress::None);
        }
        self.hydrate(shared)?;
        Ok(Progress::Made)
    }

    /// With nothing to do, a head begins the lap that is due, or ends with its loop. Whether it did.
    fn go_round(&mut self) -> bool {
        if self.rounds.as_ref().is_some_and(Rounds::is_over) {
            self.begin_to_emit();
            return true;
        }
        self.send_laps(true)
    }

    /// All inputs have ended. So has the loop, if the task is in one: what is emitted must not go round in it.
    fn begin_to_emit(&mut self) {
        self.phase = Phase::Emitting;
        if self.rounds.is_some() {
            self.body.link().outgoing(&mut |edge| edge.end_loop());
        }
    }

    /// Sends the markers that are due to whatever is behind in the same loop. Whether any was.
    fn send_laps(&mut self, is_quiet: bool) -> bool {
        let mut sent = false;
        while let Some(lap) = self.rounds.as_mut().and_then(|rounds| rounds.next(is_quiet)) {
            self.body.link().outgoing(&mut |edge| edge.mark_inside(Mark::Lap(lap)));
            sent = true;
        }
        sent
    }

    /// Reads a page of each state ahead of its need.
    fn hydrate(&mut self, shared: &Shared) -> Result<(), Failed> {
        let (mut done, begun_ns) = (true, shared.meter.clock().now_ns());
        self.body.visit(&mut |stateful| {
            done &= stateful.hydrate().map_err(|failed| failed.at(stateful.name()))?;
            Ok(())
        })?;
        self.hydration.note(done, begun_ns, shared.meter.clock().now_ns());
        Ok(())
    }

    pub(super) fn publish(&mut self) -> Result<(), Failed> {
        self.unpublished = 0;
        self.body.link().publish()
    }

    fn finish(&mut self, shared: &Shared, events: &Sender<Event>) -> Result<Progress, Failed> {
        if !self.may_finish(shared) {
            self.show(TaskState::Idle);
            return Ok(Progress::None);
        }
        self.view_to_end(shared, events)?;
        let snapshot = self.freeze(shared.closed_to() + 1, shared)?;
        self.report(events, Event::Finished { task: self.number, snapshot });
        self.body.link().outgoing(&mut |edge| {
            edge.publish_end();
            edge.mark(Mark::End);
        });
        self.phase = Phase::Leaving;
        self.show(TaskState::Finished);
        Ok(Progress::Made)
    }

    /// Rule 9; the outbox is the caller's to look at.
    pub(super) fn may_finish(&self, shared: &Shared) -> bool {
        self.phase == Phase::Finishing && self.cut.may_finish(shared.closed_to())
    }

    pub(super) fn report(&self, events: &Sender<Event>, event: Event) {
        // Nobody listens any more only when the job is being stopped.
        let _ = events.send(event);
    }
}
