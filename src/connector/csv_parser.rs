//! Cuts lines into cells, and joins lines again where a quoted cell holds a line end. Knows no type.

use super::input::LineReader;
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
        Self { reader, multiline, bytes: vec![0; 1024], ends: vec![0; 64], used: 0, cells: 0 }
    }

    /// Parses the next row that begins in the piece; empty lines are none. Returns where it begins.
    pub fn next_row(&mut self, lines: &mut LineReader) -> Result<Option<u64>, ConnectorError> {
        loop {
            let begin = lines.position();
            let Some(line) = lines.next_line()? else {
                return Ok(None);
            };
            if line.iter().all(|byte| matches!(byte, b'\n' | b'\r')) {
                continue;
            }
            (self.used, self.cells) = (0, 0);
            match self.feed_line(line) {
                Fed::Row => return Ok(Some(begin)),
                Fed::Early => return Err(lines.malformed(begin, "a carriage return stands within the line")),
                Fed::Open if !self.multiline => return Err(lines.malformed(begin, IN_QUOTES)),
                Fed::Open => return self.more_lines(lines, begin),
            }
        }
    }

    /// Goes on with a row whose quoted cell holds line ends.
    #[cold]
    fn more_lines(&mut self, lines: &mut LineReader, begin: u64) -> Result<Option<u64>, ConnectorError> {
        loop {
            let Some(line) = lines.next_of_file()? else {
                return Err(lines.malformed(begin, "a quoted cell is never closed"));
            };
            match self.feed_line(line) {
                Fed::Row => return Ok(Some(begin)),
                Fed::Early => return Err(lines.malformed(begin, "a carriage return stands within the row")),
                Fed::Open if self.used > super::input::LINE_BYTES_MAX => {
                    return Err(lines.malformed(begin, "the row is too long: is a quoted cell never closed?"));
                }
                Fed::Open => {}
            }
        }
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
