//! One page's memory with a count of its handles: an `Arc` whose payload lies in a chunk of the pool, and whose bytes the
//! owner may write as long as it can show that nobody else reads them. It does not know epochs.

#![allow(unsafe_code)]

use super::pool::Shared;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What stands in front of a page's bytes. A line of its own: looking a key up never touches it.
#[repr(C, align(64))]
struct Header {
    handles: AtomicU32,
    pool: Arc<Shared>,
}

/// Bytes from the start of a buffer to the bytes of its page.
pub(super) const HEADER_BYTES: usize = size_of::<Header>();

/// A handle of a buffer. The last one to go gives the buffer back to its pool.
pub(super) struct Buffer {
    /// The page's bytes; the header is right before them.
    bytes: NonNull<u8>,
}

// SAFETY: what a handle gives access to is bytes, under the rules of `bytes_mut`, a count that is atomic, and an `Arc` of
// something that is Sync.
unsafe impl Send for Buffer {}
// SAFETY: as above; `&Buffer` only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// The first handle of a buffer.
    ///
    /// # Safety
    /// `address` is the start of a buffer of `pool`, and nobody else has it.
    pub(super) unsafe fn new(address: NonNull<u8>, pool: Arc<Shared>) -> Self {
        // SAFETY: the buffer is ours by the caller's promise, and begins with room for an aligned header.
        unsafe {
            address.cast::<Header>().write(Header { handles: AtomicU32::new(1), pool });
            Self { bytes: address.add(HEADER_BYTES) }
        }
    }

    fn header(&self) -> NonNull<Header> {
        // SAFETY: `bytes` was made by adding exactly this.
        unsafe { self.bytes.sub(HEADER_BYTES) }.cast()
    }

    /// One more handle.
    pub(super) fn share(&self) -> Self {
        // Relaxed: the new handle comes from one that exists, as in `Arc::clone`.
        // SAFETY: the header lives as long as any handle.
        unsafe { self.header().as_ref() }.handles.fetch_add(1, Ordering::Relaxed);
        Self { bytes: self.bytes }
    }

    /// How many handles there are. Acquire, to go with the Release in `drop`: who sees a handle gone also sees its
    /// reads done.
    pub(super) fn handles(&self) -> u32 {
        // SAFETY: the header lives as long as any handle.
        unsafe { self.header().as_ref() }.handles.load(Ordering::Acquire)
    }

    /// The page's length, out of the header: for the cold side, which has no pool at hand.
    pub(super) fn page_bytes(&self) -> usize {
        // SAFETY: the header lives as long as any handle.
        unsafe { self.header().as_ref() }.pool.page_bytes
    }

    /// Where the page's first byte is.
    #[inline]
    pub(super) fn start(&self) -> NonNull<u8> {
        self.bytes
    }

    /// The page.
    ///
    /// # Safety
    /// `page_bytes` is the pool's, and all bytes have been written since the buffer left the shelf.
    #[inline]
    pub(super) unsafe fn bytes(&self, page_bytes: usize) -> &[u8] {
        // SAFETY: so many bytes lie there and are initialized (by the caller's promise), and whoever may write to them
        // holds a `&mut` of the one handle that it writes through, under the rule of `bytes_mut`.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), page_bytes) }
    }

    /// The page, to be changed.
    ///
    /// # Safety
    /// As for `bytes`; and no other handle is read from as long as the borrow lasts.
    #[inline]
    pub(super) unsafe fn bytes_mut(&mut self, page_bytes: usize) -> &mut [u8] {
        // SAFETY: by the caller's promise nobody else looks at these bytes.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), page_bytes) }
    }

    /// Makes all bytes zero.
    pub(super) fn zero(&mut self) {
        assert_eq!(self.handles(), 1, "a fresh buffer has one handle");
        // SAFETY: so many bytes belong to the buffer, and nobody else has a handle.
        unsafe { self.bytes.write_bytes(0, self.page_bytes()) };
    }

    /// Makes all bytes those of `from`, which has the length of a page.
    pub(super) fn fill(&mut self, from: &[u8]) {
        assert_eq!(self.handles(), 1, "a fresh buffer has one handle");
        assert_eq!(from.len(), self.page_bytes());
        // SAFETY: lengths are equal, nobody else has a handle, and `from` is initialized memory: not this buffer's, whose
        // only handle is borrowed mutably.
        unsafe { self.bytes.copy_from_nonoverlapping(NonNull::from(from).cast(), from.len()) };
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let header = self.header();
        // SAFETY: the header lives as long as any handle, and this one is just going.
        // AcqRel: Release, so that our reads are done before the count says so (the owner's Acquire in `handles`);
        // Acquire, so that the last one sees the others' reads done before the buffer is handed out again.
        if unsafe { header.as_ref() }.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: nobody else has a handle; the header is not touched again before `new` writes it afresh, so its `Arc`
            // is moved out, not doubled. It keeps the chunk alive until `put` is done.
            let pool = unsafe { std::ptr::addr_of!((*header.as_ptr()).pool).read() };
            pool.put(header.cast());
        }
    }
}
