//! Cuts beside a ring, looks at its slots without taking them, and an outbox whose leftovers a cut overtakes.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

fn at(epoch: u64, position: u64) -> Option<SeenCut> {
    Some(SeenCut::At { epoch, position })
}

/// What lies in a ring, without taking it.
fn visible(consumer: &Consumer<u32>) -> Vec<Peeked<'_, u32>> {
    (0..).map_while(|ahead| consumer.peek(consumer.position().wrapping_add(ahead))).collect()
}

#[test]
fn a_cut_lies_behind_the_open_slot_and_needs_none() {
    let (mut producer, mut consumer) = ring(2, 2);
    assert_eq!(consumer.cut(1), None);
    producer.publish_cut(1);
    assert_eq!(consumer.cut(1), at(1, 0), "on an idle ring");
    (0..3).for_each(|n| producer.push(n).unwrap());
    producer.publish_cut(2);
    assert_eq!(consumer.cut(2), at(2, 2), "on a full one");
    assert_eq!(take(&mut consumer), [0, 1]);
    assert_eq!((consumer.position(), take(&mut consumer)), (1, vec![2]));
    assert_eq!((consumer.position(), consumer.cut(2)), (2, at(2, 2)));
}

#[test]
fn a_cut_gives_way_to_a_higher_epoch_only_and_the_end_to_none() {
    let (mut producer, consumer) = ring(4, 1);
    producer.publish_cut(3);
    producer.push(0).unwrap();
    producer.publish_cut(3);
    producer.publish_cut(2);
    assert_eq!(consumer.cut(3), at(3, 0));
    producer.publish_cut(5);
    assert_eq!(consumer.cut(3), at(5, 1));
    producer.push(0).unwrap();
    producer.publish_end_cut();
    let end = Some(SeenCut::End { position: 2 });
    assert_eq!(consumer.cut(5), end);
    producer.push(0).unwrap();
    producer.publish_cut(9);
    producer.publish_end_cut();
    assert_eq!(consumer.cut(9), end);
}

#[test]
fn cuts_and_looks_go_on_where_positions_wrap() {
    let forty_bits = 1 << 40;
    for start in [0u64, forty_bits - 3, 7 * forty_bits - 2, u64::MAX - 2] {
        let (mut producer, mut consumer) = ring_from(3, 1, start);
        for epoch in 1..9 {
            let position = start.wrapping_add(2 * (epoch - 1));
            assert_eq!(consumer.position(), position);
            producer.push(1).unwrap();
            producer.publish_cut(epoch);
            producer.push(2).unwrap();
            assert_eq!(consumer.cut(epoch), at(epoch, position.wrapping_add(1)));
            assert_eq!(visible(&consumer), [Peeked::Records(&[1]), Peeked::Records(&[2])]);
            assert_eq!(consumer.peek(position.wrapping_sub(1)), None, "it has been taken");
            assert_eq!((take(&mut consumer), take(&mut consumer)), (vec![1], vec![2]));
            assert_eq!(consumer.cut(epoch), at(epoch, position.wrapping_add(1)), "behind the consumer by now");
        }
    }
}

#[test]
fn a_look_shows_what_is_published_and_takes_nothing() {
    let (mut producer, mut consumer) = ring(3, 2);
    assert_eq!(visible(&consumer), []);
    (0..3).for_each(|n| producer.push(n).unwrap());
    assert_eq!(visible(&consumer), [Peeked::Records(&[0, 1])], "the open slot is not visible");
    producer.mark(Mark::Watermark(4)).unwrap();
    let all = [Peeked::Records(&[0, 1][..]), Peeked::Records(&[2]), Peeked::Mark(Mark::Watermark(4))];
    assert_eq!(visible(&consumer), all);
    assert_eq!(visible(&consumer), all);
    assert_eq!(consumer.peek(3), None, "there are only three slots");
    assert_eq!(take(&mut consumer), [0, 1]);
    assert_eq!(visible(&consumer), all[1..]);
    assert_eq!(consumer.peek(0), None);
    producer.push(5).unwrap();
    producer.poison();
    assert_eq!(visible(&consumer), [], "nothing is to be read any more");
}

#[test]
fn a_look_drops_nothing() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let (mut producer, mut consumer) = ring(2, 2);
    (0..4).for_each(|_| assert!(producer.push(Counted(Arc::clone(&drops))).is_ok()));
    for position in [0, 1, 0] {
        assert!(matches!(consumer.peek(position), Some(Peeked::Records([_, _]))));
    }
    drop(take(&mut consumer));
    assert_eq!(drops.load(SeqCst), 2);
    assert!(matches!(consumer.peek(1), Some(Peeked::Records([_, _]))));
    drop((producer, consumer));
    assert_eq!(drops.load(SeqCst), 4);
}

#[test]
fn records_of_every_size_and_alignment_can_be_looked_at() {
    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(256))]
    struct Aligned(u8);
    fn check<T: Clone + std::fmt::Debug + PartialEq + Send>(record: T) {
        let (mut producer, consumer) = ring(2, 3);
        (0..5).for_each(|_| producer.push(record.clone()).unwrap());
        producer.publish();
        let three = [record.clone(), record.clone(), record];
        assert_eq!(consumer.peek(0), Some(Peeked::Records(&three[..])));
        assert_eq!(consumer.peek(1), Some(Peeked::Records(&three[..2])));
    }
    check(());
    check(7u8);
    check([9u8; 41]);
    check(Aligned(4));
    check(vec!["text".to_owned()]);
}

/// Lanes of one slot of one record.
fn outbox(lanes: usize) -> (Outbox<u32>, Vec<Consumer<u32>>) {
    let (producers, consumers) = (0..lanes).map(|_| ring(1, 1)).unzip();
    (Outbox::new(producers, 1000), consumers)
}

/// All that the consumers get, as text.
fn all(outbox: &mut Outbox<u32>, consumers: &mut [Consumer<u32>]) -> Vec<String> {
    let mut got = vec![String::new(); consumers.len()];
    loop {
        let done = outbox.flush();
        got.iter_mut().zip(&mut *consumers).for_each(|(got, consumer)| *got += &boxes::drain(consumer));
        if done {
            return got;
        }
    }
}

/// What has been saved: each lane's number, records and their count.
#[derive(Default)]
struct Saved(Vec<(usize, Vec<u32>)>);

impl Saved {
    fn save(&mut self) -> impl FnMut(usize, u64, Vec<u8>) {
        |lane, count, bytes| {
            assert_eq!(bytes.len() as u64, 4 * count);
            let records = bytes.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()));
            self.0.push((lane, records.collect()));
        }
    }
}

#[test]
fn leftovers_lie_behind_a_cut_and_are_saved_without_their_marks() {
    let (mut outbox, mut consumers) = outbox(3);
    for n in 0..3 {
        outbox.emit(0, n).unwrap();
    }
    outbox.mark_all(Mark::Watermark(5));
    outbox.mark_all(Mark::Lap(2));
    outbox.emit(0, 3).unwrap();
    outbox.emit(2, 9).unwrap();
    let mut saved = Saved::default();
    outbox.cut(4, &mut saved.save());
    assert_eq!(saved.0, [(0, vec![1, 2, 3]), (2, vec![9])], "lane 1 has only marks");
    assert_eq!([0, 1, 2].map(|lane| consumers[lane].cut(4)), [at(4, 1), at(4, 1), at(4, 1)]);
    let mut again = Saved::default();
    outbox.save(&mut again.save());
    assert_eq!(again.0, saved.0);
    assert_eq!(all(&mut outbox, &mut consumers), ["0 1 2 W5 L2 3 ", "W5 L2 ", "W5 L2 9 "]);
    outbox.save(&mut |_, _, _| panic!("nothing waits"));
}

#[test]
fn a_cut_publishes_open_slots() {
    let (producer, mut consumer) = ring(1, 8);
    let mut outbox = Outbox::new(vec![producer], 1000);
    (0..3).for_each(|n| outbox.emit(0, n).unwrap());
    outbox.cut(1, &mut |_, _, _| panic!("nothing waits"));
    assert_eq!((consumer.cut(1), take(&mut consumer)), (at(1, 1), vec![0, 1, 2]));
}

#[test]
fn a_cut_overtakes_waiting_barriers_of_its_epoch_and_only_their_lanes() {
    let (mut outbox, mut consumers) = outbox(4);
    outbox.mark_all(Mark::Barrier(1)); // in all rings
    (0..2).for_each(|n| outbox.emit(0, n).unwrap());
    outbox.mark_all(Mark::Watermark(6));
    outbox.emit(1, 2).unwrap();
    outbox.mark_all(Mark::Barrier(2));
    outbox.emit(0, 3).unwrap();
    outbox.emit(2, 4).unwrap();
    assert_eq!(boxes::drain(&mut consumers[3]), "B1 ");
    outbox.flush();
    assert_eq!(boxes::drain(&mut consumers[3]), "W6 ");
    outbox.flush(); // lane 3 has its barrier in the ring
    assert!(outbox.has_waiting_barrier(2) && !outbox.has_waiting_barrier(1) && !outbox.has_waiting_barrier(3));
    outbox.overtake(3, &mut |_, _, _| panic!("no such barrier waits"));
    let mut saved = Saved::default();
    outbox.overtake(2, &mut saved.save());
    assert_eq!(saved.0, [(0, vec![0, 1]), (1, vec![2])]);
    assert!(!outbox.has_waiting_barrier(2));
    let cuts: Vec<_> = consumers.iter().map(|consumer| consumer.cut(2)).collect();
    assert_eq!(cuts, [at(2, 1), at(2, 1), at(2, 1), None]);
    outbox.overtake(2, &mut |_, _, _| panic!("none waits any more"));
    assert_eq!(all(&mut outbox, &mut consumers), ["B1 0 1 W6 3 ", "B1 W6 2 ", "B1 W6 4 ", "B2 "]);
    assert!(!outbox.has_leftovers());
}

#[test]
fn a_barrier_that_waits_alone_leaves_nothing_behind() {
    let (mut outbox, mut consumers) = outbox(1);
    outbox.emit(0, 7).unwrap();
    outbox.mark_all(Mark::Barrier(1));
    assert!(outbox.has_barriers_only());
    outbox.overtake(1, &mut |_, _, _| panic!("no record waits"));
    assert!(!outbox.has_leftovers());
    outbox.end_cut();
    outbox.mark_all(Mark::End);
    assert_eq!(consumers[0].cut(1), Some(SeenCut::End { position: 1 }), "the cut of 1 is closed when a task finishes");
    assert_eq!(all(&mut outbox, &mut consumers), ["7 E "]);
}

#[test]
fn what_is_moved_out_of_the_leftovers_is_not_saved() {
    let (mut outbox, mut consumers) = outbox(1);
    (0..5).for_each(|n| outbox.emit(0, n).unwrap());
    outbox.mark_all(Mark::Barrier(8));
    outbox.emit(0, 5).unwrap();
    for _ in 0..2 {
        boxes::drain(&mut consumers[0]);
        outbox.flush();
    }
    let mut saved = Saved::default();
    outbox.overtake(8, &mut saved.save());
    outbox.cut(9, &mut saved.save());
    assert_eq!(saved.0, [(0, vec![3, 4]), (0, vec![3, 4, 5])]);
    assert_eq!(consumers[0].cut(9), at(9, 3));
    assert_eq!(all(&mut outbox, &mut consumers), ["2 3 4 5 "]);
}
