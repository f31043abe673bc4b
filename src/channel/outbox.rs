//! One output edge of a task: a ring to each consumer, and the leftovers that found no free slot. It does not know how
//! a record's lane is chosen.
//!
//! # Rules
//!
//! 1. A batch that has begun is finished: what finds no free slot waits here, in order, and marks wait behind it.
//! 2. While a lane has leftovers, its ring has no open slot, and whatever comes goes behind them.
//! 3. Each lane flushes by itself: a full ring holds up no other.
//! 4. The waiting records of all lanes together have a limit, by the size of the Rust values; what they own on the heap
//!    is not counted. Marks are not counted either: a task with leftovers processes nothing, so there are few.
//! 5. Behind the end of a loop no record goes: it would find nobody.

mod cut;

use super::ring_producer::Producer;
use crate::error::{Cause, Failed};
use crate::marks::Mark;
use std::collections::VecDeque;
use std::sync::Arc;

pub use cut::Save;

/// The rings of one output edge, with their leftovers.
pub struct Outbox<T> {
    lanes: Vec<Lane<T>>,
    /// Records that wait, in all lanes.
    waiting: usize,
    waiting_marks: usize,
    limit_bytes: usize,
    /// It takes no more records, because this loop has ended.
    ended: Option<Arc<str>>,
}

struct Lane<T> {
    producer: Producer<T>,
    records: VecDeque<T>,
    /// Each with the number of records ever added to `records` before it.
    marks: VecDeque<(u64, Mark)>,
    /// Records ever added.
    added: u64,
    /// Records ever moved into the ring from here.
    moved: u64,
}

impl<T> Outbox<T> {
    /// An outbox over these rings, one a lane, in which records of at most `limit_bytes` may wait.
    pub fn new(producers: Vec<Producer<T>>, limit_bytes: usize) -> Self {
        let lanes = producers.into_iter().map(Lane::new).collect();
        Self { lanes, waiting: 0, waiting_marks: 0, limit_bytes, ended: None }
    }

    /// The number of lanes.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Sends a record down a lane.
    ///
    /// # Errors
    /// [`Cause::OutboxFull`]: it found no free slot, and more than the limit waits already. [`Cause::AfterLoop`]: the loop has
    /// ended ([`Outbox::end_loop`]). The record is dropped.
    ///
    /// # Panics
    /// There is no such lane.
    #[inline(always)]
    pub fn emit(&mut self, lane: usize, record: T) -> Result<(), Failed> {
        // As in `Producer::push`, no function that is not inlined gets the record.
        if self.lanes[lane].producer.is_open() || self.open(lane) {
            self.lanes[lane].producer.push_open(record);
        } else {
            self.make_room_to_wait(lane)?;
            self.lanes[lane].records.push_back(record);
        }
        Ok(())
    }

    /// Opens a slot of a lane, unless leftovers go first, or none is free, or the loop has ended.
    #[inline(never)]
    fn open(&mut self, lane: usize) -> bool {
        let lane = &mut self.lanes[lane];
        self.ended.is_none() && !lane.is_waiting() && lane.producer.open()
    }

    /// Counts one more record among the leftovers of a lane, and makes room for it.
    #[inline(never)]
    fn make_room_to_wait(&mut self, lane: usize) -> Result<(), Failed> {
        if let Some(feedback) = &self.ended {
            return Err(Cause::AfterLoop { feedback: feedback.to_string() }.into());
        }
        if (self.waiting + 1) * size_of::<T>() > self.limit_bytes {
            return Err(Cause::OutboxFull { limit_bytes: self.limit_bytes }.into());
        }
        let lane = &mut self.lanes[lane];
        lane.records.reserve(1);
        lane.added += 1;
        self.waiting += 1;
        Ok(())
    }

    /// Sends a mark down all lanes, behind what has been emitted. Open slots are published. A barrier takes the place of one
    /// that still waits with no record between them: an epoch begins only when the one before is closed, so nobody needs
    /// both.
    pub fn mark_all(&mut self, mark: Mark) {
        for lane in &mut self.lanes {
            self.waiting_marks -= lane.drop_overtaken(mark);
            if lane.is_waiting() || lane.producer.mark(mark).is_err() {
                lane.marks.push_back((lane.added, mark));
                self.waiting_marks += 1;
            }
        }
    }

    /// Moves leftovers into slots that have become free. `true`: no leftovers wait any more. The last of them may lie in
    /// an open slot: see [`Outbox::publish`].
    #[inline]
    pub fn flush(&mut self) -> bool {
        if self.has_leftovers() {
            self.flush_lanes();
        }
        !self.has_leftovers()
    }

    #[inline(never)]
    fn flush_lanes(&mut self) {
        let kept_max = self.limit_bytes / size_of::<T>().max(1) / self.lanes.len();
        for lane in self.lanes.iter_mut().filter(|lane| lane.is_waiting()) {
            let before = (lane.records.len(), lane.marks.len());
            lane.flush();
            self.waiting -= before.0 - lane.records.len();
            self.waiting_marks -= before.1 - lane.marks.len();
            // A queue keeps its memory for the next time, but all together no more than the limit.
            if lane.records.is_empty() && lane.records.capacity() > kept_max {
                lane.records.shrink_to(kept_max);
            }
        }
    }

    /// Hands over what lies in open slots: for a task that has nothing more to read.
    #[inline]
    pub fn publish(&mut self) {
        for lane in &mut self.lanes {
            lane.producer.publish();
        }
    }

    /// The loop of this name, into whose head the rings lead, has ended: from here on no record is taken, only marks. What lies in
    /// open slots is handed over.
    pub fn end_loop(&mut self, feedback: &Arc<str>) {
        // No slot stays open: whoever wants one is told, and nobody else needs to ask.
        self.publish();
        self.ended = Some(feedback.clone());
    }

    /// Whether records or marks wait for a free slot. The task then processes nothing.
    #[inline]
    pub fn has_leftovers(&self) -> bool {
        self.waiting + self.waiting_marks != 0
    }

    /// The bytes of the records that wait.
    pub fn leftover_bytes(&self) -> usize {
        self.waiting * size_of::<T>()
    }

    /// Whether leftovers wait for a consumer that has gone, or a ring has been poisoned: they would wait for ever.
    pub fn is_broken(&self) -> bool {
        let broken = |lane: &Lane<T>| lane.producer.is_poisoned() || (lane.is_waiting() && lane.producer.is_closed());
        self.lanes.iter().any(broken)
    }

    /// Whether nothing waits but barriers: one a lane, for each takes the place of the one before.
    pub fn has_barriers_only(&self) -> bool {
        let is_barrier = |(_, mark): &(u64, Mark)| matches!(mark, Mark::Barrier(_));
        self.waiting == 0 && self.lanes.iter().flat_map(|lane| &lane.marks).all(is_barrier)
    }

    /// Whether all consumers have gone: nobody will ever read what is emitted here.
    pub fn is_forsaken(&self) -> bool {
        self.lanes.iter().all(|lane| lane.producer.is_closed())
    }

    /// Drops what waits.
    pub fn drop_leftovers(&mut self) {
        for lane in &mut self.lanes {
            lane.records.clear();
            lane.marks.clear();
            lane.moved = lane.added;
        }
        (self.waiting, self.waiting_marks) = (0, 0);
    }

    /// Takes out of a lane what waits ahead of its last barrier, with the barriers between: what belongs to epochs that
    /// may have become durable, though no consumer has it.
    pub fn take_leftovers(&mut self, lane: usize) -> Vec<(Vec<T>, u64)> {
        let lane = &mut self.lanes[lane];
        let mut taken = Vec::new();
        while let Some((before, mark)) = lane.marks.pop_front() {
            if let Mark::Barrier(epoch) = mark {
                let records = (before - lane.moved) as usize;
                taken.push((lane.records.drain(..records).collect(), epoch));
                lane.moved = before;
                self.waiting -= records;
            }
            self.waiting_marks -= 1;
        }
        taken
    }

    /// Poisons all rings: the task has failed. What has not been published is dropped.
    pub fn poison(&mut self) {
        for lane in &mut self.lanes {
            lane.producer.poison();
        }
    }
}

impl<T> Lane<T> {
    /// Drops barriers that wait right where `mark` is going to, if it is a newer one. Says how many.
    fn drop_overtaken(&mut self, mark: Mark) -> usize {
        let before = self.marks.len();
        if matches!(mark, Mark::Barrier(_)) {
            self.marks.retain(|(place, waiting)| *place != self.added || !matches!(waiting, Mark::Barrier(_)));
        }
        before - self.marks.len()
    }

    fn new(producer: Producer<T>) -> Self {
        Self { producer, records: VecDeque::new(), marks: VecDeque::new(), added: 0, moved: 0 }
    }

    fn is_waiting(&self) -> bool {
        !self.records.is_empty() || !self.marks.is_empty()
    }

    fn flush(&mut self) {
        loop {
            while let Some(&(before, mark)) = self.marks.front()
                && before == self.moved
            {
                if self.producer.mark(mark).is_err() {
                    return;
                }
                self.marks.pop_front();
            }
            let until = self.marks.front().map_or(self.added, |&(before, _)| before);
            let (records, moved) = (&mut self.records, &mut self.moved);
            let mut due = std::iter::from_fn(|| {
                let record = if *moved == until { None } else { records.pop_front() }?;
                *moved += 1;
                Some(record)
            });
            if !self.producer.push_all(&mut due) || !self.is_waiting() {
                return;
            }
        }
    }
}
