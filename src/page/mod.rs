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
//! 7. A page may be *absent*: clean, and still where its [`PageSource`] has it. The first touch brings it into memory, in
//!    the branch that is cold anyway. An absent page is never dirty, so a freeze, which hands over what is dirty, needs
//!    none; what builds on the freeze must leave the source as it is for as long as pages are absent.

mod buffer;
mod fetch;
mod frozen;
mod list;
mod pages;
mod pool;
mod source;
#[cfg(test)]
mod tests;

pub use crate::error::{PageError, PoolExhausted};
pub(crate) use fetch::fetch_ahead;
pub use frozen::{FrozenPage, FrozenPages};
pub use pages::Pages;
pub use pool::Pool;
pub use source::PageSource;

/// Names a page within its [`Pages`]. Ids are small and used again once freed.
pub type PageId = u32;
