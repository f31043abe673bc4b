//! The ring under loom: every order of memory accesses that the language allows, for two threads and a few slots.
//!
//! `RUSTFLAGS="--cfg snapring_loom" CARGO_TARGET_DIR=target-loom cargo test --release -p snapring --lib channel::loom`

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
