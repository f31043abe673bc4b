//! The end that a program polls.

use super::outside::Sleeper;
use super::port::{OutputAttempt, OutputPort};
use crate::channel::{Consumer, Polled, Records, Wakers};
use crate::marks::Mark;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Hands out the results of a running job, in the order in which each task made them. What is not polled holds the job up:
/// the rings are bounded. Dropping it lets the job run on without it.
///
/// Made by [`Stream::output`](crate::Stream::output).
pub struct Output<T> {
    port: Arc<OutputPort<T>>,
    /// Of the attempt whose results are polled.
    lanes: Vec<Lane<T>>,
    /// So many attempts have been turned to.
    turned: u64,
    /// The lane that is looked at first.
    at: usize,
    /// The rest of a batch that is polled one by one, or what never got into a ring.
    rest: VecDeque<T>,
    /// The epoch of `rest`.
    rest_epoch: u64,
    /// What a batch borrows that does not lie in a ring.
    batch: Vec<T>,
    workers: Arc<Wakers>,
    pub(super) sleeper: Sleeper,
    /// The error of the job has been an item of the stream.
    #[cfg(feature = "futures")]
    pub(super) has_told_error: bool,
}

/// A ring from one task.
struct Lane<T> {
    number: u64,
    ring: Consumer<T>,
    /// Of the records that come next.
    epoch: u64,
    /// What came too late for the ring, each stretch with the barrier behind it; once the task has gone.
    left: VecDeque<(Vec<T>, u64)>,
    is_over: bool,
}

/// Results of one task, of one epoch: an iterator that owns them. Dropping it makes room for others.
pub struct Batch<'a, T> {
    records: Records<'a, T>,
    /// Dropped after the records have made room.
    _wake: WakeWorkers<'a>,
    epoch: u64,
    may_repeat: bool,
}

/// A task may have waited for the room, and its worker with it.
struct WakeWorkers<'a>(&'a Wakers);

impl Drop for WakeWorkers<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.wake_surely();
    }
}

/// One result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<T> {
    /// What it is.
    pub record: T,
    /// As [`Batch::epoch`].
    pub epoch: u64,
    /// As [`Batch::may_repeat`].
    pub may_repeat: bool,
}

/// Why there are no results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// The job has restarted: what follows belongs to epochs from this one on, and those that came from there on come
    /// again. Said once.
    #[error("the job went back: results from epoch {epoch} on come again")]
    Rewound {
        /// The first epoch of what follows.
        epoch: u64,
    },
    /// All results have been polled, and the job is over.
    #[error("the output has ended{}{}", if error.is_some() { ": " } else { "" }, error.as_deref().unwrap_or_default())]
    Closed {
        /// The first error of the job, if it failed.
        error: Option<Arc<str>>,
    },
}

/// Nothing in it is ever pinned.
impl<T> Unpin for Output<T> {}

impl<T> fmt::Debug for Output<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("tasks", &self.lanes.len()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Batch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} records of epoch {})", self.records.len(), self.epoch)
    }
}

impl<T> Batch<'_, T> {
    /// The epoch to which they belong: the checkpoint of this number is the first that covers them.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether a restart may bring them again: their epoch was not durable when they were polled.
    #[must_use]
    pub fn may_repeat(&self) -> bool {
        self.may_repeat
    }
}

impl<T> Iterator for Batch<'_, T> {
    type Item = T;
    #[inline]
    fn next(&mut self) -> Option<T> {
        self.records.next()
    }
    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

impl<T> ExactSizeIterator for Batch<'_, T> {}

impl<T> Drop for Output<T> {
    fn drop(&mut self) {
        self.port.forsake();
        self.lanes.clear();
        self.workers.wake_surely();
    }
}

/// What the next step of polling found.
enum Found {
    /// Records are in the ring of this lane.
    InRing(usize),
    /// Records are in `rest`.
    InRest,
    Nothing,
}

impl<T: Send> Output<T> {
    pub(crate) fn new(port: Arc<OutputPort<T>>) -> Self {
        let sleeper = Sleeper::at(&port.outside);
        Self {
            port,
            lanes: Vec::new(),
            turned: 0,
            at: 0,
            rest: VecDeque::new(),
            rest_epoch: 0,
            batch: Vec::new(),
            workers: Arc::default(),
            sleeper,
            #[cfg(feature = "futures")]
            has_told_error: false,
        }
    }

    /// Takes the next result, if there is one. Never waits.
    ///
    /// # Errors
    /// [`OutputError`].
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Received<T>>, OutputError> {
        if self.rest.is_empty() {
            match self.find()? {
                Found::Nothing => return Ok(None),
                Found::InRest => {}
                Found::InRing(lane) => {
                    let lane = &mut self.lanes[lane];
                    let Polled::Records(mut records) = lane.ring.poll() else { return Ok(None) };
                    self.rest_epoch = lane.epoch;
                    let first = records.next();
                    self.rest.extend(records);
                    self.workers.wake_surely();
                    return Ok(first.map(|record| self.received(record)));
                }
            }
        }
        Ok(self.rest.pop_front().map(|record| self.received(record)))
    }

    fn received(&self, record: T) -> Received<T> {
        let epoch = self.rest_epoch;
        Received { record, epoch, may_repeat: epoch > self.durable_epoch() }
    }

    /// Takes the next batch of results, if there is one: what one task has made at a time. Never waits. The batch borrows the
    /// handle: drop it before you [`wait`](Output::wait), which does not compile within the `match` on it.
    ///
    /// # Errors
    /// [`OutputError`].
    #[inline]
    pub fn poll_batch(&mut self) -> Result<Option<Batch<'_, T>>, OutputError> {
        let found = if self.rest.is_empty() { self.find()? } else { Found::InRest };
        let durable_epoch = self.durable_epoch();
        let (records, epoch) = match found {
            Found::Nothing => return Ok(None),
            Found::InRest => {
                self.batch.extend(self.rest.drain(..));
                (Records::of(&mut self.batch), self.rest_epoch)
            }
            Found::InRing(lane) => {
                let lane = &mut self.lanes[lane];
                let Polled::Records(records) = lane.ring.poll() else { return Ok(None) };
                (records, lane.epoch)
            }
        };
        let _wake = WakeWorkers(&self.workers);
        Ok(Some(Batch { records, _wake, epoch, may_repeat: epoch > durable_epoch }))
    }

    /// Epochs up to this one are durable: no restart goes back behind it. After a restart, until [`OutputError::Rewound`] has
    /// been said, that holds for the epochs of the results that came before.
    #[must_use]
    pub fn durable_epoch(&self) -> u64 {
        self.port.durable_to(self.turned)
    }

    /// Waits until an epoch is durable, or the job is over, or [`OutputError::Rewound`] is to be said first; at most for
    /// `timeout`. Says whether it is durable.
    pub fn wait_durable(&mut self, epoch: u64, timeout: Duration) -> bool {
        let (port, turned) = (&self.port, self.turned);
        let is_durable = || port.durable_to(turned) >= epoch;
        self.sleeper
            .thread
            .until(timeout, || is_durable() || port.has_restarted(turned) || port.outside.outcome().is_some());
        is_durable()
    }

    /// Waits until there may be results, or news; at most for `timeout`. Says whether there are.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        if self.lanes.is_empty() {
            // That the job has begun is no news; what else it may be, the next poll says again.
            let _ = self.turn_to_attempt();
        }
        let (port, lanes, rest) = (&self.port, &self.lanes, &self.rest);
        self.sleeper.thread.until(timeout, || {
            !rest.is_empty() || lanes.iter().any(|lane| !lane.is_over && lane.ring.is_ready()) || port.has_news()
        })
    }

    /// Looks for records, and takes note of all marks that it meets.
    #[inline]
    fn find(&mut self) -> Result<Found, OutputError> {
        loop {
            for _ in 0..self.lanes.len() {
                let at = self.at;
                self.at = if at + 1 == self.lanes.len() { 0 } else { at + 1 };
                if let Some(found) = self.look(at) {
                    return Ok(found);
                }
            }
            if !self.lanes.iter().all(|lane| lane.is_over) || !self.turn_to_attempt()? {
                return Ok(Found::Nothing);
            }
        }
    }

    /// Whether a lane has records. Marks ahead of them are taken.
    #[inline]
    fn look(&mut self, at: usize) -> Option<Found> {
        let lane = &mut self.lanes[at];
        while !lane.is_over && lane.ring.is_ready() {
            if lane.ring.has_records() {
                return Some(Found::InRing(at));
            }
            match lane.ring.poll() {
                Polled::Mark(Mark::Barrier(epoch)) => lane.epoch = epoch + 1,
                Polled::Mark(Mark::End) => lane.is_over = true,
                Polled::Mark(Mark::Watermark(_) | Mark::Lap(_)) | Polled::Empty | Polled::Records(_) => {}
                Polled::Closed | Polled::Poisoned => {
                    lane.left = self.port.left(lane.number).into();
                    lane.is_over = true;
                }
            }
        }
        while let Some((records, epoch)) = lane.left.pop_front() {
            self.rest_epoch = std::mem::replace(&mut lane.epoch, epoch + 1);
            self.rest = records.into();
            if !self.rest.is_empty() {
                return Some(Found::InRest);
            }
        }
        None
    }

    /// Everything of an attempt has been taken: turns to the next, if there is one.
    #[cold]
    fn turn_to_attempt(&mut self) -> Result<bool, OutputError> {
        // The outcome first: an attempt that came before it is there to be seen.
        let outcome = self.port.outside.outcome();
        let Some(OutputAttempt { restored, workers, rings }) = self.port.next_attempt() else {
            return outcome.map_or(Ok(false), |error| Err(OutputError::Closed { error }));
        };
        let lane = |(number, ring)| Lane { number, ring, epoch: restored + 1, left: VecDeque::new(), is_over: false };
        self.workers = workers;
        self.turned += 1;
        (self.lanes, self.at) = (rings.into_iter().map(lane).collect(), 0);
        if self.turned == 1 { Ok(true) } else { Err(OutputError::Rewound { epoch: restored + 1 }) }
    }
}
