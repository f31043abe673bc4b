//! The coordinator's times, merges and ends, one sentence a test.

use snapring::checkpoint::{Action, Coordinator, Protocol, Timing};

const EVERY_100: Timing = Timing { interval_ns: Some(100), timeout_ns: Some(1000), unaligned_after_ns: None };
const ON_DEMAND: Timing = Timing { interval_ns: None, timeout_ns: None, unaligned_after_ns: None };

fn complete(coordinator: &mut Coordinator, tasks: usize, epoch: u64) -> Option<Action> {
    let last = (0..tasks).map(|task| coordinator.snapshot(task, epoch)).last();
    last.flatten()
}

#[test]
fn the_interval_runs_from_begin_to_begin() {
    let mut c = Coordinator::new(Protocol::Aligned, 1, 0, EVERY_100, 1000);
    assert_eq!((c.due_ns(), c.tick(1099)), (Some(1100), None));
    assert_eq!(c.tick(1130), Some(Action::Begin(1)));
    assert_eq!(complete(&mut c, 1, 1), Some(Action::Commit(1)));
    c.durable(1);
    assert_eq!((c.due_ns(), c.tick(1229)), (Some(1230), None));
    assert_eq!(c.tick(1230), Some(Action::Begin(2)));
}

#[test]
fn the_next_epoch_waits_until_the_last_is_closed() {
    let mut c = Coordinator::new(Protocol::Aligned, 2, 0, EVERY_100, 0);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!(c.tick(250), None);
    assert_eq!(c.snapshot(0, 1), None);
    assert_eq!(c.snapshot(1, 1), Some(Action::Commit(1)));
    assert_eq!((c.due_ns(), c.tick(5000), c.closed_to()), (None, None, 0));
    c.durable(1);
    assert_eq!(c.closed_to(), 1);
    assert_eq!(c.tick(5000), Some(Action::Begin(2)), "overdue: at once");
}

#[test]
fn without_an_interval_nothing_begins_unasked() {
    let mut c = Coordinator::new(Protocol::Aligned, 1, 7, ON_DEMAND, 0);
    assert_eq!((c.due_ns(), c.tick(u64::MAX)), (None, None));
    assert_eq!(c.demand(), 8);
    assert_eq!(c.tick(3), Some(Action::Begin(8)));
    assert_eq!(c.tick(u64::MAX), None, "no time-out either");
}

#[test]
fn demands_merge_and_one_during_an_epoch_gets_the_next() {
    let mut c = Coordinator::new(Protocol::Aligned, 1, 0, ON_DEMAND, 0);
    assert_eq!((c.demand(), c.demand()), (1, 1));
    assert_eq!(c.tick(0), Some(Action::Begin(1)));
    assert_eq!((c.demand(), c.demand(), c.tick(0)), (2, 2, None));
    assert_eq!(complete(&mut c, 1, 1), Some(Action::Commit(1)));
    assert_eq!(c.demand(), 2);
    c.durable(1);
    assert_eq!(c.tick(0), Some(Action::Begin(2)));
    assert_eq!(complete(&mut c, 1, 2), Some(Action::Commit(2)));
    c.durable(2);
    assert_eq!(c.tick(0), None, "every demand is answered");
}

#[test]
fn an_epoch_that_takes_too_long_is_given_up_and_its_number_is_not_used_again() {
    let mut c = Coordinator::new(Protocol::Aligned, 2, 0, EVERY_100, 0);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!(c.snapshot(0, 1), None);
    assert_eq!((c.due_ns(), c.tick(1099)), (Some(1100), None));
    assert_eq!(c.tick(1100), Some(Action::Abort(1)));
    assert_eq!(c.closed_to(), 1);
    assert_eq!(c.snapshot(1, 1), None, "too late");
    assert_eq!(c.tick(1100), Some(Action::Begin(2)));
    assert_eq!(c.snapshot(1, 2), None, "a snapshot of epoch 1 does not count for 2");
    assert_eq!(c.snapshot(0, 2), Some(Action::Commit(2)));
    assert_eq!(c.tick(u64::MAX), None, "a commit is not cut short");
}

#[test]
fn a_declined_epoch_is_given_up_and_the_job_goes_on() {
    let mut c = Coordinator::new(Protocol::Aligned, 1, 0, EVERY_100, 0);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!(c.declined(1), Some(Action::Abort(1)), "a task could not prepare");
    assert_eq!(c.declined(1), None, "heard twice");
    assert_eq!(c.tick(200), Some(Action::Begin(2)));
    assert_eq!(complete(&mut c, 1, 2), Some(Action::Commit(2)));
    assert_eq!(c.declined(2), Some(Action::Abort(2)), "the disk is full");
    assert_eq!(c.tick(300), Some(Action::Begin(3)));
}

#[test]
fn finished_tasks_stand_in_the_epoch_under_way_and_later() {
    let mut c = Coordinator::new(Protocol::Aligned, 3, 0, EVERY_100, 0);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!((c.snapshot(1, 1), c.finished(0)), (None, None));
    assert_eq!(c.snapshot(2, 1), Some(Action::Commit(1)));
    c.durable(1);
    assert_eq!(c.tick(200), Some(Action::Begin(2)));
    assert_eq!(c.snapshot(1, 2), None);
    assert_eq!(c.finished(2), Some(Action::Commit(2)), "the one that was missing finished");
    c.durable(2);
    assert!(!c.is_over());
}

#[test]
fn the_last_checkpoint_is_made_of_final_snapshots() {
    let mut c = Coordinator::new(Protocol::Aligned, 2, 3, ON_DEMAND, 0);
    assert_eq!(c.finished(1), None);
    assert_eq!(c.finished(0), Some(Action::Commit(4)));
    assert_eq!((c.demand(), c.tick(9)), (4, None), "the last one answers");
    c.durable(4);
    assert!(c.is_over() && c.closed_to() == 4 && c.tick(u64::MAX).is_none());
    assert_eq!(c.demand(), 4);
}

#[test]
fn an_epoch_that_nobody_froze_in_becomes_the_last() {
    let mut c = Coordinator::new(Protocol::Aligned, 2, 0, EVERY_100, 0);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!(c.finished(1), None);
    assert_eq!(c.finished(0), Some(Action::Commit(1)));
    c.durable(1);
    assert!(c.is_over());
}

#[test]
fn a_last_checkpoint_that_fails_fails_the_job() {
    let mut c = Coordinator::new(Protocol::Aligned, 1, 0, ON_DEMAND, 0);
    assert_eq!(c.finished(0), Some(Action::Commit(1)));
    assert_eq!(c.declined(1), Some(Action::Fail(1)));
    assert!(c.is_over());
}

#[test]
#[should_panic(expected = "finished while it was Frozen")]
fn finishing_in_an_epoch_under_way_is_a_fault_of_the_shell() {
    let mut c = Coordinator::new(Protocol::Aligned, 2, 0, EVERY_100, 0);
    let _ = c.tick(100);
    let _ = c.snapshot(0, 1);
    let _ = c.finished(0);
}

const TO_UNALIGNED: Timing = Timing { interval_ns: Some(100), timeout_ns: Some(1000), unaligned_after_ns: Some(50) };

#[test]
fn an_epoch_that_takes_long_is_timed_out_once() {
    let mut c = Coordinator::new(Protocol::AlignedThenUnaligned, 1, 0, TO_UNALIGNED, 0);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!((c.due_ns(), c.tick(149)), (Some(150), None));
    assert_eq!(c.tick(150), Some(Action::TimeOut(1)));
    assert_eq!((c.due_ns(), c.tick(1099)), (Some(1100), None), "once");
    assert_eq!(c.tick(1100), Some(Action::Abort(1)));
    assert_eq!(c.tick(1100), Some(Action::Begin(2)));
    assert_eq!(c.due_ns(), Some(1150), "the next one anew");
    assert_eq!(c.tick(5000), Some(Action::Abort(2)), "both are overdue: there is no point in going on");
}

#[test]
fn only_aligned_then_unaligned_times_out() {
    let mut c = Coordinator::new(Protocol::Aligned, 1, 0, TO_UNALIGNED, 0);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!((c.due_ns(), c.tick(150)), (Some(1100), None));
    let never = Timing { unaligned_after_ns: None, timeout_ns: None, ..TO_UNALIGNED };
    let mut c = Coordinator::new(Protocol::AlignedThenUnaligned, 1, 0, never, 0);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!((c.due_ns(), c.tick(u64::MAX)), (None, None));
}

#[test]
fn the_world_stops_before_anybody_freezes() {
    let mut c = Coordinator::new(Protocol::StopTheWorld, 3, 0, EVERY_100, 0);
    assert_eq!(c.finished(2), None);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!(c.paused(0, 1), None);
    assert_eq!(c.paused(1, 1), Some(Action::Release(1)), "who has finished need not pause");
    assert_eq!((c.snapshot(1, 1), c.closed_to()), (None, 0));
    assert_eq!(c.snapshot(0, 1), Some(Action::Commit(1)));
    c.durable(1);
    assert_eq!(c.tick(140), None);
    assert_eq!(c.tick(200), Some(Action::Begin(2)));
    assert_eq!(c.paused(1, 2), None);
    assert_eq!(c.finished(0), Some(Action::Release(2)), "nor who finishes meanwhile");
    assert_eq!(c.snapshot(1, 2), Some(Action::Commit(2)));
}

#[test]
fn a_world_that_does_not_stop_in_time_goes_on() {
    let mut c = Coordinator::new(Protocol::StopTheWorld, 2, 0, EVERY_100, 0);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!(c.paused(0, 1), None);
    assert_eq!(c.tick(1100), Some(Action::Abort(1)));
    assert_eq!(c.paused(1, 1), None, "too late");
    assert_eq!((c.tick(1100), c.tick(2099), c.tick(2100)), (None, None, Some(Action::Begin(2))));
    assert_eq!((c.paused(0, 2), c.declined(2)), (None, Some(Action::Abort(2))));
}

#[test]
fn the_world_turns_for_as_long_as_it_stood_still_unless_somebody_demands_a_stop() {
    let mut c = Coordinator::new(Protocol::StopTheWorld, 1, 0, EVERY_100, 0);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!(c.paused(0, 1), Some(Action::Release(1)));
    assert_eq!(c.snapshot(0, 1), Some(Action::Commit(1)));
    c.durable(1);
    assert_eq!((c.tick(350), c.due_ns(), c.tick(599)), (None, Some(600), None), "it stood still from 100 to 350");
    assert_eq!(c.tick(600), Some(Action::Begin(2)));
    assert_eq!(c.declined(2), Some(Action::Abort(2)));
    assert_eq!((c.tick(800), c.due_ns()), (None, Some(1000)));
    assert_eq!(c.demand(), 3);
    assert_eq!(c.tick(801), Some(Action::Begin(3)));
}

#[test]
fn a_world_that_ends_instead_of_stopping_makes_its_last_checkpoint() {
    let mut c = Coordinator::new(Protocol::StopTheWorld, 2, 0, EVERY_100, 0);
    assert_eq!(c.tick(100), Some(Action::Begin(1)));
    assert_eq!((c.finished(0), c.finished(1)), (None, Some(Action::Commit(1))));
}

#[test]
#[should_panic(expected = "finished while it was Paused")]
fn a_paused_task_holds_still() {
    let mut c = Coordinator::new(Protocol::StopTheWorld, 2, 0, EVERY_100, 0);
    let _ = c.tick(100);
    let _ = c.paused(0, 1);
    let _ = c.finished(0);
}

#[test]
#[should_panic(expected = "before all had paused")]
fn freezing_before_the_world_has_stopped_is_a_fault_of_the_shell() {
    let mut c = Coordinator::new(Protocol::StopTheWorld, 2, 0, EVERY_100, 0);
    let _ = c.tick(100);
    let _ = c.snapshot(0, 1);
}
