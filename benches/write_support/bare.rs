//! Bare loops: what gets the same pages onto the same disk without being a store, each by other means. They go round space
//! that has been written before, as large as a store's file, so that both find the same in the page cache.
//! (There is none that goes past the page cache: pages do not lie where a disk could fetch them, so they would be copied all
//! the same, and one call at a time keeps a disk waiting.)

use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};
use snapring::page::{FrozenPage, PageId};
use std::cell::Cell;
use std::fs::File;
use std::io::IoSlice;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Pages in one system call: 1 MiB of those that are written here.
const PAGES_A_CALL: usize = 64;
/// Room for a header before the pages.
const HEAD_BYTES: u64 = 64 << 10;

/// A file, all of it written once and synced.
pub struct Space {
    file: File,
    map: Option<MmapRaw>,
    bytes: u64,
    /// Where the next pages go.
    at: Cell<u64>,
}

impl Space {
    pub fn new(bytes: u64, is_mapped: bool) -> Rc<Self> {
        let file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).expect("target is writable");
        let bytes = HEAD_BYTES + bytes;
        let zeros = vec![0; 1 << 20];
        (0..bytes.div_ceil(1 << 20)).for_each(|at| file.write_all_at(&zeros, at << 20).expect("there is room"));
        file.sync_all().expect("the disk is good");
        let map = || MmapOptions::new().len(bytes as usize).map_raw(&file).expect("there is address space");
        let map = is_mapped.then(map);
        Rc::new(Self { file, map, bytes, at: Cell::new(HEAD_BYTES) })
    }

    /// Room for so many bytes.
    fn take(&self, bytes: u64) -> u64 {
        let at = if self.at.get() + bytes > self.bytes { HEAD_BYTES } else { self.at.get() };
        self.at.set(at + bytes);
        at
    }

    fn sync(&self) {
        self.file.sync_data().expect("the disk is good");
    }
}

/// By what means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Into the page cache; all leaves for the disk at the sync.
    Pwrite,
    /// The same, and the disk begins with each MiB while the next one is copied.
    Ahead,
    /// Copied into a mapping.
    Mapped,
}

/// A loop. One that is to be synced is so once, when all pages are written.
pub struct Bare {
    pub space: Rc<Space>,
    pub by: By,
    /// Then a header is written, and the file synced a second time: so there never is a header without its pages.
    pub with_header: bool,
}

impl Bare {
    pub fn write(&self, pages: &[(PageId, FrozenPage)], syncs: bool) {
        let at = self.space.take(pages.iter().map(|(_, page)| page.len() as u64).sum());
        match self.by {
            By::Mapped => self.copy(at as usize, pages, syncs),
            _ => self.pwrite(at, pages, syncs),
        }
        if syncs {
            self.space.sync();
        }
        if self.with_header {
            self.space.file.write_all_at(&[1; 1024], 0).expect("there is room");
            if syncs {
                self.space.sync();
            }
        }
    }

    fn pwrite(&self, mut at: u64, pages: &[(PageId, FrozenPage)], syncs: bool) {
        let file = &self.space.file;
        for pages in pages.chunks(PAGES_A_CALL) {
            let from = at;
            let mut slices: Vec<IoSlice<'_>> = pages.iter().map(|(_, page)| IoSlice::new(page)).collect();
            let mut rest = &mut slices[..];
            while !rest.is_empty() {
                let written = rustix::io::pwritev(file, rest, at).expect("there is room");
                at += written as u64;
                IoSlice::advance_slices(&mut rest, written);
            }
            if syncs && self.by == By::Ahead {
                let (from, len) = (from as i64, (at - from) as i64);
                // SAFETY: the call takes numbers only, and the descriptor is open.
                unsafe { libc::sync_file_range(file.as_raw_fd(), from, len, libc::SYNC_FILE_RANGE_WRITE) };
            }
        }
    }

    fn copy(&self, at: usize, pages: &[(PageId, FrozenPage)], syncs: bool) {
        let map = self.space.map.as_ref().expect("it is mapped");
        let bytes = pages.iter().map(|(_, page)| page.len()).sum();
        map.advise_range(Advice::PopulateWrite, at, bytes).expect("there is room");
        let mut to = at;
        for (_, page) in pages {
            // SAFETY: the map holds all of the file; nobody else has it.
            unsafe { std::ptr::copy_nonoverlapping(page.as_ptr(), map.as_mut_ptr().add(to), page.len()) };
            to += page.len();
        }
        if syncs {
            // Else each page is write-protected by itself when it leaves for the disk.
            // SAFETY: of a shared mapping this drops page table entries only; the bytes are the file's.
            unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) }.expect("it is mapped");
        }
    }
}
