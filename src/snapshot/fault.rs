//! What goes wrong below a store, before it is known of which file. It must not know the paths.

use crate::error::StoreError;
use std::io;
use std::path::Path;

/// A [`StoreError`] without its path.
#[derive(Debug)]
pub(super) enum Fault {
    Io(&'static str, io::Error),
    Corrupt(String),
    Foreign(String),
}

impl Fault {
    /// Says in what it was found.
    pub fn within(self, place: impl FnOnce() -> String) -> Self {
        match self {
            Self::Corrupt(what) => Self::Corrupt(format!("{}, {what}", place())),
            other => other,
        }
    }

    pub fn at(self, path: &Path) -> StoreError {
        let path = path.to_owned();
        match self {
            Self::Io(action, error) => StoreError::Io { path, action, error },
            Self::Corrupt(what) => StoreError::Corrupt { path, what },
            Self::Foreign(reason) => StoreError::Foreign { path, reason },
        }
    }
}

/// Why a checkpoint was not committed.
pub(super) enum Stop {
    /// The generation is as it was.
    Declined(StoreError),
    /// A write or sync has failed: nothing is trusted any more.
    Failed(StoreError),
    /// What was to be copied cannot be read.
    Origin(StoreError),
}

/// The disk, the quota or the limit of file sizes is used up.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// `map_err(io("read"))`.
pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Fault {
    move |error| Fault::Io(action, error)
}
