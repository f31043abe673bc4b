//! Text files as replayable input: which pieces they are cut into, whether they are still the same, and their lines one
//! by one. Knows files, gzip and line ends; it does not know what a line means.
//!
//! 1. A file is cut at multiples of a constant number of bytes. A piece `start..end` holds the lines that *begin* in it:
//!    its first line begins behind the first newline at or after `start - 1`, its last one may run over `end`. So each
//!    line belongs to exactly one piece, wherever the cuts fall. A file that is gzip by its magic bytes is one piece.
//! 2. An offset counts bytes of text, uncompressed, from the start of the file. It is always the beginning of a line, or
//!    the end of the text; reopening there goes by the same rule as rule 1 does for `start`.
//! 3. The length is taken when the pieces are made. What is appended later is not read; a file that has become shorter
//!    is an error.

mod line_numbers;
mod line_reader;
mod piece;
mod text;

pub(super) use line_reader::{LINE_BYTES_MAX, LineCount, LineReader};
pub(super) use text::trim_ending;

use crate::error::ConnectorError;
use crate::operator::Split;
use line_numbers::LineNumbers;
use piece::Piece;
use std::path::{Path, PathBuf};

/// Bytes of text in a split, unless told otherwise.
pub(super) const SPLIT_BYTES: u64 = 8 << 20;

/// The files that somebody asked for.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    /// As given: what messages call them.
    paths: Vec<PathBuf>,
    /// Where a plain file is cut; none if it is not.
    pub split_bytes: Option<u64>,
    numbers: LineNumbers,
}

impl Inputs {
    /// Looks whether the files are there and can be read.
    pub fn open(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, ConnectorError> {
        let paths: Vec<PathBuf> = paths.into_iter().map(|path| path.as_ref().to_owned()).collect();
        for path in &paths {
            Piece::whole(path)?;
        }
        Ok(Self { paths, split_bytes: Some(SPLIT_BYTES), numbers: LineNumbers::default() })
    }

    /// Each file as one piece, with the name that it was given by.
    pub fn whole(&self) -> impl Iterator<Item = Result<(Piece, &Path), ConnectorError>> {
        self.paths.iter().map(|path| Ok((Piece::whole(path)?, path.as_path())))
    }

    /// The splits of all files.
    pub fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        let mut splits = Vec::new();
        for whole in self.whole() {
            let (whole, given) = whole?;
            for piece in whole.cut(self.split_bytes) {
                let id = u32::try_from(splits.len()).map_err(|_| too_many(given))?;
                splits.push(Split { id, name: piece.name(given), descriptor: piece.encode() });
            }
        }
        Ok(splits)
    }

    /// Whether these files are the ones that the splits were made from.
    pub fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError> {
        let pieces = splits.iter().map(Piece::of).collect::<Result<Vec<_>, _>>()?;
        // Each file has exactly one piece that begins at 0, an empty one too.
        let mut then: Vec<&Piece> = pieces.iter().filter(|piece| piece.start == 0).collect();
        let mut now = Vec::new();
        for given in &self.paths {
            let path = piece::absolute(given).map_err(|error| gone(error, given))?;
            let Some(at) = then.iter().position(|piece| piece.path == path) else {
                return Err(changed(given, "it is among the inputs now and was not then"));
            };
            now.push((then.swap_remove(at), given));
        }
        if let Some(left) = then.first() {
            return Err(changed(&left.path, "it was among the inputs then and is not now"));
        }
        for (then, given) in now {
            then.verify(&Piece::whole(given).map_err(|error| gone(error, given))?, given)?;
        }
        Ok(())
    }

    /// The piece of a split, and what to call its file in messages.
    pub fn piece(&self, split: &Split) -> Result<(Piece, PathBuf), ConnectorError> {
        let piece = Piece::of(split)?;
        let given = self.paths.iter().find(|given| piece::absolute(given).is_ok_and(|path| path == piece.path));
        let shown = given.unwrap_or(&piece.path).clone();
        Ok((piece, shown))
    }

    /// The lines of a piece, from an offset on.
    pub fn lines(&self, piece: Piece, shown: PathBuf, offset: u64) -> Result<LineReader, ConnectorError> {
        LineReader::open(piece, shown, offset, &self.numbers)
    }
}

fn changed(path: &Path, what: &str) -> ConnectorError {
    ConnectorError::Changed { path: path.to_owned(), what: what.to_owned() }
}

/// An input of the checkpoint that is not there any more has changed; any other refusal stays what it is.
fn gone(error: ConnectorError, given: &Path) -> ConnectorError {
    match error {
        ConnectorError::Io { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
            changed(given, "it is not there any more")
        }
        other => other,
    }
}

fn too_many(path: &Path) -> ConnectorError {
    let error = std::io::Error::other("it would be more than 4 billion splits: choose larger ones");
    ConnectorError::Io { path: path.to_owned(), action: "cut", error }
}
