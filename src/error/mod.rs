//! Errors, one enum a phase. Each says what happened, where, and what to do; [`Error::exit_code`] is what a command
//! line leaves with.

mod build;
mod connector;
mod decode;
mod failure;
mod restore;
mod state;
mod store;

pub use build::BuildError;
pub use connector::ConnectorError;
pub use decode::DecodeError;
pub use failure::{Again, Cause, Failed, Failure};
pub use restore::RestoreError;
pub use state::{PageError, PoolExhausted, StateError};
pub use store::StoreError;

/// Whatever stopped a job, or kept it from starting. Its `Debug` is its `Display`: a `main` that returns it says what to do.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The drawing or the configuration is wrong.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A source or a sink could not be opened.
    #[error(transparent)]
    Connector(#[from] ConnectorError),
    /// The store could not be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The snapshot does not fit the job.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The job failed while it ran.
    #[error("{0}")]
    Job(Box<Failure>),
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        Self::Job(failed.0)
    }
}

impl Error {
    /// The exit code of a command that ends with this error: 1 the job failed, 2 usage, 3 snapshot corrupt, 4 snapshot
    /// does not fit, 5 file or environment. The cause decides, not the place where it was noticed.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Build(_) => 2,
            Self::Connector(error) => error.exit_code(),
            Self::Store(error) => error.exit_code(),
            Self::Restore(_) => 4,
            Self::Job(failure) => match &failure.cause {
                Cause::Connector(error) => error.exit_code(),
                Cause::Store(error) => error.exit_code(),
                Cause::State(StateError::Corrupt { .. }) => 3,
                Cause::State(StateError::Mismatch { .. }) => 4,
                Cause::State(StateError::Unreadable { .. }) | Cause::Spill { .. } => 5,
                _ => 1,
            },
        }
    }
}

impl ConnectorError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Malformed { .. } => 1,
            Self::Changed { .. } => 4,
            _ => 5,
        }
    }
}

impl StoreError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Corrupt { .. } => 3,
            Self::Mismatch { .. } => 4,
            // Somebody has asked for it by its number.
            Self::NoEpoch { .. } => 2,
            _ => 5,
        }
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_cause_decides_the_exit_code() {
        let job = |cause: Cause| Error::from(Failed::from(cause)).exit_code();
        assert_eq!(job(Cause::User("bad".into())), 1);
        assert_eq!(job(StateError::corrupt("page 7").into()), 3);
        assert_eq!(job(StateError::Mismatch { what: "seed".into() }.into()), 4);
        assert_eq!(job(StateError::Unreadable { what: "page 7".into() }.into()), 5);
        assert_eq!(job(StateError::from(PoolExhausted { limit_bytes: 1 }).into()), 1);
        assert_eq!(job(ConnectorError::ReaderGone.into()), 5);
        assert_eq!(job(StoreError::Corrupt { path: "s".into(), what: "meta".into() }.into()), 3);
    }
}
