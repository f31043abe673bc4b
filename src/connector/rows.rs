//! Rows read one by one out of lines of text, and what is done with those that are no records: the job fails, they are
//! skipped and counted, or they come as records of their own. What a row is, the formats say.

use crate::error::{ConnectorError, Failed};
use crate::operator::{BadLine, Emit, Read, Reader, Skipped, Source, Split};
use crate::record::Record;

/// What a source of text does with a line that is no record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadLines {
    /// The job fails, and says file, line and reason.
    #[default]
    Fail,
    /// It is left out and counted, once however often the job is restarted; the first ones are kept to be shown: see
    /// [`Summary::skipped`](crate::operator::Skipped).
    Skip,
}

/// Reads the rows of one split.
pub trait Rows: Send + 'static {
    /// What a row is read as.
    type Item: Record;
    /// The next row. [`ConnectorError::Malformed`]: it is no record, and has been read all the same.
    fn next_row(&mut self) -> Result<Option<Self::Item>, ConnectorError>;
    /// After a malformed row, before the next: the row as it stands in the file. None: where the next row begins is not
    /// known.
    fn bad_row(&mut self) -> Result<Option<Vec<u8>>, ConnectorError>;
    /// Where the next row begins.
    fn position(&self) -> u64;
}

/// A source that reads rows.
pub trait RowSource: Source {
    /// What reads one split.
    type Rows: Rows;
    /// Opens a split at an offset.
    fn rows(&self, split: &Split, offset: u64) -> Result<Self::Rows, ConnectorError>;
}

/// The line that an error is about, if the rows behind it can be read.
fn bad_line(rows: &mut impl Rows, error: ConnectorError) -> Result<BadLine, ConnectorError> {
    const TEXT_BYTES_MAX: usize = 200;
    let ConnectorError::Malformed { path, line, reason } = error else { return Err(error) };
    let Some(row) = rows.bad_row()? else {
        let reason = format!("{reason} (this cannot be skipped: where the next row begins is not known)");
        return Err(ConnectorError::Malformed { path, line, reason });
    };
    let text = &row[..row.len().min(TEXT_BYTES_MAX)];
    let text = String::from_utf8_lossy(text).into_owned();
    Ok(BadLine { file: path.display().to_string(), line, reason, text })
}

/// Reads the rows of one split, and skips the bad ones if it is told to.
#[derive(Debug)]
pub struct RowReader<R> {
    rows: R,
    bad_lines: BadLines,
    skipped: Skipped,
}

impl<R: Rows> RowReader<R> {
    pub(super) fn new(rows: R, bad_lines: BadLines) -> Self {
        Self { rows, bad_lines, skipped: Skipped::default() }
    }

    #[cold]
    fn bad(&mut self, error: ConnectorError) -> Result<(), ConnectorError> {
        if self.bad_lines == BadLines::Fail {
            return Err(error);
        }
        let line = bad_line(&mut self.rows, error)?;
        self.skipped.skip(|| line);
        Ok(())
    }
}

impl<R: Rows> Reader for RowReader<R> {
    type Item = R::Item;

    fn read<E: Emit<R::Item>>(&mut self, max: usize, out: &mut E) -> Result<Read, Failed> {
        for _ in 0..max {
            match self.rows.next_row() {
                Ok(Some(record)) => out.emit(record)?,
                Ok(None) => return Ok(Read::Done),
                Err(error) => self.bad(error)?,
            }
        }
        Ok(Read::More)
    }

    fn offset(&self) -> u64 {
        self.rows.position()
    }

    fn take_skipped(&mut self) -> Skipped {
        std::mem::take(&mut self.skipped)
    }
}

/// A source whose bad lines come as records too: of `Result<_, BadLine>`, which
/// [`Stream::partition_result`](crate::dataflow::Stream::partition_result) parts. So they are counted, kept or written
/// exactly once, as any record is.
#[derive(Clone, Debug)]
pub struct OrBadLines<S>(pub(super) S);

impl<S: RowSource> Source for OrBadLines<S> {
    type Item = Result<<S::Rows as Rows>::Item, BadLine>;
    type Reader = RowOrBadLineReader<S::Rows>;

    fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        self.0.splits()
    }

    fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError> {
        self.0.verify(splits)
    }

    fn open(&self, split: &Split, offset: u64) -> Result<Self::Reader, ConnectorError> {
        Ok(RowOrBadLineReader { rows: self.0.rows(split, offset)? })
    }
}

/// Reads the rows of one split, good and bad.
#[derive(Debug)]
pub struct RowOrBadLineReader<R> {
    rows: R,
}

impl<R: Rows> Reader for RowOrBadLineReader<R> {
    type Item = Result<R::Item, BadLine>;

    fn read<E: Emit<Self::Item>>(&mut self, max: usize, out: &mut E) -> Result<Read, Failed> {
        for _ in 0..max {
            match self.rows.next_row() {
                Ok(Some(record)) => out.emit(Ok(record))?,
                Ok(None) => return Ok(Read::Done),
                Err(error) => out.emit(Err(bad_line(&mut self.rows, error)?))?,
            }
        }
        Ok(Read::More)
    }

    fn offset(&self) -> u64 {
        self.rows.position()
    }
}
