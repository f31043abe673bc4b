//! What a task remembers between records: a keyed table on pages. It knows neither the dataflow nor where snapshots go.
//!
//! How a table lies in its pages (all numbers little-endian; a page's header is described in `head`):
//!
//! 1. Extendible hashing by the *top* bits of a 64-bit hash. A *bucket* holds all keys whose hash begins with its prefix;
//!    its page says prefix and depth (bits of the prefix). The directory maps the task's range of hashes to buckets; it is
//!    neither saved nor frozen, headers suffice to rebuild it.
//! 2. A page is an open-addressed hash table of its own: groups of seven slots, a word of seven tags and a count in front
//!    of each. A group's tags stand beside its slots, not together at the start of the page, so that a look-up touches one
//!    place of the page and one fetch ahead brings it all.
//! 3. In a table of fixed-layout keys and values a slot is key and value. Otherwise it is the offset of an entry in the
//!    page's heap, which grows down from the end of the page; keys above an eighth and values above a quarter of a page
//!    lie in chains of pages of their own.
//! 4. A full bucket splits in two by the next bit of the hash. Depth is capped, absolutely and by the size that the
//!    directory would have in relation to the number of buckets; beyond the cap a bucket grows a chain of pages.
//! 5. Splitting and compacting build new pages beside the old one, and then replace it: when pages run out half-way,
//!    nothing has changed.
//! 6. Pages are given back as keys go: two pages of a chain, or two buckets that differ in the last bit of their prefix and
//!    have no chain, become one as soon as they are half of what a page is filled with. A merge never makes the directory larger
//!    in proportion to the number of buckets than a restore accepts.
//! 7. A restored table may lie in its snapshot still: the directory is made of the pages' tags (see `head`), and a page is
//!    read, and checked so far that nothing can panic or loop on it, when it is first touched.
//! 8. What still has values of an older type stands beside the table, and comes over bucket by bucket (see `outdated`).
//! 9. A table that lies in the cache fills its pages less, for the sake of look-ups, and those of a fixed layout take batches
//!    straight in (see `table::straight`). Batches for larger ones go through a window, in which keys wait while their places
//!    are fetched; those of variable length always, for they are found in stages (see `table::heap`, and `table::near` for what
//!    lies in the cache).
//! 10. A page touched for the first time after a freeze is copied by [`crate::page`]; nothing here knows of it.

mod absent;
mod buckets;
mod chain;
mod deal;
mod directory;
mod entry;
mod frozen;
mod groups;
mod hash;
mod head;
mod kept;
mod layout;
mod long;
mod migrating;
mod outdated;
mod range;
mod restore;
mod room;
mod root;
mod rows;
mod sane;
mod scan;
mod shrink;
mod stale;
mod table;
#[cfg(all(test, not(snapring_loom)))]
mod tests;
mod value;
mod window;

pub use crate::error::StateError;
pub use frozen::FrozenTable;
pub use hash::{HASH_NAME, Hasher};
pub use migrating::Migrating;
pub use outdated::{OldPart, Outdated};
pub use range::{GROUP_MASK, HashRange, KEY_GROUPS, key_group, range_of, task_of};
pub use restore::{Part, PartPages};
pub use rows::{Row, Rows};
pub use stale::Looked;
pub use table::Table;
pub use value::Value;
pub use window::{Ahead, Drained, Encoding, Window, mirror_of};
