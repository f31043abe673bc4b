//! Where page buffers come from and go back to: chunks of memory, never given back to the system while the pool lives.

#![allow(unsafe_code)]

use super::PoolExhausted;
use super::buffer::{Buffer, HEADER_BYTES};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Chunks are of this size, so that the system is asked seldom.
const CHUNK_BYTES: usize = 2 << 20;
/// Two cache lines: they are fetched as a pair.
const ALIGN_BYTES: usize = 128;

/// A bounded supply of page buffers, shared by all states of a job. Cloning it gives another handle of the same pool.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

impl Pool {
    /// A pool of pages of `page_bytes` (a power of two from 512 to 65536), which hands out at most `limit_bytes` of them.
    /// Memory is taken from the system as it is needed.
    ///
    /// # Panics
    /// `page_bytes` is not such a number.
    pub fn new(page_bytes: usize, limit_bytes: usize) -> Self {
        assert!(
            page_bytes.is_power_of_two() && (512..=65536).contains(&page_bytes),
            "page_bytes is {page_bytes}, but must be a power of two from 512 to 65536"
        );
        let shared = Shared { page_bytes, limit_bytes, shelf: Mutex::new(Shelf::default()) };
        Self { shared: Arc::new(shared) }
    }

    /// Bytes of each page.
    pub fn page_bytes(&self) -> usize {
        self.shared.page_bytes
    }

    /// The limit that the pool was made with.
    pub fn limit_bytes(&self) -> usize {
        self.shared.limit_bytes
    }

    /// Pages handed out: live ones and those that only a frozen handle keeps.
    pub fn in_use(&self) -> usize {
        self.shared.shelf().taken
    }

    /// A buffer with one handle. Its bytes are whatever they are: zero, or what an earlier page left.
    pub(super) fn take(&self) -> Result<Buffer, PoolExhausted> {
        let address = self.shared.take()?;
        // SAFETY: `address` is that of a buffer of this pool that nobody else has: it came off the shelf.
        Ok(unsafe { Buffer::new(address, Arc::clone(&self.shared)) })
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { page_bytes, limit_bytes, .. } = *self.shared;
        write!(f, "Pool({} of {} pages of {page_bytes} bytes)", self.in_use(), limit_bytes / page_bytes)
    }
}

/// What the handles of a pool and its buffers share.
pub(super) struct Shared {
    pub(super) page_bytes: usize,
    limit_bytes: usize,
    shelf: Mutex<Shelf>,
}

/// The buffers that nobody has.
#[derive(Default)]
struct Shelf {
    /// Headers of buffers that came back, the warmest last.
    free: Vec<NonNull<u8>>,
    chunks: Vec<NonNull<u8>>,
    /// Buffers of the newest chunk that were never handed out: memory is not touched before it is needed.
    fresh: usize,
    taken: usize,
}

// SAFETY: the pointers are plain addresses of memory that the shelf owns; no thread-bound thing is behind them.
unsafe impl Send for Shelf {}

impl Shared {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // No code that could panic half-way runs under the lock.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn buffer_bytes(&self) -> usize {
        (HEADER_BYTES + self.page_bytes).next_multiple_of(ALIGN_BYTES)
    }

    fn buffers_per_chunk(&self) -> usize {
        CHUNK_BYTES / self.buffer_bytes()
    }

    fn chunk_layout(&self) -> Layout {
        Layout::from_size_align(self.buffers_per_chunk() * self.buffer_bytes(), ALIGN_BYTES).expect("a small layout")
    }

    /// The address of the header of a buffer.
    fn take(&self) -> Result<NonNull<u8>, PoolExhausted> {
        let mut shelf = self.shelf();
        if shelf.taken >= self.limit_bytes / self.page_bytes {
            return Err(PoolExhausted { limit_bytes: self.limit_bytes });
        }
        shelf.taken += 1;
        if let Some(address) = shelf.free.pop() {
            return Ok(address);
        }
        if shelf.fresh == 0 {
            let layout = self.chunk_layout();
            // SAFETY: the layout is not empty: a chunk holds at least one buffer.
            let chunk = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
            shelf.chunks.push(chunk);
            shelf.fresh = self.buffers_per_chunk();
        }
        let index = self.buffers_per_chunk() - shelf.fresh;
        shelf.fresh -= 1;
        let chunk = *shelf.chunks.last().expect("a chunk was just made sure of");
        // SAFETY: `index` is below the number of buffers of the chunk.
        Ok(unsafe { chunk.add(index * self.buffer_bytes()) })
    }

    /// Takes a buffer back, by the address of its header.
    pub(super) fn put(&self, address: NonNull<u8>) {
        let mut shelf = self.shelf();
        shelf.taken -= 1;
        shelf.free.push(address);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let layout = self.chunk_layout();
        for &chunk in &self.shelf().chunks {
            // SAFETY: it was allocated with this layout; each buffer in use holds an `Arc` of us, so none is left.
            unsafe { dealloc(chunk.as_ptr(), layout) };
        }
    }
}
