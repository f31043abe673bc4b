//! Whether tasks wait for memory for so long that somebody should know. It must not know who holds the memory.

use crate::page::Pool;

/// A wait for memory that lasts longer is told.
const DROUGHT_NS: u64 = 1_000_000_000;

/// Whether tasks have been waiting for memory for long.
#[derive(Default)]
pub(super) struct Drought {
    since_ns: Option<u64>,
    is_told: bool,
}

impl Drought {
    /// What is to be told of it.
    pub(super) fn look(&mut self, memory: &Pool, now_ns: u64) -> Option<String> {
        if memory.shortage().waiting == 0 {
            *self = Self::default();
            return None;
        }
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        if self.is_told || now_ns - since_ns < DROUGHT_NS {
            return None;
        }
        self.is_told = true;
        let limit_bytes = memory.limit_bytes();
        tracing::warn!(limit_bytes, "a task waits for memory");
        Some(format!(
            "a task has been waiting for memory for its state: all {limit_bytes} bytes are in use, some of them for a checkpoint \
             that is being written or for a view that is held; raise `state_bytes_max`, or drop views sooner"
        ))
    }
}
