//! Standard output as a plain sink: rows as they come, at least once.

use super::collect::Plain;
use super::{Format, Rows};
use crate::error::{ConnectorError, Failed};
use crate::operator::{Committer, Part, Place, Sink, Writer};
use crate::record::Record;
use std::io::{ErrorKind, Write};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

const BUFFER_BYTES: usize = 64 << 10;

/// Writes rows to standard output, or to another stream. Made by `Csv::stdout` and `JsonLines::stdout`.
///
/// Tasks write whole rows, a batch at a time. When the reader of the output goes away the job stops with
/// [`ConnectorError::ReaderGone`].
pub struct Stdout<T> {
    format: Format,
    stream: Stream,
    item: PhantomData<fn(T)>,
}

type Stream = Arc<Mutex<dyn Write + Send>>;

impl<T: Record> Stdout<T> {
    pub(super) fn new(format: Format) -> Self {
        Self { format, stream: Arc::new(Mutex::new(std::io::stdout())), item: PhantomData }
    }

    /// Writes to another stream instead.
    #[must_use]
    pub fn to(mut self, stream: impl Write + Send + 'static) -> Self {
        self.stream = Arc::new(Mutex::new(stream));
        self
    }
}

impl<T: Record> Sink for Stdout<T> {
    type In = T;
    type Writer = StdoutWriter<T>;

    fn exactly_once(&self) -> bool {
        false
    }

    fn claim(&self, _: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        Ok(Box::new(Plain))
    }

    fn writer(&self, _: &Place, _: u32) -> Result<Self::Writer, ConnectorError> {
        let (rows, buffer) = (Rows::new(self.format), Vec::with_capacity(BUFFER_BYTES));
        Ok(StdoutWriter { rows, buffer, stream: self.stream.clone() })
    }
}

/// Holds the rows of a batch until it is flushed.
pub struct StdoutWriter<T> {
    rows: Rows<T>,
    buffer: Vec<u8>,
    stream: Stream,
}

impl<T: Record> StdoutWriter<T> {
    fn hand_over(&mut self) -> Result<(), ConnectorError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let written = stream.write_all(&self.buffer).and_then(|()| stream.flush());
        self.buffer.clear();
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => ConnectorError::ReaderGone,
            _ => ConnectorError::Io { path: PathBuf::from("standard output"), action: "write", error },
        })
    }
}

impl<T: Record> Writer for StdoutWriter<T> {
    type In = T;

    #[inline]
    fn write(&mut self, record: T) -> Result<(), Failed> {
        self.rows.append(&record, &mut self.buffer);
        if self.buffer.len() >= BUFFER_BYTES {
            self.hand_over()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failed> {
        Ok(self.hand_over()?)
    }

    fn prepare(&mut self, _: u64) -> Result<Option<Part>, Failed> {
        self.hand_over()?;
        Ok(None)
    }
}
