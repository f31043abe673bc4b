//! Where a handle and the tasks of the job meet: each attempt of the job leaves its ends of the rings here, and the handle
//! takes them. Nothing here is looked at while records flow.

use super::Outside;
use crate::channel::{Consumer, Producer, Wakers};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// No input is closed at this number.
pub(super) const OPEN: u64 = u64::MAX;

/// Of an [`Input`](super::Input).
pub(crate) struct InputPort<T> {
    pub(super) outside: Arc<Outside>,
    attempt: Mutex<Option<InputAttempt<T>>>,
    /// The records before this number are all there will be.
    closed_at: AtomicU64,
    /// The handle has gone without having closed the input, when it was at this number.
    gone_at: AtomicU64,
    /// Its thread was panicking then.
    panicked: AtomicBool,
    /// Epochs in which the task that reads the input froze, each with how many records it had taken by then.
    frozen: Mutex<VecDeque<(u64, u64)>>,
}

/// What an attempt of the job leaves for an input.
pub(super) struct InputAttempt<T> {
    /// None: the input had ended before.
    pub(super) ring: Option<Producer<T>>,
    /// The number of the first record that the job wants.
    pub(super) from: u64,
    pub(super) workers: Arc<Wakers>,
}

/// Whether more will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coming {
    /// Perhaps.
    Open,
    /// All has been taken.
    Ended,
    /// The handle has gone, and what it would have to push again with it: it had closed at this number.
    Lost(u64),
    /// The handle was dropped by a panic.
    Panicked,
}

impl<T> InputPort<T> {
    pub(crate) fn new(outside: Arc<Outside>) -> Self {
        Self {
            outside,
            attempt: Mutex::default(),
            closed_at: AtomicU64::new(OPEN),
            gone_at: AtomicU64::new(OPEN),
            panicked: AtomicBool::new(false),
            frozen: Mutex::default(),
        }
    }

    /// An attempt of the job begins: it wants the records from `from` on, through `ring`.
    pub(crate) fn begin(&self, ring: Option<Producer<T>>, from: u64, workers: Arc<Wakers>) {
        // What was frozen since the epoch that it goes on from will be frozen again.
        locked(&self.frozen).clear();
        self.froze(0, from);
        *locked(&self.attempt) = Some(InputAttempt { ring, from, workers });
    }

    pub(super) fn take_attempt(&self) -> Option<InputAttempt<T>> {
        locked(&self.attempt).take()
    }

    /// Whether the handle would find something new here.
    pub(super) fn has_news(&self) -> bool {
        locked(&self.attempt).is_some() || self.outside.outcome().is_some()
    }

    /// What a task that has taken everything up to number `taken` and finds its ring empty may expect. (It asks first and looks
    /// at the ring again: what was pushed before the closing is there to be seen.)
    pub(crate) fn coming(&self, taken: u64) -> Coming {
        // Acquire, for the Releases in `close_at` and `leave`: what was pushed before is published.
        let gone_at = self.gone_at.load(Ordering::Acquire);
        let closed_at = self.closed_at.load(Ordering::Acquire);
        if closed_at <= taken {
            // Below: it was closed before it knew where the job goes on from.
            Coming::Ended
        } else if gone_at == OPEN {
            Coming::Open
        } else if self.panicked.load(Ordering::Relaxed) {
            Coming::Panicked
        } else if gone_at > taken {
            Coming::Lost(gone_at)
        } else {
            Coming::Open
        }
    }

    pub(super) fn close_at(&self, number: u64) {
        self.closed_at.store(number, Ordering::Release);
    }

    /// The handle goes, at this number.
    pub(super) fn leave(&self, number: u64) {
        self.panicked.store(std::thread::panicking(), Ordering::Relaxed);
        self.gone_at.store(number, Ordering::Release);
    }

    /// A cut: so many records belong to the epoch and those before it.
    pub(crate) fn froze(&self, epoch: u64, number: u64) {
        let (durable_to, mut frozen) = (self.outside.durable_to(), locked(&self.frozen));
        // Of the durable ones only the newest is asked for.
        while frozen.get(1).is_some_and(|(epoch, _)| *epoch <= durable_to) {
            frozen.pop_front();
        }
        frozen.push_back((epoch, number));
    }

    /// How many records durable epochs cover.
    pub(super) fn durable_number(&self) -> u64 {
        let (durable_to, frozen) = (self.outside.durable_to(), locked(&self.frozen));
        frozen.iter().take_while(|(epoch, _)| *epoch <= durable_to).last().map_or(0, |(_, number)| *number)
    }
}

/// Of an [`Output`](super::Output).
pub(crate) struct OutputPort<T> {
    pub(super) outside: Arc<Outside>,
    /// None: the handle has gone, and wants nothing.
    attempts: Mutex<Option<OutputAttempts<T>>>,
    /// How many attempts there have been for the handle to turn to.
    made: AtomicU64,
    /// What found no room in a ring when its task went away, with the barrier behind it: the ring's address names the lane.
    leftovers: Mutex<Vec<Leftovers<T>>>,
    /// Counts the rings.
    rings: AtomicU64,
}

/// Attempts that the handle has not turned to yet.
struct OutputAttempts<T> {
    /// The one whose tasks are being made, and how many they will be: not for the handle before it has all its rings.
    making: Option<(OutputAttempt<T>, usize)>,
    /// In order.
    made: VecDeque<OutputAttempt<T>>,
}

/// The rings of one attempt of the job.
pub(super) struct OutputAttempt<T> {
    /// The epoch that it goes on from.
    pub(super) restored: u64,
    pub(super) workers: Arc<Wakers>,
    /// Each with its number.
    pub(super) rings: Vec<(u64, Consumer<T>)>,
}

/// Records of a ring that never got into it, each stretch with the barrier that follows it.
struct Leftovers<T> {
    ring: u64,
    stretches: Vec<(Vec<T>, u64)>,
}

impl<T> OutputPort<T> {
    pub(crate) fn new(outside: Arc<Outside>) -> Self {
        Self {
            outside,
            attempts: Mutex::new(Some(OutputAttempts { making: None, made: VecDeque::new() })),
            made: AtomicU64::new(0),
            leftovers: Mutex::default(),
            rings: AtomicU64::new(0),
        }
    }

    /// An attempt of the job begins, from this epoch, with so many rings.
    pub(crate) fn begin(&self, restored: u64, workers: Arc<Wakers>, tasks: usize) {
        if let Some(attempts) = &mut *locked(&self.attempts) {
            // One that could not be made leaves nothing.
            attempts.making = Some((OutputAttempt { restored, workers, rings: Vec::new() }, tasks));
        }
    }

    /// One more ring of the attempt that began last. Returns its number.
    ///
    /// # Panics
    /// None has begun.
    pub(crate) fn add(&self, ring: Consumer<T>) -> u64 {
        let number = self.rings.fetch_add(1, Ordering::Relaxed);
        if let Some(attempts) = &mut *locked(&self.attempts) {
            let (attempt, tasks) = attempts.making.as_mut().expect("an attempt begins before its tasks are made");
            attempt.rings.push((number, ring));
            if attempt.rings.len() == *tasks {
                attempts.made.extend(attempts.making.take().map(|(attempt, _)| attempt));
                self.made.fetch_add(1, Ordering::Relaxed);
            }
        }
        number
    }

    /// The next attempt, if there is one.
    pub(super) fn next_attempt(&self) -> Option<OutputAttempt<T>> {
        locked(&self.attempts).as_mut().and_then(|attempts| attempts.made.pop_front())
    }

    /// For a handle that has turned to so many attempts: epochs up to this one are durable, and were made by what it reads. The
    /// next attempt gives some of the same numbers to other results.
    pub(super) fn durable_to(&self, turned: u64) -> u64 {
        // First the epoch, then the attempts: whose epoch is seen is seen here (Acquire there, for the Release in `durable`).
        let durable_to = self.outside.durable_to();
        if !self.has_restarted(turned) {
            return durable_to;
        }
        let attempts = locked(&self.attempts);
        let next = attempts.as_ref().and_then(|attempts| attempts.made.get(usize::from(turned == 0)));
        next.map_or(durable_to, |next| durable_to.min(next.restored))
    }

    /// Whether there is an attempt after the one that a handle reads, or is about to, when it has turned to so many.
    pub(super) fn has_restarted(&self, turned: u64) -> bool {
        self.made.load(Ordering::Relaxed) > turned.max(1)
    }

    /// The handle goes.
    pub(super) fn forsake(&self) {
        *locked(&self.attempts) = None;
        locked(&self.leftovers).clear();
    }

    /// Whether the handle would find something new here.
    pub(super) fn has_news(&self) -> bool {
        locked(&self.attempts).as_ref().is_some_and(|attempts| !attempts.made.is_empty())
            || self.outside.outcome().is_some()
    }

    /// What a task leaves behind when it goes away; before its end of the ring does.
    pub(crate) fn leave(&self, ring: u64, stretches: Vec<(Vec<T>, u64)>) {
        if !stretches.is_empty() {
            locked(&self.leftovers).push(Leftovers { ring, stretches });
        }
    }

    /// What was left behind for a ring whose other end has gone.
    pub(super) fn left(&self, ring: u64) -> Vec<(Vec<T>, u64)> {
        let mut leftovers = locked(&self.leftovers);
        let at = leftovers.iter().position(|leftovers| leftovers.ring == ring);
        at.map(|at| leftovers.swap_remove(at).stretches).unwrap_or_default()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
