//! The lines of one piece, in a buffer that grows to hold the longest of them.

use super::piece::Piece;
use super::text::{Text, line_number};
use crate::error::ConnectorError;
use memchr::memchr;
use std::path::{Path, PathBuf};

/// A longer line is an error: more likely than such a line is a file that is no text.
pub(in crate::connector) const LINE_BYTES_MAX: usize = 16 << 20;

const BUFFER_BYTES: usize = 64 << 10;
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
}

impl LineReader {
    /// Opens a piece at its start (offset 0) or at the beginning of any line in it (another offset).
    pub fn open(piece: Piece, shown: PathBuf, offset: u64) -> Result<Self, ConnectorError> {
        let begin = offset.max(piece.start);
        // One byte earlier: if that is a newline, then a line begins at `begin`.
        let position = begin.saturating_sub(1);
        let text = Text::open(&piece, &shown, position)?;
        let mut reader = Self { piece, text, buffer: vec![0; BUFFER_BYTES], begin: 0, filled: 0, position };
        if begin > 0 {
            reader.skip_line()?;
        }
        Ok(reader)
    }

    /// Moves behind the next newline, but not far behind the piece: no line begins there that would belong to it.
    fn skip_line(&mut self) -> Result<(), ConnectorError> {
        while self.position < self.piece.end {
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
        let is_first = self.position == 0;
        let begin = self.take(bytes);
        let mut line = &self.buffer[begin..begin + bytes];
        if is_first {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        Ok(if line.is_empty() { None } else { Some(line) })
    }

    /// Reads on until the line in the buffer is whole. Returns its length, 0 at the end of the text.
    #[cold]
    fn find_ending(&mut self) -> Result<usize, ConnectorError> {
        loop {
            let searched = self.filled - self.begin;
            if searched >= LINE_BYTES_MAX {
                return Err(self.malformed(self.position, format!("the line is longer than {LINE_BYTES_MAX} bytes")));
            }
            if !self.fill()? {
                return Ok(searched);
            }
            if let Some(newline) = memchr(b'\n', &self.buffer[self.begin + searched..self.filled]) {
                return Ok(searched + newline + 1);
            }
        }
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

    /// The error for a line that begins at an offset.
    #[cold]
    pub fn malformed(&self, offset: u64, reason: impl Into<String>) -> ConnectorError {
        match line_number(&self.piece, &self.text.path, offset) {
            Ok(line) => ConnectorError::Malformed { path: self.text.path.clone(), line, reason: reason.into() },
            Err(error) => error,
        }
    }
}
