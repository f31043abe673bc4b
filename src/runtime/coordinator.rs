//! The coordinator's shell: it gives the pure [`checkpoint::Coordinator`](crate::checkpoint::Coordinator) its events and
//! does what that decides: the epoch words, the commit to the store, the sinks' second phase.
//!
//! The order of a commit, each step only after the one before (protocols, rule 40): the parts are synced, the epoch that
//! lists them becomes durable, tasks are told, the parts are published. A crash in between is mended at the restore,
//! which publishes the listed parts again.

use super::header::Header;
use super::ledger::{CheckpointOutcome, Ledger};
use super::pending::{Answer, Unmade};
use super::shared::Shared;
use super::sink_state::SinkState;
use super::views::{ViewAnswer, Views};
use crate::checkpoint::{Action, Coordinator, Protocol};
use crate::error::{Cause, ConnectorError, Failure, StoreError};
use crate::operator::{Committer, Part, TableCut};
use crate::snapshot::{Entry, Side, Store};
use relieve::Patience;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// What the coordinator hears.
pub(crate) enum Event {
    /// A task froze in an epoch.
    Snapshot { task: u32, epoch: u64, snapshot: TaskSnapshot },
    /// A task pauses for an epoch that stops the world.
    Paused { task: u32, epoch: u64 },
    /// A task finished: its final snapshot.
    Finished { task: u32, snapshot: TaskSnapshot },
    /// A task failed.
    Failed(Box<Failure>),
    /// Somebody wants a checkpoint, and is told when it is durable, or why not.
    Demand(Answer),
    /// The same, and it is to be the last: when it is durable the attempt ends.
    Last(Answer),
    /// Somebody wants a view.
    View(ViewAnswer),
    /// A task has handed over all that a view has of it.
    Viewed { epoch: u64, tables: Vec<TableCut> },
    /// What a task had of a view was let go of: memory was short.
    Unviewed { epoch: u64 },
}

/// What a task hands in.
#[derive(Default)]
pub(crate) struct TaskSnapshot {
    pub(crate) entries: Vec<Entry>,
    /// Prepared parts, each with its sink.
    pub(crate) parts: Vec<(Arc<str>, Part)>,
}

/// A durable checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointReport {
    /// Its epoch.
    pub epoch: u64,
    /// From its begin until it was durable and the parts of sinks were committed.
    pub duration_ns: u64,
    /// The protocol by which it was made.
    pub protocol: Protocol,
    /// From its begin until the last task had frozen.
    pub cut_ns: u64,
    /// From its begin until all logs of channels were complete.
    pub complete_ns: u64,
    /// Bytes of records that were on their way in channels.
    pub channel_bytes: u64,
    /// Bytes written for it.
    pub bytes: u64,
}

pub(crate) struct Coordination {
    pub(super) shared: Arc<Shared>,
    pub(super) machine: Coordinator,
    store: Option<Store>,
    header: Header,
    protocol: Protocol,
    sinks: Vec<SinkState>,
    pub(super) events: Receiver<Event>,
    /// Snapshots of the epoch under way.
    snapshots: Vec<Entry>,
    /// Final snapshots.
    finals: Vec<Entry>,
    /// Tasks that have not finished.
    running: usize,
    /// When the epoch under way began; the last one, made of final snapshots alone, has no such moment.
    begun_ns: Option<u64>,
    demands: Vec<(u64, Answer)>,
    /// The epoch that is to be the last, and whether it is durable: nothing follows then.
    last: Option<u64>,
    has_ended: bool,
    views: Views,
    /// When the last epoch began that was a checkpoint.
    checkpoint_begun_ns: u64,
    patience: Patience,
    ledger: Arc<Ledger>,
}

impl Coordination {
    /// Of a job whose tasks are all running; `header` is what its checkpoints will say.
    pub(crate) fn new(
        shared: Arc<Shared>,
        machine: Coordinator,
        store: Option<Store>,
        header: Header,
        sinks: Vec<SinkState>,
        events: Receiver<Event>,
        ledger: Arc<Ledger>,
    ) -> Self {
        let (protocol, checkpoint_begun_ns) = (machine.protocol(), shared.meter.clock().now_ns());
        let views = Views::new(shared.memory.limit_bytes());
        Self {
            shared,
            running: machine.tasks(),
            machine,
            store,
            header: Header { protocol: protocol.to_string(), ..header },
            protocol,
            sinks,
            events,
            snapshots: Vec::new(),
            finals: Vec::new(),
            begun_ns: None,
            demands: Vec::new(),
            last: None,
            has_ended: false,
            views,
            checkpoint_begun_ns,
            patience: Patience::default(),
            ledger,
        }
    }

    /// Takes in what has been heard and does what is due. True once the last epoch is durable: the job is over.
    pub(crate) fn poll(&mut self, now_ns: u64) -> Result<bool, Box<Failure>> {
        let clock = self.shared.meter.clock().clone();
        let (called_ns, closed_to) = (clock.now_ns(), self.machine.closed_to());
        while !self.has_ended
            && let Ok(event) = self.events.try_recv()
        {
            self.hear(event, now_ns)?;
        }
        if self.has_ended {
            return Ok(false);
        }
        // A commit takes its time, and what begins after it begins then.
        let took_ns = if self.machine.closed_to() > closed_to { clock.now_ns() - called_ns } else { 0 };
        let now_ns = now_ns + took_ns;
        self.relieve(now_ns)?;
        while let Some(action) = self.machine.tick(now_ns) {
            self.act(action, now_ns)?;
        }
        let is_over = self.machine.is_over();
        if is_over {
            self.ledger.update(|status| status.ended = true);
        }
        Ok(is_over)
    }

    pub(crate) fn hear(&mut self, event: Event, now_ns: u64) -> Result<(), Box<Failure>> {
        let action = match event {
            _ if self.has_ended => None,
            Event::Failed(failure) => return Err(failure),
            Event::Demand(answer) => {
                self.demand(answer);
                None
            }
            Event::Last(answer) => {
                self.last = Some(self.demand(answer));
                None
            }
            Event::View(answer) => self.of_views(|views| views.want(answer)),
            Event::Viewed { epoch, tables } => self.of_views(|views| views.viewed(epoch, tables)),
            Event::Unviewed { epoch } => {
                self.shared.drop_view(epoch);
                self.of_views(|views| views.run_short(epoch))
            }
            Event::Paused { task, epoch } => self.machine.paused(task as usize, epoch),
            Event::Snapshot { task, epoch, snapshot } => {
                self.take_parts(snapshot.parts);
                // Of an epoch given up meanwhile, only the parts are kept (rule 2).
                if epoch > self.machine.closed_to() {
                    self.snapshots.extend(snapshot.entries);
                    self.views.cut(epoch);
                }
                self.machine.snapshot(task as usize, epoch)
            }
            Event::Finished { task, snapshot } => {
                self.take_parts(snapshot.parts);
                self.finals.extend(snapshot.entries);
                self.running -= 1;
                self.machine.finished(task as usize)
            }
        };
        action.map_or(Ok(()), |action| self.act(action, now_ns))
    }

    /// Lets go of sinks and snapshots. What is left can serve another attempt.
    pub(crate) fn dissolve(self) -> (Option<Store>, Receiver<Event>) {
        let Self { store, events, sinks, .. } = self;
        sinks.into_iter().for_each(SinkState::leave);
        (store, events)
    }

    fn take_parts(&mut self, parts: Vec<(Arc<str>, Part)>) {
        self.ledger.update(|status| status.parts += parts.len() as u64);
        for (name, part) in parts {
            let sink = self.sinks.iter_mut().find(|sink| sink.name == name);
            sink.expect("a sink with a writer has a committer").uncommitted.push(part);
        }
    }

    fn act(&mut self, action: Action, now_ns: u64) -> Result<(), Box<Failure>> {
        match action {
            Action::Begin(epoch) => self.begin(epoch, now_ns),
            Action::TimeOut(epoch) => {
                self.ledger.note(|checkpoint| checkpoint.timed_out = true);
                self.shared.time_out(epoch);
            }
            Action::Release(epoch) => self.shared.release(epoch),
            Action::Abort(epoch) => self.give_up(epoch, "it took longer than its time-out"),
            Action::Commit(epoch) if self.views.is_only(epoch) && self.running > 0 => self.close_view(epoch),
            Action::Commit(epoch) if self.is_torn_by_the_end() => {
                self.machine.declined(epoch);
                self.let_go(epoch, "the job drains: its last checkpoint will cover this");
            }
            Action::Commit(epoch) => match self.commit_with_view(epoch, now_ns) {
                Ok(()) => {
                    self.patience = Patience::default();
                    self.machine.durable(epoch);
                    self.shared.close(epoch);
                }
                // The last durable epoch stands: the job runs on, and the next epoch may find room, or a better file.
                Err(failure) if self.may_go_on(epoch, &failure) => {
                    let reason = failure.to_string();
                    match self.machine.declined(epoch) {
                        Some(Action::Abort(_)) => self.give_up(epoch, &reason),
                        _ => return Err(failure),
                    }
                }
                Err(failure) => return Err(failure),
            },
            Action::Fail(epoch) => {
                let cause = Cause::LastCheckpoint(format!("epoch {epoch} was given up"));
                return Err(Box::new(Failure::new(cause)));
            }
        }
        Ok(())
    }

    /// Whether sources may have ended ahead of an epoch only because the job drains. It would hold what operators emit at the
    /// end of the input, and whoever went on from it would read more. The flag is seen here if it was by a task that reports.
    fn is_torn_by_the_end(&self) -> bool {
        self.shared.is_draining() && self.running > 0
    }

    /// Whether the store may take another epoch. One that it refuses would be refused for ever; unless what it builds on
    /// is lost: then the next one brings all pages. Of tasks that have finished nobody has them any more.
    fn may_go_on(&self, epoch: u64, failure: &Failure) -> bool {
        match failure.cause {
            Cause::Store(StoreError::Refused { .. }) => {
                !self.shared.is_full(epoch) && self.store.as_ref().is_some_and(Store::needs_full)
            }
            Cause::Store(_) => true,
            _ => false,
        }
    }

    /// An epoch will not be: what tasks froze in it counts as changed again, prepared parts are kept (rule 2).
    fn give_up(&mut self, epoch: u64, reason: &str) {
        tracing::warn!(epoch, reason, "checkpoint given up");
        self.let_go(epoch, reason);
        // Whoever hears of it finds it in the numbers.
        self.answer(epoch, &Err(Unmade::GivenUp(format!("checkpoint {epoch} was given up: {reason}"))));
    }

    /// The same; whoever waits for it waits for the next.
    fn let_go(&mut self, epoch: u64, reason: &str) {
        self.snapshots.clear();
        let is_checkpoint = !self.views.is_only(epoch);
        if self.views.give_up(epoch, &Unmade::GivenUp(format!("the cut of the view was given up: {reason}"))) {
            self.shared.drop_view(epoch);
        }
        self.ledger.note(|checkpoint| checkpoint.outcome = CheckpointOutcome::GivenUp(reason.to_owned()));
        self.ledger.update(|status| status.given_up += u64::from(is_checkpoint));
        self.begun_ns = None;
        self.shared.abort(epoch);
        self.demand_view();
    }

    /// Makes an epoch durable and publishes its parts.
    fn commit(&mut self, epoch: u64, complete_at_ns: u64) -> Result<(), Box<Failure>> {
        let clock = self.shared.meter.clock().clone();
        let begun_ns = self.begun_ns.take().unwrap_or_else(|| {
            // The last one, of final snapshots alone, has no other begin.
            self.ledger.begin(epoch, complete_at_ns, self.protocol);
            complete_at_ns
        });
        let since = |end_ns: u64| end_ns.saturating_sub(begun_ns);
        let ledger = self.ledger.clone();
        // Where only final snapshots are left to hand in, the last freeze was in an epoch before.
        let cut_ns = since(self.shared.last_cut_ns().max(begun_ns));
        let (complete_ns, channel_bytes) = (since(complete_at_ns), self.channel_bytes());
        let pause_ns = self.shared.take_pause_ns();
        ledger.note(|checkpoint| {
            (checkpoint.cut_ns, checkpoint.complete_ns) = (Some(cut_ns), Some(complete_ns));
            checkpoint.pause_ns = Some(pause_ns);
            checkpoint.channel_bytes = channel_bytes;
        });
        let mut bytes = 0;
        if self.store.is_some() {
            self.call_sinks(epoch, "sync", |committer, parts| committer.sync(parts))?;
            ledger.note(|checkpoint| checkpoint.synced_ns = Some(since(clock.now_ns())));
            let written = self.try_write(epoch);
            bytes = written.map_err(|error| Box::new(Failure { epoch: Some(epoch), ..Failure::new(error) }))?;
            ledger.note(|checkpoint| {
                (checkpoint.durable_ns, checkpoint.bytes) = (Some(since(clock.now_ns())), bytes);
                checkpoint.outcome = CheckpointOutcome::Durable;
            });
        }
        self.shared.durable(epoch);
        self.call_sinks(epoch, "commit", |committer, parts| committer.commit(parts))?;
        self.sinks.iter_mut().for_each(|sink| sink.uncommitted.clear());
        let (protocol, duration_ns) = (self.protocol, since(clock.now_ns()));
        self.note_durable(CheckpointReport { epoch, protocol, duration_ns, cut_ns, complete_ns, channel_bytes, bytes });
        Ok(())
    }

    /// Bytes of what the epoch under way holds of channels.
    fn channel_bytes(&self) -> u64 {
        let of_channel = |entry: &&Entry| Side::of_state(&entry.state).is_some();
        self.snapshots.iter().filter(of_channel).map(|entry| entry.root.len() as u64).sum()
    }

    fn call_sinks(
        &mut self,
        epoch: u64,
        what: &str,
        mut run: impl FnMut(&mut dyn Committer, &[Part]) -> Result<(), ConnectorError>,
    ) -> Result<(), Box<Failure>> {
        for sink in &mut self.sinks {
            let name = sink.name.clone();
            self.ledger.at(|| format!("the {what} of sink `{name}`"), || sink.call(epoch, &mut run))?;
        }
        Ok(())
    }
}

mod answers;
mod begin;
mod relieve;
#[cfg(all(test, not(snapring_loom)))]
mod tests;
mod write;
