//! What follows a failure: another attempt, or the end. It must not know how a job is made, nor who runs it.
//!
//! 1. After a failure the job is made anew, of the newest durable epoch, up to so many times in a row.
//! 2. A new durable epoch ends the row: the failure after it is a first one again.
//! 3. What keeps an attempt from starting counts as a failure of that attempt.
//! 4. In the end it is the first error of the row that counts. What only a later one knows, the text of the record, is
//!    added to it if it is the same error; a last one that is another is told beside it.

use crate::error::{Again, Error, Failure};
use std::time::Duration;

/// What follows a failure: nothing, or restarts in process from the newest durable checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Restart {
    pub(crate) attempts: u32,
    first: Duration,
    max: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self::never()
    }
}

impl Restart {
    /// The job ends with its first failure.
    pub fn never() -> Self {
        Self::attempts(0)
    }

    /// Up to `n` restarts in a row without a new durable checkpoint in between: an error that comes again each time ends the
    /// job after `n` of them, one that does not never does.
    pub fn attempts(n: u32) -> Self {
        Self { attempts: n, first: Duration::from_millis(100), max: Duration::from_secs(10) }
    }

    /// Waits `first` before the first restart of a row and twice as long before each further one, at most `max`. Default:
    /// 100 ms to 10 s.
    pub fn backoff(mut self, first: Duration, max: Duration) -> Self {
        (self.first, self.max) = (first, max);
        self
    }

    /// The wait before the restart with this number, from 0, of a row.
    fn wait(&self, number: u32) -> Duration {
        let factor = 1u32.checked_shl(number).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.max)
    }
}

/// The failures of a row.
pub(super) struct Retry {
    policy: Restart,
    /// Restarts since the row began.
    restarts: u32,
    first: Option<Box<Failure>>,
}

impl Retry {
    pub(super) fn new(policy: Restart) -> Self {
        Self { policy, restarts: 0, first: None }
    }

    /// An attempt has failed; `is_fresh`: an epoch has become durable in it. How long to wait before the next attempt, or
    /// the error to end with.
    pub(super) fn failed(&mut self, error: Error, is_fresh: bool) -> Result<Duration, Box<Failure>> {
        if is_fresh {
            *self = Self::new(self.policy);
        }
        let last = match (&mut self.first, error) {
            (Some(first), Error::Job(failure)) if is_same(first, &failure) => {
                first.text = first.text.take().or(failure.text);
                None
            }
            (Some(_), other) => Some(Box::new(other)),
            (none, Error::Job(failure)) => {
                *none = Some(failure);
                None
            }
            // Nothing but a job that runs comes first: see `Job::start`.
            (none, other) => {
                *none = Some(Box::new(Failure::new(crate::error::Cause::User(other.to_string().into()))));
                None
            }
        };
        if self.restarts == self.policy.attempts {
            return Err(self.end(last));
        }
        self.restarts += 1;
        Ok(self.policy.wait(self.restarts - 1))
    }

    /// The error to end with, if no attempt follows.
    pub(super) fn end(&mut self, last: Option<Box<Error>>) -> Box<Failure> {
        let mut failure = self.first.take().expect("it is set before");
        failure.again = (self.restarts > 0).then_some(Again { attempts: self.restarts + 1, last });
        failure
    }
}

fn is_same(one: &Failure, other: &Failure) -> bool {
    one.operator == other.operator && one.cause.to_string() == other.cause.to_string()
}
