//! Time as the runtime sees it: nanoseconds since the job began, from the system or from a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A monotonic clock.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The system's, counted from this moment.
    System(Instant),
    /// One that a test turns.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The system's monotonic clock, from now.
    #[must_use]
    pub fn system() -> Self {
        Self::System(Instant::now())
    }

    /// Nanoseconds since the clock began.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        match self {
            Self::System(start) => u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Self::Manual(now_ns) => now_ns.load(Ordering::Relaxed),
        }
    }
}
