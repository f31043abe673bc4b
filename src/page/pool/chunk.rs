//! Memory from the system, a huge page at a time. It does not know what is put into it.

#![allow(unsafe_code)]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::alloc::{Layout, handle_alloc_error};
use std::ptr::{NonNull, null_mut};

/// The size of a chunk and what it is aligned to: a huge page of x86-64, and of aarch64 with pages of 4 KiB.
pub(super) const CHUNK_BYTES: usize = 2 << 20;
/// No page of the system is smaller.
const STEP_BYTES: usize = 4096;

/// Zeroed memory of our own. It is given back when this is dropped.
pub(super) struct Chunk(NonNull<u8>);

// SAFETY: it is plain memory, which belongs to no thread.
unsafe impl Send for Chunk {}

impl Chunk {
    /// Takes one from the system, which gives no memory yet: only addresses.
    pub fn map() -> Self {
        let chunk = Self(aligned().unwrap_or_else(|| {
            handle_alloc_error(Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES).expect("a small layout"))
        }));
        // Where there are no huge pages, small ones do.
        // SAFETY: the memory is ours, and this advice does not change what is in it.
        let _ = unsafe { madvise(chunk.0.as_ptr().cast(), CHUNK_BYTES, Advice::LinuxHugepage) };
        chunk
    }

    /// Its first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.0
    }

    /// Makes the system give the memory now. Nobody has anything in it yet.
    pub fn touch(&mut self) {
        for at in (0..CHUNK_BYTES).step_by(STEP_BYTES) {
            // SAFETY: it lies within the chunk, and `&mut` says that nobody else looks. Volatile, so that it is done though
            // there is a zero already.
            unsafe { self.0.add(at).write_volatile(0) };
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        unmap(self.0, CHUNK_BYTES);
    }
}

/// Maps a chunk that is aligned. Most fit under the one before, which is; else the ends of a longer one are cut off.
fn aligned() -> Option<NonNull<u8>> {
    let chunk = map(CHUNK_BYTES)?;
    if chunk.addr().get() % CHUNK_BYTES == 0 {
        return Some(chunk);
    }
    unmap(chunk, CHUNK_BYTES);
    let long = map(2 * CHUNK_BYTES)?;
    let before = long.align_offset(CHUNK_BYTES);
    // SAFETY: `before` is less than a chunk, so this and the end of the chunk lie within the mapping of two.
    let (chunk, end) = unsafe { (long.add(before), long.add(before + CHUNK_BYTES)) };
    unmap(long, before);
    unmap(end, CHUNK_BYTES - before);
    Some(chunk)
}

fn map(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: a new mapping, of nothing that anybody has.
    let at = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    NonNull::new(at.ok()?.cast())
}

fn unmap(at: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // Fails only for addresses that were never mapped, or (of a part) if the system is out of mappings: then it stays.
        // SAFETY: the caller has mapped it, and nobody refers to it any more.
        let _ = unsafe { munmap(at.as_ptr().cast(), bytes) };
    }
}
