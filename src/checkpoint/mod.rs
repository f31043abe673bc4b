//! When a task freezes and when an epoch is complete: the protocols as pure state machines.
//!
//! Events go in (barrier 7 on input 0, input 1 ended), decisions come out (freeze in 7, commit 7). No thread, file,
//! clock or ring is known here, so every order of events can be enumerated in a test (`tests/checkpoint.rs`), and a
//! reader can hold each machine against the paper that it follows. The *shell*, in the runtime, moves the bytes: what it
//! owes to each decision is said at [`Cut`] and at [`Action`].
//!
//! - [`Aligned`]: one task. It holds the barriers of its inputs against each other and says when to freeze.
//! - [`Coordinator`]: the whole job. It begins epochs, gives them up, and knows when one is complete.
//!
//! Between them go three words, written by the coordinator's shell only, and one message queue back:
//!
//! | word | holds | a task hands it to |
//! |---|---|---|
//! | `request` | the newest epoch begun | [`Aligned::requested`] |
//! | `aborted_to` | the highest epoch given up | [`Aligned::aborted_to`] |
//! | `closed_to` | the highest epoch durable or given up | [`Aligned::may_finish`] |
//!
//! Each word only rises. A task may read them late and in any order: what it does upon an old value is absorbed further
//! down. Epochs are numbered from 1; 0 stands for "none".

mod aligned;
mod coordinator;
mod protocol;
mod reach;

pub use aligned::{Aligned, Cut};
pub use coordinator::{Action, Coordinator, Timing};
pub use protocol::Protocol;
pub use reach::Reach;
