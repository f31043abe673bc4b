//! The store: checkpoints in one shadow-paged file, each incremental to write and complete to read.
//! It must not know what a page, a root or a header means, nor who took them.
//!
//! The rules of a commit (the file itself is described in [`crate::docs::format`]):
//!
//! 1. A block that any kept epoch reaches, or that the newest meta needs, is never written. Changed pages, the map
//!    nodes above them and the small things of the epoch go to free blocks.
//! 2. The space for all of it is there before anything is changed: the file grows by whole, allocated segments. When
//!    the disk is full the checkpoint is declined, and the store is as it was.
//! 3. Write; **sync**; write the older of the two metas, one sector (twice, side by side), by `pwrite`; **sync**;
//!    acknowledge. The first sync covers the growth of the file too, so no meta claims more than the file has.
//! 4. What a commit supersedes dies with the newest epoch kept before it, and is free when that epoch has expired,
//!    which is never before the second sync of a commit.
//! 5. After a failed write or sync nothing is written to that file any more; the last durable epoch stands.
//! 6. Opening writes nothing. It syncs once, because a process that was killed between the two syncs of rule 3 leaves
//!    a meta in the page cache which the disk may not have yet, and the job is going to rely on it.
//! 7. What is free is not in the file: it is what no kept epoch reaches. It is found by reading the maps, ahead of the
//!    first commit: opening reads none of them, and until they have been read nothing is taken.
//! 8. Under `Durability::ProcessCrash` the order is the same without the syncs: the page cache outlives the process.
//!
//! (Epochs that somebody holds on to outlive this: the rules are at the head of `pin` and of `held`.)
//!
//! A store has one file, its *generation*, until one fails:
//!
//! 9. After a failed write or sync, or if the file is not what it was, the next checkpoint goes to a new generation: a
//!    file of its own, for the system may have forgotten what it could not write, and a later sync of the old one would
//!    say nothing about it.
//! 10. A generation says which epoch it follows, the last durable one. Later epochs of earlier files do not count: they
//!     were never acknowledged, and may be in the page cache only. The newest epoch that counts, over all files, wins.
//! 11. The first checkpoint of a generation is complete: pages that it does not bring are copied from the epoch that it
//!     builds on, each against its checksum. Where they cannot be read, the checkpoint must bring all pages.
//! 12. Earlier generations stay until the new one holds `keep` epochs by itself: a disk that failed once may do so
//!     again, and then none of the epochs to go back to would be elsewhere.
//!
//! Room for what is written:
//!
//! 13. The file is about twice as long as what is in use, if the disk has the room. Blocks are taken from where the last
//!     ones were on, round the end, and become free at random; so with half of them free most are, by the time their turn
//!     comes again, and what is written goes to long runs. In a file that is nearly full free pages lie alone, and writing
//!     them takes a disk several times as long as the same bytes in one run. For the same reason the nodes of an epoch go
//!     behind its pages as long as a quarter of the file is free; only when it is not they fill holes among older ones.

mod channels;
mod codec;
mod commit;
mod dense;
mod earlier;
mod edge_part;
mod fault;
mod folder;
mod format;
mod generation;
mod head;
mod held;
mod home;
mod layout;
mod leaves;
mod map;
mod mapped;
mod options;
mod pin;
mod prune;
mod pwrite;
mod reader;
mod recover;
mod renamed;
mod renewal;
mod restored;
mod savepoint;
#[doc(hidden)]
pub mod sim;
mod sink;
mod space;
mod store;
mod stored;
mod sums;
#[cfg(all(test, not(snapring_loom)))]
mod tests;
mod tree;
mod writing;

pub use channels::{ChannelPart, REST, Side};
pub use commit::CommitStats;
pub use edge_part::EdgePart;
pub use folder::STORE_FILE;
pub use format::BLOCK_BYTES;
pub use held::Pinned;
pub use home::{Generations, Home};
pub use options::{Durability, SinkKind, StoreOptions};
pub use pin::{Hold, Pin};
pub use prune::{Compacted, Pruned};
pub use reader::{EpochReport, Held, Reader};
pub use renamed::{Renamed, StateName};
pub use restored::{Restored, RestoredEntry};
pub use savepoint::{Copying, check_savepoint};
pub use sink::{ReadAt, Sink};
pub use store::{Audit, EpochInfo, Store};

use crate::page::FrozenPages;

/// One task's part of one state.
#[derive(Debug)]
pub struct Entry {
    /// The operator as drawn.
    pub operator: String,
    /// The state within the operator.
    pub state: String,
    /// Which of the tasks.
    pub task: u32,
    /// How many tasks the operator had.
    pub tasks: u32,
    /// The layout of what is in the pages, for tools that do not have the job's code.
    pub schema: Vec<u8>,
    /// The small part of the state, whole each time.
    pub root: Vec<u8>,
    /// The pages that changed. Unless `full`, they build on the pages of the same (operator, state, task, tasks) in the
    /// epoch before: freed pages go first, then changed ones come in.
    pub pages: Option<FrozenPages>,
}

/// All snapshots of one epoch. What an earlier epoch had and this one does not name is no part of it.
#[derive(Debug)]
pub struct Checkpoint {
    /// Above that of every checkpoint committed before.
    pub epoch: u64,
    /// What the runtime wants back: job name, attempt, offsets …
    pub header: Vec<u8>,
    /// One for each task and state.
    pub entries: Vec<Entry>,
}
