//! Outbox and inbox: order, limits, fairness.

use super::*;
use crate::error::{Cause, Failed};

/// What one consumer gets, as text: records by number, marks by their first letter.
pub(super) fn drain(consumer: &mut Consumer<u32>) -> String {
    let mut got = String::new();
    loop {
        match consumer.poll() {
            Polled::Records(records) => records.for_each(|n| got += &format!("{n} ")),
            Polled::Mark(Mark::Barrier(epoch)) => got += &format!("B{epoch} "),
            Polled::Mark(Mark::Watermark(at)) => got += &format!("W{at} "),
            Polled::Mark(Mark::Lap(lap)) => got += &format!("L{lap} "),
            Polled::Mark(Mark::End) => got += "E ",
            Polled::Empty => return got,
            Polled::Closed => return got + "closed",
            Polled::Poisoned => return got + "poisoned",
        }
    }
}

fn outbox(lanes: usize, limit_bytes: usize) -> (Outbox<u32>, Vec<Consumer<u32>>) {
    let (producers, consumers) = (0..lanes).map(|_| ring(1, 2)).unzip();
    (Outbox::new(producers, limit_bytes), consumers)
}

#[test]
fn leftovers_and_marks_keep_their_order() {
    let (mut outbox, mut consumers) = outbox(1, 1000);
    outbox.mark_all(Mark::Watermark(0));
    (0..5).for_each(|n| outbox.emit(0, n).unwrap());
    outbox.mark_all(Mark::Barrier(1));
    outbox.mark_all(Mark::Watermark(9));
    (5..8).for_each(|n| outbox.emit(0, n).unwrap());
    outbox.mark_all(Mark::End);
    assert_eq!(outbox.leftover_bytes(), 8 * 4);
    let mut got = String::new();
    while !outbox.flush() {
        outbox.publish();
        got += &drain(&mut consumers[0]);
    }
    assert_eq!(got + &drain(&mut consumers[0]), "W0 0 1 2 3 4 B1 W9 5 6 7 E ");
    assert_eq!(outbox.leftover_bytes(), 0);
}

#[test]
fn nothing_overtakes_leftovers_though_slots_have_become_free() {
    let (mut outbox, mut consumers) = outbox(1, 1000);
    (0..3).for_each(|n| outbox.emit(0, n).unwrap());
    assert_eq!(drain(&mut consumers[0]), "0 1 ");
    outbox.emit(0, 3).unwrap();
    outbox.mark_all(Mark::Barrier(1));
    assert_eq!(drain(&mut consumers[0]), "", "all of it waits for the flush");
    assert!(!outbox.flush());
    assert_eq!(drain(&mut consumers[0]), "2 3 ");
    assert!(outbox.flush());
    assert_eq!(drain(&mut consumers[0]), "B1 ");
}

#[test]
fn a_newer_barrier_takes_the_place_of_one_that_waits_and_of_nothing_else() {
    let (mut outbox, mut consumers) = outbox(1, 1000);
    (0..3).for_each(|n| outbox.emit(0, n).unwrap());
    outbox.mark_all(Mark::Barrier(1));
    outbox.mark_all(Mark::Watermark(9));
    outbox.mark_all(Mark::Barrier(2));
    outbox.emit(0, 3).unwrap();
    outbox.mark_all(Mark::Barrier(3));
    outbox.mark_all(Mark::End);
    outbox.mark_all(Mark::Barrier(4));
    let mut got = String::new();
    while !outbox.flush() {
        outbox.publish();
        got += &drain(&mut consumers[0]);
    }
    assert_eq!(got + &drain(&mut consumers[0]), "0 1 2 W9 B2 3 E ", "nobody reads behind the end");
}

#[test]
fn a_full_lane_holds_up_no_other() {
    let (mut outbox, mut consumers) = outbox(2, 1000);
    for n in 0..4 {
        outbox.emit(0, n).unwrap();
        outbox.emit(1, n + 10).unwrap();
    }
    outbox.mark_all(Mark::End);
    assert_eq!(drain(&mut consumers[1]), "10 11 ");
    assert!(!outbox.flush());
    assert_eq!(drain(&mut consumers[1]), "12 13 ");
    assert!(!outbox.flush());
    assert_eq!(drain(&mut consumers[1]), "E ");
    assert_eq!(outbox.leftover_bytes(), 2 * 4, "lane 0 still waits");
}

#[test]
fn the_limit_counts_all_lanes_and_names_itself() {
    let (mut outbox, _consumers) = outbox(2, 12);
    (0..2).for_each(|n| outbox.emit(0, n).unwrap());
    (0..2).for_each(|n| outbox.emit(1, n).unwrap());
    outbox.emit(0, 2).unwrap();
    outbox.emit(1, 2).unwrap();
    outbox.emit(0, 3).unwrap();
    let Err(Failed(failure)) = outbox.emit(1, 3) else { panic!("the limit is 3 records") };
    assert!(matches!(failure.cause, Cause::OutboxFull { limit_bytes: 12 }), "{failure}");
}

#[test]
fn broken_is_what_would_wait_for_ever() {
    let (mut outbox, mut consumers) = outbox(2, 1000);
    consumers.truncate(1);
    assert!(!outbox.is_broken(), "a consumer that has gone after its End is none of ours");
    (0..3).for_each(|n| outbox.emit(1, n).unwrap());
    assert!(outbox.is_broken());
    let (mut outbox, consumers) = self::outbox(1, 1000);
    outbox.poison();
    assert!(outbox.is_broken());
    assert!(matches!({ consumers }[0].poll(), Polled::Poisoned));
}

#[test]
fn waiting_ends_by_itself_and_by_a_waker() {
    use std::time::{Duration, Instant};
    let mut idle = Idle::new(Wait::Park, 1, 1);
    let begin = Instant::now();
    (0..30).for_each(|_| idle.wait());
    assert!(begin.elapsed() >= Duration::from_millis(1), "it parks in the end");
    idle.waker().unwrap().wake();
    idle.reset();
    let mut spinning = Idle::new(Wait::Spin, 2, 1);
    let begin = Instant::now();
    (0..30).for_each(|_| spinning.wait());
    assert!(begin.elapsed() >= Duration::from_millis(1), "nobody spins where there are more threads than cores");
}
