//! Where a job's results go. A job draws its dataflow up to its results; the rest is the same for all of them.

use snapring::connector::{Discard, Format};
use snapring::dataflow::Stream;
use snapring::error::ConnectorError;
use snapring::operator::Stage;
use snapring::record::Record;
use std::path::PathBuf;

/// Where results go.
#[derive(Clone, Debug)]
pub enum Output {
    /// Into files in this folder, each record exactly once. The job needs a state folder.
    Folder(PathBuf, Format),
    /// To standard output, as they come.
    Stdout(Format),
    /// Nowhere: for measurements.
    Nowhere,
}

impl Output {
    /// Ends a stream in a sink of this name.
    ///
    /// # Errors
    /// The path is that of a file.
    pub(crate) fn take<T: Record, C>(&self, name: &str, results: Stream<T, C>) -> Result<(), ConnectorError>
    where
        C: Stage<Out = T>,
    {
        match self {
            Self::Folder(folder, format) => results.sink(name, format.exactly_once(folder)?),
            Self::Stdout(format) => results.sink(name, format.stdout()),
            Self::Nowhere => results.sink(name, Discard::new()),
        }
        Ok(())
    }
}
