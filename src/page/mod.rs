//! Pages of memory with copy-on-write: what all state lives in. The bottom room: it knows nothing of tables, snapshots,
//! tasks or files.
//!
//! 1. A [`Pool`] is bounded. [`Pages`] is the set of pages of one state; one task owns it. Who finds the pool exhausted may
//!    wait, as long as pages may come back; whatever comes of that, no page is lost or overwritten.
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
//! 8. A *view* is a cut of all pages, dirty or not. It begins in constant time, as a freeze does; a pass over the pages hands
//!    them over a few at a time, and whoever changes one that the pass has not come to hands over the old one first. A view
//!    that is not complete is let go of rather than that anybody fails for want of pages.

mod buffer;
mod bytes;
mod fetch;
mod frozen;
mod large;
mod list;
mod pages;
mod pool;
mod source;
#[cfg(all(test, not(snapring_loom)))]
mod tests;

pub use crate::error::{PageError, PoolExhausted};
pub(crate) use bytes::{equal_bytes, high_bits};
pub(crate) use fetch::fetch_ahead;
pub use frozen::{FrozenPage, FrozenPages};
pub(crate) use large::Large;
pub use pages::{CutPages, Near, Pages, WholePages};
pub use pool::{Pool, Shortage, Toucher};
pub use source::PageSource;

/// Names a page within its [`Pages`]. Ids are small and used again once freed.
pub type PageId = u32;
