//! Operators of a user's own: what they emit, when, and what is there after a restart.

use super::{config, numbers, sorted};
use snapring::connector::{Collect, Discard, Memory};
use snapring::dataflow::Dataflow;
use snapring::error::Failed;
use snapring::operator::{Emit, Operator, Progress, Value};
use snapring::runtime::Checkpoints;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Gathers records into groups: emits one that has become as large as asked for, and at the end those that have not.
struct Groups {
    len: usize,
    /// Calls of `on_end`, for the test to see.
    ends: Arc<AtomicU64>,
}

impl Operator for Groups {
    type Key = u64;
    type In = u64;
    type Out = (u64, Vec<u64>);
    type State = Value<Vec<u64>>;

    fn on_record<E: Emit<Self::Out>>(
        &self,
        key: &u64,
        number: u64,
        group: &mut Value<Vec<u64>>,
        out: &mut E,
    ) -> Result<(), Failed> {
        group.get_or_insert_with(Vec::new)?.push(number);
        match group.get()? {
            Some(full) if full.len() == self.len => {
                let full = group.take()?.unwrap_or_default();
                out.emit((*key, full))
            }
            _ => Ok(()),
        }
    }

    fn on_end<E: Emit<Self::Out>>(&self, key: &u64, rest: &mut Value<Vec<u64>>, out: &mut E) -> Result<(), Failed> {
        self.ends.fetch_add(1, Ordering::Relaxed);
        // More than one record for a key.
        rest.take()?.into_iter().flatten().try_for_each(|number| out.emit((*key, vec![number])))
    }
}

#[test]
fn records_and_ends_are_met_once_across_restarts() {
    // Many pages: the emission goes on for as many portions.
    const KEYS: u64 = 20_000;
    const NUMBERS: u64 = KEYS * 4 + 350;
    for (parallelisms, len) in [([1, 3, 1, 2], 1), ([4, 1, 2, 2], 3)] {
        let (folder, out, ends) = (tempfile::tempdir().unwrap(), Memory::new(), Arc::<AtomicU64>::default());
        let local = |parallelism| {
            let flow = Dataflow::new("groups");
            let keyed = flow.source("numbers", numbers(NUMBERS, 3)).key_by(|number| number % KEYS);
            let groups = Groups { len: 3, ends: ends.clone() };
            keyed.process("groups", groups).stage("after").sink("out", out.clone());
            let config = config(1).parallelism(parallelism).ring_capacity(len).batch_len_max(len);
            flow.into_local(config.checkpoints(Checkpoints::on_demand().to(folder.path()))).unwrap()
        };
        let mut singles = 0;
        for (run, parallelism) in parallelisms.into_iter().enumerate() {
            let mut job = local(parallelism);
            // The first run is left while it reads, the later ones while they emit what is left.
            let before = ends.load(Ordering::Relaxed);
            while run > 0 && ends.load(Ordering::Relaxed) == before {
                assert_ne!(job.step().unwrap(), Progress::Done, "it has emitted all there is");
            }
            for _ in 0..100 {
                job.step().unwrap();
            }
            let pending = job.checkpoint().unwrap();
            while pending.try_wait().unwrap().is_none() {
                assert_ne!(job.step().unwrap(), Progress::Done, "the job outlasts its checkpoints");
            }
            let now = out.committed().iter().filter(|(_, group)| group.len() == 1).count();
            assert!(now >= singles && (run == 0) == (now == 0), "run {run}: {now} after {singles}");
            singles = now;
        }
        local(2).run().unwrap();
        let groups = sorted(out.committed());
        let (whole, single): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(_, group)| group.len() == 3);
        assert!(whole.iter().map(|(key, _)| *key).eq(0..KEYS), "each key has one whole group");
        assert!(singles < single.len(), "the checkpoints fell into the emission: {singles}");
        let all = whole.into_iter().chain(single).flat_map(|(key, group)| {
            assert!(group.iter().all(|number| number % KEYS == key));
            group
        });
        assert_eq!(sorted(all.collect()), (0..NUMBERS).collect::<Vec<_>>());
    }
}

/// The last number of each key: fixed layout, nothing at the end, and errors if it is told to.
struct Last(&'static str);

impl Operator for Last {
    type Key = u64;
    type In = u64;
    type Out = (u64, u64);
    type State = Value<u64>;

    fn on_record<E: Emit<(u64, u64)>>(
        &self,
        key: &u64,
        number: u64,
        last: &mut Value<u64>,
        out: &mut E,
    ) -> Result<(), Failed> {
        match self.0 {
            "error" if number == 41 => return Err(Failed::user("41 is bad")),
            "panic" if number == 41 => panic!("41 is bad"),
            _ => {}
        }
        if last.get()?.is_some_and(|last| number.is_multiple_of(2) && *last > number) {
            return Ok(());
        }
        last.set(number);
        out.emit((*key, number))
    }
}

#[test]
fn what_goes_wrong_in_an_operator_names_it() {
    for how in ["error", "panic"] {
        let flow = Dataflow::new("wrong");
        let keyed = flow.source("numbers", numbers(100, 1)).key_by(|number| number % 7);
        keyed.process("last", Last(how)).sink("out", Discard::new());
        let error = flow.start(config(1).parallelism(1)).unwrap().wait().unwrap_err().to_string();
        for part in ["operator `last`, task 0, epoch 1, record 42", "41 is bad"] {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    }
}

#[test]
fn values_outlive_a_job_that_has_more_keys_than_a_page() {
    let out = Collect::new();
    let flow = Dataflow::new("many");
    let keyed = flow.source("numbers", numbers(100_000, 4)).key_by(|number| number % 20_000);
    keyed.process("last", Last("")).sink("out", out.clone());
    flow.start(config(2)).unwrap().wait().unwrap();
    let mut last = std::collections::BTreeMap::new();
    for (key, number) in out.take() {
        assert_eq!(number % 20_000, key);
        last.entry(key).and_modify(|last: &mut u64| *last = number.max(*last)).or_insert(number);
    }
    assert!(last.len() == 20_000 && last.iter().all(|(key, number)| *number == key + 80_000), "{}", last.len());
}
