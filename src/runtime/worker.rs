//! A worker: a thread that steps its tasks, one after the other, for as long as there are any.

use super::coordinator::Event;
use super::shared::Shared;
use super::task::Task;
use crate::channel::Idle;
use crate::operator::Progress;
use std::sync::mpsc::Sender;

/// Runs tasks until all are done, one fails, or the job is stopped.
pub(crate) fn work(mut tasks: Vec<Task>, shared: &Shared, events: &Sender<Event>, mut idle: Idle) {
    while !tasks.is_empty() && !shared.is_stopping() {
        if duty_cycle(&mut tasks, shared, events) {
            idle.reset();
            shared.wake();
        } else {
            // Whoever was just falling asleep while this worker was busy has been missed.
            if idle.is_fresh() {
                idle.polls(tasks.iter().any(Task::polls));
                shared.wake_surely();
            }
            idle.wait();
        }
    }
    // That is user code too, and comes after the first failure, if there is one: nobody needs to hear of it.
    tasks.into_iter().for_each(|task| drop(task.leave()));
}

/// One pass over the tasks: whether any of them did something.
fn duty_cycle(tasks: &mut Vec<Task>, shared: &Shared, events: &Sender<Event>) -> bool {
    let mut made = false;
    let mut at = 0;
    // The reason first, then the word, then the rings: whoever meets one of those finds the word, and the coordinator the
    // reason.
    let fail = |failure| {
        let _ = events.send(Event::Failed(failure));
        shared.stop();
    };
    while let Some(task) = tasks.get_mut(at) {
        match task.step(shared, events) {
            Ok(Progress::Done) => {
                made = true;
                if let Err(failure) = tasks.remove(at).leave() {
                    fail(failure);
                    break;
                }
            }
            Ok(progress) => {
                made |= progress == Progress::Made;
                at += 1;
            }
            Err(failure) => {
                fail(failure);
                task.poison();
                break;
            }
        }
    }
    made
}
