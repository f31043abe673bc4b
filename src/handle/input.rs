//! The end that a program pushes into.

use super::outside::Sleeper;
use super::port::{InputAttempt, InputPort, OPEN};
use crate::channel::{Producer, Wakers};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Pushes records into a running job. Bounded: it refuses what finds no room, and never waits.
///
/// [`Input::close`] ends the input. Dropping the handle does not: the job then waits for what nobody will push, until it is
/// stopped or drained, and its next start goes on from there. (To end is for good: a job whose inputs have all ended is
/// finished.) If its thread panics, that fails the job.
///
/// Made by [`Dataflow::input`](crate::Dataflow::input). Until the job has started there is no room.
pub struct Input<T> {
    name: Arc<str>,
    port: Arc<InputPort<T>>,
    /// Of the attempt under way; none before the first, and once the input is closed.
    ring: Option<Producer<T>>,
    workers: Arc<Wakers>,
    /// The number of the record that is pushed next, once an attempt has said it.
    next: Option<u64>,
    is_closed: bool,
    pub(super) sleeper: Sleeper,
}

/// Why a record was not pushed. It comes back.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum PushError<T> {
    /// No room now: the job is behind, or has not started, or is starting again.
    #[error("no room in the input")]
    Full(T),
    /// The job goes on from a checkpoint: push again from this number on. Said once.
    #[error("the job went back: push again from record {from} on")]
    Rewound {
        /// The number of the record that the job wants next.
        from: u64,
        /// What was to be pushed.
        record: T,
    },
    /// The input has ended, or the job has.
    #[error("the input is closed{}{}", if error.is_some() { ": " } else { "" }, error.as_deref().unwrap_or_default())]
    Closed {
        /// The first error of the job, if it failed.
        error: Option<Arc<str>>,
        /// What was to be pushed.
        record: T,
    },
}

impl<T> fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("Full"),
            Self::Rewound { from, .. } => write!(f, "Rewound {{ from: {from} }}"),
            Self::Closed { error, .. } => write!(f, "Closed {{ error: {error:?} }}"),
        }
    }
}

impl<T> PushError<T> {
    /// The record.
    pub fn into_record(self) -> T {
        match self {
            Self::Full(record) | Self::Rewound { record, .. } | Self::Closed { record, .. } => record,
        }
    }

    /// The same without the record.
    pub(super) fn map<U>(self, to: impl FnOnce(T) -> U) -> PushError<U> {
        match self {
            Self::Full(record) => PushError::Full(to(record)),
            Self::Rewound { from, record } => PushError::Rewound { from, record: to(record) },
            Self::Closed { error, record } => PushError::Closed { error, record: to(record) },
        }
    }
}

/// Nothing in it is ever pinned.
impl<T> Unpin for Input<T> {}

impl<T> fmt::Debug for Input<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("name", &self.name).field("next", &self.next).finish_non_exhaustive()
    }
}

impl<T: Send> Input<T> {
    pub(crate) fn new(name: &str, port: Arc<InputPort<T>>) -> Self {
        let sleeper = Sleeper::at(&port.outside);
        Self { name: name.into(), port, ring: None, workers: Arc::default(), next: None, is_closed: false, sleeper }
    }

    /// Pushes one record, and lets the job have it at once.
    ///
    /// # Errors
    /// [`PushError`], with the record.
    #[inline]
    pub fn push(&mut self, record: T) -> Result<(), PushError<T>> {
        let Some(ring) = open_ring(&mut self.ring) else { return self.push_anew(record) };
        ring.push(record).map_err(PushError::Full)?;
        self.hand_over(1);
        Ok(())
    }

    /// Pushes records for as long as there is room, and says how many. A record is taken out of the iterator only when there
    /// is: the others stay in it.
    ///
    /// # Errors
    /// [`PushError`]; nothing was taken. `Full` is said when there is no room for even one.
    pub fn push_batch(&mut self, records: &mut impl Iterator<Item = T>) -> Result<usize, PushError<()>> {
        let Some(ring) = self.ring_anew()? else { return Err(PushError::Full(())) };
        if !ring.has_room() {
            return Err(PushError::Full(()));
        }
        let mut pushed = 0;
        ring.push_all(&mut records.inspect(|_| pushed += 1));
        self.hand_over(pushed as u64);
        Ok(pushed)
    }

    /// Whether there is room for a record.
    #[cfg(feature = "futures")]
    pub(super) fn has_room(&mut self) -> Result<bool, PushError<()>> {
        Ok(self.ring_anew()?.is_some_and(Producer::has_room))
    }

    /// What has been pushed goes, now.
    #[inline]
    fn hand_over(&mut self, pushed: u64) {
        if let (Some(ring), Some(next)) = (&mut self.ring, &mut self.next) {
            ring.publish();
            *next += pushed;
            self.workers.wake_surely();
        }
    }

    #[cold]
    fn push_anew(&mut self, record: T) -> Result<(), PushError<T>> {
        match self.ring_anew() {
            Ok(Some(_)) => self.push(record),
            Ok(None) => Err(PushError::Full(record)),
            Err(error) => Err(error.map(|()| record)),
        }
    }

    /// The ring of the newest attempt; none: not now.
    fn ring_anew(&mut self) -> Result<Option<&mut Producer<T>>, PushError<()>> {
        if open_ring(&mut self.ring).is_none() {
            // The outcome first: an attempt that came before it is there to be seen.
            let outcome = self.port.outside.outcome();
            self.turn_to_attempt()?;
            match outcome {
                Some(error) => return Err(PushError::Closed { error, record: () }),
                None if self.is_closed => return Err(PushError::Closed { error: None, record: () }),
                None => {}
            }
        }
        Ok(open_ring(&mut self.ring))
    }

    /// Turns to the newest attempt of the job, if there is a new one.
    fn turn_to_attempt(&mut self) -> Result<(), PushError<()>> {
        let Some(attempt) = self.port.take_attempt() else { return Ok(()) };
        let InputAttempt { ring, from, workers } = attempt;
        let expected = self.next.replace(from).unwrap_or(0);
        self.workers = workers;
        self.is_closed |= ring.is_none();
        if from == expected || ring.is_none() {
            self.ring = ring.filter(|_| !self.is_closed);
            return Ok(());
        }
        (self.ring, self.is_closed) = (ring, false);
        self.port.close_at(OPEN);
        Err(PushError::Rewound { from, record: () })
    }

    /// The number of the record that is to be pushed next: after a restore, that from which to push again. None before the
    /// job has started, and where it had finished before.
    ///
    /// Takes note of a restart: the next push does not say [`PushError::Rewound`] again.
    pub fn position(&mut self) -> Option<u64> {
        // What it might say is what is returned here.
        let _ = self.ring_anew();
        self.next
    }

    /// How many records durable checkpoints cover: no restart, and no later start, asks for those below this number again.
    #[must_use]
    pub fn durable_position(&self) -> u64 {
        self.port.durable_number()
    }

    /// No record follows: the job comes to its end when it has taken in what was pushed. Keep the handle while a restart
    /// may want some of it again: it then says [`PushError::Rewound`] to whatever is asked of it.
    ///
    /// # Errors
    /// `Rewound`: there is more to push first. `Closed`: it was closed already, or the job is over.
    pub fn close(&mut self) -> Result<(), PushError<()>> {
        let pushed_any = self.next.is_some();
        match self.ring_anew() {
            // Where the job goes on from is no news to one who pushes nothing.
            Err(PushError::Rewound { .. }) if !pushed_any => {}
            other => _ = other?,
        }
        self.is_closed = true;
        // If the job has not started yet, it will find that it begins at the end.
        self.port.close_at(self.next.unwrap_or(0));
        self.ring = None;
        self.workers.wake_surely();
        Ok(())
    }

    /// Waits until there may be room, or news; at most for `timeout`. Says whether there is.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let (port, ring) = (&self.port, &mut self.ring);
        self.sleeper.thread.until(timeout, || match ring {
            Some(ring) if !ring.is_closed() => ring.has_room(),
            _ => port.has_news(),
        })
    }
}

/// The ring, if the job still reads from it.
#[inline]
fn open_ring<T>(ring: &mut Option<Producer<T>>) -> Option<&mut Producer<T>> {
    ring.as_mut().filter(|ring| !ring.is_closed())
}

impl<T> Drop for Input<T> {
    fn drop(&mut self) {
        self.ring = None;
        self.port.leave(self.next.unwrap_or(0));
        self.workers.wake_surely();
    }
}
