//! The lines of text files as a source.

use super::input::{Inputs, LineReader, trim_ending};
use crate::error::{ConnectorError, Failed};
use crate::operator::{Emit, Read, Reader, Source, Split};
use std::path::Path;

/// The lines of one or several text files, plain or gzip: bytes without the line ending (LF or CRLF), in any encoding.
///
/// A byte order mark at the beginning of a file is left out. A line of more than 16 MiB is an error.
#[derive(Clone, Debug)]
pub struct Lines {
    inputs: Inputs,
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
        Ok(Self { inputs: Inputs::open(paths)? })
    }

    /// Bytes of text in a split of a plain file, 8 MiB by default. A job that goes on from a checkpoint keeps its splits.
    #[must_use]
    pub fn split_bytes(mut self, split_bytes: u64) -> Self {
        self.inputs.split_bytes = Some(split_bytes);
        self
    }
}

impl Source for Lines {
    type Item = Vec<u8>;
    type Reader = LinesReader;

    fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        self.inputs.splits()
    }

    fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError> {
        self.inputs.verify(splits)
    }

    fn open(&self, split: &Split, offset: u64) -> Result<Self::Reader, ConnectorError> {
        let (piece, shown) = self.inputs.piece(split)?;
        Ok(LinesReader { lines: LineReader::open(piece, shown, offset)? })
    }
}

/// Reads the lines of one split.
#[derive(Debug)]
pub struct LinesReader {
    lines: LineReader,
}

impl Reader for LinesReader {
    type Item = Vec<u8>;

    fn read<E: Emit<Vec<u8>>>(&mut self, max: usize, out: &mut E) -> Result<Read, Failed> {
        for _ in 0..max {
            let Some(line) = self.lines.next_line()? else {
                return Ok(Read::Done);
            };
            let line = trim_ending(line).to_vec();
            out.emit(line)?;
        }
        Ok(Read::More)
    }

    fn offset(&self) -> u64 {
        self.lines.position()
    }
}
