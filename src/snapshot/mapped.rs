//! The file written through shared mappings of its segments: a choice, as fast as system calls where nothing is synced. Where
//! it is, pages fault anew after each sync, and a commit takes about twice as long. The head (superblock and metas) is not
//! mapped and goes through system calls, as does all reading, so that a bad disk gives an error and not a signal.
//! It must not know what the bytes mean.
//!
//! A file that somebody else shortens is an error as long as it is noticed before a write: the store looks at its length
//! ahead of each commit, and `populate` fails where the file has ended (from Linux 5.14 on). Shortened between that call and
//! the copy that follows it, the process gets SIGBUS; by `pwrite` it would not. Nobody but another program of the same
//! user can do it.
#![allow(unsafe_code)]

use super::format::HEAD_BYTES;
use super::pwrite::PwriteSink;
use super::sink::{Ahead, ReadAt, Run, Sink};
use super::sums::Sums;
use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// A stretch of whole segments.
struct Region {
    start_bytes: u64,
    map: MmapRaw,
}

impl Region {
    fn end_bytes(&self) -> u64 {
        self.start_bytes + self.map.len() as u64
    }
}

/// A file, by mappings.
pub(super) struct MappedSink {
    file: PwriteSink,
    /// In the order of the file, without gap from `HEAD_BYTES` on.
    regions: Vec<Region>,
}

impl MappedSink {
    /// Maps what the file holds beyond its head, up to `len_bytes`, which must not be more than its length.
    pub fn new(file: File, len_bytes: u64) -> io::Result<Self> {
        let mut sink = Self { file: PwriteSink::new(file), regions: Vec::new() };
        sink.map(len_bytes)?;
        Ok(sink)
    }

    fn mapped_to_bytes(&self) -> u64 {
        self.regions.last().map_or(HEAD_BYTES, Region::end_bytes)
    }

    fn map(&mut self, len_bytes: u64) -> io::Result<()> {
        let start_bytes = self.mapped_to_bytes();
        if len_bytes > start_bytes {
            let len = usize::try_from(len_bytes - start_bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
            let map = MmapOptions::new().offset(start_bytes).len(len).map_raw(self.file.file())?;
            self.regions.push(Region { start_bytes, map });
        }
        Ok(())
    }

    /// The region at `offset_bytes`, and the part of `range` that lies in it.
    fn locate(&self, range: &Range<u64>) -> io::Result<(&Region, Range<usize>)> {
        let at = self.regions.partition_point(|region| region.end_bytes() <= range.start);
        let region = self.regions.get(at).filter(|region| region.start_bytes <= range.start);
        let region = region.ok_or_else(|| io::Error::other("write outside the mapped segments"))?;
        let start = (range.start - region.start_bytes) as usize;
        Ok((region, start..(range.end.min(region.end_bytes()) - region.start_bytes) as usize))
    }

    /// Brings in the pages of a whole run in one call: a page that was synced faults again on its next write. Where the
    /// file has a hole and the disk is full, this is an error; the bare copy would be a signal.
    fn populate(&self, mut range: Range<u64>) -> io::Result<()> {
        while !range.is_empty() {
            let (region, part) = self.locate(&range)?;
            range.start += part.len() as u64;
            match region.map.advise_range(Advice::PopulateWrite, part.start, part.len()) {
                // Linux before 5.14 does not know it; the copy faults page by page then.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                Err(error) if error.raw_os_error() == Some(Errno::FAULT.raw_os_error()) => {
                    return Err(io::Error::other("the mapped file has no room behind it, or the disk is bad"));
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// A page that is written to the disk while it is mapped gets write-protected first, one interrupt to every core of the
    /// process for each. So the mapping lets go of pages before that, all in one go; what was written stays with the file.
    fn let_go(&self, mut range: Range<u64>) -> io::Result<()> {
        while !range.is_empty() {
            let (region, part) = self.locate(&range)?;
            range.start += part.len() as u64;
            // SAFETY: of a shared mapping this drops page table entries only; the bytes are the file's.
            unsafe { region.map.unchecked_advise_range(UncheckedAdvice::DontNeed, part.start, part.len())? };
        }
        Ok(())
    }

    /// Writes one part after the other. Callers have `&mut self`; where several threads are in here for one of them, each has
    /// a range of its own.
    fn put(&self, offset_bytes: u64, parts: &[&[u8]]) -> io::Result<()> {
        let len_bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        self.populate(offset_bytes..offset_bytes + len_bytes)?;
        let mut at = offset_bytes;
        for part in parts {
            self.copy(at, part)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    fn copy(&self, offset_bytes: u64, mut bytes: &[u8]) -> io::Result<()> {
        let mut range = offset_bytes..offset_bytes + bytes.len() as u64;
        while !bytes.is_empty() {
            let (region, part) = self.locate(&range)?;
            range.start += part.len() as u64;
            let (now, rest) = bytes.split_at(part.len());
            bytes = rest;
            // SAFETY: `part` lies within the map (`locate`), whose length the file had when it was mapped and still
            // has, for it is never truncated. Nobody forms a reference into the map: reads go through `pread`. `now` is
            // not in the map, so the two do not overlap. `&self` is enough: the callers of `put` have `&mut`, and threads
            // that are in here at the same time have ranges that do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), region.map.as_mut_ptr().add(part.start), now.len()) };
        }
        Ok(())
    }
}

/// Has the system begin to write this to the disk, so that the disk works while the next run is copied. It says nothing about
/// whether that works: the sync that follows does.
pub(super) fn send_ahead(file: &File, range: Range<u64>) {
    let (from, len) = (range.start as i64, (range.end - range.start) as i64);
    // SAFETY: the call takes numbers only, and the descriptor is open for as long as `file` is borrowed.
    unsafe { libc::sync_file_range(file.as_raw_fd(), from, len, libc::SYNC_FILE_RANGE_WRITE) };
}

impl ReadAt for MappedSink {
    fn len_bytes(&self) -> io::Result<u64> {
        self.file.len_bytes()
    }
    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read(offset_bytes, into)
    }
}

impl Sink for MappedSink {
    fn grow(&mut self, from_bytes: u64, to_bytes: u64) -> io::Result<()> {
        self.file.grow(from_bytes, to_bytes)?;
        self.map(to_bytes)
    }

    fn write(&mut self, offset_bytes: u64, parts: &[&[u8]]) -> io::Result<()> {
        if offset_bytes < HEAD_BYTES {
            return self.file.write(offset_bytes, parts);
        }
        self.put(offset_bytes, parts)
    }

    fn write_runs(&mut self, runs: &mut [Run<'_>], sums: &Sums, ahead: Ahead) -> io::Result<()> {
        // What `copy` relies on.
        let apart = runs.is_sorted_by(|one, next| one.end_bytes() <= next.offset_bytes);
        assert!(apart && runs.first().is_none_or(|run| run.offset_bytes >= HEAD_BYTES), "runs ascend in the segments");
        let sink = &*self;
        sums.each(runs, |run| {
            sink.put(run.offset_bytes, run.parts)?;
            run.sum();
            // Not if it is to be cheap: letting go of many small ranges is half as much work again as of all at once.
            if ahead == Ahead::Always {
                let range = run.offset_bytes..run.end_bytes();
                sink.let_go(range.clone())?;
                send_ahead(sink.file.file(), range);
            }
            Ok(())
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.let_go(HEAD_BYTES..self.mapped_to_bytes())?;
        // `fdatasync` takes what was written through a shared mapping along.
        self.file.sync()
    }

    fn reader(&self) -> io::Result<Arc<dyn ReadAt>> {
        self.file.reader()
    }
}
