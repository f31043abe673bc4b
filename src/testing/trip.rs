//! User code that fails now and then. It must not know what it fails in.

use super::Random;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the message of each such failure begins with.
pub(super) const TRIPPED: &str = "tripped";

/// Makes user code panic at random places, as few times as its simulation has planned: the job restarts in process, or ends
/// and is started anew. A clone fails with the others: the calls of all of them are counted together.
#[derive(Clone, Debug)]
pub struct Trip(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    random: Random,
    failures: u64,
    /// Until the next failure.
    left: u64,
    calls_max: u64,
    /// Made so far.
    calls: u64,
}

impl Trip {
    /// Fails `failures` times, with up to `calls_max` calls before each.
    pub(super) fn new(seed: u64, failures: u64, calls_max: u64) -> Self {
        let mut random = Random::new(seed);
        let left = random.below(calls_max);
        Self(Arc::new(Mutex::new(State { random, failures, left, calls_max, calls: 0 })))
    }

    /// One that never fails.
    pub(super) fn never() -> Self {
        Self::new(0, 0, 1)
    }

    /// How often it was passed.
    pub(super) fn calls(&self) -> u64 {
        self.state().calls
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same function, but that it may fail.
    pub fn before<T, U, F: Fn(T) -> U>(&self, f: F) -> impl Fn(T) -> U + use<T, U, F> {
        let trip = self.clone();
        move |value| {
            trip.pass();
            f(value)
        }
    }

    /// Returns, or fails.
    pub fn pass(&self) {
        let mut state = self.state();
        state.calls += 1;
        if state.failures == 0 {
            return;
        }
        if state.left > 0 {
            state.left -= 1;
            return;
        }
        state.failures -= 1;
        let calls_max = state.calls_max;
        state.left = state.random.below(calls_max);
        let message = format!("{TRIPPED}, {} to come", state.failures);
        drop(state);
        // As a panic unwinds, but it is no news that anybody should print.
        std::panic::resume_unwind(Box::new(message));
    }
}
