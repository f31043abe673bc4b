//! Cuts that overtake what waits in an outbox: they are published beside the rings, and the records that they leave behind
//! are saved as output of the cut. It does not know where these are kept.

use super::{Lane, Outbox};
use crate::marks::Mark;
use crate::record::Record;

/// Takes, of one lane, so many records, encoded one after the other.
pub type Save<'a> = &'a mut dyn FnMut(usize, u64, Vec<u8>);

impl<T: Record> Outbox<T> {
    /// Publishes the cut of `epoch` at the tail of each ring, open slots being published first, and gives to `save` the
    /// records that wait, lane by lane: they lie behind the cut, but the state that made them ahead of it. They go on
    /// waiting. Marks among them are not saved.
    pub fn cut(&mut self, epoch: u64, save: Save<'_>) {
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            lane.producer.publish_cut(epoch);
            lane.save(index, lane.records.len(), save);
        }
    }

    /// Takes out the barriers of `epoch` that still wait. Each such lane gets a cut instead, and the records that lay ahead
    /// of its barrier are given to `save`; they go on waiting. Lanes whose barrier has gone into the ring stay as they are.
    pub fn overtake(&mut self, epoch: u64, save: Save<'_>) {
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let Some(at) = lane.barrier(epoch) else { continue };
            let (before, _) = lane.marks.remove(at).expect("it has just been found");
            self.waiting_marks -= 1;
            lane.producer.publish_cut(epoch);
            lane.save(index, (before - lane.moved) as usize, save);
        }
    }

    /// Gives to `save` the records that wait, lane by lane. They go on waiting.
    pub fn save(&self, save: Save<'_>) {
        for (index, lane) in self.lanes.iter().enumerate() {
            lane.save(index, lane.records.len(), save);
        }
    }
}

impl<T> Outbox<T> {
    /// Publishes the cut of the end at the tail of each ring, for a task that finishes.
    pub fn end_cut(&mut self) {
        debug_assert!(self.waiting == 0, "records that wait would be cut off");
        self.lanes.iter_mut().for_each(|lane| lane.producer.publish_end_cut());
    }

    /// Whether a barrier of `epoch` waits in any lane.
    pub fn has_waiting_barrier(&self, epoch: u64) -> bool {
        self.waiting_marks != 0 && self.lanes.iter().any(|lane| lane.barrier(epoch).is_some())
    }
}

impl<T> Lane<T> {
    /// Which of the marks is the barrier of `epoch`.
    fn barrier(&self, epoch: u64) -> Option<usize> {
        self.marks.iter().position(|&(_, mark)| mark == Mark::Barrier(epoch))
    }
}

impl<T: Record> Lane<T> {
    /// Gives the first `count` records that wait to `save`, if any.
    fn save(&self, index: usize, count: usize, save: Save<'_>) {
        if count != 0 {
            let mut bytes = Vec::with_capacity(count * T::WIDTH.unwrap_or(0));
            self.records.range(..count).for_each(|record| record.encode(&mut bytes));
            save(index, count as u64, bytes);
        }
    }
}
