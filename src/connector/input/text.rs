//! The text of a file, decompressed if it is gzip, from any byte on.

use super::piece::Piece;
use crate::error::ConnectorError;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

const COMPRESSED_BUFFER_BYTES: usize = 64 << 10;
const SKIP_BUFFER_BYTES: usize = 64 << 10;

/// Reads text and knows where in it it is.
#[derive(Debug)]
pub(super) struct Text {
    /// What messages call the file.
    pub path: PathBuf,
    /// Of the next byte.
    offset: u64,
    origin: Origin,
}

#[derive(Debug)]
enum Origin {
    /// The file, and how long it was when its pieces were made.
    Plain(File, u64),
    Gzip(Box<MultiGzDecoder<BufReader<Take<File>>>>),
}

impl Text {
    /// Opens the text of a piece's file so that the next byte is the one at `offset`.
    pub fn open(piece: &Piece, shown: &Path, offset: u64) -> Result<Self, ConnectorError> {
        let io = |action| move |error| ConnectorError::Io { path: shown.to_owned(), action, error };
        let mut file = File::open(&piece.path).map_err(io("open"))?;
        let path = shown.to_owned();
        if !piece.gzip {
            file.seek(SeekFrom::Start(offset)).map_err(io("seek"))?;
            return Ok(Self { path, offset, origin: Origin::Plain(file, piece.file_bytes) });
        }
        let file = BufReader::with_capacity(COMPRESSED_BUFFER_BYTES, file.take(piece.file_bytes));
        let mut text = Self { path, offset: 0, origin: Origin::Gzip(Box::new(MultiGzDecoder::new(file))) };
        let mut skipped = vec![0; SKIP_BUFFER_BYTES];
        while text.offset < offset {
            let bytes = (offset - text.offset).min(SKIP_BUFFER_BYTES as u64) as usize;
            if text.read(&mut skipped[..bytes])? == 0 {
                let what = format!("it had text at byte {offset}, it ends at byte {}", text.offset);
                return Err(ConnectorError::Changed { path: text.path, what });
            }
        }
        Ok(text)
    }

    /// Reads some bytes; 0 at the end of the text.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ConnectorError> {
        loop {
            match self.read_once(buffer) {
                Ok(bytes) => {
                    self.offset += bytes as u64;
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.refused(error)),
            }
        }
    }

    fn read_once(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.origin {
            Origin::Gzip(decoder) => decoder.read(buffer),
            Origin::Plain(file, file_bytes) => {
                let left = file_bytes.saturating_sub(self.offset);
                let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let bytes = file.read(&mut buffer[..wanted])?;
                if bytes == 0 && wanted > 0 {
                    let (offset, total) = (self.offset, *file_bytes);
                    let what = format!("it has become shorter while it was read: byte {offset} of {total} is gone");
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
                }
                Ok(bytes)
            }
        }
    }

    #[cold]
    fn refused(&self, error: io::Error) -> ConnectorError {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        let path = self.path.clone();
        match (&self.origin, error.kind()) {
            (Origin::Gzip(_), InvalidData | InvalidInput | UnexpectedEof) => {
                ConnectorError::Gzip { path, bytes: self.offset, error }
            }
            _ => ConnectorError::Io { path, action: "read", error },
        }
    }
}

/// A line without its LF or CRLF.
#[inline]
pub(in crate::connector) fn trim_ending(line: &[u8]) -> &[u8] {
    match line.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => line,
    }
}
