//! Where a job's results go. A job draws its dataflow up to its results; the rest is the same for all of them.

use snapring::connector::Format;
use snapring::dataflow::Stream;
use snapring::error::{ConnectorError, Failed};
use snapring::operator::{Committer, Part, Place, Sink, Stage, Writer};
use snapring::record::Record;
use std::marker::PhantomData;
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
            Self::Nowhere => results.sink(name, Nowhere(PhantomData)),
        }
        Ok(())
    }
}

/// A sink that drops what arrives.
struct Nowhere<T>(PhantomData<fn(T)>);

impl<T: Record> Sink for Nowhere<T> {
    type In = T;
    type Writer = Self;

    fn exactly_once(&self) -> bool {
        false
    }

    fn claim(&self, _: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        Ok(Box::new(Self(PhantomData)))
    }

    fn writer(&self, _: &Place, _: u32) -> Result<Self, ConnectorError> {
        Ok(Self(PhantomData))
    }
}

impl<T: Record> Writer for Nowhere<T> {
    type In = T;

    fn write(&mut self, record: T) -> Result<(), Failed> {
        std::hint::black_box(record);
        Ok(())
    }

    fn prepare(&mut self, _: u64) -> Result<Option<Part>, Failed> {
        Ok(None)
    }
}

impl<T> Committer for Nowhere<T> {
    fn recover(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn sync(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn commit(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        Ok(())
    }
}
