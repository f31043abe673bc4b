//! What an epoch is begun for: a checkpoint, the cut of a view, or both.

use super::Coordination;
use super::relieve::Patience;
use crate::checkpoint::Action;
use crate::error::Failure;
use crate::runtime::views::Views;

impl Coordination {
    /// An epoch begins: a checkpoint, the cut of a view, or both.
    pub(super) fn begin(&mut self, epoch: u64, now_ns: u64) {
        let since_last_ns = now_ns.saturating_sub(self.checkpoint_begun_ns);
        let is_due = self.machine.interval_ns().is_some_and(|interval_ns| since_last_ns >= interval_ns);
        let only = self.demands.is_empty() && !is_due;
        self.shared.take_pause_ns();
        self.patience.begin();
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

    /// Something has happened to views.
    pub(super) fn of_views(&mut self, change: impl FnOnce(&mut Views)) -> Option<Action> {
        change(&mut self.views);
        self.demand_view();
        None
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
        self.patience = Patience::default();
        self.machine.durable(epoch);
        self.shared.close(epoch);
        self.views.all_cut(epoch);
        self.demand_view();
    }
}
