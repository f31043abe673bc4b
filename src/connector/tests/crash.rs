//! Every order of writes, cuts, syncs, commits and crashes, against the rule: what is committed is each record once.
//!
//! The coordinator is modelled by what protocols, rule 40, says of it: a snapshot lists all parts not yet committed, and
//! a restore begins where the newest durable snapshot was cut.

use super::place;
use crate::connector::{Csv, Files, Memory};
use crate::operator::{Committer, Part, Sink, Writer};
use std::path::PathBuf;
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Two records, one for each task.
    Write,
    /// Cut an epoch; one that is under way is given up.
    Prepare,
    Sync,
    /// The epoch is durable; its parts are not committed yet.
    Durable,
    /// Commits one part only: a crash can fall in between.
    CommitFirst,
    Commit,
    Crash,
    /// A crash that also takes what was not synced, where the sink can model that.
    PowerFailure,
}

const STEPS: [Step; 8] = {
    use Step::*;
    [Write, Prepare, Sync, Durable, CommitFirst, Commit, Crash, PowerFailure]
};

/// A sink, and the view of somebody who reads the output.
trait Target: Sink<In = u64> {
    fn committed(&self) -> Vec<u64>;
    fn pending(&self) -> usize;
    fn lose_power(&self) {}
}

impl Target for Memory<u64> {
    fn committed(&self) -> Vec<u64> {
        Memory::committed(self)
    }
    fn pending(&self) -> usize {
        Memory::pending(self).len()
    }
    fn lose_power(&self) {
        Memory::lose_power(self);
    }
}

struct Folder(Files<u64>, PathBuf);

impl Sink for Folder {
    type In = u64;
    type Writer = <Files<u64> as Sink>::Writer;
    fn exactly_once(&self) -> bool {
        true
    }
    fn claim(&self, place: &crate::operator::Place) -> Result<Box<dyn Committer>, crate::error::ConnectorError> {
        self.0.claim(place)
    }
    fn writer(&self, place: &crate::operator::Place, task: u32) -> Result<Self::Writer, crate::error::ConnectorError> {
        self.0.writer(place, task)
    }
}

impl Folder {
    fn new(root: &TempDir) -> Self {
        let path = root.path().join("out");
        Self(Csv::exactly_once(&path).unwrap(), path)
    }

    fn files(&self, extension: &str) -> impl Iterator<Item = PathBuf> {
        let entries = std::fs::read_dir(&self.1).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(move |path| path.extension().is_some_and(|other| other == extension))
    }
}

impl Target for Folder {
    fn committed(&self) -> Vec<u64> {
        self.files("csv").flat_map(|path| numbers(&std::fs::read_to_string(path).unwrap())).collect()
    }
    fn pending(&self) -> usize {
        self.files("pending").count()
    }
}

/// In memory where there is such a file system: syncing takes no time there.
fn root() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

fn numbers(text: &str) -> Vec<u64> {
    assert!(text.ends_with('\n'), "never empty");
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// The next record, and the parts not yet committed. Epoch and attempt go on from the newest durable snapshot too, as a
/// job knows of nothing later: the names of two starts can be the same.
#[derive(Clone, Default)]
struct Snapshot {
    epoch: u64,
    attempt: u32,
    next: u64,
    listed: Vec<Part>,
}

struct Job<'a, S: Target> {
    sink: &'a S,
    committer: Option<Box<dyn Committer>>,
    writers: Vec<S::Writer>,
    now: Snapshot,
    under_way: Option<(Snapshot, bool)>,
    durable: Option<Snapshot>,
}

impl<'a, S: Target> Job<'a, S> {
    fn new(sink: &'a S) -> Self {
        let (now, writers) = (Snapshot::default(), Vec::new());
        let mut job = Self { sink, committer: None, writers, now, under_way: None, durable: None };
        job.start();
        job
    }

    fn start(&mut self) {
        self.writers.clear();
        self.committer = None;
        self.under_way = None;
        self.now = self.durable.clone().unwrap_or_default();
        self.now.attempt += 1;
        let place = place(1, self.durable.is_some(), self.now.attempt);
        let mut committer = self.sink.claim(&place).unwrap();
        committer.recover(&self.now.listed).unwrap();
        self.now.listed.clear();
        assert_eq!(self.sink.pending(), 0, "left over");
        self.writers = (0..2).map(|task| self.sink.writer(&place, task).unwrap()).collect();
        self.committer = Some(committer);
    }

    /// False if the step makes no sense here.
    fn step(&mut self, step: Step) -> bool {
        let commits = self.commits();
        let committer = self.committer.as_mut().unwrap();
        match (step, &mut self.under_way) {
            (Step::Write, _) => {
                for writer in &mut self.writers {
                    writer.write(self.now.next).unwrap();
                    self.now.next += 1;
                }
            }
            (Step::Prepare, under_way) => {
                self.now.epoch += 1;
                for writer in &mut self.writers {
                    self.now.listed.extend(writer.prepare(self.now.epoch).unwrap());
                }
                *under_way = Some((self.now.clone(), false));
            }
            (Step::Sync, Some((snapshot, synced @ false))) => {
                committer.sync(&snapshot.listed).unwrap();
                *synced = true;
            }
            (Step::Durable, under_way @ Some((_, true))) => {
                self.durable = under_way.take().map(|(snapshot, _)| snapshot)
            }
            (Step::CommitFirst, None) if commits > 1 => committer.commit(&self.now.listed[..1]).unwrap(),
            (Step::Commit, None) if commits > 0 => {
                let listed = self.durable.as_ref().unwrap().listed.clone();
                committer.commit(&listed).unwrap();
                self.now.listed.retain(|part| !listed.contains(part));
            }
            (Step::Crash, _) => self.start(),
            (Step::PowerFailure, _) => {
                self.sink.lose_power();
                self.start();
            }
            _ => return false,
        }
        true
    }

    /// How many parts of the durable epoch are left to commit.
    fn commits(&self) -> usize {
        let durable = self.durable.iter().flat_map(|snapshot| &snapshot.listed);
        durable.filter(|part| self.now.listed.contains(part)).count()
    }
}

/// Runs the steps, then to the end; false if a step made no sense.
fn run<S: Target>(sink: &S, steps: &[Step]) -> bool {
    let mut job = Job::new(sink);
    for step in steps {
        if !job.step(*step) {
            return false;
        }
        let mut committed = sink.committed();
        committed.sort_unstable();
        let durable = job.durable.as_ref().map_or(0, |snapshot| snapshot.next);
        assert!(committed.windows(2).all(|two| two[0] < two[1]), "twice, after {steps:?}: {committed:?}");
        assert!(committed.last().is_none_or(|last| *last < durable), "too early, after {steps:?}");
    }
    for step in [Step::Write, Step::Prepare, Step::Sync, Step::Durable, Step::Commit] {
        assert!(job.step(step));
    }
    let mut committed = sink.committed();
    committed.sort_unstable();
    assert_eq!(committed, (0..job.now.next).collect::<Vec<_>>(), "after {steps:?}");
    true
}

/// All orders of up to `length` steps.
fn explore(steps: &mut Vec<Step>, length: usize, run: &mut impl FnMut(&[Step]) -> bool) -> usize {
    if !run(steps) {
        return 0;
    }
    let mut orders = 1;
    if steps.len() < length {
        for step in STEPS {
            steps.push(step);
            orders += explore(steps, length, run);
            steps.pop();
        }
    }
    orders
}

#[test]
fn memory_holds_each_record_once_after_every_order_of_steps() {
    let orders = explore(&mut Vec::new(), 7, &mut |steps| run(&Memory::new(), steps));
    assert!(orders > 20_000, "{orders}");
}

#[test]
fn files_hold_each_record_once_after_every_order_of_steps() {
    let orders = explore(&mut Vec::new(), 5, &mut |steps| {
        let root = root();
        !steps.contains(&Step::PowerFailure) && run(&Folder::new(&root), steps)
    });
    assert!(orders > 500, "{orders}");
}

/// Longer orders than can all be tried: two epochs, with a crash after any step, and again.
#[test]
fn files_hold_each_record_once_after_a_crash_in_every_place() {
    use Step::*;
    let steps =
        [Write, Prepare, Write, Prepare, Sync, Write, Durable, CommitFirst, Write, Commit, Prepare, Sync, Durable];
    for first in 0..=steps.len() {
        for second in 0..=steps.len() {
            let root = root();
            let order = [&steps[..first], &[Crash], &steps[..second], &[Crash, Crash]].concat();
            assert!(run(&Folder::new(&root), &order));
        }
    }
}
