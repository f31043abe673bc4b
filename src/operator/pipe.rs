//! What a task is built from: pipes, one for each piece that was drawn, joined by one dynamic call a batch.
//!
//! A task is a tree. Its root takes records from rings or from a source; each [`Pipe`] takes a batch, and hands what
//! becomes of it to its outputs: the pipes behind it in the same task, the rings to other tasks, or a sink. Everything
//! that is not records (room, leftovers, marks, the end, state) runs down the same tree through [`Link`].

use super::{Emit, Progress, Stage};
use crate::channel::Records;
use crate::error::Failed;
use crate::marks::Mark;
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
    /// Sends a mark on every ring below, behind all that was emitted.
    fn mark(&mut self, mark: Mark);
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
    fn mark(&mut self, mark: Mark) {
        self.output.mark(mark);
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

    pub(crate) fn is_broken(&self) -> bool {
        self.next.is_broken()
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

/// Each record goes to every branch.
pub(crate) struct Branches<T>(pub(crate) Vec<Out<T>>);

impl<T: Clone> Emit<T> for Branches<T> {
    fn emit(&mut self, record: T) -> Result<(), Failed> {
        if let Some((last, others)) = self.0.split_last_mut() {
            for branch in others {
                branch.emit(record.clone())?;
            }
            last.emit(record)?;
        }
        Ok(())
    }
}

impl<T: Send + Clone> Output<T> for Branches<T> {
    fn batch_over(&mut self) -> Result<(), Failed> {
        self.0.iter_mut().try_for_each(Out::deliver)
    }
}

impl<T: Send + Clone> Link for Branches<T> {
    fn flush(&mut self) -> bool {
        // All of them, whatever the others say: one branch that is full must not hold up the rest.
        let mut flushed = true;
        for branch in &mut self.0 {
            flushed &= branch.next.flush();
        }
        flushed
    }
    fn is_broken(&self) -> bool {
        self.0.iter().any(|branch| branch.is_broken())
    }
    fn poison(&mut self) {
        self.0.iter_mut().for_each(|branch| branch.next.poison());
    }
    fn publish(&mut self) -> Result<(), Failed> {
        self.0.iter_mut().try_for_each(|branch| branch.next.publish())
    }
    fn mark(&mut self, mark: Mark) {
        self.0.iter_mut().for_each(|branch| branch.next.mark(mark));
    }
    fn end(&mut self) -> Result<Progress, Failed> {
        let mut progress = Progress::Done;
        for branch in &mut self.0 {
            if branch.next.end()? != Progress::Done {
                progress = Progress::Made;
            }
        }
        Ok(progress)
    }
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed> {
        self.0.iter_mut().try_for_each(|branch| branch.next.visit(visit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A pipe that writes down what it is told.
    struct Fake {
        log: Arc<Mutex<String>>,
        name: char,
        is_full: bool,
        /// So many portions are still to come.
        portions: u32,
    }

    impl Fake {
        fn note(&self, what: &str) {
            self.log.lock().unwrap().push_str(&format!("{}{what} ", self.name));
        }
    }

    impl Link for Fake {
        fn flush(&mut self) -> bool {
            self.note("flush");
            !self.is_full
        }
        fn is_broken(&self) -> bool {
            self.portions == 0
        }
        fn poison(&mut self) {
            self.note("poison");
        }
        fn publish(&mut self) -> Result<(), Failed> {
            self.note("publish");
            Ok(())
        }
        fn mark(&mut self, _: Mark) {
            self.note("mark");
        }
        fn end(&mut self) -> Result<Progress, Failed> {
            if self.portions == 0 {
                return Ok(Progress::Done);
            }
            self.note("portion");
            self.portions -= 1;
            Ok(Progress::Made)
        }
        fn visit(&mut self, _: &mut Visit<'_>) -> Result<(), Failed> {
            self.note("visit");
            Ok(())
        }
    }

    impl Pipe<u8> for Fake {
        fn batch(&mut self, records: &mut Records<'_, u8>) -> Result<(), Failed> {
            self.note(&records.count().to_string());
            Ok(())
        }
    }

    #[test]
    fn whatever_is_said_reaches_every_branch() {
        let log = Arc::<Mutex<String>>::default();
        let branch = |name, is_full, portions| {
            Out::new(4, Box::new(Fake { log: log.clone(), name, is_full, portions }) as Box<dyn Pipe<u8>>)
        };
        let mut branches = Branches(vec![branch('a', true, 1), branch('b', false, 2)]);
        let heard = || std::mem::take(&mut *log.lock().unwrap());
        branches.emit(1).unwrap();
        branches.batch_over().unwrap();
        assert_eq!(heard(), "a1 b1 ");
        assert!(!branches.flush(), "one is full");
        assert_eq!(heard(), "aflush bflush ");
        branches.publish().unwrap();
        branches.mark(Mark::End);
        branches.visit(&mut |_| Ok(())).unwrap();
        branches.poison();
        assert_eq!(heard(), "apublish bpublish amark bmark avisit bvisit apoison bpoison ");
        assert!(!branches.is_broken());
        while branches.end().unwrap() != Progress::Done {}
        assert_eq!(heard(), "aportion bportion bportion ");
        assert!(branches.is_broken());
    }
}
