//! A worker: a thread that steps its tasks, one after the other, for as long as there are any.

use super::coordinator::Event;
use super::gauges::Pulse;
use super::shared::Shared;
use super::task::Task;
use crate::channel::Idle;
use crate::error::Failure;
use crate::operator::Progress;
use std::sync::mpsc::Sender;

/// Runs tasks until all are done, one fails, or the job is stopped.
pub(crate) fn work(tasks: Vec<Task>, shared: &Shared, events: &Sender<Event>, pulse: &Pulse, mut idle: Idle) {
    let mut crew = Crew { tasks, cut_to: shared.requested(), shared, events, pulse };
    while !crew.tasks.is_empty() && !shared.is_stopping() {
        if crew.duty_cycle() {
            idle.reset();
            shared.wake();
        } else {
            pulse.rest();
            // Whoever was just falling asleep while this worker was busy has been missed.
            if idle.is_fresh() {
                idle.polls(crew.tasks.iter().any(Task::polls));
                shared.wake_surely();
            }
            idle.wait();
        }
    }
    // That is user code too, and comes after the first failure, if there is one: nobody needs to hear of it.
    for task in crew.tasks {
        pulse.step(task.number());
        let _ = task.leave();
    }
    pulse.gone();
}

/// The tasks of a worker.
struct Crew<'a> {
    tasks: Vec<Task>,
    /// The newest epoch that they have been told of.
    cut_to: u64,
    shared: &'a Shared,
    events: &'a Sender<Event>,
    pulse: &'a Pulse,
}

impl Crew<'_> {
    /// One pass over the tasks: whether any of them did something.
    fn duty_cycle(&mut self) -> bool {
        let mut made = false;
        let mut at = 0;
        while at < self.tasks.len() && self.tell_of_epoch() {
            let task = &mut self.tasks[at];
            self.pulse.step(task.number());
            match task.step(self.shared, self.events) {
                Ok(Progress::Done) => {
                    made = true;
                    if let Err(failure) = self.tasks.remove(at).leave() {
                        self.fail(failure);
                        break;
                    }
                }
                Ok(progress) => {
                    made |= progress == Progress::Made;
                    at += 1;
                }
                Err(failure) => {
                    self.fail(failure);
                    self.tasks[at].poison();
                    break;
                }
            }
        }
        made
    }

    /// If an epoch has begun: between two batches all tasks are at a boundary, so those that may are cut in one go (protocols,
    /// rule 5), and not each when its turn comes. False: one has failed.
    fn tell_of_epoch(&mut self) -> bool {
        let requested = self.shared.requested();
        if requested == self.cut_to {
            return true;
        }
        self.cut_to = requested;
        for at in 0..self.tasks.len() {
            self.pulse.step(self.tasks[at].number());
            if let Err(failure) = self.tasks[at].begin_epoch(self.shared, self.events) {
                self.fail(failure);
                self.tasks[at].poison();
                return false;
            }
        }
        true
    }

    /// The reason first, then the word, then the rings: whoever meets one of those finds the word, and the coordinator the
    /// reason. The rings are the caller's.
    fn fail(&self, failure: Box<Failure>) {
        let _ = self.events.send(Event::Failed(failure));
        self.shared.stop();
    }
}
