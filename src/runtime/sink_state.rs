//! A sink, as the coordinator sees it: its committer, and the parts that it has not committed.

use super::header::PARTS;
use super::panics::caught;
use crate::error::{ConnectorError, Failure};
use crate::operator::{Committer, Part};
use crate::record::Record;
use crate::snapshot::Entry;
use std::sync::Arc;

pub(crate) struct SinkState {
    pub(crate) name: Arc<str>,
    pub(crate) exactly_once: bool,
    pub(crate) committer: Box<dyn Committer>,
    /// Prepared and not committed, of all epochs.
    pub(crate) uncommitted: Vec<Part>,
}

impl SinkState {
    /// Has the committer do something with the parts that are not committed.
    pub(super) fn call(
        &mut self,
        epoch: u64,
        run: impl FnOnce(&mut dyn Committer, &[Part]) -> Result<(), ConnectorError>,
    ) -> Result<(), Box<Failure>> {
        let done = caught(|| Ok(run(&mut *self.committer, &self.uncommitted)?));
        done.map_err(|failed| Box::new(Failure { epoch: Some(epoch), ..*failed.at(&self.name).0 }))
    }

    /// The parts that an epoch lists.
    pub(super) fn entry(&self) -> Entry {
        let parts: Vec<Vec<u8>> = self.uncommitted.iter().map(|part| part.0.clone()).collect();
        let mut entry = Entry {
            operator: self.name.to_string(),
            state: PARTS.to_owned(),
            task: 0,
            tasks: 1,
            schema: Vec::new(),
            root: Vec::new(),
            pages: None,
        };
        Vec::<Vec<u8>>::schema().encode(&mut entry.schema);
        parts.encode(&mut entry.root);
        entry
    }

    /// Lets go of the place.
    pub(super) fn leave(self) {
        // That is user code. Its failure would hide the first one, which is the one to report.
        let _ = caught(|| {
            drop(self);
            Ok(())
        });
    }
}
