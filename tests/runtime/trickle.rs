//! Input that comes in drops and pauses: nothing may wait for more to come.

use snapring::connector::{Collect, Generate};
use snapring::dataflow::Dataflow;
use snapring::error::{ConnectorError, Failed};
use snapring::operator::{Emit, Progress, Read, Reader, Source, Split};
use snapring::runtime::{Checkpoints, Config, Local};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A split for each list. After its records, a split has nothing for now, for ever; or it is at its end.
#[derive(Clone)]
struct Drops {
    splits: Arc<Vec<(Vec<u64>, Read)>>,
    /// How often each split has been opened.
    opened: Arc<Vec<AtomicU64>>,
}

struct DropsReader {
    left: Vec<u64>,
    given: u64,
    then: Read,
}

impl Drops {
    fn new(splits: Vec<(Vec<u64>, Read)>) -> Self {
        Self { opened: Arc::new(splits.iter().map(|_| AtomicU64::new(0)).collect()), splits: Arc::new(splits) }
    }

    /// How often a split has been opened since the last time that somebody asked.
    fn opened(&self, split: usize) -> u64 {
        self.opened[split].swap(0, Ordering::Relaxed)
    }
}

impl Source for Drops {
    type Item = u64;
    type Reader = DropsReader;
    fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        let split = |id| Split { id, name: format!("drops {id}"), descriptor: Vec::new() };
        Ok((0..self.splits.len() as u32).map(split).collect())
    }
    fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError> {
        assert!(splits.iter().map(|split| split.id as usize).eq(0..self.splits.len()), "all of them, by id");
        Ok(())
    }
    fn open(&self, split: &Split, offset: u64) -> Result<DropsReader, ConnectorError> {
        self.opened[split.id as usize].fetch_add(1, Ordering::Relaxed);
        let (records, then) = &self.splits[split.id as usize];
        Ok(DropsReader { left: records[offset as usize..].to_vec(), given: offset, then: *then })
    }
}

impl Reader for DropsReader {
    type Item = u64;
    fn read<E: Emit<u64>>(&mut self, max: usize, out: &mut E) -> Result<Read, Failed> {
        for record in self.left.drain(..max.min(self.left.len())) {
            self.given += 1;
            out.emit(record)?;
        }
        Ok(if self.left.is_empty() { self.then } else { Read::More })
    }
    fn offset(&self) -> u64 {
        self.given
    }
}

fn config() -> Config {
    Config::new().unpinned_workers(1)
}

fn steps(job: &mut Local, steps: usize) {
    (0..steps).for_each(|_| assert_ne!(job.step().unwrap(), Progress::Done));
}

#[test]
fn a_part_of_a_batch_goes_when_the_input_pauses() {
    let (one, other) = (Collect::new(), Collect::new());
    let flow = Dataflow::new("pauses");
    let (left, right) = flow.source("drops", Drops::new(vec![(vec![7], Read::Pending)])).fork();
    left.stage("left").sink("one", one.clone());
    right.stage("right").sink("other", other.clone());
    steps(&mut flow.into_local(config()).unwrap(), 20);
    assert_eq!((one.take(), other.take()), (vec![7], vec![7]));
}

#[test]
fn a_part_of_a_batch_goes_though_the_input_never_pauses() {
    const RARE: u64 = 16;
    let out = Collect::new();
    let flow = Dataflow::new("busy");
    let keyed = flow.source("numbers", Generate::new(u64::MAX, 1, |index| index)).key_by(|number| (*number).min(RARE));
    keyed.count("count").sink("out", out.clone());
    let mut job = flow.into_local(config().parallelism(4)).unwrap();
    let mut seen = BTreeSet::new();
    for _ in 0..100 {
        steps(&mut job, 10);
        seen.extend(out.take().into_iter().map(|(key, _)| key));
    }
    // Each of the rare keys came once; those whose task is not that of the others had their slots to themselves.
    assert_eq!(seen.len() as u64, RARE + 1, "{seen:?}");
}

#[test]
fn a_split_that_pauses_holds_up_no_other() {
    let out = Collect::new();
    let flow = Dataflow::new("two");
    let drops = Drops::new(vec![(vec![1], Read::Pending), (vec![2, 3], Read::Pending), (vec![4], Read::Done)]);
    flow.source("drops", drops).sink("out", out.clone());
    steps(&mut flow.into_local(config()).unwrap(), 20);
    assert_eq!(out.take(), [1, 2, 3, 4]);
}

#[test]
fn a_split_at_its_end_is_not_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let drops = Drops::new(vec![(vec![1], Read::Done), (vec![2], Read::Pending), (vec![3], Read::Pending)]);
    let start = || {
        let flow = Dataflow::new("ended");
        flow.source("drops", drops.clone()).sink("out", Collect::new());
        flow.into_local(config().parallelism(2).checkpoints(Checkpoints::on_demand().to(folder.path()))).unwrap()
    };
    let opened = || [0, 1, 2].map(|split| drops.opened(split));
    let mut job = start();
    steps(&mut job, 20);
    let pending = job.checkpoint().unwrap();
    while pending.try_wait().unwrap().is_none() {
        steps(&mut job, 1);
    }
    assert_eq!(opened(), [1, 1, 1]);
    drop(job);
    steps(&mut start(), 20);
    assert_eq!(opened(), [0, 1, 1]);
}

/// Bytes of three checkpoints, one after the other, between which nothing is read.
fn checkpoint_bytes(then: Read) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let flow = Dataflow::new("large");
    let large = flow.source("large", Drops::new(vec![((0..20_000).collect(), then)]));
    large.key_by(|number| *number).count("count").sink("out", Collect::new());
    let small = flow.source("small", Drops::new(vec![(vec![1], Read::Pending)]));
    small.stage("behind").sink("others", Collect::new());
    let mut job = flow.into_local(config().checkpoints(Checkpoints::on_demand().to(folder.path()))).unwrap();
    steps(&mut job, 1000);
    let mut bytes = Vec::new();
    for _ in 0..3 {
        let pending = job.checkpoint().unwrap();
        bytes.push(loop {
            match pending.try_wait().unwrap() {
                Some(report) => break report.bytes,
                None => steps(&mut job, 1),
            }
        });
    }
    bytes
}

#[test]
fn a_checkpoint_writes_what_has_changed_since_the_last() {
    // Tasks that go on, and tasks that have finished before the first of them.
    for then in [Read::Pending, Read::Done] {
        let bytes = checkpoint_bytes(then);
        assert!(bytes[0] > 200_000 && bytes[1] < bytes[0] / 4 && bytes[2] < bytes[0] / 4, "{then:?}: {bytes:?}");
    }
}
