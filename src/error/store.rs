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
    /// A store, but made with other settings than it is opened with.
    #[error("{}: {reason}", path.display())]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// Which setting, both values, and what to do.
        reason: String,
    },
    /// Another process has it.
    #[error("{}: in use by another process or another job of this one: stop that first", path.display())]
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
    /// The epoch is not in the store: never committed, or expired.
    #[error("{}: no epoch {epoch} here; {}", path.display(), listed(kept))]
    NoEpoch {
        /// The file.
        path: PathBuf,
        /// The epoch asked for.
        epoch: u64,
        /// The epochs there are, oldest first.
        kept: Vec<u64>,
    },
    /// A checkpoint that cannot be committed as it is. The store is unchanged and takes other ones.
    #[error("{}: epoch {epoch} refused: {reason}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The epoch of the checkpoint.
        epoch: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// No room on the disk. The last durable epoch stands, and the store takes other checkpoints.
    #[error("{}: no space for {bytes} more bytes: free some, then try again", path.display())]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// How much was needed.
        bytes: u64,
    },
}

fn listed(kept: &[u64]) -> String {
    if kept.is_empty() { "no checkpoint is kept".to_owned() } else { format!("kept are {kept:?}") }
}
