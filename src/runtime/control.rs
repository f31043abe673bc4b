//! What the holder of a [`Job`](super::Job) and the thread that runs it say to each other, whichever attempt is under way.

use super::coordinator::Status;
use super::shared::Shared;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(super) struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Of the attempt under way, or of the last one.
    shared: Arc<Shared>,
    is_stopping: bool,
    status: Status,
    restarts: u32,
    warnings: Vec<String>,
}

impl Control {
    /// For a job whose first attempt is about to begin.
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let state = State { shared, is_stopping: false, status: Status::default(), restarts: 0, warnings: Vec::new() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        self.state().shared.clone()
    }

    pub(super) fn status(&self) -> Status {
        self.state().status
    }

    pub(super) fn restarts(&self) -> u32 {
        self.state().restarts
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.state().warnings.clone()
    }

    pub(super) fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        self.state().warnings.extend(warnings);
    }

    pub(super) fn report(&self, status: Status) {
        self.state().status = status;
    }

    /// Ends the attempt under way, and keeps others from beginning.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.is_stopping = true;
        state.shared.stop();
        self.changed.notify_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state().is_stopping
    }

    /// Another attempt is about to begin; it ends at once, if the job is to stop.
    pub(super) fn begin_again(&self, shared: &Arc<Shared>) {
        let mut state = self.state();
        state.shared = shared.clone();
        state.restarts += 1;
        if state.is_stopping {
            shared.stop();
        }
    }

    /// Waits between two attempts. False: the job is to stop.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let begin = Instant::now();
        let mut state = self.state();
        while !state.is_stopping {
            let left = time.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return true;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }
}
