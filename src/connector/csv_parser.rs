//! Cuts lines into cells, and joins lines again where a quoted cell holds a line end. Knows no type.

use super::input::{LineCount, LineReader};
use crate::error::ConnectorError;
use crate::record::text::Row;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

const IN_QUOTES: &str = "a quoted cell goes on behind the end of the line: read this file with `multiline`, \
    which turns its splitting off";

/// Parses one row at a time and holds its cells.
#[derive(Debug)]
pub(super) struct CsvParser {
    reader: Reader,
    multiline: bool,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    used: usize,
    cells: usize,
    /// The first line of a row of several.
    first_line: Vec<u8>,
    /// A quoted cell was never closed: where the next row begins is not known.
    is_lost: bool,
}

/// What a line came to.
enum Fed {
    Row,
    /// The line has ended, the row has not.
    Open,
    /// The row has ended before the line.
    Early,
}

impl CsvParser {
    pub fn new(delimiter: u8, multiline: bool) -> Self {
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        let (bytes, ends, first_line) = (vec![0; 1024], vec![0; 64], Vec::new());
        Self { reader, multiline, bytes, ends, used: 0, cells: 0, first_line, is_lost: false }
    }

    /// Parses the next row that begins in the piece; empty lines are none. Returns how many lines were given before it.
    /// Behind a malformed row the next one can be parsed, unless [`CsvParser::is_lost`].
    pub fn next_row(&mut self, lines: &mut LineReader) -> Result<Option<LineCount>, ConnectorError> {
        loop {
            let before = lines.count();
            let Some(line) = lines.next_line()? else {
                return Ok(None);
            };
            if line.iter().all(|byte| matches!(byte, b'\n' | b'\r')) {
                continue;
            }
            (self.used, self.cells) = (0, 0);
            self.first_line.clear();
            match self.feed_line(line) {
                Fed::Row => return Ok(Some(before)),
                Fed::Open if self.multiline => return self.more_lines(lines, before),
                Fed::Early => return Err(self.malformed(lines, before, "a carriage return stands within the line")),
                Fed::Open => return Err(self.malformed(lines, before, IN_QUOTES)),
            }
        }
    }

    /// Goes on with a row whose quoted cell holds line ends.
    #[cold]
    fn more_lines(&mut self, lines: &mut LineReader, before: LineCount) -> Result<Option<LineCount>, ConnectorError> {
        self.first_line = lines.last_line()?;
        self.is_lost = true;
        loop {
            let Some(line) = lines.next_of_file()? else {
                return Err(lines.malformed(before, "a quoted cell is never closed"));
            };
            match self.feed_line(line) {
                Fed::Row => {
                    self.is_lost = false;
                    return Ok(Some(before));
                }
                Fed::Early => {
                    self.is_lost = false;
                    return Err(self.malformed(lines, before, "a carriage return stands within the row"));
                }
                Fed::Open if self.used > super::input::LINE_BYTES_MAX => {
                    return Err(lines.malformed(before, "the row is too long: is a quoted cell never closed?"));
                }
                Fed::Open => {}
            }
        }
    }

    /// The error for a row, behind which parsing begins anew.
    #[cold]
    fn malformed(&mut self, lines: &LineReader, before: LineCount, reason: &str) -> ConnectorError {
        self.reader.reset();
        lines.malformed(before, reason)
    }

    /// The first line of the row, if it has several.
    pub fn take_first_line(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.first_line)).filter(|line| !line.is_empty())
    }

    /// Whether the end of a row was not found: there is no next one.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn feed_line(&mut self, line: &[u8]) -> Fed {
        match self.feed(line) {
            // The last line of a file need not be ended.
            Fed::Open if !line.ends_with(b"\n") => self.feed(b"\n"),
            fed => fed,
        }
    }

    #[inline]
    fn feed(&mut self, mut line: &[u8]) -> Fed {
        loop {
            let (bytes, ends) = (&mut self.bytes[self.used..], &mut self.ends[self.cells..]);
            let (result, read, used, cells) = self.reader.read_record(line, bytes, ends);
            line = &line[read..];
            self.used += used;
            self.cells += cells;
            match result {
                ReadRecordResult::OutputFull => self.bytes.resize(self.bytes.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::Record if line.is_empty() || line == b"\n" => return Fed::Row,
                ReadRecordResult::Record => return Fed::Early,
                ReadRecordResult::InputEmpty | ReadRecordResult::End => return Fed::Open,
            }
        }
    }

    /// The cells of the row.
    pub fn row(&self) -> Row<'_> {
        Row::new(&self.bytes[..self.used], &self.ends[..self.cells])
    }
}
