//! How a worker waits when none of its tasks has anything to do: spin, then yield, then park with a time-out. It does not
//! know what is waited for.
//!
//! # Rules
//!
//! 1. Nobody parks without a time-out, so a lost wake-up costs time, never progress.
//! 2. Nobody spins where more threads want to run than there are cores: what is waited for would not come.
//! 3. A worker announces that it is about to park, looks once more for work, and only then parks. Whoever has published
//!    something reads the announcement after it and wakes the worker. (No fence orders the two, which would cost on
//!    every batch: see rule 1.)

use crossbeam_utils::sync::{Parker, Unparker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How a worker waits when it is idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Spin and yield for some microseconds, then park: an idle job costs next to no CPU time.
    #[default]
    Park,
    /// Never park: lowest latency, at the price of a core. Counts as `Park` where there are more threads than cores.
    Spin,
}

/// Rounds of spinning, each twice as long as the one before: about a microsecond in all.
const SPIN_ROUNDS: u32 = 6;
const YIELD_ROUNDS: u32 = 10;
const PARK_FIRST: Duration = Duration::from_micros(20);
const PARK_MAX: Duration = Duration::from_millis(1);

/// One worker's ladder. It stays with the worker's thread.
pub struct Idle {
    spins: bool,
    parks: bool,
    round: u32,
    park: Duration,
    parker: Parker,
    asleep: Arc<AtomicBool>,
}

/// Wakes a worker that has parked. Cheap while it has not.
#[derive(Clone)]
pub struct Waker {
    unparker: Unparker,
    asleep: Arc<AtomicBool>,
}

impl Idle {
    /// A ladder for one of `threads` threads that share `cores` cores.
    pub fn new(wait: Wait, threads: usize, cores: usize) -> Self {
        let spins = threads <= cores;
        let parks = wait == Wait::Park || !spins;
        Self { spins, parks, round: 0, park: PARK_FIRST, parker: Parker::new(), asleep: Arc::default() }
    }

    /// What wakes this worker.
    pub fn waker(&self) -> Waker {
        Waker { unparker: self.parker.unparker().clone(), asleep: Arc::clone(&self.asleep) }
    }

    /// There was something to do: the next wait begins at the foot of the ladder.
    #[inline]
    pub fn reset(&mut self) {
        if self.round != 0 {
            (self.round, self.park) = (0, PARK_FIRST);
            self.asleep.store(false, Ordering::Relaxed);
        }
    }

    /// Waits one step. Between two steps the caller looks for work.
    pub fn wait(&mut self) {
        let yields_from = if self.spins { SPIN_ROUNDS } else { 0 };
        let announces_at = yields_from + YIELD_ROUNDS;
        if self.round < yields_from {
            (0..1 << self.round).for_each(|_| std::hint::spin_loop());
        } else if !self.parks {
            // The last round of spinning, again and again.
            return (0..1 << SPIN_ROUNDS).for_each(|_| std::hint::spin_loop());
        } else if self.round < announces_at {
            thread::yield_now();
        } else if self.round == announces_at {
            self.asleep.store(true, Ordering::SeqCst);
        } else {
            self.parker.park_timeout(self.park);
            self.park = (self.park * 2).min(PARK_MAX);
            // Announced again before the next look for work.
            self.asleep.store(true, Ordering::SeqCst);
            return;
        }
        self.round += 1;
    }
}

impl Waker {
    /// Wakes the worker if it has parked or is about to.
    #[inline]
    pub fn wake(&self) {
        if self.asleep.load(Ordering::Relaxed) {
            self.wake_asleep();
        }
    }

    #[cold]
    fn wake_asleep(&self) {
        // One of several wakers is enough.
        if self.asleep.swap(false, Ordering::AcqRel) {
            self.unparker.unpark();
        }
    }
}
