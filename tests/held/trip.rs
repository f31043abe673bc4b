//! User code that fails now and then.

use snapring::testing::Random;
use std::sync::{Arc, Mutex, PoisonError};

/// What the message of each such failure begins with.
pub const TRIPPED: &str = "tripped";

/// A clone fails with the others: after some calls over all of them, and again after some more, so many times.
#[derive(Clone)]
pub struct Trip(Arc<Mutex<State>>);

struct State {
    random: Random,
    failures: u64,
    calls: u64,
    calls_max: u64,
}

impl Trip {
    /// Fails `failures` times, with up to `calls_max` calls before each.
    pub fn new(seed: u64, failures: u64, calls_max: u64) -> Self {
        let mut random = Random::new(seed);
        let calls = random.below(calls_max);
        Self(Arc::new(Mutex::new(State { random, failures, calls, calls_max })))
    }

    pub fn pass(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failures == 0 {
            return;
        }
        if state.calls > 0 {
            state.calls -= 1;
            return;
        }
        state.failures -= 1;
        state.calls = {
            let max = state.calls_max;
            state.random.below(max)
        };
        let left = state.failures;
        drop(state);
        panic!("{TRIPPED}, {left} to come");
    }
}
