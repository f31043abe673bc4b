//! CSV files as a source of typed records: a record's fields are found by name in the header.

use super::csv_parser::CsvParser;
use super::input::{Inputs, LineReader, trim_ending};
use super::rows::{BadLines, OrBadLines, RowReader, RowSource, Rows};
use super::{Files, Format, Stdout};
use crate::error::ConnectorError;
use crate::operator::{Source, Split};
use crate::record::{Record, text::Columns};
use std::marker::PhantomData;
use std::path::Path;

/// The rows of one or several CSV files, plain or gzip, as records.
///
/// Each file begins with a header. A field of the record takes the column of its name; other columns are left out. A
/// quoted cell may hold delimiters and doubled quotes; line ends only with [`Csv::multiline`]. Empty lines are skipped.
///
/// As a sink it takes any record and writes its fields as cells:
///
/// ```no_run
/// use snapring::connector::Csv;
/// use snapring::record::Record;
///
/// #[derive(Record)]
/// struct Flight { origin: String, dest: String, dep_delay: Option<i32> }
///
/// let flights = Csv::<Flight>::open_all(["2013.csv.gz", "2014.csv"])?.na("NA");
/// let delays = Csv::<(String, i64)>::exactly_once("out/")?;
/// # Ok::<(), snapring::error::ConnectorError>(())
/// ```
#[derive(Debug)]
pub struct Csv<T> {
    inputs: Inputs,
    delimiter: u8,
    na: Option<String>,
    multiline: bool,
    bad_lines: BadLines,
    item: PhantomData<fn() -> T>,
}

impl<T: Record> Csv<T> {
    /// The rows of a file.
    ///
    /// # Errors
    /// The file is missing, unreadable, a folder, or nothing that can be read again.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ConnectorError> {
        Self::open_all([path])
    }

    /// The rows of several files, each with its header.
    ///
    /// # Errors
    /// As [`Csv::open`], for the first file that has something wrong.
    pub fn open_all(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, ConnectorError> {
        let (inputs, bad_lines) = (Inputs::open(paths)?, BadLines::Fail);
        Ok(Self { inputs, delimiter: b',', na: None, multiline: false, bad_lines, item: PhantomData })
    }

    /// What stands between cells, a comma by default.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = delimiter;
        self
    }

    /// A cell that holds just this is `None`, as an empty one is.
    #[must_use]
    pub fn na(mut self, marker: impl Into<String>) -> Self {
        self.na = Some(marker.into());
        self
    }

    /// Allows line ends in quoted cells. A file is then one split: where a line begins a row need not.
    #[must_use]
    pub fn multiline(mut self) -> Self {
        self.multiline = true;
        self.inputs.split_bytes = None;
        self
    }

    /// Bytes of text in a split of a plain file, 8 MiB by default; of no effect with [`Csv::multiline`]. A job that goes
    /// on from a checkpoint keeps its splits.
    #[must_use]
    pub fn split_bytes(mut self, split_bytes: u64) -> Self {
        self.inputs.split_bytes = (!self.multiline).then_some(split_bytes);
        self
    }

    /// What becomes of a row that is no record: by default the job fails.
    #[must_use]
    pub fn bad_lines(mut self, bad_lines: BadLines) -> Self {
        self.bad_lines = bad_lines;
        self
    }

    /// A source that gives bad rows too, as [`BadLine`](super::BadLine)s by the side of the good ones.
    ///
    /// ```no_run
    /// # use snapring::connector::{Csv, JsonLines};
    /// # use snapring::{Dataflow, Record};
    /// # #[derive(Record)]
    /// # struct Order { account: u64, amount: i64 }
    /// # let flow = Dataflow::new("payments");
    /// let (orders, bad) = flow.source("orders", Csv::<Order>::open("orders.csv")?.or_bad_lines()).partition_result();
    /// bad.sink("bad", JsonLines::exactly_once("bad/")?);
    /// # orders.sink("orders-out", Csv::exactly_once("out/")?);
    /// # Ok::<(), snapring::Error>(())
    /// ```
    #[must_use]
    pub fn or_bad_lines(self) -> OrBadLines<Self> {
        OrBadLines(self)
    }

    /// A sink: [`Format::exactly_once`].
    ///
    /// # Errors
    /// The path is that of a file.
    pub fn exactly_once(folder: impl AsRef<Path>) -> Result<Files<T>, ConnectorError> {
        Format::Csv.exactly_once(folder)
    }

    /// A sink: [`Format::stdout`].
    pub fn stdout() -> Stdout<T> {
        Format::Csv.stdout()
    }

    /// Reads the header, the first row of a file, and finds the fields in it.
    fn header(&self, lines: &mut LineReader) -> Result<(CsvParser, Columns), ConnectorError> {
        let wrong =
            |lines: &LineReader, reason: String| ConnectorError::Header { path: lines.path().to_owned(), reason };
        let mut parser = CsvParser::new(self.delimiter, self.multiline);
        if parser.next_row(lines)?.is_none() {
            return Err(wrong(lines, "the file has no first line".to_owned()));
        }
        let cells = parser.row();
        let names = (0..cells.len()).map(|index| std::str::from_utf8(cells.cell(index).unwrap_or_default()));
        let names = names.collect::<Result<Vec<_>, _>>().map_err(|_| wrong(lines, "it is not UTF-8".to_owned()))?;
        let columns = Columns::new(&T::schema(), &names).map_err(|error| wrong(lines, error.to_string()))?;
        let columns = if let Some(marker) = &self.na { columns.na(marker) } else { columns };
        Ok((parser, columns))
    }
}

impl<T: Record> Source for Csv<T> {
    type Item = T;
    type Reader = RowReader<CsvRows<T>>;

    fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        for whole in self.inputs.whole() {
            let (whole, shown) = whole?;
            self.header(&mut self.inputs.lines(whole, shown.to_owned(), 0)?)?;
        }
        self.inputs.splits()
    }

    fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError> {
        self.inputs.verify(splits)
    }

    fn open(&self, split: &Split, offset: u64) -> Result<Self::Reader, ConnectorError> {
        Ok(RowReader::new(self.rows(split, offset)?, self.bad_lines))
    }
}

impl<T: Record> RowSource for Csv<T> {
    type Rows = CsvRows<T>;

    fn rows(&self, split: &Split, offset: u64) -> Result<CsvRows<T>, ConnectorError> {
        let (piece, shown) = self.inputs.piece(split)?;
        let mut lines = self.inputs.lines(piece.clone().of_whole_file(), shown.clone(), 0)?;
        let (parser, columns) = self.header(&mut lines)?;
        if piece.start > 0 || offset > 0 {
            lines = self.inputs.lines(piece, shown, offset)?;
        } else {
            lines.end_at(piece.end);
        }
        Ok(CsvRows { lines, parser, columns, encoded: Vec::new(), item: PhantomData })
    }
}

/// Reads the rows of one split.
#[derive(Debug)]
pub struct CsvRows<T> {
    lines: LineReader,
    parser: CsvParser,
    columns: Columns,
    encoded: Vec<u8>,
    item: PhantomData<fn() -> T>,
}

impl<T: Record> CsvRows<T> {
    /// The record of the row that has been parsed.
    fn record(&mut self) -> Result<T, String> {
        self.encoded.clear();
        self.columns.parse(self.parser.row(), &mut self.encoded).map_err(|error| error.to_string())?;
        T::decode(&mut self.encoded.as_slice()).map_err(|error| error.to_string())
    }
}

impl<T: Record> Rows for CsvRows<T> {
    type Item = T;

    fn next_row(&mut self) -> Result<Option<T>, ConnectorError> {
        let Some(before) = self.parser.next_row(&mut self.lines)? else { return Ok(None) };
        self.record().map(Some).map_err(|reason| self.lines.malformed(before, reason))
    }

    fn bad_row(&mut self) -> Result<Option<Vec<u8>>, ConnectorError> {
        if self.parser.is_lost() {
            return Ok(None);
        }
        let first = self.parser.take_first_line();
        let row = first.map_or_else(|| self.lines.last_line(), Ok)?;
        Ok(Some(trim_ending(&row).to_vec()))
    }

    fn position(&self) -> u64 {
        self.lines.position()
    }
}
