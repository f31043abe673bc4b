//! Which line a byte of a file lies in: asked only when a line is bad. What was counted once is kept, for all pieces of all
//! files of a source together, so that many bad lines in many pieces read a file at most once more.

use super::piece::Piece;
use super::text::Text;
use crate::error::ConnectorError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const BUFFER_BYTES: usize = 64 << 10;

/// By file and offset: the line, from 1.
#[derive(Clone, Debug, Default)]
pub(in crate::connector) struct LineNumbers(Arc<Mutex<BTreeMap<(PathBuf, u64), u64>>>);

impl LineNumbers {
    /// The line in which the byte at an offset lies. Reads the text from the nearest place ahead of it that is known.
    pub(super) fn line_at(&self, piece: &Piece, shown: &Path, offset: u64) -> Result<u64, ConnectorError> {
        let at = |offset| (piece.path.clone(), offset);
        let known = self.lock().range(at(0)..=at(offset)).next_back().map(|((_, from), line)| (*from, *line));
        let (from, mut line) = known.unwrap_or((0, 1));
        let mut text = Text::open(piece, shown, from)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut left = offset - from;
        while left > 0 {
            let wanted = left.min(BUFFER_BYTES as u64) as usize;
            let bytes = text.read(&mut buffer[..wanted])?;
            if bytes == 0 {
                break;
            }
            line += memchr::memchr_iter(b'\n', &buffer[..bytes]).count() as u64;
            left -= bytes as u64;
        }
        self.lock().insert(at(offset), line);
        Ok(line)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(PathBuf, u64), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
