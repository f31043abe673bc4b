//! How a task follows epochs: it freezes when its protocol says so, begins the logs of its inputs, cuts its outputs, and
//! hands in its snapshot when that is complete. When to freeze is decided in `checkpoint`.

use super::coordinator::{Event, TaskSnapshot};
use super::shared::Shared;
use super::task::{Phase, Task};
use crate::checkpoint::{Cut, Outputs, Protocol};
use crate::error::Failed;
use crate::operator::Through;
use std::sync::mpsc::Sender;

impl Task {
    /// Acts on the words of the coordinator about epochs that have begun.
    pub(super) fn follow_epochs(&mut self, shared: &Shared, events: &Sender<Event>) -> Result<(), Failed> {
        let aborted_to = shared.aborted_to();
        self.cut.aborted_to(aborted_to);
        if self.pending.as_ref().is_some_and(|(epoch, _)| *epoch <= aborted_to) {
            self.abandon(events);
        }
        let was_paused = self.cut.is_paused();
        self.cut.closed_to(shared.closed_to());
        // Something is done between two pauses, however short the interval.
        self.has_moved &= !was_paused || self.cut.is_paused();
        if self.phase == Phase::Leaving {
            return Ok(());
        }
        match self.protocol {
            Protocol::AlignedThenUnaligned => {
                let cut = self.cut.timed_out(shared.timed_out());
                self.act(cut, shared, events)?;
                if self.pending.is_some() && self.cut.overtakes() {
                    let through = Through::Overtaken(self.cut.frozen());
                    self.body.link().outgoing(&mut |edge| edge.cut(through));
                }
                Ok(())
            }
            Protocol::StopTheWorld => {
                let cut = self.cut.released(shared.released());
                self.act(cut, shared, events)
            }
            _ => Ok(()),
        }
    }

    /// Asks the word that begins epochs: last, for what the others say, and what is beside the rings, matters to it.
    /// `is_empty`: no leftovers wait.
    pub(super) fn ask_word(&mut self, is_empty: bool, shared: &Shared, events: &Sender<Event>) -> Result<(), Failed> {
        // Its final snapshot stands for it, or is about to: where epochs follow each other without a pause, a task that
        // froze in each of them instead would never finish.
        if self.phase == Phase::Leaving || (is_empty && self.may_finish(shared)) {
            return Ok(());
        }
        // Something is done between two cuts, however fast epochs are given up: or rings would hold nothing but their barriers.
        // A cut beside the rings takes no room in them.
        let stands = !self.has_moved;
        match self.protocol {
            Protocol::Unaligned => {}
            // Of pauses a step without one is enough: who waits for room must not keep others from pausing.
            Protocol::StopTheWorld if stands => {
                self.has_moved = true;
                return Ok(());
            }
            _ if stands && self.phase == Phase::Reading => return Ok(()),
            _ => {}
        }
        let cut = self.cut.requested(shared.requested());
        self.act(cut, shared, events)
    }

    /// Freezes, if that is what is to be done.
    pub(super) fn act(&mut self, cut: Cut, shared: &Shared, events: &Sender<Event>) -> Result<(), Failed> {
        let epoch = match cut {
            Cut::Go => return Ok(()),
            Cut::Pause(epoch) => {
                // What is published now is in a ring when others save what is in it.
                self.publish()?;
                self.report(events, Event::Paused { task: self.number, epoch });
                return Ok(());
            }
            Cut::Freeze(epoch) => epoch,
        };
        self.has_moved = false;
        let begun_ns = shared.meter.clock().now_ns();
        self.abandon(events);
        let is_view_only = shared.is_view_only(epoch);
        let snapshot = if is_view_only { TaskSnapshot::default() } else { self.freeze(epoch, shared)? };
        if shared.viewed() == epoch {
            self.begin_view(epoch)?;
        }
        self.body.begin_logs(&mut self.cut)?;
        let through = match self.cut.outputs() {
            Outputs::Barrier => Through::Barrier(epoch),
            Outputs::Published => Through::Published(epoch),
            Outputs::Saved => Through::Kept(epoch),
        };
        self.body.link().outgoing(&mut |edge| edge.cut(through));
        self.pending = Some((epoch, snapshot));
        self.hand_in(events);
        shared.note_cut(begun_ns);
        Ok(())
    }

    pub(super) fn freeze(&mut self, epoch: u64, shared: &Shared) -> Result<TaskSnapshot, Failed> {
        let mut snapshot = TaskSnapshot::default();
        if !shared.checkpointing {
            return Ok(snapshot);
        }
        // At most one epoch is under way, and none can become durable without this task: the word tells of just this one.
        let settled = self.undecided.replace(epoch).map(|last| shared.durable_to() >= last);
        let full = shared.is_full(epoch);
        self.body.visit(&mut |stateful| {
            if let Some(durable) = settled {
                stateful.settle(durable);
            }
            if full {
                stateful.forget()?;
            }
            let frozen = stateful.freeze(epoch)?;
            snapshot.entries.extend(frozen.entries);
            snapshot.parts.extend(frozen.part.map(|part| (stateful.name().into(), part)));
            Ok(())
        })?;
        Ok(snapshot)
    }

    /// Hands in the snapshot, if nothing that belongs to it can still come.
    pub(super) fn hand_in(&mut self, events: &Sender<Event>) {
        if self.pending.is_none() || !self.cut.is_complete() {
            return;
        }
        let epoch = self.cut.frozen();
        if self.protocol == Protocol::AlignedThenUnaligned {
            // It may yet be overtaken, and then what lies ahead of it is part of the snapshot (rule 22).
            let mut waits = false;
            self.body.link().outgoing(&mut |edge| waits |= edge.has_waiting_barrier(epoch));
            if waits {
                return;
            }
        }
        let Some((epoch, mut snapshot)) = self.pending.take() else { return };
        snapshot.entries.extend(self.body.take_logs());
        self.body.link().outgoing(&mut |edge| snapshot.entries.extend(edge.take_kept()));
        self.report(events, Event::Snapshot { task: self.number, epoch, snapshot });
    }

    /// The epoch of the snapshot that has not been handed in will not be. Prepared parts are kept all the same (rule 2).
    fn abandon(&mut self, events: &Sender<Event>) {
        let Some((epoch, snapshot)) = self.pending.take() else { return };
        drop(self.body.take_logs());
        self.body.link().outgoing(&mut |edge| drop(edge.take_kept()));
        let snapshot = TaskSnapshot { entries: Vec::new(), parts: snapshot.parts };
        self.report(events, Event::Snapshot { task: self.number, epoch, snapshot });
    }
}
