//! Steady state allocates nothing for fixed-layout records: a counting allocator around ring, outbox and inbox, around a
//! spill, and around a whole job. It counts by thread, since the test harness allocates on its own.

use snapring::channel::{Consumer, Front, Outbox, Polled, Producer, Records, Spill, SpillLimits, ring};
use snapring::connector::{Discard, Generate};
use snapring::dataflow::Dataflow;
use snapring::marks::Mark;
use snapring::operator::Progress;
use snapring::runtime::{Config, Local};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all calls go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

type Record = [u64; 8];

/// One round: batches, a mark, more records than the rings hold (they wait as leftovers), then all of it taken.
fn round(outbox: &mut Outbox<Record>, inputs: &mut [Consumer<Record>], fused: &mut Vec<Record>) -> u64 {
    let mut sum = 0;
    let mut drain = |inputs: &mut [Consumer<Record>]| {
        for input in inputs {
            while input.is_ready() {
                if let Polled::Records(records) = input.poll() {
                    fused.extend(records);
                    sum += Records::of(fused).map(|record| record[0]).sum::<u64>();
                }
            }
        }
    };
    for n in 0..1000 {
        outbox.emit(n % 3, [n as u64; 8]).unwrap();
    }
    outbox.mark_all(Mark::Barrier(1));
    assert!(outbox.has_leftovers());
    while !outbox.flush() {
        drain(inputs);
    }
    outbox.publish();
    drain(inputs);
    sum
}

#[test]
fn steady_state_allocates_nothing() {
    let (producers, mut consumers): (Vec<Producer<Record>>, Vec<Consumer<Record>>) =
        (0..3).map(|_| ring(4, 16)).unzip();
    let mut outbox = Outbox::new(producers, 1 << 20);
    let mut fused = Vec::with_capacity(16);
    for _ in 0..3 {
        round(&mut outbox, &mut consumers, &mut fused);
    }
    let before = ALLOCATIONS.get();
    assert!(before > 0, "the allocator counts");
    for _ in 0..100 {
        assert_eq!(round(&mut outbox, &mut consumers, &mut fused), (0..1000).sum());
    }
    assert_eq!(ALLOCATIONS.get(), before);
}

/// More than a chunk and, at the end, more than a segment of the file waits, marks among it; then all of it is taken.
fn spill_round(spill: &mut Spill<Record>, batch: &mut Vec<Record>) -> u64 {
    let mut sum = 0;
    for n in 0..100 {
        batch.extend((0..70).map(|_| [n; 8]));
        spill.push(&mut Records::of(batch)).unwrap();
        if n % 7 == 0 {
            spill.push_mark(Mark::Barrier(n));
        }
    }
    while let Some(front) = spill.front() {
        match front {
            Front::Records => sum += spill.take().unwrap().map(|record| record[0]).sum::<u64>(),
            Front::Mark(_) => drop(spill.take_mark()),
        }
    }
    sum
}

#[test]
fn a_spill_allocates_nothing_in_the_long_run_in_memory_and_in_the_file() {
    for memory_bytes in [1 << 30, 64 * 1024] {
        let folder = std::env::temp_dir();
        let mut spill = Spill::new(SpillLimits { memory_bytes, bytes_max: 1 << 30, folder });
        let mut batch = Vec::with_capacity(70);
        for _ in 0..3 {
            spill_round(&mut spill, &mut batch);
        }
        let before = ALLOCATIONS.get();
        for _ in 0..20 {
            assert_eq!(spill_round(&mut spill, &mut batch), (0..100).map(|n| 70 * n).sum());
        }
        assert_eq!(ALLOCATIONS.get(), before, "with {memory_bytes} bytes in memory");
    }
}

fn steps(job: &mut Local, count: u32) {
    (0..count).for_each(|_| assert_ne!(job.step().unwrap(), Progress::Done));
}

#[test]
fn the_steady_state_of_a_job_allocates_nothing() {
    let flow = Dataflow::new("steady");
    flow.source("numbers", Generate::new(u64::MAX, 1, |index| [index; 8]))
        .filter(|record| record[1] % 3 == 1)
        .map(|record| (record[0] % 1000, record[1]))
        .key_by(|(key, _)| *key)
        .fold("sums", (0u64, 0u64), |(count, sum), (_, value)| (*count, *sum) = (*count + 1, sum.wrapping_add(value)))
        .stage("after")
        .sink("out", Discard::new());
    let mut job = flow.into_local(Config::new().unpinned_workers(1).parallelism(2)).unwrap();
    steps(&mut job, 1000);
    let (before, records) = (ALLOCATIONS.get(), job.progress().records);
    steps(&mut job, 2000);
    assert!(job.progress().records > records + 50_000, "the job is running");
    assert_eq!(ALLOCATIONS.get(), before);
}
