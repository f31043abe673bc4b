//! Operators with state, and the pipe that holds one.

use super::Progress;
use super::outgoing::VisitOutgoing;
use super::pipe::{Frozen, Link, Out, Pipe, Stateful, Visit};
use super::stage::blamed;
use super::viewing::Viewing;
use crate::channel::Records;
use crate::clock::Clock;
use crate::error::Failed;
use crate::page::Pool;
use crate::snapshot::Entry;
use crate::state::Hasher;
use std::sync::Arc;

/// An operator with state, as one task sees it.
pub(crate) trait Operate: Send {
    type In;
    type Out;

    /// Takes the whole batch.
    fn batch(&mut self, records: &mut Records<'_, Self::In>, out: &mut Out<Self::Out>) -> Result<(), Failed>;

    /// The input has ended: emits what is still to come, one portion a call. `Done` if that was all; where it goes on is
    /// state, so that a cut can fall between two calls (protocols, rule 33).
    fn end(&mut self, _: &mut Out<Self::Out>) -> Result<Progress, Failed> {
        Ok(Progress::Done)
    }

    /// The cut: hands over what has changed since the last durable checkpoint.
    fn freeze(&mut self) -> Vec<Entry>;

    /// The last cut has become durable, or was given up.
    fn settle(&mut self, durable: bool);

    /// Reads a piece of restored state ahead of its need. True if all is there.
    fn hydrate(&mut self) -> Result<bool, Failed> {
        Ok(true)
    }

    /// Does what is asked for a view. Whether it is complete here.
    fn view(&mut self, _: &mut Viewing<'_>) -> Result<bool, Failed> {
        Ok(true)
    }

    /// Of earlier cuts nothing can be relied on any more: the next one hands over everything.
    fn forget(&mut self) -> Result<(), Failed>;
}

/// What an operator opens with.
pub struct Open {
    pub(crate) operator: Arc<str>,
    pub(crate) task: u32,
    pub(crate) tasks: u32,
    pub(crate) pool: Pool,
    pub(crate) hasher: Hasher,
    pub(crate) clock: Clock,
    /// The epoch that is restored, 0 at a fresh start.
    pub(crate) epoch: u64,
}

impl Open {
    /// For tables of elements.
    pub(crate) fn of_elements(&self) -> Self {
        let Self { task, tasks, epoch, hasher, .. } = *self;
        let (operator, pool, clock) = (self.operator.clone(), self.pool.clone(), self.clock.clone());
        Self { operator, task, tasks, pool, hasher: hasher.of_elements(), clock, epoch }
    }
}

/// The pipe of an operator.
pub(crate) struct Operating<O: Operate> {
    name: Arc<str>,
    operator: O,
    out: Out<O::Out>,
}

impl<O: Operate> Operating<O> {
    pub(crate) fn new(name: Arc<str>, operator: O, out: Out<O::Out>) -> Self {
        Self { name, operator, out }
    }
}

impl<O: Operate<Out: Send>> Pipe<O::In> for Operating<O> {
    fn batch(&mut self, records: &mut Records<'_, O::In>) -> Result<(), Failed> {
        let (operator, out) = (&mut self.operator, &mut self.out);
        blamed(&self.name, || operator.batch(records, out)).map_err(|failed| failed.at(&self.name))?;
        self.out.deliver()
    }
}

impl<O: Operate<Out: Send>> Link for Operating<O> {
    fn flush(&mut self) -> bool {
        self.out.next().flush()
    }
    fn is_broken(&self) -> bool {
        self.out.is_broken()
    }
    fn poison(&mut self) {
        self.out.next().poison();
    }
    fn publish(&mut self) -> Result<(), Failed> {
        self.out.next().publish()
    }
    fn outgoing(&mut self, visit: &mut VisitOutgoing<'_>) {
        self.out.next().outgoing(visit);
    }
    fn end(&mut self) -> Result<Progress, Failed> {
        let (operator, out) = (&mut self.operator, &mut self.out);
        let progress = blamed(&self.name, || operator.end(out)).map_err(|failed| failed.at(&self.name))?;
        self.out.deliver()?;
        if progress == Progress::Done { self.out.next().end() } else { Ok(progress) }
    }
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed> {
        visit(self)?;
        self.out.next().visit(visit)
    }
}

impl<O: Operate> Stateful for Operating<O> {
    fn name(&self) -> &str {
        &self.name
    }
    fn freeze(&mut self, _: u64) -> Result<Frozen, Failed> {
        Ok(Frozen { entries: self.operator.freeze(), part: None })
    }
    fn settle(&mut self, durable: bool) {
        self.operator.settle(durable);
    }
    fn hydrate(&mut self) -> Result<bool, Failed> {
        self.operator.hydrate()
    }

    fn view(&mut self, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        self.operator.view(asked)
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.operator.forget().map_err(|failed| failed.at(&self.name))
    }
}
