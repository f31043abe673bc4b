//! A job as a sink sees it: writers, a committer, and what a snapshot says (protocols, rules 40 and 41). A snapshot lists all
//! parts not yet committed, and a restore begins where the newest durable snapshot was cut. Nothing here runs a dataflow.

use super::Outlet;
use crate::error::ConnectorError;
use crate::operator::{Committer, Part, Place, Sink, WentBack, Writer};

/// What may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A record for each task.
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
    /// A crash that also takes what was not synced.
    PowerFailure,
    /// A crash, and the next start goes on from the durable epoch before the newest one.
    GoBack,
}

impl Step {
    pub(super) const ALL: [Self; 9] = {
        use Step::*;
        [Write, Prepare, Sync, Durable, CommitFirst, Commit, Crash, PowerFailure, GoBack]
    };
}

/// The next record, and the parts not yet committed. Epoch and attempt go on from the newest durable snapshot too, as a
/// job knows of nothing later: the names of two starts can be the same.
#[derive(Clone, Default)]
struct Snapshot {
    epoch: u64,
    attempt: u32,
    next: u64,
    listed: Vec<Part>,
    /// Epochs that it does not build on.
    undone: Vec<(u64, u64)>,
    /// It is itself an epoch by which somebody went back.
    went_back: Option<WentBack>,
}

pub(super) struct Job<'a, O: Outlet> {
    outlet: &'a O,
    committer: Option<Box<dyn Committer>>,
    writers: Vec<<O::Sink as Sink>::Writer>,
    now: Snapshot,
    /// And whether it is synced.
    under_way: Option<(Snapshot, bool)>,
    /// The durable ones, the newest last.
    durable: Vec<Snapshot>,
}

type Checked<T> = Result<T, String>;

fn said(what: &'static str) -> impl Fn(ConnectorError) -> String {
    move |error| format!("{what} failed: {error}")
}

impl<'a, O: Outlet> Job<'a, O> {
    /// Does the steps, then goes on to the end; false if a step makes no sense.
    pub(super) fn run(outlet: &'a O, steps: &[Step]) -> Checked<bool> {
        if !outlet.sink().exactly_once() {
            return Err("it is a plain sink, for which nothing is promised".to_owned());
        }
        let (now, writers, durable) = (Snapshot::default(), Vec::new(), Vec::new());
        let mut job = Self { outlet, committer: None, writers, now, under_way: None, durable };
        job.start(false)?;
        for step in steps {
            if !job.step(*step)? {
                return Ok(false);
            }
            job.check(matches!(step, Step::Crash | Step::PowerFailure | Step::GoBack))?;
        }
        for step in [Step::Write, Step::Prepare, Step::Sync, Step::Durable, Step::Commit] {
            job.step(step)?;
        }
        job.check(true)?;
        Ok(true)
    }

    /// The process has died, if there was one before; another one goes on, after going back if it should.
    fn start(&mut self, goes_back: bool) -> Checked<()> {
        self.writers.clear();
        self.committer = None;
        self.under_way = None;
        let attempt = self.durable.iter().map(|snapshot| snapshot.attempt).max().unwrap_or(0) + 1;
        let newest_epoch = self.durable.last().map_or(0, |snapshot| snapshot.epoch);
        let restored = !self.durable.is_empty();
        let place = Place { store_id: Some([1; 16]), restored, newest_epoch, attempt, sync: true };
        let sink = self.outlet.sink();
        let mut committer = sink.claim(&place).map_err(said("`claim`"))?;
        if goes_back {
            self.go_back(&mut *committer)?;
        }
        self.now = self.durable.last().cloned().unwrap_or_default();
        self.now.attempt = attempt;
        if let Some(back) = self.now.went_back.take() {
            committer.retract(&back).map_err(said("`retract`"))?;
        }
        committer.recover(&self.now.listed).map_err(said("`recover`"))?;
        self.now.listed.clear();
        if self.outlet.pending() > 0 {
            return Err(format!("{} parts are left pending by a restore", self.outlet.pending()));
        }
        // Another number of tasks each time.
        let writers = (0..2 + (attempt + 1) % 2).map(|task| sink.writer(&place, task).map_err(said("`writer`")));
        self.writers = writers.collect::<Checked<_>>()?;
        self.committer = Some(committer);
        Ok(())
    }

    /// What a start does that goes on from the epoch before the newest one: that becomes the newest.
    fn go_back(&mut self, committer: &mut dyn Committer) -> Checked<()> {
        let [.., to, from] = &self.durable[..] else { return Ok(()) };
        committer.recover(&from.listed).map_err(said("`recover` of the newest epoch, before going back"))?;
        let back = WentBack::new(to.epoch, from.epoch, to.undone.clone());
        let (epoch, undone) = (back.as_epoch(), back.undone.clone());
        let snapshot = Snapshot { epoch, undone, went_back: Some(back), ..to.clone() };
        self.durable.push(snapshot);
        Ok(())
    }

    fn committer(&mut self) -> &mut dyn Committer {
        &mut **self.committer.as_mut().expect("there is one between two starts")
    }

    /// False if the step makes no sense here.
    fn step(&mut self, step: Step) -> Checked<bool> {
        let commits = self.commits();
        let can_go_back = self.durable.len() > 1 && self.committer().can_retract();
        match (step, &self.under_way) {
            (Step::Write, _) => self.write()?,
            (Step::Prepare, _) => self.prepare()?,
            (Step::Sync, Some((snapshot, false))) => {
                let snapshot = snapshot.clone();
                self.committer().sync(&snapshot.listed).map_err(said("`sync`"))?;
                self.under_way = Some((snapshot, true));
            }
            (Step::Durable, Some((snapshot, true))) => {
                self.durable.push(snapshot.clone());
                self.under_way = None;
            }
            (Step::CommitFirst, None) if commits.len() > 1 => self.commit(&commits[..1])?,
            (Step::Commit, None) if !commits.is_empty() => {
                self.commit(&commits)?;
                self.now.listed.retain(|part| !commits.contains(part));
            }
            (Step::Crash, _) => self.start(false)?,
            (Step::PowerFailure, _) if self.outlet.lose_power() => self.start(false)?,
            (Step::GoBack, _) if can_go_back => self.start(true)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn write(&mut self) -> Checked<()> {
        for writer in &mut self.writers {
            writer
                .write(O::record(self.now.next))
                .and_then(|()| writer.flush())
                .map_err(|failed| failed.0.to_string())?;
            self.now.next += 1;
        }
        Ok(())
    }

    fn prepare(&mut self) -> Checked<()> {
        self.now.epoch += 1;
        for writer in &mut self.writers {
            let part = writer.prepare(self.now.epoch).map_err(|failed| failed.0.to_string())?;
            self.now.listed.extend(part);
        }
        self.under_way = Some((self.now.clone(), false));
        Ok(())
    }

    fn commit(&mut self, parts: &[Part]) -> Checked<()> {
        self.committer().commit(parts).map_err(said("`commit`"))
    }

    /// The parts of the durable epoch that are left to commit.
    fn commits(&self) -> Vec<Part> {
        let durable = self.durable.last().into_iter().flat_map(|snapshot| &snapshot.listed);
        durable.filter(|part| self.now.listed.contains(part)).cloned().collect()
    }

    /// What is committed is each record at most once, and none ahead of its epoch; `all`: those of the durable epoch are there.
    fn check(&self, all: bool) -> Checked<()> {
        let mut committed = self.outlet.committed();
        committed.sort_unstable();
        let durable = self.durable.last().map_or(0, |snapshot| snapshot.next);
        if let Some(two) = committed.windows(2).find(|two| two[0] == two[1]) {
            return Err(format!("record {} is committed twice: {committed:?}", two[0]));
        }
        if let Some(last) = committed.last().filter(|last| **last >= durable) {
            return Err(format!("record {last} is committed, and is no part of the durable epoch: {committed:?}"));
        }
        if let Some(missing) = (0..durable).find(|number| all && committed.binary_search(number).is_err()) {
            return Err(format!("record {missing} of the durable epoch is missing: {committed:?}"));
        }
        Ok(())
    }
}
