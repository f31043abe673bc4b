//! The ring under loom: every order of memory accesses that the language allows, for two threads and a few slots.
//!
//! `RUSTFLAGS="--cfg snapring_loom" CARGO_TARGET_DIR=target/loom cargo test --package snapring --lib channel::`

use super::ring::ring_from;
use super::*;
use crate::marks::Mark;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Polls until something is there. (Looking first and polling then would hide what a single look gets wrong.)
fn wait<T, R>(consumer: &mut Consumer<T>, taken: impl FnOnce(Polled<'_, T>) -> R) -> R {
    loop {
        match consumer.poll() {
            Polled::Empty => thread::yield_now(),
            polled => return taken(polled),
        }
    }
}

fn records<T>(polled: Polled<'_, T>) -> Vec<T> {
    let Polled::Records(records) = polled else { panic!("a batch was expected") };
    records.collect()
}

fn push<T>(producer: &mut Producer<T>, mut record: T) {
    while let Err(back) = producer.push(record) {
        record = back;
        thread::yield_now();
    }
}

/// Two sides that wait for each other have too many orders to try all; few failures need more switches than this.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// `count` batches of one record through a ring that wraps, its positions too.
fn pass(slots: usize, count: u64) {
    check(move || {
        let (mut producer, mut consumer) = ring_from(slots, 1, u64::MAX - 1);
        let writer = thread::spawn(move || (0..count).for_each(|n| push(&mut producer, Box::new(n))));
        for n in 0..count {
            assert_eq!(wait(&mut consumer, records), [Box::new(n)]);
        }
        writer.join().unwrap();
        assert!(matches!(consumer.poll(), Polled::Closed));
    });
}

#[test]
fn one_slot_wraps() {
    pass(1, 3);
}

#[test]
fn two_slots_wrap() {
    pass(2, 3);
}

#[test]
fn what_was_published_is_taken_before_closed_is_seen() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring_from(2, 2, 0);
        let writer = thread::spawn(move || {
            producer.push(1).unwrap();
            producer.publish();
            producer.push(2).unwrap();
        });
        assert_eq!(wait(&mut consumer, records), [1]);
        wait(&mut consumer, |polled| assert!(matches!(polled, Polled::Closed), "the open slot is not published"));
        writer.join().unwrap();
    });
}

#[test]
fn a_producer_that_waits_sees_a_consumer_go() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring_from(1, 1, 0);
        producer.push(Box::new(0)).unwrap();
        let reader = thread::spawn(move || assert_eq!(records(consumer.poll()), [Box::new(0)]));
        let mut record = Box::new(1);
        while let Err(back) = producer.push(record) {
            if producer.is_closed() {
                break;
            }
            record = back;
            thread::yield_now();
        }
        reader.join().unwrap();
        assert!(producer.is_closed());
    });
}

#[test]
fn poison_ends_both_waits() {
    for by_producer in [false, true] {
        loom::model(move || {
            let (mut producer, mut consumer) = ring_from(1, 1, 0);
            let other = thread::spawn(move || {
                if by_producer {
                    producer.poison();
                    return;
                }
                let _ = producer.push(Box::new(0));
                while !producer.is_poisoned() {
                    thread::yield_now();
                }
            });
            if by_producer {
                wait(&mut consumer, |polled| assert!(matches!(polled, Polled::Poisoned)));
            } else {
                consumer.poison();
            }
            other.join().unwrap();
        });
    }
}

#[test]
fn marks_keep_their_place_among_records() {
    check(|| {
        let (mut producer, mut consumer) = ring_from(2, 2, 0);
        let writer = thread::spawn(move || {
            push(&mut producer, 1);
            for mark in [Mark::Barrier(7), Mark::End] {
                while producer.mark(mark).is_err() {
                    thread::yield_now();
                }
            }
        });
        assert_eq!(wait(&mut consumer, records), [1]);
        wait(&mut consumer, |polled| assert!(matches!(polled, Polled::Mark(Mark::Barrier(7)))));
        wait(&mut consumer, |polled| assert!(matches!(polled, Polled::Mark(Mark::End))));
        writer.join().unwrap();
        assert!(matches!(consumer.poll(), Polled::Empty));
    });
}

#[test]
fn whoever_leaves_last_drops_what_is_left_once() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    loom::model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (mut producer, mut consumer) = ring_from(2, 2, 0);
        let record = || Counted(Arc::clone(&drops));
        let (first, second, third) = (record(), record(), record());
        let writer = thread::spawn(move || {
            assert!(producer.push(first).is_ok() && producer.push(second).is_ok() && producer.push(third).is_ok());
        });
        drop(consumer.poll());
        drop(consumer);
        writer.join().unwrap();
        assert_eq!(drops.load(SeqCst), 3);
        assert_eq!(Arc::strong_count(&drops), 1);
    });
}

/// The highest epoch whose cut is seen, and its position.
fn seen(consumer: &Consumer<u64>) -> (u64, u64) {
    match consumer.cut(1) {
        Some(SeenCut::At { epoch, position }) => (epoch, position),
        Some(SeenCut::End { position }) => (u64::MAX, position),
        None => (0, 0),
    }
}

/// Takes `count` slots, the number of a slot being that of the cuts before it: none behind a cut that has not been seen.
fn take_behind_cuts(consumer: &mut Consumer<u64>, count: usize) {
    let mut taken = 0;
    while taken != count {
        if !consumer.is_ready() {
            thread::yield_now();
            continue;
        }
        let (epoch, position) = seen(consumer);
        let is_ahead = epoch == 0 || (position.wrapping_sub(consumer.position()) as i64) > 0;
        match consumer.poll() {
            Polled::Records(mut records) => {
                let behind = records.next().unwrap();
                assert!(epoch >= behind, "a slot behind cut {behind} is taken, and only cut {epoch} has been seen");
                assert!(epoch != behind || behind == 0 || !is_ahead, "it lies behind that cut");
            }
            Polled::Mark(Mark::End) => assert!(epoch == u64::MAX && !is_ahead),
            _ => panic!("a slot was seen"),
        }
        taken += 1;
    }
}

#[test]
fn no_slot_behind_a_cut_is_taken_before_the_cut_is_seen() {
    check(|| {
        let (mut producer, mut consumer) = ring_from(2, 1, u64::MAX - 1);
        let writer = thread::spawn(move || {
            push(&mut producer, 0);
            producer.publish_cut(1);
            push(&mut producer, 1);
            producer
        });
        take_behind_cuts(&mut consumer, 2);
        drop(writer.join().unwrap());
    });
}

#[test]
fn a_cut_that_gives_way_to_a_later_one_is_seen_as_that() {
    check(|| {
        let (mut producer, mut consumer) = ring_from(1, 1, 0);
        let writer = thread::spawn(move || {
            producer.publish_cut(1);
            push(&mut producer, 1);
            producer.publish_cut(2);
            push(&mut producer, 2);
            producer
        });
        take_behind_cuts(&mut consumer, 2);
        drop(writer.join().unwrap());
    });
}

#[test]
fn the_cut_of_the_end_is_seen_before_the_end_is_taken() {
    check(|| {
        let (mut producer, mut consumer) = ring_from(2, 1, 0);
        let writer = thread::spawn(move || {
            producer.publish_cut(1);
            push(&mut producer, 1);
            producer.publish_end_cut();
            producer.mark(Mark::End).unwrap();
        });
        take_behind_cuts(&mut consumer, 2);
        writer.join().unwrap();
    });
}

#[test]
fn whoever_sees_a_cut_sees_all_slots_ahead_of_it() {
    check(|| {
        let (mut producer, consumer) = ring_from(3, 2, u64::MAX);
        let writer = thread::spawn(move || {
            (0..3).for_each(|n| push(&mut producer, n));
            producer.publish_cut(1);
            push(&mut producer, 3);
            producer
        });
        while consumer.cut(1).is_none() {
            thread::yield_now();
        }
        assert_eq!(seen(&consumer), (1, 1));
        assert_eq!(consumer.peek(u64::MAX), Some(Peeked::Records(&[0, 1])));
        assert_eq!(consumer.peek(0), Some(Peeked::Records(&[2])));
        assert_eq!(consumer.peek(1), None, "the slot is still open");
        drop(writer.join().unwrap());
    });
}
