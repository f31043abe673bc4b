//! The ring against rtrb (chunks), crossbeam's ArrayQueue and std's sync_channel, and one record's round trip against a
//! bare two-line atomic ping-pong.
//!
//! Contenders take turns in short runs within one process; each run has a placement probe (the bare ping-pong) right before
//! it, since a hypervisor moves virtual cores about unseen. What is reported: the median rate of each contender, the
//! median over rounds of the ratio between the ring and rtrb in the same round, and the probes' median and spread.
//!
//! What makes it fair: the same number of records may be in flight; producers make every record anew from a counter and
//! consumers read every byte of it into a sum that is checked; all wait in the same way; rtrb is used through its fastest
//! interface (slices of whole chunks, never wrapping), the ring through its own (an iterator in, an iterator a slot out).
//!
//! `cargo bench --bench ring` measures; with `-- 64` only that batch; with `-- --test` it only runs each contender briefly.

use crossbeam_utils::CachePadded;
use snapring::channel::{Polled, ring};
use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use std::{sync::mpsc, thread};

/// A record of the benchmark: made from a counter, and read whole.
trait Load: Copy + Send + 'static {
    fn make(n: u64) -> Self;
    fn sum(&self) -> u64;
}

impl Load for u64 {
    fn make(n: u64) -> Self {
        n
    }
    fn sum(&self) -> u64 {
        *self
    }
}

impl Load for [u64; 8] {
    fn make(n: u64) -> Self {
        [n; 8]
    }
    fn sum(&self) -> u64 {
        self.iter().fold(0, |sum, word| sum.wrapping_add(*word))
    }
}

/// The same wait for everyone: spin, and let others run now and then.
#[inline(always)]
fn wait(tries: &mut u32) {
    *tries += 1;
    if tries.is_multiple_of(1 << 14) { thread::yield_now() } else { spin_loop() }
}

/// Runs `far` on another core and `near` on this one, from the same moment; seconds until `near` returns, and its result.
fn race<R>(far: impl FnOnce() + Send + 'static, near: impl FnOnce() -> R) -> (f64, R) {
    let ready = Arc::new(AtomicU64::new(0));
    let go = Arc::clone(&ready);
    let thread = thread::spawn(move || {
        pin(1);
        go.store(1, Ordering::Release);
        far();
    });
    // The new thread begins on this core, and must be let go to its own.
    while ready.load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    let begin = Instant::now();
    let result = near();
    let seconds = begin.elapsed().as_secs_f64();
    thread.join().expect("the producer ends in order");
    (seconds, result)
}

/// The allowed cores as the main thread saw them before it was pinned.
static CORES: std::sync::OnceLock<Vec<core_affinity::CoreId>> = std::sync::OnceLock::new();

fn pin(index: usize) {
    let cores = CORES.get_or_init(|| core_affinity::get_core_ids().unwrap_or_default());
    if cores.len() > index {
        core_affinity::set_for_current(cores[index]);
    }
}

/// One way to pass records: seconds for `batches` batches of `batch` records, at most `slots` batches in flight.
type Contender = fn(batches: u64, batch: usize, slots: usize) -> f64;

fn check<T: Load>(records: u64, (seconds, sum): (f64, u64)) -> f64 {
    let expected = (0..records).fold(0u64, |sum, n| sum.wrapping_add(T::make(n).sum()));
    assert_eq!(black_box(sum), expected, "every record has been read, once");
    seconds
}

fn snapring<T: Load>(batches: u64, batch: usize, slots: usize) -> f64 {
    let (mut producer, mut consumer) = ring::<T>(slots, batch);
    let records = batches * batch as u64;
    let produce = move || {
        let (mut made, mut tries) = ((0..records).map(T::make), 0);
        while !producer.push_all(&mut made) {
            wait(&mut tries);
        }
    };
    let consume = || {
        let (mut sum, mut left, mut tries) = (0u64, batches, 0);
        while left != 0 {
            match consumer.poll() {
                Polled::Records(records) => {
                    sum = records.fold(sum, |sum, record| sum.wrapping_add(record.sum()));
                    left -= 1;
                }
                _ => wait(&mut tries),
            }
        }
        sum
    };
    check::<T>(records, race(produce, consume))
}

fn rtrb_chunks<T: Load>(batches: u64, batch: usize, slots: usize) -> f64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<T>::new(batch * slots);
    let records = batches * batch as u64;
    let produce = move || {
        let (mut n, mut tries) = (0, 0);
        while n != records {
            let Ok(mut chunk) = producer.write_chunk_uninit(batch) else {
                wait(&mut tries);
                continue;
            };
            for place in chunk.as_mut_slices().0 {
                place.write(T::make(n));
                n += 1;
            }
            // SAFETY: the capacity is a multiple of the batch, so the first slice is the whole chunk, written above.
            unsafe { chunk.commit_all() };
        }
    };
    let consume = || {
        let (mut sum, mut left, mut tries) = (0u64, batches, 0);
        while left != 0 {
            match consumer.read_chunk(batch) {
                Ok(chunk) => {
                    sum = chunk.as_slices().0.iter().fold(sum, |sum, record| sum.wrapping_add(record.sum()));
                    chunk.commit_all();
                    left -= 1;
                }
                Err(_) => wait(&mut tries),
            }
        }
        sum
    };
    check::<T>(records, race(produce, consume))
}

fn array_queue<T: Load>(batches: u64, batch: usize, slots: usize) -> f64 {
    let queue = Arc::new(crossbeam_queue::ArrayQueue::<T>::new(batch * slots));
    let records = batches * batch as u64;
    let far = Arc::clone(&queue);
    let produce = move || {
        for n in 0..records {
            let (mut record, mut tries) = (T::make(n), 0);
            while let Err(back) = far.push(record) {
                record = back;
                wait(&mut tries);
            }
        }
    };
    let consume = || {
        let mut tries = 0;
        (0..records).fold(0u64, |sum, _| {
            loop {
                match queue.pop() {
                    Some(record) => return sum.wrapping_add(record.sum()),
                    None => wait(&mut tries),
                }
            }
        })
    };
    check::<T>(records, race(produce, consume))
}

fn std_channel<T: Load>(batches: u64, batch: usize, slots: usize) -> f64 {
    let (sender, receiver) = mpsc::sync_channel::<T>(batch * slots);
    let records = batches * batch as u64;
    let produce = move || (0..records).for_each(|n| sender.send(T::make(n)).expect("the consumer waits for all"));
    let consume = || receiver.iter().fold(0u64, |sum, record| sum.wrapping_add(record.sum()));
    check::<T>(records, race(produce, consume))
}

/// Nanoseconds of one round trip over two cache lines: what the machine does at this moment.
fn bare_round_trip(rounds: u64) -> f64 {
    let lines = Arc::new([const { CachePadded::new(AtomicU64::new(0)) }; 2]);
    let far = Arc::clone(&lines);
    let answer = move || {
        for n in 1..=rounds {
            let mut tries = 0;
            while far[0].load(Ordering::Acquire) != n {
                wait(&mut tries);
            }
            far[1].store(n, Ordering::Release);
        }
    };
    let ask = || {
        for n in 1..=rounds {
            lines[0].store(n, Ordering::Release);
            let mut tries = 0;
            while lines[1].load(Ordering::Acquire) != n {
                wait(&mut tries);
            }
        }
    };
    race(answer, ask).0 * 1e9 / rounds as f64
}

fn ring_round_trip<T: Load>(rounds: u64) -> f64 {
    let (mut there, mut there_end) = ring::<T>(8, 64);
    let (mut back, mut back_end) = ring::<T>(8, 64);
    fn take<T: Load>(consumer: &mut snapring::channel::Consumer<T>) -> T {
        let mut tries = 0;
        loop {
            match consumer.poll() {
                Polled::Records(mut records) => return records.next().expect("a slot is never empty"),
                _ => wait(&mut tries),
            }
        }
    }
    let answer = move || {
        for _ in 0..rounds {
            let record = take(&mut there_end);
            assert!(back.push(record).is_ok());
            back.publish();
        }
    };
    let ask = || {
        for n in 0..rounds {
            assert!(there.push(T::make(n)).is_ok());
            there.publish();
            assert_eq!(take(&mut back_end).sum(), T::make(n).sum());
        }
    };
    race(answer, ask).0 * 1e9 / rounds as f64
}

fn rtrb_round_trip<T: Load>(rounds: u64) -> f64 {
    let (mut there, mut there_end) = rtrb::RingBuffer::<T>::new(512);
    let (mut back, mut back_end) = rtrb::RingBuffer::<T>::new(512);
    fn take<T: Load>(consumer: &mut rtrb::Consumer<T>) -> T {
        let mut tries = 0;
        loop {
            match consumer.pop() {
                Ok(record) => return record,
                Err(_) => wait(&mut tries),
            }
        }
    }
    let answer = move || (0..rounds).for_each(|_| assert!(back.push(take(&mut there_end)).is_ok()));
    let ask = || {
        for n in 0..rounds {
            assert!(there.push(T::make(n)).is_ok());
            assert_eq!(take(&mut back_end).sum(), T::make(n).sum());
        }
    };
    race(answer, ask).0 * 1e9 / rounds as f64
}

fn quantile(values: &[f64], q: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q).round() as usize]
}

fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

struct Scale {
    rounds: usize,
    records: u64,
    round_trips: u64,
    probe_trips: u64,
}

fn throughput<T: Load>(name: &str, batch: usize, scale: &Scale) {
    let mut contenders: Vec<(&str, Contender, u64)> =
        vec![("snapring", snapring::<T>, 1), ("rtrb chunks", rtrb_chunks::<T>, 1)];
    if batch == 1 {
        contenders.push(("ArrayQueue", array_queue::<T>, 2));
        contenders.push(("sync_channel", std_channel::<T>, 2));
    }
    let slots = (64 / batch).max(8);
    let (mut rates, mut probes) = (vec![Vec::new(); contenders.len()], Vec::new());
    for round in 0..scale.rounds {
        for turn in 0..contenders.len() {
            // Another one begins in each round.
            let index = (turn + round) % contenders.len();
            let (_, contender, slower) = contenders[index];
            let records = scale.records / if batch == 1 { 8 } else { 1 } / slower;
            let batches = (records / batch as u64).max(4);
            probes.push(bare_round_trip(scale.probe_trips));
            rates[index].push((batches * batch as u64) as f64 / contender(batches, batch, slots) / 1e6);
        }
    }
    let ratios: Vec<f64> = rates[0].iter().zip(&rates[1]).map(|(ours, rtrb)| ours / rtrb).collect();
    print!("{name:>5} x {batch:<5}");
    for ((name, ..), rates) in contenders.iter().zip(&rates) {
        print!("{name} {:.0} M/s, ", median(rates));
    }
    let [low, middle, high] = [0.25, 0.5, 0.75].map(|q| quantile(&ratios, q));
    print!("snapring/rtrb {middle:.2} (quartiles {low:.2}-{high:.2}), of medians ");
    print!("{:.2}; probe {:.0} ns ", median(&rates[0]) / median(&rates[1]), median(&probes));
    println!("({:.0}-{:.0})", quantile(&probes, 0.1), quantile(&probes, 0.9));
}

fn round_trips<T: Load>(name: &str, scale: &Scale) {
    let (mut bare, mut ours, mut rtrb) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        bare.push(bare_round_trip(scale.round_trips));
        ours.push(ring_round_trip::<T>(scale.round_trips));
        rtrb.push(rtrb_round_trip::<T>(scale.round_trips));
    }
    let ratio = |times: &[f64]| median(&times.iter().zip(&bare).map(|(time, bare)| time / bare).collect::<Vec<_>>());
    print!("{name:>5} round trip: bare {:.0} ns, snapring {:.0} ns ", median(&bare), median(&ours));
    println!("({:.2} of bare), rtrb {:.0} ns ({:.2} of bare)", ratio(&ours), median(&rtrb), ratio(&rtrb));
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let scale = if has("--bench") && !has("--test") {
        Scale { rounds: 21, records: 2 << 20, round_trips: 20_000, probe_trips: 2_000 }
    } else {
        Scale { rounds: 1, records: 1 << 12, round_trips: 100, probe_trips: 10 }
    };
    pin(0);
    round_trips::<u64>("u64", &scale);
    round_trips::<[u64; 8]>("64 B", &scale);
    let only: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    for batch in [1, 64, 256, 1024].into_iter().filter(|batch| only.is_empty() || only.contains(batch)) {
        throughput::<u64>("u64", batch, &scale);
        throughput::<[u64; 8]>("64 B", batch, &scale);
    }
}
