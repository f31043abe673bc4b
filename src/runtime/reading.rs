//! The root of a task that reads from a source: its share of the splits, one after the other.

use super::body::{Body, Took};
use super::careful::{Care, Hand};
use super::shared::Shared;
use crate::channel::Records;
use crate::checkpoint::{InputKind, TaskCut};
use crate::error::Failed;
use crate::operator::{
    Frozen, Link, Open, Pipe, Read, Reader, SKIPPED, SPLITS, Skipped, Source, SplitSkipped, SplitState, Stateful,
    Visit, blamed,
};
use crate::record::Record;
use std::collections::VecDeque;
use std::sync::Arc;

/// Where sources count what they read, and learn how fast they may.
pub(crate) type SourceMeter = Arc<Shared>;

/// What a task has of a source: its splits, and what was skipped in them before.
pub(crate) struct Share {
    pub(crate) splits: Vec<SplitState>,
    pub(crate) skipped: Vec<SplitSkipped>,
}

pub(crate) struct Reading<S: Source> {
    open: Open,
    source: Arc<S>,
    /// All splits of this task, as a snapshot keeps them.
    splits: Vec<SplitState>,
    /// What has been skipped in them, where that is anything.
    skipped: Vec<SplitSkipped>,
    /// Indices of those that are not at their end; the front one is read.
    to_read: VecDeque<usize>,
    /// Of the front one, once it is open.
    reader: Option<S::Reader>,
    batch: Vec<S::Item>,
    batch_len: usize,
    pipe: Box<dyn Pipe<S::Item>>,
    meter: SourceMeter,
    hand: Hand<S::Item>,
}

impl<S: Source> Reading<S> {
    pub(crate) fn new(
        open: Open,
        source: &Arc<S>,
        share: Share,
        batch_len: usize,
        pipe: Box<dyn Pipe<S::Item>>,
        meter: SourceMeter,
        care: Option<Care>,
    ) -> Self {
        let Share { splits, skipped } = share;
        let to_read = (0..splits.len()).filter(|&index| !splits[index].done).collect();
        let (source, batch) = (source.clone(), Vec::with_capacity(batch_len));
        skipped.iter().for_each(|split| meter.meter.skipped(&split.skipped));
        let hand = Hand::new(care);
        Self { open, source, splits, skipped, to_read, reader: None, batch, batch_len, pipe, meter, hand }
    }

    /// Reads a batch from the front split into `self.batch`.
    fn read(&mut self, max: usize) -> Result<Option<Read>, Failed> {
        let Some(&front) = self.to_read.front() else { return Ok(None) };
        let split = &mut self.splits[front];
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(self.source.open(&split.split(), split.offset)?),
        };
        let read = reader.read(max, &mut self.batch)?;
        split.offset = reader.offset();
        let skipped = reader.take_skipped();
        let id = split.id;
        match read {
            Read::More => {}
            Read::Done => {
                split.done = true;
                self.to_read.pop_front();
                self.reader = None;
            }
            // Another may have something. It stays where it is if it is the only one.
            Read::Pending if self.to_read.len() > 1 => {
                self.to_read.rotate_left(1);
                self.reader = None;
            }
            Read::Pending => {}
        }
        if !skipped.is_empty() {
            self.skip(id, skipped);
        }
        Ok(Some(read))
    }

    #[cold]
    fn skip(&mut self, id: u32, skipped: Skipped) {
        self.meter.meter.skipped(&skipped);
        match self.skipped.iter_mut().find(|split| split.id == id) {
            Some(split) => split.skipped.add(&skipped),
            None => self.skipped.push(SplitSkipped { id, skipped }),
        }
    }
}

impl<S: Source> Body for Reading<S> {
    fn inputs(&self) -> Vec<InputKind> {
        Vec::new()
    }

    fn poll(&mut self, _: &mut TaskCut, taken: &mut u64) -> Result<Took, Failed> {
        if self.meter.is_draining() {
            return Ok(Took::Ended);
        }
        let max = self.meter.meter.allowance(self.batch_len);
        if max == 0 {
            return Ok(if self.to_read.is_empty() { Took::Ended } else { Took::Nothing });
        }
        let name = self.open.operator.clone();
        let read = blamed(&name, || self.read(max)).map_err(|failed| failed.at(&name));
        // Also before an error: what was read ahead of the bad record is good.
        let records = self.batch.len() as u64;
        self.meter.meter.read(records);
        self.hand.on(&mut *self.pipe, &mut Records::of(&mut self.batch), taken)?;
        // A record that cannot be read is the one to blame.
        *taken += u64::from(read.is_err());
        Ok(match read? {
            None => Took::Ended,
            Some(Read::Pending) if records == 0 => Took::Nothing,
            Some(_) => Took::Records,
        })
    }

    fn text(&self) -> Option<String> {
        self.hand.text()
    }

    fn polls(&self) -> bool {
        !self.to_read.is_empty()
    }

    fn link(&mut self) -> &mut dyn Link {
        &mut *self.pipe
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed> {
        visit(self)?;
        self.pipe.visit(visit)
    }
}

impl<S: Source> Stateful for Reading<S> {
    fn name(&self) -> &str {
        &self.open.operator
    }

    fn freeze(&mut self, _: u64) -> Result<Frozen, Failed> {
        let splits = self.open.entry(SPLITS, &Vec::<SplitState>::schema(), |root| self.splits.encode(root), None);
        let mut entries = vec![splits];
        if !self.skipped.is_empty() {
            let schema = Vec::<SplitSkipped>::schema();
            entries.push(self.open.entry(SKIPPED, &schema, |root| self.skipped.encode(root), None));
        }
        Ok(Frozen { entries, part: None })
    }

    fn settle(&mut self, _: bool) {}
}
