//! Every record is dropped exactly once, also when a drop or a closure panics.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Counts its drops by number, and panics in the drop of the chosen one.
struct Counted(usize, Arc<Drops>);

struct Drops {
    counts: Vec<AtomicUsize>,
    panics_at: usize,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.counts[self.0].fetch_add(1, SeqCst);
        assert!(self.0 != self.1.panics_at, "drop panics");
    }
}

fn drops(records: usize, panics_at: usize) -> Arc<Drops> {
    let counts = (0..records).map(|_| AtomicUsize::new(0)).collect();
    Arc::new(Drops { counts, panics_at })
}

/// Two slots of four records: the first one published, the second one open and half full.
fn filled(drops: &Arc<Drops>) -> (Producer<Counted>, Consumer<Counted>) {
    let (mut producer, consumer) = ring_from(2, 4, u64::MAX);
    for n in 0..6 {
        assert!(producer.push(Counted(n, Arc::clone(drops))).is_ok());
    }
    (producer, consumer)
}

fn assert_each_once(drops: &Drops) {
    let counts: Vec<usize> = drops.counts.iter().map(|count| count.load(SeqCst)).collect();
    assert!(counts.iter().all(|&count| count == 1), "{counts:?}");
}

const NONE: usize = usize::MAX;

#[test]
fn both_orders_of_leaving_drop_each_record_once() {
    for panics_at in [NONE, 0, 2, 3, 4, 5] {
        for producer_first in [false, true] {
            let drops = drops(6, panics_at);
            let (producer, consumer) = filled(&drops);
            let producer_side = || catch_unwind(AssertUnwindSafe(|| drop(producer))).is_err();
            let consumer_side = || catch_unwind(AssertUnwindSafe(|| drop(consumer))).is_err();
            let panicked = if producer_first {
                let first = producer_side();
                consumer_side() || first
            } else {
                let first = consumer_side();
                producer_side() || first
            };
            assert_eq!(panicked, panics_at != NONE);
            assert_each_once(&drops);
            assert_eq!(Arc::strong_count(&drops), 1);
        }
    }
}

#[test]
fn published_records_of_several_slots_are_dropped_though_one_drop_panics() {
    for panics_at in 0..8 {
        let drops = drops(8, panics_at);
        let (mut producer, consumer) = filled(&drops);
        (6..8).for_each(|n| assert!(producer.push(Counted(n, Arc::clone(&drops))).is_ok()));
        drop(producer);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(consumer))).is_err());
        assert_each_once(&drops);
    }
}

#[test]
fn a_batch_dropped_midway_drops_the_rest_and_releases_the_slot() {
    for panics_at in [NONE, 1, 2, 3] {
        for taken in 0..=4 {
            let drops = drops(10, panics_at);
            let (mut producer, mut consumer) = filled(&drops);
            let _ = catch_unwind(AssertUnwindSafe(|| {
                let Polled::Records(mut records) = consumer.poll() else { panic!("a batch was expected") };
                records.by_ref().take(taken).for_each(drop);
            }));
            (6..8).for_each(|n| assert!(producer.push(Counted(n, Arc::clone(&drops))).is_ok()));
            (8..10).for_each(|n| assert!(producer.push(Counted(n, Arc::clone(&drops))).is_ok(), "not released"));
            drop((producer, consumer));
            assert_each_once(&drops);
        }
    }
}

#[test]
fn a_panicking_closure_loses_no_drop() {
    for at in 0..4 {
        let drops = drops(6, NONE);
        let (producer, mut consumer) = filled(&drops);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let Polled::Records(records) = consumer.poll() else { panic!("a batch was expected") };
            records.for_each(|record| assert!(record.0 != at, "the closure panics"));
        }));
        assert!(result.is_err());
        assert!((0..4).all(|n| drops.counts[n].load(SeqCst) == 1), "the batch has been dropped while unwinding");
        drop((producer, consumer));
        assert_each_once(&drops);
    }
}

#[test]
fn a_panicking_iterator_leaves_what_it_gave_in_the_open_slot() {
    let drops = drops(5, NONE);
    let (mut producer, mut consumer) = ring(2, 4);
    let mut records = (0..6).map(|n| {
        assert!(n != 5, "the closure panics");
        Counted(n, Arc::clone(&drops))
    });
    assert!(catch_unwind(AssertUnwindSafe(|| producer.push_all(&mut records))).is_err());
    producer.publish();
    assert_eq!((take(&mut consumer).len(), take(&mut consumer).len()), (4, 1));
    assert_each_once(&drops);
}

#[test]
fn poison_drops_the_open_slot_at_once_and_the_rest_at_the_end() {
    let drops = drops(6, NONE);
    let (mut producer, consumer) = filled(&drops);
    producer.poison();
    assert!((0..6).all(|n| drops.counts[n].load(SeqCst) == usize::from(n >= 4)));
    drop(producer);
    drop(consumer);
    assert_each_once(&drops);
}

#[test]
fn a_forgotten_batch_leaks_and_is_never_dropped_twice() {
    let drops = drops(6, NONE);
    let (mut producer, mut consumer) = filled(&drops);
    std::mem::forget(consumer.poll());
    producer.publish();
    assert!(producer.push(Counted(0, Arc::clone(&drops))).is_err(), "nothing has been released");
    assert!(matches!(consumer.poll(), Polled::Records(records) if records.len() == 2));
    assert_eq!(drops.counts[0].swap(0, SeqCst), 1, "the refused record");
    drop((producer, consumer));
    assert!((0..6).all(|n| drops.counts[n].load(SeqCst) == usize::from(n >= 4)));
}

#[test]
fn a_vector_is_drained_by_the_same_type() {
    for panics_at in [NONE, 2, 3] {
        let drops = drops(4, panics_at);
        let mut batch: Vec<Counted> = (0..4).map(|n| Counted(n, Arc::clone(&drops))).collect();
        let capacity = batch.capacity();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut records = Records::of(&mut batch);
            assert_eq!(records.len(), 4);
            assert_eq!(records.next().map(|record| record.0), Some(0));
        }));
        assert_eq!(result.is_err(), panics_at != NONE);
        assert!(batch.is_empty() && batch.capacity() == capacity);
        assert_each_once(&drops);
    }
}
