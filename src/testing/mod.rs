//! Trying one's own operators, sources and sinks, and whole dataflows, the way this library is tried itself. The feature
//! `testing`; for `[dev-dependencies]`.
//!
//! | to try | there is |
//! |---|---|
//! | an operator, a fold, any piece of a dataflow | [`OperatorBed`] |
//! | a source | [`check_source`] |
//! | an exactly-once sink | [`check_sink`] |
//! | a whole dataflow, through crashes and restores | [`simulate`] |
//!
//! All of it runs on the caller's thread and follows from numbers, so that what was found once is found again. What is found
//! is a [`Fault`]: in a test, hand it on by `?` or `unwrap` it.
//!
//! # An operator with a mistake
//! Records are to be numbered. The number lies in the operator, which is no place for it: it is not in the checkpoint.
//!
//! ```
//! use snapring::error::Failed;
//! use snapring::operator::{Emit, Operator, Value};
//! use snapring::testing::OperatorBed;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! #[derive(Default)]
//! struct Numbered {
//!     number: AtomicU64,
//! }
//!
//! impl Operator for Numbered {
//!     type Key = bool;
//!     type In = u64;
//!     type Out = (u64, u64);
//!     type State = Value<()>;
//!
//!     fn on_record<E: Emit<(u64, u64)>>(
//!         &self,
//!         _: &bool,
//!         record: u64,
//!         _: &mut Value<()>,
//!         out: &mut E,
//!     ) -> Result<(), Failed> {
//!         out.emit((self.number.fetch_add(1, Ordering::Relaxed), record))
//!     }
//! }
//!
//! let bed = OperatorBed::new([7, 9, 8], |records| {
//!     records.key_by(|_| true).process("numbered", Numbered::default())
//! });
//! let fault = bed.expect([(0, 7), (1, 9), (2, 8)]).run().unwrap_err();
//! assert_eq!(
//!     fault.to_string(),
//!     "output 1 (counted from 0): expected [1,9], found [0,9]; 3 were expected, 3 found\n  \
//!      restored from a checkpoint after each record, parallelism 1, batches of 3, rings of 1"
//! );
//! ```
//!
//! With `type State = Value<u64>`, and the number in the [`Value`](crate::operator::Value), all is well.
//!
//! # A run of one's own
//! What the simulator is made of: a [`SimDisk`] with a store on it ([`Store::open_on`](crate::snapshot::Store::open_on),
//! [`Checkpoints::store`](crate::runtime::Checkpoints::store)), a clock that a test turns
//! ([`Clock::Manual`](crate::clock::Clock::Manual)), a seed for the order of tasks
//! ([`Config::seed`](crate::runtime::Config::seed)), and a job that steps when it is told to
//! ([`Dataflow::into_local`](crate::dataflow::Dataflow::into_local)).

mod compare;
mod drive;
mod fault;
mod feed;
mod looks;
mod modes;
mod operator;
mod random;
mod settings;
mod simulate;
mod sink;
mod sink_job;
mod source;
mod trip;
mod world;

#[doc(inline)]
pub use crate::snapshot::sim::{Incident, SimDisk};
pub use fault::Fault;
pub use operator::OperatorBed;
pub use random::Random;
pub use simulate::simulate;
pub use sink::{Outlet, check_sink};
pub use source::check_source;
pub use trip::Trip;
pub use world::{Seen, World};
