//! When a task freezes, what of its channels belongs to the cut, when an epoch is complete, and when a loop has ended:
//! the protocols as pure state machines.
//!
//! Events go in (barrier 7 on input 0, input 1 ended), decisions come out (freeze in 7, commit 7). No thread, file,
//! clock or ring is known here, so every order of events can be enumerated in a test (`tests/checkpoint.rs`), and a
//! reader can hold each machine against the paper that it follows. The *shell*, in the runtime, moves the bytes: what it
//! owes to each decision is said at [`Cut`], at [`LapStep`] and at [`Action`].
//!
//! - [`TaskCut`]: one task. It holds what its inputs bring against each other and says when to freeze. Each protocol has a
//!   file of its own, headed by its rules.
//! - [`Coordinator`]: the whole job. It begins epochs, gives them up, and knows when one is complete.
//! - [`Laps`] and [`Component`]: a task's and the whole loop's part in finding that nothing goes round any more.
//!
//! Between them go words, written by the coordinator's shell only, and one message queue back:
//!
//! | word | holds | a task hands it to |
//! |---|---|---|
//! | `request` | the newest epoch begun | [`TaskCut::requested`] |
//! | `timed_out` | the highest epoch that goes on unaligned | [`TaskCut::timed_out`] |
//! | `released` | the highest epoch in which all have paused | [`TaskCut::released`] |
//! | `aborted_to` | the highest epoch given up | [`TaskCut::aborted_to`] |
//! | `closed_to` | the highest epoch durable or given up | [`TaskCut::closed_to`], [`TaskCut::may_finish`] |
//! | `lap` | of each component: the lap under way | [`Laps::next`] |
//!
//! Each word only rises. A task may read them late and in any order: what it does upon an old value is absorbed further
//! down. Epochs and laps are numbered from 1; 0 stands for "none".
//!
//! What a task's inputs hold, from its side, in this order: the undrained *rest* of a restore; at a head's back edge the
//! *spill*, into which the ring is drained; the ring. *Consumed means processed*, not taken from the ring.

mod aligned;
mod aligned_then_unaligned;
mod at_least_once;
mod chandy_lamport;
mod coordinator;
mod decision;
mod inputs;
mod laps;
mod protocol;
mod stop_the_world;
mod task;
mod unaligned;

pub use coordinator::{Action, Coordinator, Timing};
pub use decision::{Cut, Drained, InputKind, Log, Outputs};
pub use laps::{Component, LapRole, LapStep, Laps};
pub use protocol::Protocol;
pub use task::TaskCut;
