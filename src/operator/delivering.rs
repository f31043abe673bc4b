//! The output into a handle that the program polls.

use super::outgoing::{Outgoing, Through, VisitOutgoing};
use super::pipe::{Link, Output, Visit};
use super::{Emit, Progress};
use crate::channel::{Consumer, Outbox, Producer};
use crate::error::Failed;
use crate::handle::OutputPort;
use crate::marks::Mark;
use crate::snapshot::Entry;
use std::sync::Arc;

/// The ring to a handle, at the end of a chain.
///
/// The handle is no task, so nobody waits for it at a checkpoint: an epoch can become durable while its last records are
/// still on their way out. That is why a failure does not poison this ring, and why what waits for room in it is left to
/// the handle when the task goes away.
pub(crate) struct Delivering<T> {
    outbox: Outbox<T>,
    port: Arc<OutputPort<T>>,
    /// The ring's number there.
    ring: u64,
}

impl<T> Delivering<T> {
    pub(crate) fn new(port: Arc<OutputPort<T>>, ring: (Producer<T>, Consumer<T>), limit_bytes: usize) -> Self {
        let (producer, consumer) = ring;
        let ring = port.add(consumer);
        Self { outbox: Outbox::new(vec![producer], limit_bytes), port, ring }
    }
}

impl<T> Drop for Delivering<T> {
    fn drop(&mut self) {
        // Before the producer goes: who sees it gone finds what it left.
        self.port.leave(self.ring, self.outbox.take_leftovers(0));
    }
}

impl<T: Send> Emit<T> for Delivering<T> {
    #[inline]
    fn emit(&mut self, record: T) -> Result<(), Failed> {
        self.outbox.emit(0, record)
    }
}

impl<T: Send> Output<T> for Delivering<T> {
    fn batch_over(&mut self) -> Result<(), Failed> {
        Ok(())
    }
}

impl<T: Send> Link for Delivering<T> {
    fn flush(&mut self) -> bool {
        if self.outbox.has_leftovers() && self.outbox.is_forsaken() {
            self.outbox.drop_leftovers();
        }
        // A barrier only tells the handle the epoch, and the next one takes its place: a program that polls now and then must
        // not hold up the checkpoints of a job that has nothing for it.
        self.outbox.flush() || self.outbox.has_barriers_only()
    }
    fn is_broken(&self) -> bool {
        false
    }
    fn poison(&mut self) {}
    fn publish(&mut self) -> Result<(), Failed> {
        self.outbox.publish();
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

/// The handle is told where an epoch ends by a barrier, whichever way the tasks agreed on it: it has nothing to save.
impl<T: Send> Outgoing for Delivering<T> {
    fn mark(&mut self, mark: Mark) {
        self.outbox.mark_all(mark);
    }
    fn mark_inside(&mut self, _: Mark) {}
    fn end_loop(&mut self) {}
    fn publish_end(&mut self) {}
    fn cut(&mut self, through: Through) {
        if let Through::Barrier(epoch) | Through::Published(epoch) | Through::Kept(epoch) = through {
            self.mark(Mark::Barrier(epoch));
        }
    }
    fn has_waiting_barrier(&self, _: u64) -> bool {
        false
    }
    fn take_kept(&mut self) -> Option<Entry> {
        None
    }
}
