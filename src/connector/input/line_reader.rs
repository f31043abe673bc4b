//! The lines of one piece, in a buffer that grows to hold the longest of them.

use super::line_numbers::LineNumbers;
use super::piece::Piece;
use super::text::Text;
use crate::error::ConnectorError;
use memchr::memchr;
use std::path::{Path, PathBuf};

/// A longer line is an error: more likely than such a line is a file that is no text.
pub(in crate::connector) const LINE_BYTES_MAX: usize = 16 << 20;

const BUFFER_BYTES: usize = 64 << 10;
/// What is shown of a line that is too long.
const OVERLONG_SHOWN_BYTES: usize = 200;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Gives the lines that begin in a piece.
#[derive(Debug)]
pub(in crate::connector) struct LineReader {
    piece: Piece,
    text: Text,
    buffer: Vec<u8>,
    /// `buffer[begin..filled]` has been read and not given out.
    begin: usize,
    filled: usize,
    /// Of `buffer[begin]`.
    position: u64,
    /// Bytes of the line that was given last: they end at `begin`.
    last_bytes: usize,
    /// Instead of a line an error was given: it begins at `begin`.
    is_too_long: bool,
    /// Where it was opened: no line before it is given.
    opened_at: u64,
    /// Lines given since.
    lines: LineCount,
    numbers: LineNumbers,
}

/// So many lines after the one at which a reader was opened.
pub(in crate::connector) type LineCount = u64;

impl LineReader {
    /// Opens a piece at its start (offset 0) or at the beginning of any line in it (another offset).
    pub fn open(piece: Piece, shown: PathBuf, offset: u64, numbers: &LineNumbers) -> Result<Self, ConnectorError> {
        let begin = offset.max(piece.start);
        // One byte earlier: if that is a newline, then a line begins at `begin`.
        let position = begin.saturating_sub(1);
        let text = Text::open(&piece, &shown, position)?;
        let mut reader = Self {
            piece,
            text,
            buffer: vec![0; BUFFER_BYTES],
            begin: 0,
            filled: 0,
            position,
            last_bytes: 0,
            is_too_long: false,
            opened_at: 0,
            lines: 0,
            numbers: numbers.clone(),
        };
        if begin > 0 {
            let end = reader.piece.end;
            reader.skip_line(end)?;
        }
        reader.opened_at = reader.position;
        Ok(reader)
    }

    /// Moves behind the next newline, but not far behind `end`: no line begins there that would belong to the piece.
    fn skip_line(&mut self, end: u64) -> Result<(), ConnectorError> {
        while self.position < end {
            if let Some(newline) = memchr(b'\n', &self.buffer[self.begin..self.filled]) {
                self.take(newline + 1);
                return Ok(());
            }
            self.take(self.filled - self.begin);
            if !self.fill()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes the piece end earlier.
    pub fn end_at(&mut self, end: u64) {
        self.piece.end = end;
    }

    /// The number of lines that have been given.
    pub fn count(&self) -> LineCount {
        self.lines
    }

    /// The line that was given last, with its ending; of one that was too long its beginning, and it is left behind.
    pub fn last_line(&mut self) -> Result<Vec<u8>, ConnectorError> {
        if !self.is_too_long {
            return Ok(self.buffer[self.begin - self.last_bytes..self.begin].to_vec());
        }
        let line = self.buffer[self.begin..self.begin + OVERLONG_SHOWN_BYTES].to_vec();
        self.skip_line(u64::MAX)?;
        (self.is_too_long, self.last_bytes, self.lines) = (false, 0, self.lines + 1);
        Ok(line)
    }

    /// Where the next line begins.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What messages call the file.
    pub fn path(&self) -> &Path {
        &self.text.path
    }

    /// The next line that begins in the piece, with its ending, which only the last line of a file may lack.
    #[inline]
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, ConnectorError> {
        if self.position >= self.piece.end { Ok(None) } else { self.next_of_file() }
    }

    /// The next line, whether it begins in the piece or behind it.
    #[inline]
    pub fn next_of_file(&mut self) -> Result<Option<&[u8]>, ConnectorError> {
        let bytes = match memchr(b'\n', &self.buffer[self.begin..self.filled]) {
            Some(newline) => newline + 1,
            None => self.find_ending()?,
        };
        if bytes > LINE_BYTES_MAX {
            return Err(self.too_long());
        }
        let is_first = self.position == 0;
        let begin = self.take(bytes);
        self.last_bytes = bytes;
        self.lines += u64::from(bytes > 0);
        let mut line = &self.buffer[begin..begin + bytes];
        if is_first {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        Ok(if line.is_empty() { None } else { Some(line) })
    }

    /// Reads on until the line in the buffer is whole, or too long. Returns its length, 0 at the end of the text.
    #[cold]
    fn find_ending(&mut self) -> Result<usize, ConnectorError> {
        loop {
            let searched = self.filled - self.begin;
            if searched > LINE_BYTES_MAX {
                return Ok(searched);
            }
            if !self.fill()? {
                return Ok(searched);
            }
            if let Some(newline) = memchr(b'\n', &self.buffer[self.begin + searched..self.filled]) {
                return Ok(searched + newline + 1);
            }
        }
    }

    #[cold]
    fn too_long(&mut self) -> ConnectorError {
        self.is_too_long = true;
        self.malformed(self.lines, format!("the line is longer than {LINE_BYTES_MAX} bytes"))
    }

    fn take(&mut self, bytes: usize) -> usize {
        let begin = self.begin;
        self.begin += bytes;
        self.position += bytes as u64;
        begin
    }

    /// Reads more behind what is held; false at the end of the text.
    fn fill(&mut self) -> Result<bool, ConnectorError> {
        self.buffer.copy_within(self.begin..self.filled, 0);
        self.filled -= self.begin;
        self.begin = 0;
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.filled * 2, 0);
        }
        let bytes = self.text.read(&mut self.buffer[self.filled..])?;
        self.filled += bytes;
        Ok(bytes > 0)
    }

    /// The error for the line before which so many were given.
    #[cold]
    pub fn malformed(&self, lines: LineCount, reason: impl Into<String>) -> ConnectorError {
        match self.numbers.line_at(&self.piece, &self.text.path, self.opened_at) {
            Ok(first) => {
                let (path, line) = (self.text.path.clone(), first + lines);
                ConnectorError::Malformed { path, line, reason: reason.into() }
            }
            Err(error) => error,
        }
    }
}
