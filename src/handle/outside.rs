//! What the world outside of a job sees of it, over all its attempts: how far it is durable, and how it ended.

use crate::channel::{Nap, Waker, Wakers};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// One for each dataflow.
#[derive(Default)]
pub(crate) struct Outside {
    durable_to: AtomicU64,
    /// Set once the job is over for good: its first error, or none.
    outcome: OnceLock<Option<Arc<str>>>,
    /// Of the handles that have been drawn.
    drawn: Mutex<Vec<Waker>>,
    /// The same, once the job has started.
    wakers: Wakers,
}

impl Outside {
    /// Epochs up to this one are durable.
    pub(crate) fn durable(&self, epoch: u64) {
        // Release, for the Acquire in `durable_to`: who sees the epoch sees what became durable with it.
        self.durable_to.fetch_max(epoch, Ordering::Release);
        self.wakers.wake_surely();
    }

    pub(crate) fn durable_to(&self) -> u64 {
        self.durable_to.load(Ordering::Acquire)
    }

    /// The job is over: no attempt follows.
    pub(crate) fn over(&self, error: Option<String>) {
        // The first outcome is the outcome.
        let _ = self.outcome.set(error.map(Arc::from));
        self.started();
        self.wakers.wake_surely();
    }

    /// Whether the job is over; then its first error, if it failed.
    pub(crate) fn outcome(&self) -> Option<Option<Arc<str>>> {
        self.outcome.get().cloned()
    }

    /// Nothing more will be drawn.
    pub(crate) fn started(&self) {
        self.wakers.set(self.drawn.lock().unwrap_or_else(PoisonError::into_inner).clone());
    }

    /// Whoever waits at a handle; once the job has started.
    pub(crate) fn wakers(&self) -> &Wakers {
        &self.wakers
    }
}

/// How whoever holds a handle waits: a thread, or a task of an executor.
pub(super) struct Sleeper {
    pub(super) thread: Nap,
    #[cfg(feature = "futures")]
    pub(super) task: crate::channel::TaskNap,
}

impl Sleeper {
    /// One that the job wakes.
    pub(super) fn at(outside: &Outside) -> Self {
        let sleeper = Self {
            thread: Nap::new(),
            #[cfg(feature = "futures")]
            task: crate::channel::TaskNap::default(),
        };
        let mut drawn = outside.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        drawn.push(sleeper.thread.waker());
        #[cfg(feature = "futures")]
        drawn.push(sleeper.task.waker());
        sleeper
    }
}
