//! The channels between real threads: nothing is lost, doubled or reordered, and a peer's end is noticed.

use snapring::channel::{Consumer, Idle, Outbox, Polled, Producer, Wait, ring};
use snapring::marks::Mark;
use std::thread;

/// Scrambles a counter, so that every run of the loop takes other turns.
fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *random >> 33
}

fn idle() -> Idle {
    Idle::new(Wait::Park, 2, thread::available_parallelism().map_or(1, usize::from))
}

/// Pushes 0 to `count`, with a mark now and then, and publishes at random.
fn produce(mut producer: Producer<Box<u64>>, count: u64) {
    let (mut random, mut idle) = (count, idle());
    for n in 0..count {
        let mut record = Box::new(n);
        while let Err(back) = producer.push(record) {
            record = back;
            idle.wait();
        }
        idle.reset();
        if next(&mut random).is_multiple_of(5) {
            producer.publish();
        }
        if n % 100 == 99 {
            while producer.mark(Mark::Barrier(n)).is_err() {
                idle.wait();
            }
        }
    }
    while producer.mark(Mark::End).is_err() {
        idle.wait();
    }
}

fn consume(mut consumer: Consumer<Box<u64>>) -> u64 {
    let (mut expected, mut idle) = (0, idle());
    loop {
        match consumer.poll() {
            Polled::Records(records) => {
                for record in records {
                    assert_eq!(*record, expected);
                    expected += 1;
                }
                idle.reset();
            }
            Polled::Mark(Mark::Barrier(n)) => assert_eq!(n + 1, expected),
            Polled::Mark(_) => return expected,
            Polled::Empty => idle.wait(),
            Polled::Closed | Polled::Poisoned => panic!("the producer ends in order"),
        }
    }
}

#[test]
fn records_and_marks_arrive_in_order() {
    for (slots, batch) in [(1, 1), (1, 7), (2, 1), (3, 4), (8, 64)] {
        let (producer, consumer) = ring(slots, batch);
        let count = 20_000;
        let writer = thread::spawn(move || produce(producer, count));
        assert_eq!(consume(consumer), count);
        writer.join().unwrap();
    }
}

#[test]
fn a_grid_of_outboxes_and_inboxes_conserves_all_records() {
    const TASKS: usize = 3;
    const COUNT: u64 = 20_000;
    let mut inboxes: Vec<Vec<Consumer<u64>>> = (0..TASKS).map(|_| Vec::new()).collect();
    let mut writers = Vec::new();
    for task in 0..TASKS {
        let rings = (0..TASKS).map(|_| ring(1, 3));
        let producers = rings.zip(&mut inboxes).map(|((producer, consumer), inbox)| {
            inbox.push(consumer);
            producer
        });
        let mut outbox = Outbox::new(producers.collect(), 1 << 20);
        writers.push(thread::spawn(move || {
            let (mut random, mut idle) = (task as u64, idle());
            for n in 0..COUNT {
                outbox.emit(next(&mut random) as usize % TASKS, n).unwrap();
                while n % 50 == 0 && !outbox.flush() {
                    idle.wait();
                }
                idle.reset();
            }
            outbox.mark_all(Mark::End);
            while !outbox.flush() {
                idle.wait();
            }
        }));
    }
    let readers: Vec<_> = inboxes.into_iter().map(|inputs| thread::spawn(move || sum_in_order(inputs))).collect();
    let sums: Vec<(u64, u64)> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let tasks = TASKS as u64;
    assert_eq!(sums.iter().map(|sum| sum.0).sum::<u64>(), tasks * COUNT);
    assert_eq!(sums.iter().map(|sum| sum.1).sum::<u64>(), tasks * (0..COUNT).sum::<u64>());
}

/// How many records came, and their sum; on each input they must ascend.
fn sum_in_order(mut inputs: Vec<Consumer<u64>>) -> (u64, u64) {
    let mut least = vec![0; inputs.len()];
    let (mut idle, mut sum) = (idle(), (0, 0));
    while !inputs.iter().all(Consumer::has_ended) {
        let ready = inputs.iter_mut().zip(&mut least).filter(|(input, _)| input.is_ready());
        let mut found = false;
        for (input, least) in ready {
            found = true;
            match input.poll() {
                Polled::Records(records) => {
                    for n in records {
                        assert!(n >= *least);
                        *least = n + 1;
                        sum = (sum.0 + 1, sum.1 + n);
                    }
                }
                Polled::Mark(_) => {}
                _ => panic!("the producers end in order"),
            }
        }
        if found { idle.reset() } else { idle.wait() }
    }
    sum
}

#[test]
fn a_peer_that_goes_at_any_moment_is_noticed_and_leaks_nothing() {
    let held = std::sync::Arc::new(());
    for round in 0..2_000u64 {
        let (mut producer, mut consumer) = ring(1 + round as usize % 3, 2);
        let record = std::sync::Arc::clone(&held);
        let writer = thread::spawn(move || {
            for _ in 0..round % 7 {
                while producer.push(std::sync::Arc::clone(&record)).is_err() {
                    if producer.is_closed() {
                        return;
                    }
                    thread::yield_now();
                }
            }
        });
        for _ in 0..round % 5 {
            while !consumer.is_ready() {
                thread::yield_now();
            }
            if matches!(consumer.poll(), Polled::Closed) {
                break;
            }
        }
        drop(consumer);
        writer.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&held), 1, "round {round}");
    }
}

#[test]
fn a_waker_ends_a_park() {
    let mut idle = idle();
    let waker = idle.waker().expect("it parks");
    let (mut producer, mut consumer) = ring(1, 1);
    let reader = thread::spawn(move || {
        while !consumer.is_ready() {
            idle.wait();
        }
        consumer.poll();
    });
    producer.push(1).unwrap();
    waker.wake();
    reader.join().unwrap();
}
