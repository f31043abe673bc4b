//! The two ends of a job in the hands of the program that runs it: an [`Input`] to push into, an [`Output`] to poll. It
//! knows channels, and nothing of tasks, state or checkpoints but the numbers of epochs.
//!
//! Neither end ever waits by itself. A program reads its results in the same order of magnitude of time that two cores need to
//! hand each other a line: see the bench `latency`.
//!
//! ```
//! use snapring::handle::PushError;
//! use snapring::{Config, Dataflow};
//! use std::time::Duration;
//!
//! let flow = Dataflow::new("sums");
//! let (mut orders, stream) = flow.input::<(u64, i64)>("orders");
//! let mut sums = stream.key_by(|order| order.0).fold("sum", 0, |sum, order| *sum += order.1).output("sums");
//! let job = flow.start(Config::new().unpinned_workers(1).parallelism(1))?;
//!
//! orders.push((7, 40))?;
//! orders.push((7, 2))?;
//! orders.close(); // or go on for as long as you like
//!
//! let mut seen = Vec::new();
//! loop {
//!     match sums.poll() {
//!         Ok(Some(sum)) => seen.push(sum.record),
//!         Ok(None) => drop(sums.wait(Duration::from_secs(1))),
//!         Err(_ended) => break,
//!     }
//! }
//! assert_eq!(seen, [(7, 40), (7, 42)]);
//! job.wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What happens at a restart
//!
//! 1. **Records that are pushed have numbers**, from 0 in the job's whole life. The snapshot keeps how many were taken in;
//!    [`Input::position`] tells it after a restore, and the program pushes again from that number on. It keeps what it
//!    pushed until a checkpoint covers it ([`Input::durable_position`]), or can make it again.
//! 2. When the job restarts within the process, the next push says [`PushError::Rewound`] with that number. Results that were
//!    made from what follows it come again: [`Output::poll`] says [`OutputError::Rewound`] once, before the first of them.
//! 3. **Results are handed out at once**, not when their epoch is durable. Each tells its epoch, and whether it
//!    [may repeat](Batch::may_repeat): whether a restart could go back behind it. Who needs each result exactly once holds back
//!    those that may repeat until [`Output::durable_epoch`] has reached their epoch.
//! 4. A result of an epoch that became durable comes once, also when the job restarts within the process before it was polled. With
//!    the process, results that were not polled are gone: they lie in memory. To outlive it, end in an exactly-once
//!    [`Sink`](crate::operator::Sink), or take a checkpoint only when everything has been polled.

#[cfg(feature = "futures")]
mod futures;
mod input;
mod output;
mod outside;
mod port;
#[cfg(all(test, not(snapring_loom)))]
mod tests;

pub use input::{Input, PushError};
pub use output::{Batch, Output, OutputError, Received};

pub(crate) use outside::Outside;
pub(crate) use port::{Coming, InputPort, OutputPort};
