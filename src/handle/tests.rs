//! The handles alone, with the tasks' ends in the test's hands: every turn that an attempt of the job can take.

use super::*;
use crate::channel::{Consumer, Outbox, Polled, Wakers, ring};
use crate::marks::Mark;
use port::Coming;
use std::sync::Arc;
use std::time::Duration;

fn input() -> (Arc<InputPort<u32>>, Input<u32>) {
    let port = Arc::new(InputPort::new(Arc::default()));
    (port.clone(), Input::new("in", port))
}

/// An attempt that wants the records from `from` on.
fn attempt(port: &InputPort<u32>, from: u64) -> Consumer<u32> {
    let (producer, consumer) = ring(2, 2);
    port.begin(Some(producer), from, Arc::new(Wakers::default()));
    consumer
}

fn taken(ring: &mut Consumer<u32>) -> Vec<u32> {
    let mut all = Vec::new();
    while let Polled::Records(records) = ring.poll() {
        all.extend(records);
    }
    all
}

#[test]
fn what_finds_no_room_comes_back() {
    let (port, mut input) = input();
    assert_eq!((input.push(7), input.position()), (Err(PushError::Full(7)), None), "the job has not started");
    let mut ring = attempt(&port, 0);
    assert_eq!(input.position(), Some(0));
    input.push(0).unwrap();
    input.push(1).unwrap();
    assert_eq!(input.push(2), Err(PushError::Full(2)), "each went in a slot of its own, at once");
    assert!(!input.wait(Duration::ZERO));
    assert_eq!(taken(&mut ring), [0, 1]);
    assert!(input.wait(Duration::ZERO));
    let mut more = 2..9;
    assert_eq!(input.push_batch(&mut more), Ok(4));
    assert_eq!((input.push_batch(&mut more), more), (Err(PushError::Full(())), 6..9));
    assert_eq!((taken(&mut ring), input.position()), (vec![2, 3, 4, 5], Some(6)));
}

#[test]
fn a_restart_says_from_where_to_push_again_once() {
    let (port, mut input) = input();
    let first = attempt(&port, 0);
    (0..2).for_each(|n| input.push(n).unwrap());
    drop(first);
    assert_eq!(input.push(2), Err(PushError::Full(2)), "between two attempts");
    let mut second = attempt(&port, 1);
    assert_eq!(input.push(2), Err(PushError::Rewound { from: 1, record: 2 }));
    input.push(1).unwrap();
    assert_eq!((taken(&mut second), input.position()), (vec![1], Some(2)));
    drop(second);
    let mut third = attempt(&port, 2);
    assert_eq!((input.push(2), taken(&mut third)), (Ok(()), vec![2]), "nothing to push again is no news");
}

#[test]
fn a_restore_says_where_to_begin() {
    let (port, mut input) = input();
    let mut ring = attempt(&port, 1_000);
    assert_eq!(input.position(), Some(1_000));
    input.push(5).unwrap();
    assert_eq!(taken(&mut ring), [5]);
    drop(ring);
    let _unasked = attempt(&port, 1_001);
    assert_eq!(input.push(6), Ok(()));

    let (port, mut input) = self::input();
    let _ring = attempt(&port, 1_000);
    assert_eq!(input.push(5), Err(PushError::Rewound { from: 1_000, record: 5 }), "who does not ask is told");
}

#[test]
fn the_end_comes_behind_everything_and_can_be_taken_back() {
    let (port, mut input) = input();
    let first = attempt(&port, 0);
    (0..2).for_each(|n| input.push(n).unwrap());
    assert_eq!((port.coming(2), port.coming(1)), (Coming::Open, Coming::Open));
    input.close().unwrap();
    assert_eq!((port.coming(2), port.coming(1)), (Coming::Ended, Coming::Open));
    assert!(matches!(input.push(9), Err(PushError::Closed { error: None, record: 9 })));
    assert!(matches!(input.close(), Err(PushError::Closed { .. })));
    drop(first);
    let mut second = attempt(&port, 1);
    assert_eq!(input.close(), Err(PushError::Rewound { from: 1, record: () }));
    assert_eq!(port.coming(2), Coming::Open, "the end has been taken back");
    input.push(1).unwrap();
    input.close().unwrap();
    assert_eq!((taken(&mut second), port.coming(2)), (vec![1], Coming::Ended));
    drop(second);
    let _third = attempt(&port, 2);
    assert!(matches!(input.push(2), Err(PushError::Closed { .. })), "nothing is wanted again: it stays closed");
}

#[test]
fn dropping_the_handle_leaves_the_input_open_unless_something_is_wanted_again() {
    let (port, mut input) = input();
    let _ring = attempt(&port, 3);
    assert_eq!(input.position(), Some(3));
    input.push(3).unwrap();
    drop(input);
    assert_eq!((port.coming(4), port.coming(3)), (Coming::Open, Coming::Lost(4)));

    let (port, mut unused) = self::input();
    unused.close().unwrap();
    drop(unused);
    assert_eq!(port.coming(1_000), Coming::Ended, "closed before it knew where the job goes on");

    let (port, input) = self::input();
    let panicked = std::thread::spawn(move || {
        let _input = input;
        std::panic::resume_unwind(Box::new("pusher"));
    });
    assert!(panicked.join().is_err());
    assert_eq!(port.coming(0), Coming::Panicked);
}

#[test]
fn what_is_durable_is_never_asked_for_again() {
    let (port, mut input) = input();
    assert_eq!(input.durable_position(), 0);
    let ring = attempt(&port, 3);
    assert_eq!((input.position(), input.durable_position()), (Some(3), 3));
    port.outside.durable(6);
    for (epoch, number, durable) in [(7, 10, 3), (8, 15, 3), (9, 20, 10)] {
        port.froze(epoch, number);
        assert_eq!(input.durable_position(), if epoch == 9 { 10 } else { durable });
        if epoch == 8 {
            port.outside.durable(7);
        }
    }
    port.outside.durable(9);
    assert_eq!(input.durable_position(), 20);
    drop(ring);
    let _next = attempt(&port, 20);
    assert_eq!(input.durable_position(), 20);
}

#[test]
fn the_first_error_closes_the_input() {
    let (port, mut input) = input();
    let ring = attempt(&port, 0);
    drop(ring);
    port.outside.over(Some("operator `x`: oh".to_owned()));
    let error = input.push(1).unwrap_err();
    assert_eq!((error.to_string(), error.into_record()), ("the input is closed: operator `x`: oh".to_owned(), 1));
    assert!(input.wait(Duration::from_secs(9)), "that is news");
}

fn output() -> (Arc<OutputPort<u32>>, Output<u32>) {
    let port = Arc::new(OutputPort::new(Arc::default()));
    (port.clone(), Output::new(port))
}

/// A task's end of a ring, which it leaves as `operator::Delivering` does.
struct Task {
    outbox: Outbox<u32>,
    port: Arc<OutputPort<u32>>,
    ring: u64,
}

impl Task {
    fn new(port: &Arc<OutputPort<u32>>) -> Self {
        let (producer, consumer) = ring(2, 2);
        Self { outbox: Outbox::new(vec![producer], 1 << 20), port: port.clone(), ring: port.add(consumer) }
    }
    fn emit(&mut self, record: u32) {
        self.outbox.emit(0, record).unwrap();
    }
    fn mark(&mut self, mark: Mark) {
        self.outbox.mark_all(mark);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.port.leave(self.ring, self.outbox.take_leftovers(0));
    }
}

/// Everything that there is now: each record with its epoch, in brackets if it may repeat; and what is told.
fn polled(output: &mut Output<u32>) -> String {
    let mut all = String::new();
    loop {
        match output.poll() {
            Ok(None) => return all,
            Ok(Some(Received { record, epoch, may_repeat })) => {
                all += &if may_repeat { format!("({record}/{epoch}) ") } else { format!("{record}/{epoch} ") };
            }
            Err(OutputError::Rewound { epoch }) => all += &format!("back to {epoch} "),
            Err(OutputError::Closed { error }) => return all + &format!("closed {error:?}"),
        }
    }
}

#[test]
fn each_result_tells_its_epoch_and_whether_it_may_repeat() {
    let (port, mut output) = output();
    assert_eq!(polled(&mut output), "");
    port.begin(4, Arc::default(), 1);
    let mut task = Task::new(&port);
    task.emit(1);
    task.mark(Mark::Barrier(5));
    assert_eq!(polled(&mut output), "(1/5) ");
    task.emit(2);
    task.mark(Mark::Barrier(6));
    port.outside.durable(6);
    assert_eq!(polled(&mut output), "2/6 ");
    task.emit(3);
    task.mark(Mark::End);
    assert_eq!(polled(&mut output), "(3/7) ");
    assert_eq!(output.poll(), Ok(None), "the last epoch is not durable yet");
    port.outside.over(None);
    assert_eq!(output.poll(), Err(OutputError::Closed { error: None }));
}

#[test]
fn a_batch_lends_its_records_in_place_or_from_what_is_left_of_one() {
    let (port, mut output) = output();
    port.begin(0, Arc::default(), 1);
    let mut task = Task::new(&port);
    (1..=4).for_each(|n| task.emit(n));
    assert_eq!(output.poll().unwrap().unwrap().record, 1);
    let batch = output.poll_batch().unwrap().unwrap();
    assert_eq!((batch.len(), batch.epoch(), batch.may_repeat()), (1, 1, true));
    assert_eq!(batch.collect::<Vec<_>>(), [2]);
    assert_eq!(output.poll_batch().unwrap().unwrap().collect::<Vec<_>>(), [3, 4]);
    assert!(output.poll_batch().unwrap().is_none() && !output.wait(Duration::ZERO));
}

#[test]
fn after_a_restart_what_was_durable_comes_once_and_the_rest_again() {
    let (port, mut output) = output();
    port.begin(0, Arc::default(), 2);
    let mut tasks = [Task::new(&port), Task::new(&port)];
    // The ring has two slots: the second batch and the barriers wait in the outbox.
    for (at, task) in tasks.iter_mut().enumerate() {
        (0..6).for_each(|n| task.emit(10 * at as u32 + n));
        task.mark(Mark::Barrier(1));
        task.emit(10 * at as u32 + 6);
    }
    port.outside.durable(1);
    drop(tasks);
    port.begin(1, Arc::default(), 1);
    let mut task = Task::new(&port);
    task.emit(6);
    task.outbox.publish();
    assert_eq!(
        polled(&mut output),
        "0/1 1/1 10/1 11/1 2/1 3/1 12/1 13/1 4/1 5/1 14/1 15/1 back to 2 (6/2) ",
        "what waited behind the last barrier is made again, what waited ahead of it is not"
    );
}

#[test]
fn an_epoch_that_failed_is_not_durable_when_another_of_its_number_is() {
    let (port, mut output) = output();
    port.begin(0, Arc::default(), 1);
    let mut task = Task::new(&port);
    (1..3).for_each(|n| {
        task.emit(n);
        task.outbox.publish();
    });
    assert_eq!(output.poll().unwrap().unwrap().record, 1, "whoever holds it back until its epoch is durable …");
    drop(task);
    port.begin(0, Arc::default(), 1);
    let mut task = Task::new(&port);
    task.emit(8);
    task.mark(Mark::Barrier(1));
    port.outside.durable(1);
    assert_eq!(output.durable_epoch(), 0, "… does not take it for final");
    assert_eq!(polled(&mut output), "(2/1) back to 1 8/1 ");
    assert_eq!(output.durable_epoch(), 1);
}

#[test]
fn an_attempt_is_there_when_all_its_tasks_are() {
    let (port, mut output) = output();
    port.begin(0, Arc::default(), 2);
    let mut first = Task::new(&port);
    first.emit(1);
    first.outbox.publish();
    assert_eq!((polled(&mut output), output.wait(Duration::ZERO)), (String::new(), false));
    // The second cannot be made.
    drop(first);
    port.begin(0, Arc::default(), 2);
    let mut tasks = [Task::new(&port), Task::new(&port)];
    for (at, task) in tasks.iter_mut().enumerate() {
        task.emit(at as u32);
        task.outbox.publish();
    }
    assert_eq!(polled(&mut output), "(0/1) (1/1) ");
}

#[test]
fn a_handle_that_is_dropped_holds_nobody_up() {
    let (port, output) = output();
    port.begin(0, Arc::default(), 1);
    let mut task = Task::new(&port);
    (0..9).for_each(|n| task.emit(n));
    assert!(!task.outbox.flush() && !task.outbox.is_forsaken());
    assert_eq!(polled(&mut { output }), "(0/1) (1/1) (2/1) (3/1) ");
    assert!(task.outbox.is_forsaken());
    task.outbox.drop_leftovers();
    assert!(task.outbox.flush());
}

#[test]
fn that_a_job_has_begun_is_no_reason_to_end_a_wait() {
    let (port, mut output) = output();
    port.begin(0, Arc::default(), 1);
    let mut task = Task::new(&port);
    assert!(!output.wait(Duration::ZERO), "nothing to poll");
    task.emit(1);
    task.outbox.publish();
    assert!(output.wait(Duration::ZERO));
    assert_eq!(polled(&mut output), "(1/1) ");
    port.outside.over(None);
    assert!(output.wait(Duration::ZERO), "the end");
}
