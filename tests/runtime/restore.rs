//! Going on from a snapshot that is not read first: what does not fit is refused all the same, what was not needed is read in
//! the background or never, and what is damaged stops the job by name.

use snapring::connector::{Discard, Generate, Memory};
use snapring::error::{Cause, Error, RestoreError, StateError};
use snapring::operator::Progress;
use snapring::runtime::{Hydrate, Local};
use snapring::snapshot::sim::SimDisk;
use snapring::snapshot::{Store, StoreOptions};
use snapring::{Checkpoints, Config, Dataflow, Record};
use std::collections::BTreeMap;

const KEYS: u64 = 3000;

fn store(disk: &SimDisk) -> Store {
    let options = StoreOptions { page_bytes: 4096, segment_bytes: 64 << 10, ..StoreOptions::default() };
    Store::open_on(Box::new(disk.clone()), options).unwrap()
}

fn config(checkpoints: Checkpoints) -> Config {
    Config::new().unpinned_workers(1).parallelism(2).checkpoints(checkpoints)
}

/// Counts each key twice.
fn job(checkpoints: Checkpoints, sink: &Memory<(u64, u64)>) -> Result<Local, Error> {
    let flow = Dataflow::new("restored");
    let source = Generate::new(2 * KEYS, 4, |index| index % KEYS);
    flow.source("keys", source).key_by(|key| *key).count("counts").sink("out", sink.clone());
    flow.into_local(config(checkpoints).batch_len_max(10))
}

/// Runs until all keys have come once and a checkpoint of that is durable, and stops as a crash does.
fn half(disk: &SimDisk, sink: &Memory<(u64, u64)>) {
    let mut job = job(Checkpoints::on_demand().store(store(disk)), sink).unwrap();
    while job.progress().records < KEYS + KEYS / 2 {
        job.step().unwrap();
    }
    let asked = job.checkpoint().unwrap();
    while asked.try_wait().unwrap().is_none() {
        job.step().unwrap();
    }
}

fn counted(sink: &Memory<(u64, u64)>) -> BTreeMap<u64, Vec<u64>> {
    let mut counts = BTreeMap::<u64, Vec<u64>>::new();
    sink.committed().into_iter().for_each(|(key, count)| counts.entry(key).or_default().push(count));
    counts.values_mut().for_each(|counts| counts.sort_unstable());
    counts
}

#[test]
fn whatever_is_read_when_the_counts_are_the_same() {
    for verify in [false, true] {
        for hydrate in [Hydrate::Background, Hydrate::OnTouch] {
            let (disk, sink) = (SimDisk::new(), Memory::new());
            half(&disk, &sink);
            let checkpoints = Checkpoints::on_demand().store(store(&disk)).verify_on_restore(verify).hydrate(hydrate);
            let mut job = job(checkpoints, &sink).unwrap();
            assert!(job.restored_epoch().is_some());
            job.run().unwrap();
            let counts = counted(&sink);
            assert_eq!(counts.len() as u64, KEYS);
            assert!(counts.values().all(|counts| counts[..] == [1, 2]), "{counts:?}");
        }
    }
}

/// Changes a byte in every page of state.
fn damage(disk: &SimDisk) -> SimDisk {
    let store = store(disk);
    let restored = store.restore(store.newest().unwrap()).unwrap();
    let mut image = disk.image();
    let places = restored.entries.iter().flat_map(|entry| entry.places());
    places.for_each(|(_, offset, ..)| image[offset as usize + 99] ^= 4);
    SimDisk::with_image(image)
}

#[test]
fn a_damaged_page_stops_the_job_when_it_is_met_or_before_it_runs() {
    let (disk, sink) = (SimDisk::new(), Memory::new());
    half(&disk, &sink);
    let disk = damage(&disk);
    let error = job(Checkpoints::on_demand().store(store(&disk)).verify_on_restore(true), &sink).unwrap_err();
    let expect = |error: &Error| {
        let text = error.to_string();
        let names = ["epoch ", "operator `counts`, state `table`, task ", "page "];
        assert!(names.iter().all(|name| text.contains(name)), "{text}");
        assert_eq!(error.exit_code(), 3);
    };
    assert!(matches!(error, Error::Store(_)), "{error}");
    expect(&error);
    for hydrate in [Hydrate::Background, Hydrate::OnTouch] {
        let mut job = job(Checkpoints::on_demand().store(store(&disk)).hydrate(hydrate), &sink).unwrap();
        let error = job.run().unwrap_err();
        let Error::Job(failure) = &error else { panic!("{error}") };
        assert!(matches!(failure.cause, Cause::State(StateError::Corrupt { .. })), "{error}");
        assert_eq!(failure.operator.as_deref(), Some("counts"));
        expect(&error);
    }
}

/// A source that has nothing for now leaves time to read what no record has asked for.
#[test]
fn an_idle_job_reads_what_is_left_and_then_rests() {
    let (disk, sink) = (SimDisk::new(), Memory::new());
    half(&disk, &sink);
    let disk = damage(&disk);
    let steps_without_input = |hydrate| {
        let flow = Dataflow::new("restored");
        let source = Generate::new(2 * KEYS, 4, |index| index % KEYS);
        flow.source("keys", source).key_by(|key| *key).count("counts").sink("out", sink.clone());
        let clock = snapring::clock::Clock::Manual(Default::default());
        let checkpoints = Checkpoints::on_demand().store(store(&disk)).hydrate(hydrate);
        // A clock that stands still, so that no record is ever due.
        let mut job = flow.into_local(config(checkpoints).rate_per_s(1).clock(clock)).unwrap();
        (0..1000).find_map(|_| job.step().map(|progress| assert_ne!(progress, Progress::Done)).err())
    };
    assert!(steps_without_input(Hydrate::OnTouch).is_none(), "nothing is read that nobody needs");
    let error = steps_without_input(Hydrate::Background).expect("all pages are damaged");
    assert_eq!(error.exit_code(), 3);
}

#[test]
fn a_table_of_another_type_is_refused_also_when_nothing_is_left_to_run() {
    let start = |disk: &SimDisk| {
        let flow = Dataflow::new("typed");
        flow.source("numbers", Generate::new(10, 1, |index| index))
            .key_by(|number| *number)
            .count("seen")
            .sink("out", Discard::new());
        flow.into_local(config(Checkpoints::on_demand().store(store(disk))))
    };
    fn other<K: Record + Clone + Sync>(disk: &SimDisk, key: fn(&u64) -> K) -> Result<Local, Error> {
        let flow = Dataflow::new("typed");
        let numbers = flow.source("numbers", Generate::new(10, 1, |index| index));
        numbers.key_by(key).count("seen").sink("out", Discard::new());
        flow.into_local(config(Checkpoints::on_demand().store(store(disk))))
    }
    let disk = SimDisk::new();
    start(&disk).unwrap().run().unwrap();
    assert_eq!(start(&disk).unwrap().step().unwrap(), Progress::Done);
    let error = other(&disk, |number| *number as i64).unwrap_err();
    assert!(matches!(&error, Error::Restore(RestoreError::Schema { operator, .. }) if operator == "seen"), "{error}");
    assert_eq!(error.exit_code(), 4);
}
