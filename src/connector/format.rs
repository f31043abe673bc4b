//! How records become rows of text: CSV or JSON lines. What a value looks like is decided in [`crate::record`].

use super::{Files, Stdout};
use crate::error::ConnectorError;
use crate::record::{Record, Schema, text};
use std::marker::PhantomData;
use std::path::Path;

/// What rows look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Comma-separated, quoted where needed, LF at the end, no header.
    Csv,
    /// One JSON object a line.
    JsonLines,
}

impl Format {
    /// What names of files end with.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
        }
    }

    /// A sink that writes each record exactly once to files in a folder. The job needs a state folder.
    ///
    /// The folder is made if it is missing, and belongs to one state folder from then on.
    ///
    /// # Errors
    /// The path is that of a file.
    pub fn exactly_once<T: Record>(self, folder: impl AsRef<Path>) -> Result<Files<T>, ConnectorError> {
        Files::new(folder.as_ref(), self)
    }

    /// A sink that writes rows to standard output, at least once.
    pub fn stdout<T: Record>(self) -> Stdout<T> {
        Stdout::new(self)
    }
}

/// JSON lines: an output format.
#[derive(Debug)]
pub struct JsonLines<T>(PhantomData<fn(T)>);

impl<T: Record> JsonLines<T> {
    /// A sink: [`Format::exactly_once`].
    ///
    /// # Errors
    /// The path is that of a file.
    pub fn exactly_once(folder: impl AsRef<Path>) -> Result<Files<T>, ConnectorError> {
        Format::JsonLines.exactly_once(folder)
    }

    /// A sink: [`Format::stdout`].
    pub fn stdout() -> Stdout<T> {
        Format::JsonLines.stdout()
    }
}

/// Writes records as rows.
#[derive(Debug)]
pub(super) struct Rows<T> {
    format: Format,
    schema: Schema,
    encoded: Vec<u8>,
    item: PhantomData<fn(T)>,
}

impl<T: Record> Rows<T> {
    pub fn new(format: Format) -> Self {
        Self { format, schema: T::schema(), encoded: Vec::new(), item: PhantomData }
    }

    /// Appends a row with its line end.
    ///
    /// # Panics
    /// The record does not encode to what its schema says. A derived one does.
    pub fn append(&mut self, record: &T, out: &mut Vec<u8>) {
        self.encoded.clear();
        record.encode(&mut self.encoded);
        let encoded = &mut self.encoded.as_slice();
        let written = match self.format {
            Format::Csv => text::write_csv(&self.schema, encoded, out),
            Format::JsonLines => text::write_json(&self.schema, encoded, out),
        };
        written.expect("a record encodes to what its schema says");
        out.push(b'\n');
    }
}
