//! Pages of memory with copy-on-write: what all state lives in. The bottom room: it knows nothing of tables, snapshots,
//! tasks or files.
//!
//! 1. A [`Pool`] is bounded. [`Pages`] is the set of pages of one state; one task owns it.
//! 2. A page whose epoch is older than now is not written in place while a [`FrozenPage`] of it is alive: its first write
//!    of the epoch copies it, once. So the bytes behind a frozen page never change.
//! 3. The check per write is one compare: `entry.epoch == now`.
//! 4. Freezing costs nothing that grows with the state: the handles pushed at each page's first write of the epoch are
//!    taken as they are, and the epoch is bumped.
//! 5. *Dirty* is changed since the last **durable** freeze; that is not the same as *shared with a frozen page*. Giving
//!    a freeze up makes its pages dirty again without touching them.
//! 6. A page whose epoch is now is on the dirty list. (The reverse does not hold: see 5.)

mod buffer;
mod frozen;
mod list;
mod pages;
mod pool;
#[cfg(test)]
mod tests;

pub use crate::error::PoolExhausted;
pub use frozen::{FrozenPage, FrozenPages};
pub use pages::Pages;
pub use pool::Pool;

/// Names a page within its [`Pages`]. Ids are small and used again once freed.
pub type PageId = u32;
