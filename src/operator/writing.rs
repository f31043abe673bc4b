//! The output into a sink's writer.

use super::outgoing::VisitOutgoing;
use super::pipe::{Frozen, Link, Output, Stateful, Visit};
use super::stage::blamed;
use super::{Emit, Progress, Writer};
use crate::error::Failed;
use std::sync::Arc;

/// A sink's writer at the end of a chain.
pub(crate) struct Writing<W> {
    name: Arc<str>,
    writer: W,
}

impl<W> Writing<W> {
    pub(crate) fn new(name: Arc<str>, writer: W) -> Self {
        Self { name, writer }
    }

    fn call<R>(&mut self, run: impl FnOnce(&mut W) -> Result<R, Failed>) -> Result<R, Failed> {
        blamed(&self.name, || run(&mut self.writer)).map_err(|failed| failed.at(&self.name))
    }
}

impl<W: Writer> Emit<W::In> for Writing<W> {
    #[inline]
    fn emit(&mut self, record: W::In) -> Result<(), Failed> {
        self.call(|writer| writer.write(record))
    }
}

impl<W: Writer> Output<W::In> for Writing<W> {
    fn batch_over(&mut self) -> Result<(), Failed> {
        self.call(Writer::flush)
    }
}

impl<W: Writer> Link for Writing<W> {
    fn flush(&mut self) -> bool {
        true
    }
    fn is_broken(&self) -> bool {
        false
    }
    fn poison(&mut self) {}
    fn publish(&mut self) -> Result<(), Failed> {
        self.call(Writer::flush)
    }
    fn outgoing(&mut self, _: &mut VisitOutgoing<'_>) {}
    fn end(&mut self) -> Result<Progress, Failed> {
        Ok(Progress::Done)
    }
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), Failed> {
        visit(self)
    }
}

impl<W: Writer> Stateful for Writing<W> {
    fn name(&self) -> &str {
        &self.name
    }
    fn freeze(&mut self, epoch: u64) -> Result<Frozen, Failed> {
        let part = self.call(|writer| writer.prepare(epoch))?;
        Ok(Frozen { entries: Vec::new(), part })
    }
    fn settle(&mut self, _: bool) {}
}
