//! A queue of bytes in a file without a name: it is gone when its process is. It does not know what the bytes are.
//!
//! # Rules
//!
//! 1. Positions count the bytes ever appended, from 0 again whenever the queue has run empty.
//! 2. Bytes gather in memory up to a whole segment; only whole segments are written. So writes are of one size, and
//!    little that waits never becomes a file.
//! 3. A segment lies anywhere in the file. One whose bytes are all released is written again before the file grows; a
//!    queue that has run empty cuts the file down.

use crate::error::{Cause, Failed};
use rustix::fs::{Mode, OFlags};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What is written at a time.
pub(super) const SEGMENT_BYTES: usize = 128 * 1024;
/// So many segments of the file outlast a queue that has run empty.
pub(super) const SEGMENTS_KEPT: u32 = 64;

pub(super) struct SpillFile {
    folder: PathBuf,
    /// Made when it is first needed.
    file: Option<File>,
    /// Where in the file, in segments, those lie that are written and not released.
    segments: VecDeque<u32>,
    /// Segments of the file that may be written.
    free: Vec<u32>,
    /// Segments of the file.
    made: u32,
    /// The position at which the first of `segments` begins; without any, `buffer`.
    base: u64,
    /// The first position that is not released.
    begin: u64,
    /// What follows on `segments`.
    buffer: Vec<u8>,
    /// So many bytes of `buffer` count. More are there if encoding has panicked.
    buffered: usize,
}

impl SpillFile {
    pub(super) fn new(folder: PathBuf) -> Self {
        let (segments, free, buffer) = Default::default();
        Self { folder, file: None, segments, free, made: 0, base: 0, begin: 0, buffer, buffered: 0 }
    }

    /// The first position that is not released.
    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    /// Appends what `encode` appends to its argument, and says how much that is. It stays in memory up to
    /// [`SpillFile::write`].
    pub(super) fn append(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> u64 {
        self.buffer.truncate(self.buffered);
        encode(&mut self.buffer);
        let bytes = self.buffer.len() - self.buffered;
        self.buffered = self.buffer.len();
        bytes as u64
    }

    /// Writes what makes up whole segments.
    pub(super) fn write(&mut self) -> Result<(), Failed> {
        self.buffer.truncate(self.buffered);
        let mut written = 0;
        let mut result = Ok(());
        while result.is_ok() && self.buffered - written >= SEGMENT_BYTES {
            result = self.write_segment(written);
            written += if result.is_ok() { SEGMENT_BYTES } else { 0 };
        }
        self.buffer.drain(..written);
        self.buffered -= written;
        result
    }

    /// Writes the segment that begins at `from` in the buffer.
    fn write_segment(&mut self, from: usize) -> Result<(), Failed> {
        let file = match self.file.take() {
            Some(file) => file,
            None => nameless(&self.folder).map_err(|error| self.failed("create", error))?,
        };
        let file = self.file.insert(file);
        let segment = self.free.last().copied().unwrap_or(self.made);
        let written = file.write_all_at(&self.buffer[from..from + SEGMENT_BYTES], offset(segment));
        written.map_err(|error| self.failed("write to", error))?;
        if self.free.pop().is_none() {
            self.made += 1;
        }
        self.segments.push_back(segment);
        Ok(())
    }

    /// Appends to `out` the `len` bytes from position `at` on, which have been appended and not released.
    pub(super) fn read(&self, mut at: u64, len: u64, out: &mut Vec<u8>) -> Result<(), Failed> {
        let end = at + len;
        let buffer_at = self.base + offset(self.segments.len() as u32);
        while at < end.min(buffer_at) {
            let (index, skip) = ((at - self.base) as usize / SEGMENT_BYTES, (at - self.base) % SEGMENT_BYTES as u64);
            let piece = (SEGMENT_BYTES as u64 - skip).min(end - at);
            let (from, start) = (offset(self.segments[index]) + skip, out.len());
            out.resize(start + piece as usize, 0);
            let file = self.file.as_ref().expect("a segment was written to it");
            file.read_exact_at(&mut out[start..], from).map_err(|error| self.failed("read", error))?;
            at += piece;
        }
        if at < end {
            out.extend_from_slice(&self.buffer[(at - buffer_at) as usize..(end - buffer_at) as usize]);
        }
        Ok(())
    }

    /// Releases the first `len` bytes.
    pub(super) fn release(&mut self, len: u64) {
        self.begin += len;
        while !self.segments.is_empty() && self.begin - self.base >= SEGMENT_BYTES as u64 {
            self.free.extend(self.segments.pop_front());
            self.base += SEGMENT_BYTES as u64;
        }
        if self.segments.is_empty() && self.begin - self.base == self.buffered as u64 {
            self.run_empty();
        }
    }

    fn run_empty(&mut self) {
        (self.base, self.begin, self.buffered) = (0, 0, 0);
        self.buffer.clear();
        self.buffer.shrink_to(2 * SEGMENT_BYTES);
        if let Some(file) = &self.file
            && self.made > SEGMENTS_KEPT
            && file.set_len(offset(SEGMENTS_KEPT)).is_ok()
        {
            self.made = SEGMENTS_KEPT;
            self.free.retain(|&segment| segment < SEGMENTS_KEPT);
        }
    }

    /// An error of the system; also of bytes that came back as others.
    pub(super) fn failed(&self, action: &'static str, error: io::Error) -> Failed {
        Cause::Spill { folder: self.folder.clone(), action, error }.into()
    }

    /// How much of a disk it takes.
    #[cfg(test)]
    pub(super) fn file_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.metadata().expect("an open file").len())
    }
}

/// Where a segment lies in the file.
fn offset(segment: u32) -> u64 {
    u64::from(segment) * SEGMENT_BYTES as u64
}

/// A file in this folder that has no name.
fn nameless(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        // Not every file system can do that.
        Err(_) => unlinked(folder),
    }
}

/// The same with a name, for a moment. If the process is killed in that moment, an empty file is left.
pub(super) fn unlinked(folder: &Path) -> io::Result<File> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!(".snapring-loop-{}-{number}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
