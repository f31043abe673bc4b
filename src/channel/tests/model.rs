//! The ring against a plain queue, by random operations: small rings, small batches, positions that wrap, panicking drops.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug)]
enum Step {
    Push {
        panics: bool,
    },
    PushAll(u64),
    Publish,
    Mark,
    /// Takes the next slot and so many of its records, and drops the rest.
    Poll(usize),
    /// Takes the next slot and panics with so many records taken.
    Panic(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => prop::bool::weighted(0.1).prop_map(|panics| Step::Push { panics }),
        2 => (0u64..9).prop_map(Step::PushAll),
        2 => Just(Step::Publish),
        1 => Just(Step::Mark),
        4 => (0usize..7).prop_map(Step::Poll),
        1 => (0usize..4).prop_map(Step::Panic),
    ];
    prop::collection::vec(step, 0..120)
}

struct Record {
    number: u64,
    panics: bool,
    lives: Arc<Lives>,
}

/// What has become of all records.
#[derive(Default)]
struct Lives {
    alive: AtomicUsize,
    /// Numbers, in the order of the drops.
    dropped: Mutex<Vec<u64>>,
}

fn record(number: u64, panics: bool, lives: &Arc<Lives>) -> Record {
    lives.alive.fetch_add(1, SeqCst);
    Record { number, panics, lives: Arc::clone(lives) }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.lives.alive.fetch_sub(1, SeqCst);
        self.lives.dropped.lock().unwrap().push(self.number);
        assert!(!self.panics || std::thread::panicking(), "drop panics");
    }
}

#[derive(Debug, PartialEq)]
enum Slot {
    Records(Vec<u64>),
    Mark(u64),
}

/// What the ring should hold.
struct Model {
    slots: usize,
    len_max: usize,
    published: VecDeque<Slot>,
    open: Vec<u64>,
}

impl Model {
    fn push(&mut self, number: u64) -> bool {
        if self.open.is_empty() && self.published.len() == self.slots {
            return false;
        }
        self.open.push(number);
        if self.open.len() == self.len_max {
            self.publish();
        }
        true
    }

    fn publish(&mut self) {
        if !self.open.is_empty() {
            self.published.push_back(Slot::Records(std::mem::take(&mut self.open)));
        }
    }

    fn mark(&mut self, number: u64) -> bool {
        self.publish();
        let free = self.published.len() < self.slots;
        if free {
            self.published.push_back(Slot::Mark(number));
        }
        free
    }

    fn alive(&self) -> usize {
        let of = |slot: &Slot| if let Slot::Records(records) = slot { records.len() } else { 0 };
        self.open.len() + self.published.iter().map(of).sum::<usize>()
    }
}

struct Real {
    producer: Producer<Record>,
    consumer: Consumer<Record>,
    lives: Arc<Lives>,
}

impl Real {
    fn push(&mut self, number: u64, panics: bool) -> bool {
        let refused = self.producer.push(record(number, panics, &self.lives)).err();
        let pushed = refused.is_none();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(refused)));
        pushed
    }

    /// Takes so many records of the next slot, panics if asked for, and says which numbers were dropped by all that: those
    /// of the slot, each once and in order, no matter how many were taken.
    fn poll(&mut self, taken: usize, panics: bool) -> Option<Slot> {
        match self.consumer.poll() {
            Polled::Records(records) => {
                self.lives.dropped.lock().unwrap().clear();
                let _ = catch_unwind(AssertUnwindSafe(move || {
                    let mut records = records;
                    records.by_ref().take(taken).for_each(drop);
                    assert!(!panics, "the closure panics");
                }));
                Some(Slot::Records(std::mem::take(&mut self.lives.dropped.lock().unwrap())))
            }
            Polled::Mark(Mark::Barrier(number)) => Some(Slot::Mark(number)),
            Polled::Empty => None,
            _ => panic!("nobody has gone"),
        }
    }
}

fn run(slots: usize, len_max: usize, start: u64, steps: &[Step]) -> Result<(), TestCaseError> {
    let (producer, consumer) = ring_from(slots, len_max, start);
    let mut real = Real { producer, consumer, lives: Arc::default() };
    let mut model = Model { slots, len_max, published: VecDeque::new(), open: Vec::new() };
    for (number, step) in steps.iter().enumerate() {
        let number = number as u64;
        match *step {
            Step::Push { panics } => prop_assert_eq!(real.push(number, panics), model.push(number)),
            Step::PushAll(count) => {
                let mut given = 0;
                let mut records = std::iter::from_fn(|| {
                    (given < count).then(|| {
                        given += 1;
                        record(number, false, &real.lives)
                    })
                });
                real.producer.push_all(&mut records);
                prop_assert_eq!(given, (0..count).take_while(|_| model.push(number)).count() as u64);
            }
            Step::Publish => {
                real.producer.publish();
                model.publish();
            }
            Step::Mark => prop_assert_eq!(real.producer.mark(Mark::Barrier(number)).is_ok(), model.mark(number)),
            Step::Poll(taken) => prop_assert_eq!(real.poll(taken, false), model.published.pop_front()),
            Step::Panic(taken) => prop_assert_eq!(real.poll(taken, true), model.published.pop_front()),
        }
        prop_assert_eq!(real.lives.alive.load(SeqCst), model.alive());
    }
    let Real { producer, consumer, lives } = real;
    let _ = catch_unwind(AssertUnwindSafe(|| drop(producer)));
    let _ = catch_unwind(AssertUnwindSafe(|| drop(consumer)));
    prop_assert_eq!(lives.alive.load(SeqCst), 0);
    Ok(())
}

proptest! {
    #[test]
    fn the_ring_is_a_queue(slots in 1usize..5, len_max in 1usize..6, before_wrap in 0u64..12, steps in steps()) {
        // Expected panics would otherwise fill the output.
        std::panic::set_hook(Box::new(|info| {
            let text = info.payload_as_str().unwrap_or("");
            if !text.ends_with("panics") { eprintln!("{info}") }
        }));
        run(slots, len_max, 5u64.wrapping_sub(before_wrap), &steps)?;
    }
}
