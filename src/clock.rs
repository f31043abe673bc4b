//! Time as the runtime sees it: nanoseconds since the job began, from the system or from a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

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

    /// A time that means the same to another process: nanoseconds since 1970, which the system may set back; or what a test has
    /// set.
    pub(crate) fn time_ns(&self) -> u64 {
        match self {
            Self::System(_) => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
            }
            Self::Manual(_) => self.now_ns(),
        }
    }
}
