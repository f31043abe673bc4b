//! Streaming dataflows on one machine, with state that survives `kill -9` and every record counted exactly once.
//!
//! A [`Dataflow`] is drawn as streams from sources to sinks. It runs as tasks on pinned cores, which hand
//! each other batches over lock-free rings, and while it runs its state is checkpointed: consistently, incrementally, and
//! without stopping it. After a crash the same program goes on from the newest checkpoint.
//!
//! ```
//! use snapring::connector::{Collect, Items};
//! use snapring::{Config, Dataflow, Record};
//!
//! #[derive(Clone, Record)]
//! struct Order {
//!     account: u64,
//!     amount: i64,
//! }
//!
//! let orders = vec![
//!     Order { account: 1, amount: 40 },
//!     Order { account: 2, amount: -1 },
//!     Order { account: 1, amount: 2 },
//! ];
//! let balances = Collect::new();
//!
//! let flow = Dataflow::new("payments");
//! flow.source("orders", Items::new(orders))
//!     .filter(|order| order.amount > 0)
//!     .key_by(|order| order.account)
//!     .fold("balance", 0i64, |balance, order| *balance += order.amount) // named: it has state
//!     .sink("balances", balances.clone());
//!
//! flow.start(Config::new().unpinned_workers(1))?.wait()?;
//! assert_eq!(balances.take(), [(1, 40), (1, 42)]);
//! # Ok::<(), snapring::Error>(())
//! ```
//!
//! # What is promised
//!
//! - **Exactly once.** With [`Checkpoints`], a replayable source and an exactly-once sink, the committed output after any
//!   number of crashes and restarts is that of an undisturbed run, up to what the order of records decides where several
//!   splits, inputs or loops meet.
//! - **Failures heal, if asked.** With [`Config::restart`] a job goes on in process from its newest durable checkpoint.
//!   Storage that cannot be written costs checkpoints, not the job.
//! - **Checkpoints by choice of protocol.** Aligned by default; Chandy-Lamport, unaligned, aligned at first and unaligned
//!   after a time-out, stop-the-world, and at-least-once: [`Checkpoints::protocol`], a choice for each start. All but the
//!   last count each record exactly once. What they cost says the [guide](docs::guide::tuning#which-protocol).
//! - **Loops.** A stream may lead back to where it comes from: [`Stream::feedback`]. Checkpoints are taken while records go
//!   round, none of which is lost or counted twice; a loop does not get stuck on full rings, and ends by itself when
//!   nothing is left in it.
//! - **Nothing per record.** The operators of a chain run as one compiled loop per batch; for fixed-layout records nothing
//!   is allocated in it.
//! - **Clear ends.** The first error names operator, task, epoch and record; see [`error`]. No way to stop a job takes longer
//!   than its deadline.
//! - **A guest in the program.** No signal handler, no output, no thread that outlives its [`Job`] (but one that user code
//!   does not let go).
//!
//! # A loop
//!
//! ```
//! use snapring::connector::{Collect, Items};
//! use snapring::{Config, Dataflow};
//!
//! // How many times each number can be halved.
//! let (flow, counts) = (Dataflow::new("halving"), Collect::new());
//! let numbers = flow.source("numbers", Items::new(vec![1u64, 12, 40])).map(|number| (number, 0u32));
//! let (again, numbers) = numbers.feedback::<(u64, u32)>("again");
//! let (even, odd) = numbers.split(|(number, _)| number % 2 == 0);
//! again.close(even.map(|(number, halved)| (number / 2, halved + 1)));
//! odd.sink("counts", counts.clone());
//!
//! flow.start(Config::new().unpinned_workers(1))?.wait()?; // when nothing goes round any more
//! let mut counts = counts.take();
//! counts.sort();
//! assert_eq!(counts, [(1, 0), (3, 2), (5, 3)]);
//! # Ok::<(), snapring::Error>(())
//! ```
//!
//! # What is not
//!
//! - Plain sinks (standard output) may see records again after a restart, and results of a [`handle`] that were not polled
//!   are gone with the process. Side effects of closures happen as often as records are read. The
//!   [guide](docs::guide::exactly_once) has all of it.
//! - One machine, one process. No event time or joins yet. Linux on x86-64 and aarch64.
//!
//! # Where to look
//!
//! The [guide](docs::guide) leads from a [first job](docs::guide::first_job) to [embedding](docs::guide::embedding),
//! [tuning](docs::guide::tuning) and [failure](docs::guide::failure).
//!
//! [`dataflow`] is what one draws with, [`connector`] where records come from and go, [`runtime`] how a job is
//! configured and run, [`handle`] how a program pushes into a job and polls its results, [`operator`] what a source, a sink
//! or a keyed operator of one's own implements, [`record`] what can flow and be kept, [`snapshot`] the file that survives.
//! With the feature `testing`, the module of that name has beds for operators, sources and sinks, and a seeded simulator.
//! [`docs::architecture`] says how it is built, [`docs::loops`] by which rules loops are cut and end, [`docs::format`] and
//! [`docs::state`] what is in the file, byte by byte.
#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("snapring runs on Linux on x86-64 and aarch64 only");

// `#[derive(Record)]` writes `::snapring::…`, also inside this crate.
extern crate self as snapring;

pub mod channel;
pub mod checkpoint;
pub mod clock;
pub mod connector;
pub mod dataflow;
pub mod docs;
pub mod error;
pub mod graph;
pub mod handle;
pub mod marks;
pub mod operator;
pub mod page;
pub mod record;
pub mod runtime;
pub mod snapshot;
pub mod state;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;

// What most programs name; connectors are in a module of their own.
pub use checkpoint::Protocol;
pub use dataflow::{Dataflow, KeyedStream, Stream};
pub use error::Error;
pub use operator::Stage;
pub use record::{Record, Text};
pub use runtime::{Checkpoints, Config, Job, StageConfig};

/// The example in the README is compiled like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
