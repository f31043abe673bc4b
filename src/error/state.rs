//! What can go wrong with the state of a running task.

use super::DecodeError;

/// No page is left in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the state has used up its limit of {limit_bytes} bytes of pages: raise the limit, or keep less state \
     (pages that a checkpoint still has to write count twice)"
)]
pub struct PoolExhausted {
    /// The limit that the pool was made with.
    pub limit_bytes: usize,
}

/// Why a page could not be had. Messages name the file, the epoch, the state and the page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// No page is left in the pool.
    #[error(transparent)]
    Exhausted(#[from] PoolExhausted),
    /// The page was to be read from a snapshot, and is not as it was written.
    #[error("{what}")]
    Corrupt {
        /// Which page, and what is wrong with it.
        what: String,
    },
    /// The page was to be read from a snapshot, and the system refused.
    #[error("{what}")]
    Unreadable {
        /// Which page, and what the system said.
        what: String,
    },
}

/// Why state could not be read, changed or restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// No page is left in the pool. The state is as it was before the call.
    #[error(transparent)]
    Exhausted(#[from] PoolExhausted),
    /// Bytes of a page or of a root are not what this table writes.
    #[error("the state is corrupt: {what}; restore an older epoch, or start with a new state folder")]
    Corrupt {
        /// Which part, and what is wrong with it.
        what: String,
    },
    /// A part of the state was still in the snapshot, and the system refused to read it.
    #[error("the state cannot be read: {what}; see to the disk, then start the job again")]
    Unreadable {
        /// Which part, and what the system said.
        what: String,
    },
    /// The snapshot was made by a table of another kind.
    #[error("the state does not fit: {what}")]
    Mismatch {
        /// What differs.
        what: String,
    },
    /// A key or a value has more bytes than a table can keep.
    #[error("a key or value of {bytes} bytes is too long for the state: at most 4294967295 bytes can be kept")]
    TooLong {
        /// The length of its encoding.
        bytes: usize,
    },
}

impl StateError {
    /// Damage, told in words.
    #[cold]
    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into() }
    }
}

impl From<PageError> for StateError {
    #[cold]
    fn from(error: PageError) -> Self {
        match error {
            PageError::Exhausted(error) => Self::Exhausted(error),
            PageError::Corrupt { what } => Self::Corrupt { what },
            PageError::Unreadable { what } => Self::Unreadable { what },
        }
    }
}

impl From<DecodeError> for StateError {
    #[cold]
    fn from(error: DecodeError) -> Self {
        Self::corrupt(format!("a stored key or value cannot be read: {error}"))
    }
}
