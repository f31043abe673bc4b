//! How a worker waits when none of its tasks has anything to do: spin, then yield, then park with a time-out. It does not
//! know what is waited for.
//!
//! # Rules
//!
//! 1. Nobody parks without a time-out, so a lost wake-up would cost time, never progress.
//! 2. Nobody spins where more threads want to run than there are cores: what is waited for would not come.
//! 3. Who is about to park announces it, then looks once more for work, and only then parks. Whoever has published
//!    something reads the announcement after it and wakes the sleeper. A fence on each side orders the two, so that one of
//!    them sees the other; a worker that is busy leaves its fence out and makes up for it when it runs out of work.

use crossbeam_utils::sync::{Parker, Unparker};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How a worker waits when it is idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Spin and yield for some microseconds, then park: an idle job costs next to no CPU time.
    #[default]
    Park,
    /// Never park, but let others run: low latency where cores are shared, and none is ever idle.
    Yield,
    /// Never park nor yield: lowest latency, at the price of a core. Counts as `Park` where there are more workers than
    /// cores.
    Spin,
}

/// Rounds of spinning, each twice as long as the one before: about a microsecond in all.
const SPIN_ROUNDS: u32 = 6;
/// Who never does anything but spin, pauses so often between two looks: a tenth of a microsecond or less.
const SPINS: u32 = 4;
const YIELD_ROUNDS: u32 = 10;
const PARK_FIRST: Duration = Duration::from_micros(20);
/// What nobody announces is looked for so often at the least; the ladder begins anew with each thing found.
const PARK_MAX_POLLING: Duration = Duration::from_millis(10);
/// Where everything is announced: only a safeguard.
const PARK_MAX: Duration = Duration::from_millis(20);

/// One worker's ladder. It stays with the worker's thread.
pub struct Idle {
    wait: Wait,
    spins: bool,
    round: u32,
    park: Duration,
    park_max: Duration,
    nap: Nap,
}

impl Idle {
    /// A ladder for one of `threads` threads that share `cores` cores.
    pub fn new(wait: Wait, threads: usize, cores: usize) -> Self {
        let spins = threads <= cores;
        let wait = if wait == Wait::Spin && !spins { Wait::Park } else { wait };
        Self { wait, spins, round: 0, park: PARK_FIRST, park_max: PARK_MAX, nap: Nap::new() }
    }

    /// What wakes this worker; none for one that never parks.
    pub fn waker(&self) -> Option<Waker> {
        (self.wait == Wait::Park).then(|| self.nap.waker())
    }

    /// Whether there was something to do since the last wait.
    #[inline]
    pub fn is_fresh(&self) -> bool {
        self.round == 0
    }

    /// Whether something is waited for that wakes nobody: input from outside, a moment in time.
    pub fn polls(&mut self, polls: bool) {
        self.park_max = if polls { PARK_MAX_POLLING } else { PARK_MAX };
    }

    /// There was something to do: the next wait begins at the foot of the ladder.
    #[inline]
    pub fn reset(&mut self) {
        if self.round != 0 {
            (self.round, self.park) = (0, PARK_FIRST);
            self.nap.give_up();
        }
    }

    /// Waits one step. Between two steps the caller looks for work.
    pub fn wait(&mut self) {
        let yields_from = if self.spins { SPIN_ROUNDS } else { 0 };
        let announces_at = yields_from + YIELD_ROUNDS;
        if self.wait == Wait::Spin {
            // Never more than a few: a longer pause would be what the next record waits for.
            self.round = 1;
            return (0..SPINS).for_each(|_| std::hint::spin_loop());
        }
        self.round += 1;
        if self.round <= yields_from {
            return (0..1 << self.round).for_each(|_| std::hint::spin_loop());
        }
        if self.wait == Wait::Yield || self.round <= announces_at {
            thread::yield_now();
        } else {
            if self.round > announces_at + 1 {
                self.nap.sleep(self.park);
                self.park = (self.park * 2).min(self.park_max);
            }
            // Anew before each look for work.
            self.nap.announce();
        }
        // It stays above every step of the ladder.
        self.round = self.round.min(announces_at + 2);
    }
}

/// A thread's sleep (rule 3): announce, look, sleep. It stays with the thread.
pub struct Nap {
    parker: Parker,
    asleep: Arc<AtomicBool>,
}

impl Default for Nap {
    fn default() -> Self {
        Self::new()
    }
}

impl Nap {
    /// Nobody sleeps yet.
    pub fn new() -> Self {
        Self { parker: Parker::new(), asleep: Arc::default() }
    }

    /// What ends it.
    pub fn waker(&self) -> Waker {
        Waker { asleep: self.asleep.clone(), wakes: Wakes::Thread(self.parker.unparker().clone()) }
    }

    fn announce(&self) {
        announce(&self.asleep);
    }

    fn give_up(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    fn sleep(&self, time: Duration) {
        self.parker.park_timeout(time);
    }

    /// Sleeps until `ready` says true, at most for `timeout`. Says what `ready` said last.
    pub fn until(&self, timeout: Duration, mut ready: impl FnMut() -> bool) -> bool {
        let begin = Instant::now();
        loop {
            self.announce();
            let is_ready = ready();
            let left = timeout.saturating_sub(begin.elapsed());
            if is_ready || left.is_zero() {
                self.give_up();
                return is_ready;
            }
            self.sleep(left);
        }
    }
}

fn announce(asleep: &AtomicBool) {
    asleep.store(true, Ordering::Relaxed);
    // With the fence of `Wakers::wake_surely`: either the waker sees the announcement, or we see what it has published.
    fence(Ordering::SeqCst);
}

/// The same for a task of an executor, which has no thread to park.
#[derive(Clone, Default)]
pub struct TaskNap {
    task: Arc<Mutex<Option<std::task::Waker>>>,
    asleep: Arc<AtomicBool>,
}

impl TaskNap {
    /// What ends it.
    pub fn waker(&self) -> Waker {
        Waker { asleep: self.asleep.clone(), wakes: Wakes::Task(self.task.clone()) }
    }

    /// Announces that this task is going to wait. The caller looks once more before it does.
    pub fn announce(&self, task: &std::task::Waker) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.clone());
        announce(&self.asleep);
    }
}

/// Wakes a thread or task that sleeps. Cheap while it does not.
#[derive(Clone)]
pub struct Waker {
    asleep: Arc<AtomicBool>,
    wakes: Wakes,
}

#[derive(Clone)]
enum Wakes {
    Thread(Unparker),
    Task(Arc<Mutex<Option<std::task::Waker>>>),
}

impl Waker {
    /// Wakes the sleeper, if it sleeps or is about to.
    #[inline]
    pub fn wake(&self) {
        if self.asleep.load(Ordering::Relaxed) {
            self.wake_asleep();
        }
    }

    #[cold]
    fn wake_asleep(&self) {
        // One of several wakers is enough.
        if !self.asleep.swap(false, Ordering::AcqRel) {
            return;
        }
        match &self.wakes {
            Wakes::Thread(unparker) => unparker.unpark(),
            Wakes::Task(task) => {
                let task = task.lock().unwrap_or_else(PoisonError::into_inner).take();
                task.into_iter().for_each(std::task::Waker::wake);
            }
        }
    }
}

/// Everybody who may sleep while something runs.
#[derive(Default)]
pub struct Wakers(OnceLock<Vec<Waker>>);

impl Wakers {
    /// Says who they are, once: a second call changes nothing.
    pub fn set(&self, wakers: Vec<Waker>) {
        let _ = self.0.set(wakers);
    }

    /// Wakes those who sleep. One who is just falling asleep may be missed: see [`Wakers::wake_surely`].
    #[inline]
    pub fn wake(&self) {
        self.0.get().into_iter().flatten().for_each(Waker::wake);
    }

    /// Wakes those who sleep or are about to, for all that the caller has published.
    #[inline]
    pub fn wake_surely(&self) {
        if self.0.get().is_some_and(|wakers| !wakers.is_empty()) {
            // With the fence of `announce`.
            fence(Ordering::SeqCst);
            self.wake();
        }
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_announces_before_it_looks_is_never_missed() {
        // Were a wake-up lost, `until` would run into its time-out.
        let (nap, wakers, word) = (Nap::new(), Arc::new(Wakers::default()), Arc::new(AtomicBool::new(false)));
        wakers.set(vec![nap.waker()]);
        for _ in 0..2_000 {
            let (theirs, set) = (wakers.clone(), word.clone());
            let other = thread::spawn(move || {
                set.store(true, Ordering::Release);
                theirs.wake_surely();
            });
            assert!(nap.until(Duration::from_secs(20), || word.swap(false, Ordering::Acquire)));
            other.join().unwrap();
        }
        assert!(!nap.until(Duration::from_millis(1), || false));
    }

    #[test]
    fn a_task_is_woken_once() {
        struct Count(std::sync::atomic::AtomicU32);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let (nap, wakers, count) = (TaskNap::default(), Wakers::default(), Arc::new(Count(0.into())));
        wakers.set(vec![nap.waker()]);
        wakers.wake_surely();
        nap.announce(&count.clone().into());
        wakers.wake();
        wakers.wake_surely();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn only_who_parks_has_a_waker() {
        assert!(Idle::new(Wait::Park, 1, 2).waker().is_some());
        assert!(Idle::new(Wait::Yield, 3, 2).waker().is_none());
        assert!(Idle::new(Wait::Spin, 1, 2).waker().is_none());
        assert!(Idle::new(Wait::Spin, 3, 2).waker().is_some(), "it parks: the cores are not its own");
    }
}
