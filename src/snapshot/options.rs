//! How a store is made or opened, and whether it can be. It must not open anything.

use super::format::{Geometry, sizes_fit};
use crate::error::StoreError;
use std::path::Path;

/// What a commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Loss of power: a commit returns when the disk has it.
    #[default]
    PowerLoss,
    /// The end of the process, by whatever signal: a commit returns when the system has it.
    ProcessCrash,
}

/// How a store writes its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SinkKind {
    /// By system calls.
    #[default]
    Pwrite,
    /// Through mappings of its segments. What was synced faults anew when it is written next, so commits that are to survive
    /// a loss of power take 1.5 to 1.9 times as long.
    Mapped,
}

/// How to make or open a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// How many checkpoints to keep, the newest; at least 2.
    pub keep: u32,
    /// What a commit survives.
    pub durability: Durability,
    /// The size of pages, fixed when the store is made: a power of two from 4 KiB to 64 KiB.
    pub page_bytes: u32,
    /// By how much the file grows at least, fixed when the store is made: a multiple of 64 KiB, up to 1 GiB.
    pub segment_bytes: u64,
    /// How to write.
    pub sink: SinkKind,
    /// Threads that copy and checksum large sets of pages; 0 leaves it to the machine, 1 uses the caller's. They are made by
    /// the thread that first needs them, which must not be pinned to a core.
    pub writer_threads: usize,
    /// Writes no faster than this, so that others keep the disk and the memory bus; none: as fast as it goes. Commits take
    /// longer for it.
    pub bandwidth_bytes_per_s: Option<u64>,
    /// The id of a new store; a random one if there is none.
    pub id: Option<[u8; 16]>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            keep: 3,
            durability: Durability::default(),
            page_bytes: 16 << 10,
            segment_bytes: 4 << 20,
            sink: SinkKind::default(),
            writer_threads: 0,
            bandwidth_bytes_per_s: None,
            id: None,
        }
    }
}

/// Before anything is opened.
pub(super) fn check_options(path: &Path, options: &StoreOptions) -> Result<(), StoreError> {
    let (page, segment) = (options.page_bytes, options.segment_bytes);
    if sizes_fit(page, segment) && options.keep >= 2 {
        return Ok(());
    }
    let reason = format!(
        "cannot keep {} checkpoints with pages of {page} and segments of {segment} bytes: keep at least 2; pages are a \
         power of two from 4096 to 65536, segments a multiple of 65536 up to 1073741824",
        options.keep
    );
    Err(StoreError::Mismatch { path: path.into(), reason })
}

/// Against what is there.
pub(super) fn check_sizes(path: &Path, geometry: Geometry, options: &StoreOptions) -> Result<(), StoreError> {
    if geometry.page_bytes == options.page_bytes {
        return Ok(());
    }
    let reason = format!(
        "made with pages of {} bytes and opened with {}: open it with the former, or name a new folder",
        geometry.page_bytes, options.page_bytes
    );
    Err(StoreError::Mismatch { path: path.into(), reason })
}
