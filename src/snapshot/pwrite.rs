//! The file written by `pwritev` and read by `pread`: the default form, and the head of the mapped one. It must not know
//! what the bytes mean.

use super::mapped::send_ahead;
use super::sink::{Ahead, ReadAt, Run, Sink};
use super::sums::Sums;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Slices in one system call, the least limit of any Linux.
const SLICES_MAX: usize = 1024;

/// A file, by system calls.
#[derive(Debug)]
pub(super) struct PwriteSink {
    file: File,
    /// The length has changed since the last sync.
    grown: bool,
}

impl PwriteSink {
    pub fn new(file: File) -> Self {
        Self { file, grown: false }
    }
    pub fn file(&self) -> &File {
        &self.file
    }

    fn put(&self, offset_bytes: u64, parts: &[&[u8]]) -> io::Result<()> {
        let mut offset_bytes = offset_bytes;
        for parts in parts.chunks(SLICES_MAX) {
            let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
            let mut rest = &mut slices[..];
            while !rest.is_empty() {
                match rustix::io::pwritev(&self.file, rest, offset_bytes) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => {
                        offset_bytes += written as u64;
                        IoSlice::advance_slices(&mut rest, written);
                    }
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }
}

impl ReadAt for PwriteSink {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
    fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset_bytes)
    }
}

impl Sink for PwriteSink {
    fn grow(&mut self, from_bytes: u64, to_bytes: u64) -> io::Result<()> {
        self.grown = true;
        loop {
            match fallocate(&self.file, FallocateFlags::empty(), from_bytes, to_bytes - from_bytes) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return write_zeros(&self.file, from_bytes, to_bytes),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn write(&mut self, offset_bytes: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.put(offset_bytes, parts)
    }

    fn write_runs(&mut self, runs: &mut [Run<'_>], sums: &Sums, ahead: Ahead) -> io::Result<()> {
        let sink = &*self;
        sums.each(runs, |run| {
            sink.put(run.offset_bytes, run.parts)?;
            if ahead != Ahead::Not {
                send_ahead(&sink.file, run.offset_bytes..run.end_bytes());
            }
            // While the disk works.
            run.sum();
            Ok(())
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.grown) { self.file.sync_all() } else { self.file.sync_data() }
    }

    fn reader(&self) -> io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(Self::new(self.file.try_clone()?)))
    }
}

/// Where a file system cannot allocate ahead, zeros do.
fn write_zeros(file: &File, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut at = from;
    while at < to {
        let len = zeros.len().min((to - at) as usize);
        file.write_all_at(&zeros[..len], at)?;
        at += len as u64;
    }
    Ok(())
}
