//! Outputs to other tasks: by key, in turn, or to all of them.

use super::outgoing::{EdgeEnd, Outgoing, Through, VisitOutgoing};
use super::pipe::{Link, Output, Visit};
use super::{Emit, Progress};
use crate::channel::Outbox;
use crate::error::Failed;
use crate::marks::Mark;
use crate::record::Record;
use crate::snapshot::{ChannelPart, Entry, Side};

/// Tells which of several lanes a record goes down.
pub(crate) trait Lane<T>: Send {
    /// Its lane; none: it goes down all of them.
    fn lane(&mut self, record: &T, lanes: usize) -> Option<usize>;
}

/// Sends a record down one lane, or several.
pub(crate) trait SendTo<T>: Lane<T> {
    fn send(&mut self, record: T, outbox: &mut Outbox<T>) -> Result<(), Failed>;
    /// Partial batches have gone: a good moment to turn to another lane.
    fn turn(&mut self) {}
}

/// The same lane for each record with the same key.
pub(crate) struct ByKey<F>(pub(crate) F);

impl<F> ByKey<F> {
    #[inline]
    fn pick<T>(&mut self, record: &T, lanes: usize) -> usize
    where
        F: FnMut(&T) -> u64,
    {
        if lanes == 1 { 0 } else { crate::state::task_of((self.0)(record), lanes as u32) as usize }
    }
}

impl<T, F: FnMut(&T) -> u64 + Send> Lane<T> for ByKey<F> {
    fn lane(&mut self, record: &T, lanes: usize) -> Option<usize> {
        Some(self.pick(record, lanes))
    }
}

impl<T, F: FnMut(&T) -> u64 + Send> SendTo<T> for ByKey<F> {
    #[inline]
    fn send(&mut self, record: T, outbox: &mut Outbox<T>) -> Result<(), Failed> {
        let lane = self.pick(&record, outbox.lanes());
        outbox.emit(lane, record)
    }
}

/// One lane after the other, a batch to each.
pub(crate) struct InTurn {
    lane: usize,
    left: usize,
    batch_len: usize,
}

impl InTurn {
    /// Begins at lane `first`, so that the tasks of one operator do not all begin at the same.
    pub(crate) fn new(first: usize, batch_len: usize) -> Self {
        Self { lane: first, left: batch_len, batch_len }
    }

    #[inline]
    fn pick(&mut self, lanes: usize) -> usize {
        if lanes == 1 {
            return 0;
        }
        if self.left == 0 {
            self.next();
        }
        self.left -= 1;
        self.lane % lanes
    }

    fn next(&mut self) {
        self.lane = self.lane.wrapping_add(1);
        self.left = self.batch_len;
    }
}

impl<T> Lane<T> for InTurn {
    fn lane(&mut self, _: &T, lanes: usize) -> Option<usize> {
        Some(self.pick(lanes))
    }
}

impl<T> SendTo<T> for InTurn {
    #[inline]
    fn send(&mut self, record: T, outbox: &mut Outbox<T>) -> Result<(), Failed> {
        let lane = self.pick(outbox.lanes());
        outbox.emit(lane, record)
    }
    fn turn(&mut self) {
        self.next();
    }
}

/// Every lane.
pub(crate) struct ToAll;

impl<T> Lane<T> for ToAll {
    fn lane(&mut self, _: &T, _: usize) -> Option<usize> {
        None
    }
}

impl<T: Clone> SendTo<T> for ToAll {
    #[inline]
    fn send(&mut self, record: T, outbox: &mut Outbox<T>) -> Result<(), Failed> {
        let last = outbox.lanes() - 1;
        for lane in 0..last {
            outbox.emit(lane, record.clone())?;
        }
        outbox.emit(last, record)
    }
}

/// An output to the tasks of another chain.
pub(crate) struct Rings<T, R> {
    outbox: Outbox<T>,
    route: R,
    end: EdgeEnd,
    /// What the last cut has kept.
    kept: Vec<ChannelPart>,
}

impl<T, R> Rings<T, R> {
    pub(crate) fn new(outbox: Outbox<T>, route: R, end: EdgeEnd) -> Self {
        Self { outbox, route, end, kept: Vec::new() }
    }
}

impl<T: Record, R: SendTo<T>> Emit<T> for Rings<T, R> {
    #[inline]
    fn emit(&mut self, record: T) -> Result<(), Failed> {
        self.route.send(record, &mut self.outbox)
    }
}

impl<T: Record, R: SendTo<T>> Output<T> for Rings<T, R> {
    fn batch_over(&mut self) -> Result<(), Failed> {
        Ok(())
    }
}

impl<T: Record, R: SendTo<T>> Link for Rings<T, R> {
    fn flush(&mut self) -> bool {
        self.outbox.flush()
    }
    fn is_broken(&self) -> bool {
        self.outbox.is_broken()
    }
    fn poison(&mut self) {
        self.outbox.poison();
    }
    fn publish(&mut self) -> Result<(), Failed> {
        self.outbox.publish();
        self.route.turn();
        Ok(())
    }
    fn outgoing(&mut self, visit: &mut VisitOutgoing<'_>) {
        visit(self);
    }
    fn end(&mut self) -> Result<Progress, Failed> {
        Ok(Progress::Done)
    }
    fn visit(&mut self, _: &mut Visit<'_>) -> Result<(), Failed> {
        Ok(())
    }
}

impl<T: Record, R: SendTo<T>> Outgoing for Rings<T, R> {
    fn mark(&mut self, mark: Mark) {
        self.outbox.mark_all(mark);
    }
    fn mark_inside(&mut self, mark: Mark) {
        if self.end.inside {
            self.outbox.mark_all(mark);
        }
    }
    fn end_loop(&mut self) {
        if let Some(head) = &self.end.head {
            self.outbox.end_loop(head);
        }
    }
    fn publish_end(&mut self) {
        self.outbox.end_cut();
    }
    fn cut(&mut self, through: Through) {
        let Self { outbox, kept, end, .. } = self;
        let to_tasks = if end.one_to_one { end.tasks } else { outbox.lanes() as u32 };
        let mut keep = |lane: usize, records: u64, bytes: Vec<u8>| {
            kept.push(ChannelPart { from: end.task, to: end.other(lane), to_tasks, records, bytes });
        };
        match through {
            Through::Barrier(epoch) => outbox.mark_all(Mark::Barrier(epoch)),
            Through::Published(epoch) => outbox.cut(epoch, &mut keep),
            Through::Kept(_) => outbox.save(&mut keep),
            Through::Overtaken(epoch) => outbox.overtake(epoch, &mut keep),
        }
    }
    fn has_waiting_barrier(&self, epoch: u64) -> bool {
        self.outbox.has_waiting_barrier(epoch)
    }
    fn take_kept(&mut self) -> Option<Entry> {
        let entry = self.end.entry::<T>(Side::Output, &self.kept);
        self.kept.clear();
        entry
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn in_turn_gives_each_lane_a_batch() {
        let mut route = InTurn::new(1, 2);
        let mut lanes = |count| (0..count).map(|_| route.pick(3)).collect::<Vec<_>>();
        assert_eq!(lanes(7), [1, 1, 2, 2, 0, 0, 1]);
        SendTo::<()>::turn(&mut route);
        assert_eq!((route.pick(3), route.pick(1)), (2, 0), "a batch that has gone is not filled up");
    }

    #[test]
    fn by_key_goes_to_the_task_that_owns_the_hash() {
        let mut route = ByKey(|hash: &u64| *hash);
        for hash in (0..64).map(|number: u64| number << 58 | number) {
            let lane = route.pick(&hash, 5) as u32;
            assert!(crate::state::range_of(lane, 5).contains(hash), "{hash:x}");
        }
    }

    #[test]
    fn a_record_is_told_its_lane_as_it_would_be_sent() {
        let mut by_key = ByKey(|hash: &u64| *hash);
        let mut lanes = |hash: u64| Lane::lane(&mut by_key, &hash, 4);
        assert_eq!((lanes(0), lanes(u64::MAX)), (Some(0), Some(3)));
        let mut in_turn = InTurn::new(0, 1);
        assert_eq!([(); 3].map(|()| in_turn.lane(&(), 2)), [Some(0), Some(1), Some(0)]);
        assert_eq!(ToAll.lane(&(), 2), None);
    }
}
