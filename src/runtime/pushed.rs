//! The root of a task that reads what the program pushes into a handle. A source whose records come once: what the snapshot
//! keeps is how many, and the program pushes the rest again.

use super::body::{Body, Took};
use super::careful::{Care, Hand};
use super::reading::SourceMeter;
use crate::channel::{Consumer, Polled};
use crate::checkpoint::{InputKind, TaskCut};
use crate::error::{Cause, Failed};
use crate::handle::{Coming, InputPort};
use crate::operator::{Frozen, Link, Open, Pipe, SPLITS, SplitState, Stateful, Visit};
use crate::record::Record;
use std::sync::Arc;

pub(crate) struct Pushed<T> {
    open: Open,
    port: Arc<InputPort<T>>,
    /// None: this task is not the one that reads the handle, or the input had ended before.
    ring: Option<Consumer<T>>,
    /// The handle's one split, at the task that reads it; its offset counts records.
    splits: Vec<SplitState>,
    /// So many more slots are taken once the input is to end.
    slots_left: usize,
    pipe: Box<dyn Pipe<T>>,
    meter: SourceMeter,
    hand: Hand<T>,
}

impl<T: Record> Pushed<T> {
    pub(crate) fn new(
        open: Open,
        port: Arc<InputPort<T>>,
        ring: Option<Consumer<T>>,
        splits: Vec<SplitState>,
        pipe: Box<dyn Pipe<T>>,
        meter: SourceMeter,
        care: Option<Care>,
    ) -> Self {
        let slots_left = ring.as_ref().map_or(0, Consumer::slots);
        Self { open, port, ring, splits, slots_left, pipe, meter, hand: Hand::new(care) }
    }

    /// The ring was empty: will more come?
    fn coming(&mut self, closing: Coming, number: u64) -> Result<Took, Failed> {
        let lost = |what: String| Err(Failed::from(Cause::Input(what)).at(&self.open.operator));
        match closing {
            Coming::Open => Ok(Took::Nothing),
            Coming::Ended => {
                self.splits.iter_mut().for_each(|split| split.done = true);
                self.ring = None;
                Ok(Took::Ended)
            }
            Coming::Lost(end) => lost(format!(
                "the job needs the records from {number} to {end} again, and the handle has been dropped: keep it until the job \
                 is over, and push again what it asks for"
            )),
            Coming::Panicked => lost("the handle was dropped by a panic of the thread that pushed".to_owned()),
        }
    }
}

impl<T: Record> Body for Pushed<T> {
    fn inputs(&self) -> Vec<InputKind> {
        Vec::new()
    }

    fn poll(&mut self, _: &mut TaskCut, taken: &mut u64) -> Result<Took, Failed> {
        let Some(ring) = &mut self.ring else { return Ok(Took::Ended) };
        let split = &mut self.splits[0];
        // Whoever pushes without a pause must not hold up the end: what lay in the ring when it was wanted is in so many slots.
        let is_draining = self.meter.is_draining();
        let is_enough = is_draining && self.slots_left == 0;
        self.slots_left -= usize::from(is_draining && !is_enough);
        if !is_enough && let Polled::Records(mut records) = ring.poll() {
            let count = records.len() as u64;
            self.meter.meter.read(count);
            split.offset += count;
            self.hand.on(&mut *self.pipe, &mut records, taken)?;
            return Ok(Took::Records);
        }
        let number = split.offset;
        if is_draining {
            // Whoever pushes on finds nobody.
            return self.coming(Coming::Ended, number);
        }
        // First what is coming, then the ring again: what was pushed before the handle was closed is in it.
        let closing = self.port.coming(number);
        if ring.has_records() { Ok(Took::Records) } else { self.coming(closing, number) }
    }

    fn text(&self) -> Option<String> {
        self.hand.text()
    }

    fn is_ready(&self, _: &TaskCut) -> bool {
        self.ring.as_ref().is_some_and(Consumer::is_ready)
    }

    fn link(&mut self) -> &mut dyn Link {
        &mut *self.pipe
    }

    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed> {
        visit(self)?;
        self.pipe.visit(visit)
    }
}

impl<T: Record> Stateful for Pushed<T> {
    fn name(&self) -> &str {
        &self.open.operator
    }

    fn freeze(&mut self, epoch: u64) -> Result<Frozen, Failed> {
        self.splits.iter().for_each(|split| self.port.froze(epoch, split.offset));
        let entry = self.open.entry(SPLITS, &Vec::<SplitState>::schema(), |root| self.splits.encode(root), None);
        Ok(Frozen { entries: vec![entry], part: None })
    }

    fn settle(&mut self, _: bool) {}
}
