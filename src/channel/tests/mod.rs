//! Tests of the channels, one thread at a time. Threads: `tests/ring.rs`; every order of memory accesses: `loom_tests.rs`.

mod boxes;
mod cuts;
mod drops;
mod model;

use super::ring::ring_from;
use super::*;
use crate::marks::Mark;

/// The records of the next slot, which must hold some.
fn take<T>(consumer: &mut Consumer<T>) -> Vec<T> {
    match consumer.poll() {
        Polled::Records(records) => records.collect(),
        _ => panic!("a batch was expected"),
    }
}

#[test]
fn full_slots_publish_themselves_and_partial_ones_on_demand() {
    let (mut producer, mut consumer) = ring(2, 3);
    for n in 0..4 {
        producer.push(n).unwrap();
    }
    assert_eq!(take(&mut consumer), [0, 1, 2]);
    assert!(!consumer.is_ready(), "the open slot is not visible");
    producer.publish();
    assert_eq!(take(&mut consumer), [3]);
    producer.publish();
    assert!(matches!(consumer.poll(), Polled::Empty), "an empty slot is never published");
}

#[test]
fn push_all_asks_for_a_record_only_when_there_is_room() {
    let (mut producer, mut consumer) = ring(2, 2);
    let mut numbers = 0..7;
    assert!(producer.push_all(&mut numbers.by_ref().take(1)));
    assert!(!producer.push_all(&mut numbers));
    assert_eq!(numbers, 4..7);
    assert_eq!((take(&mut consumer), take(&mut consumer)), (vec![0, 1], vec![2, 3]));
    assert!(producer.push_all(&mut numbers));
    assert_eq!(take(&mut consumer), [4, 5]);
    assert!(producer.push_all(&mut numbers) && !consumer.is_ready());
    producer.publish();
    assert_eq!(take(&mut consumer), [6]);
    assert!(producer.push_all(&mut numbers), "this opens a slot and puts nothing in");
    producer.mark(Mark::End).unwrap();
    assert!(matches!(consumer.poll(), Polled::Mark(Mark::End)));
}

#[test]
fn a_full_ring_gives_the_record_back_until_a_slot_is_released() {
    let (mut producer, mut consumer) = ring(1, 1);
    producer.push(1).unwrap();
    assert_eq!(producer.push(2), Err(2));
    let Polled::Records(records) = consumer.poll() else { panic!("a batch was expected") };
    assert_eq!(producer.push(2), Err(2), "the slot is being read");
    drop(records);
    producer.push(2).unwrap();
    assert_eq!(take(&mut consumer), [2]);
}

#[test]
fn marks_keep_their_place() {
    let (mut producer, mut consumer) = ring(3, 4);
    producer.push(1).unwrap();
    producer.mark(Mark::Barrier(7)).unwrap();
    producer.push(2).unwrap();
    assert_eq!(producer.mark(Mark::Watermark(-5)), Err(Mark::Watermark(-5)), "three slots are taken");
    assert_eq!(take(&mut consumer), [1]);
    producer.mark(Mark::Watermark(-5)).unwrap();
    assert!(matches!(consumer.poll(), Polled::Mark(Mark::Barrier(7))));
    assert_eq!(take(&mut consumer), [2], "the refused mark has published the open slot");
    producer.mark(Mark::End).unwrap();
    assert!(matches!(consumer.poll(), Polled::Mark(Mark::Watermark(-5))));
    assert!(matches!(consumer.poll(), Polled::Mark(Mark::End)));
    drop(producer);
    assert!(matches!(consumer.poll(), Polled::Empty), "after End nothing follows, not even Closed");
    assert!(consumer.has_ended());
}

#[test]
fn a_producer_that_goes_without_end_is_seen_after_what_it_published() {
    let (mut producer, mut consumer) = ring(2, 2);
    for n in 0..3 {
        producer.push(n).unwrap();
    }
    drop(producer);
    assert_eq!(take(&mut consumer), [0, 1]);
    assert!(matches!(consumer.poll(), Polled::Closed), "the open slot is not published");
}

#[test]
fn a_consumer_that_goes_is_seen() {
    let (producer, consumer) = ring::<u8>(1, 1);
    assert!(!producer.is_closed());
    drop(consumer);
    assert!(producer.is_closed());
}

#[test]
fn poison_from_either_side_stops_the_taking() {
    for by_producer in [false, true] {
        let (mut producer, mut consumer) = ring(2, 1);
        producer.push(1).unwrap();
        if by_producer {
            producer.poison()
        } else {
            consumer.poison()
        }
        assert!(producer.is_poisoned());
        assert!(matches!(consumer.poll(), Polled::Poisoned));
    }
}

#[test]
fn positions_wrap() {
    for slots in 1..5 {
        let (mut producer, mut consumer) = ring_from(slots, 2, u64::MAX - 3);
        assert!(!consumer.is_ready());
        for n in 0..20 {
            producer.push(n).unwrap();
            producer.push(n + 100).unwrap();
            assert_eq!(take(&mut consumer), [n, n + 100]);
            assert!(!consumer.is_ready());
        }
    }
}

#[test]
fn records_of_every_size_and_alignment_arrive() {
    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(256))]
    struct Aligned(u8);
    fn check<T: Clone + std::fmt::Debug + PartialEq + Send>(record: T) {
        let (mut producer, mut consumer) = ring(2, 3);
        for _ in 0..9 {
            producer.push(record.clone()).unwrap();
            producer.push(record.clone()).unwrap();
            producer.publish();
            // That they are aligned is asserted by the ring, at each look-up of a slot.
            assert_eq!(take(&mut consumer), [record.clone(), record.clone()]);
        }
    }
    check(());
    check(7u8);
    check([3u64; 5]);
    check([9u8; 41]);
    check(Aligned(4));
    check(vec!["text".to_owned()]);
}

#[test]
fn a_record_of_a_megabyte_goes_through() {
    fn pass() {
        let (mut producer, mut consumer) = ring(1, slot_records::<[u8; 1 << 20]>(None));
        assert!(producer.push([5; 1 << 20]).is_ok());
        let Polled::Records(mut records) = consumer.poll() else { panic!("a batch was expected") };
        assert_eq!(records.len(), 1);
        assert!(records.next().unwrap().iter().all(|&byte| byte == 5));
    }
    // A value of that size passes over the stack several times, where nothing is optimized.
    std::thread::Builder::new().stack_size(64 << 20).spawn(pass).unwrap().join().unwrap();
}

#[test]
fn slots_are_sized_by_the_batch_asked_for_or_16_kib() {
    assert_eq!(slot_records::<u64>(None), 2048);
    assert_eq!(slot_records::<[u8; 64]>(Some(1024)), 1024);
    assert_eq!(slot_records::<[u8; 20_000]>(None), 1);
    assert_eq!(slot_records::<u8>(Some(0)), 1);
    assert_eq!(slot_records::<()>(None), 16384);
}
