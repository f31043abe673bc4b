//! Writing an epoch to the store, with what outlasts the tasks that have finished.

use super::super::sink_state::SinkState;
use super::Coordination;
use crate::error::StoreError;
use crate::page::FrozenPages;
use crate::snapshot::Checkpoint;

/// So often the last epoch is tried.
const LAST_TRIES: u32 = 3;

impl Coordination {
    /// Writes an epoch. Nobody else would try the last one again: after a failed write there is a new file by now.
    pub(super) fn try_write(&mut self, epoch: u64) -> Result<u64, StoreError> {
        let mut written = self.write(epoch);
        for _ in 1..if self.running == 0 { LAST_TRIES } else { 1 } {
            if written.is_err() {
                written = self.write(epoch);
            }
        }
        written
    }

    /// Writes the snapshots of an epoch to the store, and says how many bytes.
    fn write(&mut self, epoch: u64) -> Result<u64, StoreError> {
        let Some(store) = &mut self.store else { return Ok(0) };
        self.header.fields.finished = self.running == 0;
        let header = self.header.bytes(None);
        let finals = self.finals.len();
        let mut entries = std::mem::take(&mut self.finals);
        entries.append(&mut self.snapshots);
        entries.extend(self.sinks.iter().filter(|sink| sink.exactly_once).map(SinkState::entry));
        let mut checkpoint = Checkpoint { epoch, header, entries };
        let stats = store.commit(&checkpoint);
        match (store.needs_full(), self.shared.is_full(epoch)) {
            (true, false) => self.shared.full_from(epoch + 1),
            (true, true) => {}
            (false, _) => self.shared.full_from(u64::MAX),
        }
        // Final snapshots stand for their tasks from now on.
        checkpoint.entries.truncate(finals);
        self.finals = checkpoint.entries;
        let stats = stats?;
        // Their pages are durable and need no writing again.
        for pages in self.finals.iter_mut().filter_map(|entry| entry.pages.as_mut()) {
            let unchanged = FrozenPages::of(Vec::new(), Vec::new(), pages.page_bytes, pages.count, false);
            *pages = FrozenPages { tag_of: pages.tag_of, ..unchanged };
        }
        Ok(stats.bytes_written)
    }
}
