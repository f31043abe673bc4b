//! The lines of text files as a source: as bytes, or as text.

use super::input::{Inputs, LineReader, trim_ending};
use super::rows::{BadLines, OrBadLines, RowReader, RowSource, Rows};
use crate::error::ConnectorError;
use crate::operator::{Source, Split};
use crate::record::Record;
use std::marker::PhantomData;
use std::path::Path;

/// The lines of one or several text files, plain or gzip, without the line ending (LF or CRLF): bytes in any encoding, or
/// with [`Lines::text`] text, which is UTF-8.
///
/// A byte order mark at the beginning of a file is left out. A line of more than 16 MiB is a bad one, and so is a line of
/// text that is not UTF-8.
#[derive(Clone, Debug)]
pub struct Lines<T = Vec<u8>> {
    inputs: Inputs,
    bad_lines: BadLines,
    item: PhantomData<fn() -> T>,
}

impl Lines {
    /// The lines of a file.
    ///
    /// # Errors
    /// The file is missing, unreadable, a folder, or nothing that can be read again.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ConnectorError> {
        Self::open_all([path])
    }

    /// The lines of several files.
    ///
    /// # Errors
    /// As [`Lines::open`], for the first file that has something wrong.
    pub fn open_all(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, ConnectorError> {
        Ok(Self { inputs: Inputs::open(paths)?, bad_lines: BadLines::Fail, item: PhantomData })
    }

    /// The same lines as `String`s.
    #[must_use]
    pub fn text(self) -> Lines<String> {
        Lines { inputs: self.inputs, bad_lines: self.bad_lines, item: PhantomData }
    }
}

impl<T> Lines<T> {
    /// Bytes of text in a split of a plain file, 8 MiB by default. A job that goes on from a checkpoint keeps its splits.
    #[must_use]
    pub fn split_bytes(mut self, split_bytes: u64) -> Self {
        self.inputs.split_bytes = Some(split_bytes);
        self
    }

    /// What becomes of a bad line: by default the job fails.
    #[must_use]
    pub fn bad_lines(mut self, bad_lines: BadLines) -> Self {
        self.bad_lines = bad_lines;
        self
    }

    /// A source that gives bad lines too, as [`BadLine`](super::BadLine)s by the side of the good ones: see
    /// [`Csv::or_bad_lines`](super::Csv::or_bad_lines).
    #[must_use]
    pub fn or_bad_lines(self) -> OrBadLines<Self> {
        OrBadLines(self)
    }
}

/// What a line can be read as.
pub trait Line: Record {
    /// The line, or what is wrong with it.
    fn of(line: &[u8]) -> Result<Self, &'static str>;
}

impl Line for Vec<u8> {
    fn of(line: &[u8]) -> Result<Self, &'static str> {
        Ok(line.to_vec())
    }
}

impl Line for String {
    fn of(line: &[u8]) -> Result<Self, &'static str> {
        std::str::from_utf8(line).map(str::to_owned).map_err(|_| "the line is not UTF-8")
    }
}

impl<T: Line> Source for Lines<T> {
    type Item = T;
    type Reader = RowReader<LineRows<T>>;

    fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        self.inputs.splits()
    }

    fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError> {
        self.inputs.verify(splits)
    }

    fn open(&self, split: &Split, offset: u64) -> Result<Self::Reader, ConnectorError> {
        Ok(RowReader::new(self.rows(split, offset)?, self.bad_lines))
    }
}

impl<T: Line> RowSource for Lines<T> {
    type Rows = LineRows<T>;

    fn rows(&self, split: &Split, offset: u64) -> Result<LineRows<T>, ConnectorError> {
        let (piece, shown) = self.inputs.piece(split)?;
        Ok(LineRows { lines: self.inputs.lines(piece, shown, offset)?, item: PhantomData })
    }
}

/// Reads the lines of one split.
#[derive(Debug)]
pub struct LineRows<T> {
    lines: LineReader,
    item: PhantomData<fn() -> T>,
}

impl<T: Line> Rows for LineRows<T> {
    type Item = T;

    fn next_row(&mut self) -> Result<Option<T>, ConnectorError> {
        let before = self.lines.count();
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        match T::of(trim_ending(line)) {
            Ok(line) => Ok(Some(line)),
            Err(reason) => Err(self.lines.malformed(before, reason)),
        }
    }

    fn bad_row(&mut self) -> Result<Option<Vec<u8>>, ConnectorError> {
        let line = self.lines.last_line()?;
        Ok(Some(trim_ending(&line).to_vec()))
    }

    fn position(&self) -> u64 {
        self.lines.position()
    }
}
