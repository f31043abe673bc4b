//! What can go wrong at the edges: files that are missing, lines that are malformed, folders that belong to others.

use std::path::PathBuf;

/// Why a source or a sink could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectorError {
    /// The system refused.
    #[error("{}: cannot {action}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried: "open", "read", "write", "sync", "rename" …
        action: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
    /// A line of input is not a record.
    #[error("{}:{line}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The first line does not name what the record needs.
    #[error("{}: wrong header: {reason}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// Compressed input ends too early or is damaged.
    #[error("{}: the gzip stream is truncated or damaged after {bytes} bytes of text: {error}", path.display())]
    Gzip {
        /// The file.
        path: PathBuf,
        /// Bytes of text that could be read.
        bytes: u64,
        /// What the decoder said.
        error: std::io::Error,
    },
    /// The input is not what the checkpoint was made from.
    #[error("{}: the input has changed since the checkpoint was made: {what}; restore the old input, or start with a new state folder", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// An output folder that belongs to another store, or holds what a fresh store must not add to.
    #[error("{}: {reason}", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Whose it is, and what to do.
        reason: String,
    },
    /// The reader of our output has gone (a closed pipe): not an error to complain about.
    #[error("the reader of the output has gone")]
    ReaderGone,
}
