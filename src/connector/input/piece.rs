//! A piece of a file: where it is, which bytes, and how to tell whether the file is still the same.

use super::changed;
use crate::error::{ConnectorError, DecodeError};
use crate::operator::Split;
use crate::record::Record;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes at each end of a file that go into its fingerprint.
const FINGERPRINT_BYTES: u64 = 64 << 10;

/// What a split's descriptor says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::connector) struct Piece {
    /// By [`absolute`], so that the same input is recognized from another working directory.
    pub path: PathBuf,
    /// Of the file, compressed or not.
    pub file_bytes: u64,
    /// Of the file's length and of its first and last 64 KiB.
    pub fingerprint: u64,
    /// By the magic bytes. Then the piece is the whole text.
    pub gzip: bool,
    /// The piece holds the lines that begin at `start..end`.
    pub start: u64,
    /// Exclusive; the largest number if the length of the text is not known.
    pub end: u64,
}

/// The path that two ways to write the same path have in common: that of the real folder, then the name in it. A name
/// that is a link is not followed: it may be set on another file while the input stays the same in name.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, ConnectorError> {
    let failed = |error| ConnectorError::Io { path: path.to_owned(), action: "find", error };
    let path = std::path::absolute(path).map_err(failed)?;
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok(folder.canonicalize().map_err(failed)?.join(name)),
        _ => Ok(path),
    }
}

impl Piece {
    /// Looks at a file: the piece that is all of it.
    pub fn whole(given: &Path) -> Result<Self, ConnectorError> {
        let io = |action| move |error| ConnectorError::Io { path: given.to_owned(), action, error };
        // Before it is opened: opening a pipe waits for its writer.
        let meta = fs::metadata(given).map_err(io("open"))?;
        if meta.is_dir() {
            return Err(io("read")(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a folder: name the files in it",
            )));
        }
        if !meta.is_file() {
            return Err(io("read")(io::Error::other("it is no regular file: it cannot be read again after a restart")));
        }
        let file = File::open(given).map_err(io("open"))?;
        let file_bytes = meta.len();
        let (head, fingerprint) = fingerprint(&file, file_bytes).map_err(io("read"))?;
        let gzip = head == [0x1f, 0x8b];
        let end = if gzip { u64::MAX } else { file_bytes };
        Ok(Self { path: absolute(given)?, file_bytes, fingerprint, gzip, start: 0, end })
    }

    /// Cuts the whole piece at multiples of `split_bytes`. An empty file is a piece too: it is an input.
    pub fn cut(self, split_bytes: Option<u64>) -> impl Iterator<Item = Piece> {
        let bytes = if self.gzip { u64::MAX } else { split_bytes.unwrap_or(u64::MAX).max(1) };
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let start: u64 = next?;
            let end = self.end.min(start.saturating_add(bytes));
            next = (end < self.end).then_some(end);
            Some(Self { start, end, ..self.clone() })
        })
    }

    /// The piece that holds all lines of the file.
    pub fn of_whole_file(self) -> Self {
        Self { start: 0, end: u64::MAX, ..self }
    }

    /// What a person would call it.
    pub fn name(&self, given: &Path) -> String {
        if self.gzip {
            given.display().to_string()
        } else {
            format!("{}[{}..{}]", given.display(), self.start, self.end)
        }
    }

    /// The descriptor.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.path.as_os_str().as_bytes().to_vec().encode(&mut bytes);
        for number in [self.file_bytes, self.fingerprint, self.start, self.end] {
            number.encode(&mut bytes);
        }
        u8::from(self.gzip).encode(&mut bytes);
        bytes
    }

    /// The piece that a split describes.
    pub fn of(split: &Split) -> Result<Self, ConnectorError> {
        let mut input = split.descriptor.as_slice();
        let mut read = || -> Result<Self, DecodeError> {
            Ok(Self {
                path: OsString::from_vec(Vec::<u8>::decode(&mut input)?).into(),
                file_bytes: u64::decode(&mut input)?,
                fingerprint: u64::decode(&mut input)?,
                start: u64::decode(&mut input)?,
                end: u64::decode(&mut input)?,
                gzip: u8::decode(&mut input)? != 0,
            })
        };
        read().map_err(|_| changed(Path::new(&split.name), "its split in the checkpoint is not one of a file"))
    }

    /// Whether a file is still what it was when this piece of it was made.
    pub fn verify(&self, now: &Self, given: &Path) -> Result<(), ConnectorError> {
        let (then_bytes, now_bytes) = (self.file_bytes, now.file_bytes);
        if then_bytes != now_bytes {
            Err(changed(given, &format!("it had {then_bytes} bytes then and has {now_bytes} now")))
        } else if self.fingerprint != now.fingerprint {
            Err(changed(given, "it has the same length and other content"))
        } else {
            Ok(())
        }
    }
}

/// The first two bytes, and a hash of length, head and tail.
fn fingerprint(file: &File, file_bytes: u64) -> io::Result<(Vec<u8>, u64)> {
    let mut bytes = file_bytes.to_le_bytes().to_vec();
    let head_bytes = file_bytes.min(FINGERPRINT_BYTES);
    let tail_bytes = (file_bytes - head_bytes).min(FINGERPRINT_BYTES);
    let begin = bytes.len();
    bytes.resize(begin + (head_bytes + tail_bytes) as usize, 0);
    let (head, tail) = bytes[begin..].split_at_mut(head_bytes as usize);
    file.read_exact_at(head, 0)?;
    file.read_exact_at(tail, file_bytes - tail_bytes)?;
    let magic = head.iter().copied().take(2).collect();
    Ok((magic, rapidhash::v3::rapidhash_v3(&bytes)))
}
