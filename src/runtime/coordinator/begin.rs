//! What an epoch is begun for: a checkpoint, the cut of a view, or both; and when one is given up for want of memory.

use super::Coordination;
use crate::checkpoint::Action;
use crate::error::Failure;

/// So long a task may wait for memory while an epoch is under way.
const SHORT_NS_MAX: u64 = 20_000_000;

impl Coordination {
    /// A task that waits for memory may be what the epoch under way waits for, and that may have the memory: so if it is not over
    /// soon, the epoch is given up. One that is being written ends by itself.
    pub(super) fn relieve(&mut self, now_ns: u64) -> Result<(), Box<Failure>> {
        if self.shared.memory.shortage().waiting == 0 {
            self.short_since_ns = None;
            return Ok(());
        }
        let since_ns = *self.short_since_ns.get_or_insert(now_ns);
        if now_ns - since_ns < SHORT_NS_MAX {
            return Ok(());
        }
        self.short_since_ns = None;
        let under_way = self.machine.closed_to() + 1;
        match self.machine.declined(under_way) {
            Some(Action::Abort(epoch)) => {
                let limit_bytes = self.shared.memory.limit_bytes();
                let reason = format!("a task waited for memory for its state: all {limit_bytes} bytes are in use");
                self.give_up(epoch, &reason);
                Ok(())
            }
            Some(action) => self.act(action, now_ns),
            None => Ok(()),
        }
    }

    /// An epoch begins: a checkpoint, the cut of a view, or both.
    pub(super) fn begin(&mut self, epoch: u64, now_ns: u64) {
        let since_last_ns = now_ns.saturating_sub(self.checkpoint_begun_ns);
        let is_due = self.machine.interval_ns().is_some_and(|interval_ns| since_last_ns >= interval_ns);
        let only = self.demands.is_empty() && !is_due;
        self.shared.take_pause_ns();
        if self.views.begin(epoch, only) {
            self.shared.view(epoch, only);
        }
        if !self.views.is_only(epoch) {
            tracing::debug!(epoch, "checkpoint begun");
            (self.begun_ns, self.checkpoint_begun_ns) = (Some(now_ns), now_ns);
            self.ledger.begin(epoch, now_ns, self.protocol);
        }
        self.shared.request(epoch);
    }

    /// If somebody waits for a view, and none is being taken, the next epoch begins at once.
    pub(super) fn demand_view(&mut self) {
        if self.views.is_due() {
            self.machine.demand();
        }
    }

    /// A view that rides on a checkpoint is cut now, whatever becomes of that.
    pub(super) fn commit_with_view(&mut self, epoch: u64, now_ns: u64) -> Result<(), Box<Failure>> {
        self.views.all_cut(epoch);
        self.demand_view();
        self.commit(epoch, now_ns)
    }

    /// An epoch that was for a view alone is complete: nothing of it is written.
    pub(super) fn close_view(&mut self, epoch: u64) {
        self.snapshots.clear();
        self.machine.durable(epoch);
        self.shared.close(epoch);
        self.views.all_cut(epoch);
        self.demand_view();
    }
}
