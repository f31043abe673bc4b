//! Memory is short: when an epoch is given up because a task waits for memory, and who waits for the next one then.

use super::Coordination;
use crate::checkpoint::Action;
use crate::error::Failure;

/// So long a task may wait for memory while an epoch is under way: at first, and after several in a row that were given up.
const PATIENCE_NS: u64 = 20_000_000;
const PATIENCE_NS_MAX: u64 = 16 * PATIENCE_NS;

/// How long the coordinator looks on. That grows from one epoch that is given up to the next: on a busy machine it may be for
/// want of a processor that one is not over soon.
pub(super) struct Patience {
    /// Since when a task has been waiting.
    since_ns: Option<u64>,
    ns: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { since_ns: None, ns: PATIENCE_NS }
    }
}

impl Patience {
    /// Whether a task has been waiting for too long.
    fn is_over(&mut self, is_waiting: bool, now_ns: u64) -> bool {
        let since_ns = is_waiting.then(|| *self.since_ns.get_or_insert(now_ns));
        self.since_ns = since_ns.filter(|since_ns| now_ns - since_ns < self.ns);
        since_ns.is_some() && self.since_ns.is_none()
    }

    /// Another epoch begins.
    pub(super) fn begin(&mut self) {
        self.since_ns = None;
    }

    /// An epoch was given up. Whether the next one is given more time.
    pub(super) fn grow(&mut self) -> bool {
        let can_grow = self.ns < PATIENCE_NS_MAX;
        self.ns = (2 * self.ns).min(PATIENCE_NS_MAX);
        can_grow
    }
}

impl Coordination {
    /// A task that waits for memory may be what the epoch under way waits for, and that may have the memory: so if it is not over
    /// soon, the epoch is given up. One that is being written ends by itself.
    pub(super) fn relieve(&mut self, now_ns: u64) -> Result<(), Box<Failure>> {
        let is_waiting = self.shared.memory.shortage().waiting > 0;
        if !self.patience.is_over(is_waiting, now_ns) {
            return Ok(());
        }
        let under_way = self.machine.closed_to() + 1;
        match self.machine.declined(under_way) {
            Some(Action::Abort(epoch)) => {
                self.run_short(epoch);
                Ok(())
            }
            Some(action) => self.act(action, now_ns),
            None => Ok(()),
        }
    }

    /// Gives an epoch up. Who waits for it waits for the next, as long as that is given more time.
    fn run_short(&mut self, epoch: u64) {
        let limit_bytes = self.shared.memory.limit_bytes();
        let reason = format!("a task waited for memory for its state: all {limit_bytes} bytes are in use");
        self.views.run_short(epoch);
        if !self.patience.grow() {
            self.give_up(epoch, &reason);
        } else {
            tracing::debug!(epoch, reason, "checkpoint given up, and begun again");
            self.let_go(epoch, &reason);
            if !self.demands.is_empty() {
                self.machine.demand();
            }
        }
    }
}
