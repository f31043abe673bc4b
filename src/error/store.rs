//! What can go wrong with a store.

use std::path::PathBuf;

/// Why a store could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused.
    #[error("{}: cannot {action}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
    /// Not a store, or not one that this version reads.
    #[error("{}: {reason}", path.display())]
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// What it is instead, and what to do.
        reason: String,
    },
    /// Another process has it.
    #[error("{}: in use by another process: stop it first", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A page, a map node or a meta is damaged.
    #[error("{}: corrupt: {what}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Which part, of which state and epoch.
        what: String,
    },
    /// No room on the disk.
    #[error("{}: no space for {bytes} more bytes: free some, then start again", path.display())]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// How much was needed.
        bytes: u64,
    },
    /// An earlier write or sync failed; nothing is trusted any more.
    #[error("{}: an earlier write failed ({first}); the store is closed to writing, the last durable epoch is intact", path.display())]
    Latched {
        /// The file.
        path: PathBuf,
        /// The first error.
        first: String,
    },
}
