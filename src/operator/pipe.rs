//! What a task is built from: pipes, one for each piece that was drawn, joined by one dynamic call a batch.
//!
//! A task is a tree. Its root takes records from rings or from a source; each [`Pipe`] takes a batch, and hands what
//! becomes of it to its outputs: the pipes behind it in the same task, the rings to other tasks, or a sink. Everything
//! that is not records (room, leftovers, marks, the end, state) runs down the same tree through [`Link`].

use super::outgoing::VisitOutgoing;
use super::viewing::Viewing;
use super::{Emit, Progress, Stage};
use crate::channel::Records;
use crate::error::Failed;
use crate::snapshot::Entry;

/// The part of a pipe that does not depend on what flows through it.
pub(crate) trait Link: Send {
    /// Moves leftovers into the rings, as far as there is room. True if none wait any more.
    fn flush(&mut self) -> bool;
    /// Whether leftovers wait for a consumer that is gone: they would wait for ever.
    fn is_broken(&self) -> bool;
    /// The task has failed: tells every consumer, and drops what has not been published.
    fn poison(&mut self);
    /// The task has nothing more to read for now: partial batches go.
    fn publish(&mut self) -> Result<(), Failed>;
    /// Calls `visit` for the rings of every edge below.
    fn outgoing(&mut self, visit: &mut VisitOutgoing<'_>);
    /// The input has ended: emits what is still to come, a portion a call. `Done` if that was all.
    fn end(&mut self) -> Result<Progress, Failed>;
    /// Calls `visit` for everything below that has state.
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed>;
}

/// What is done to each thing with state.
pub(crate) type Visit<'a> = dyn FnMut(&mut dyn Stateful) -> Result<(), Failed> + 'a;

/// Takes batches.
pub(crate) trait Pipe<T>: Link {
    /// Takes the whole batch.
    fn batch(&mut self, records: &mut Records<'_, T>) -> Result<(), Failed>;
}

/// Where a chain of stages ends.
pub(crate) trait Output<T>: Link + Emit<T> {
    /// The batch is over: what was gathered for it goes.
    fn batch_over(&mut self) -> Result<(), Failed>;
}

/// Something with state in a task, as a checkpoint sees it.
pub(crate) trait Stateful {
    /// The name of the operator.
    fn name(&self) -> &str;
    /// The cut: hands over what has changed since the last durable checkpoint.
    fn freeze(&mut self, epoch: u64) -> Result<Frozen, Failed>;
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
    fn forget(&mut self) -> Result<(), Failed> {
        Ok(())
    }
}

/// What one operator hands over at a cut.
#[derive(Default)]
pub(crate) struct Frozen {
    /// Its state.
    pub(crate) entries: Vec<Entry>,
    /// A sink's prepared part.
    pub(crate) part: Option<super::Part>,
}

/// A chain of stages and its output: one monomorphized loop per batch.
pub(crate) struct Chain<C, O> {
    stages: C,
    output: O,
}

impl<C, O> Chain<C, O> {
    pub(crate) fn new(stages: C, output: O) -> Self {
        Self { stages, output }
    }
}

impl<C: Stage, O: Output<C::Out>> Pipe<C::In> for Chain<C, O> {
    fn batch(&mut self, records: &mut Records<'_, C::In>) -> Result<(), Failed> {
        for record in records {
            self.stages.push(record, &mut self.output)?;
        }
        self.output.batch_over()
    }
}

impl<C: Stage, O: Output<C::Out>> Link for Chain<C, O> {
    fn flush(&mut self) -> bool {
        self.output.flush()
    }
    fn is_broken(&self) -> bool {
        self.output.is_broken()
    }
    fn poison(&mut self) {
        self.output.poison();
    }
    fn publish(&mut self) -> Result<(), Failed> {
        self.output.publish()
    }
    fn outgoing(&mut self, visit: &mut VisitOutgoing<'_>) {
        self.output.outgoing(visit);
    }
    fn end(&mut self) -> Result<Progress, Failed> {
        self.output.end()
    }
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed> {
        self.output.visit(visit)
    }
}

/// What an operator emits into: gathers a batch for the pipe behind it in the same task.
pub struct Out<T> {
    gathered: Vec<T>,
    next: Box<dyn Pipe<T>>,
}

impl<T> Out<T> {
    pub(crate) fn new(batch_len_max: usize, next: Box<dyn Pipe<T>>) -> Self {
        Self { gathered: Vec::with_capacity(batch_len_max), next }
    }

    /// Hands on what was gathered.
    pub(crate) fn deliver(&mut self) -> Result<(), Failed> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        self.next.batch(&mut Records::of(&mut self.gathered))
    }

    /// What is behind.
    pub(crate) fn next(&mut self) -> &mut dyn Pipe<T> {
        &mut *self.next
    }
}

impl<T> Emit<T> for Out<T> {
    #[inline]
    fn emit(&mut self, record: T) -> Result<(), Failed> {
        if self.gathered.len() == self.gathered.capacity() {
            self.deliver()?;
        }
        self.gathered.push(record);
        Ok(())
    }
}

impl<T: Send> Output<T> for Out<T> {
    fn batch_over(&mut self) -> Result<(), Failed> {
        self.deliver()
    }
}

/// What was gathered has been delivered before any of these is called: it goes at the end of each batch.
impl<T: Send> Link for Out<T> {
    fn flush(&mut self) -> bool {
        self.next.flush()
    }
    fn is_broken(&self) -> bool {
        self.next.is_broken()
    }
    fn poison(&mut self) {
        self.next.poison();
    }
    fn publish(&mut self) -> Result<(), Failed> {
        self.next.publish()
    }
    fn outgoing(&mut self, visit: &mut VisitOutgoing<'_>) {
        self.next.outgoing(visit);
    }
    fn end(&mut self) -> Result<Progress, Failed> {
        self.next.end()
    }
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed> {
        self.next.visit(visit)
    }
}
