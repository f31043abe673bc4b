//! Where page buffers come from and go back to: chunks of memory, never given back to the system while the pool lives; and
//! what happens when there are no more.
//!
//! 1. At most so many buffers are out as the limit allows. `taken` counts them, under the lock.
//! 2. Chunks are opened one after the other, and their buffers handed out for the first time in order; those that came back
//!    are handed out again first, the warmest first. Chunks that are not open may have been touched ahead.
//! 3. Who finds no buffer left fails; or, where the pool was told so, waits as long as it is worth it: some freeze is in
//!    somebody's hands, nobody has abandoned the waits, and the buffer is still needed.
//! 4. Before anybody fails, and where he has waited for long, what is lent out is called back.

#![allow(unsafe_code)]

mod chunk;
mod loan;
mod shortage;
#[cfg(all(test, not(snapring_loom)))]
mod tests;
mod toucher;

use super::PoolExhausted;
use super::buffer::{Buffer, HEADER_BYTES};
use chunk::{CHUNK_BYTES, Chunk};
pub(crate) use loan::Loan;
use loan::Loans;
pub(crate) use shortage::Outstanding;
pub use shortage::Shortage;
use shortage::Stalls;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
pub use toucher::Toucher;

/// Two cache lines: they are fetched as a pair.
const ALIGN_BYTES: usize = 128;
/// Who waits for pages looks again after this time, whatever it hears.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// A bounded supply of page buffers, shared by all states of a job. Cloning it gives another handle of the same pool.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

impl Pool {
    /// A pool of pages of `page_bytes` (a power of two from 512 to 65536), which hands out at most `limit_bytes` of them.
    /// Memory is taken from the system as it is needed, in huge pages where there are any.
    ///
    /// # Panics
    /// `page_bytes` is not such a number.
    pub fn new(page_bytes: usize, limit_bytes: usize) -> Self {
        assert!(
            page_bytes.is_power_of_two() && (512..=65536).contains(&page_bytes),
            "page_bytes is {page_bytes}, but must be a power of two from 512 to 65536"
        );
        let shared = Shared {
            page_bytes,
            limit_bytes,
            shelf: Mutex::default(),
            came_back: Condvar::new(),
            opened: Condvar::new(),
            stalls: Stalls::default(),
            loans: Loans::default(),
        };
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

    /// Whether who finds the limit reached is to wait as long as a freeze that was handed over is in somebody's hands: when
    /// that goes, pages come back, or need not be copied any more. Off to begin with: then that is an error at once. Only for
    /// a thread on which nobody depends to let go of the freeze.
    pub fn wait_when_exhausted(&self, wait: bool) {
        self.shared.stalls.is_allowed.store(wait, Relaxed);
    }

    /// Nobody waits for pages any more: who does, fails as if no freeze were left. For good.
    pub fn abandon_waits(&self) {
        self.shared.stalls.is_abandoned.store(true, Relaxed);
        self.shared.wake_waiting();
    }

    /// How often, and for how long, pages have been waited for.
    pub fn shortage(&self) -> Shortage {
        self.shared.stalls.shortage()
    }

    /// A token for a freeze that is handed over with pages in it.
    pub(super) fn outstanding(&self) -> Outstanding {
        Outstanding::new(&self.shared)
    }

    /// A buffer with one handle. Its bytes are whatever they are: zero, or what an earlier page left.
    pub(super) fn take(&self) -> Result<Buffer, PoolExhausted> {
        self.take_while(|| true).map(|buffer| buffer.expect("it was needed all the time"))
    }

    /// The same for somebody who may come to need it no longer, while waiting: then there is none.
    pub(super) fn take_while(&self, is_needed: impl Fn() -> bool) -> Result<Option<Buffer>, PoolExhausted> {
        let address = self.shared.take(is_needed)?;
        // SAFETY: `address` is that of a buffer of this pool that nobody else has: it came off the shelf.
        Ok(address.map(|address| unsafe { Buffer::new(address, Arc::clone(&self.shared)) }))
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { page_bytes, .. } = *self.shared;
        write!(f, "Pool({} of {} pages of {page_bytes} bytes)", self.in_use(), self.shared.pages_max())
    }
}

/// What the handles of a pool and its buffers share.
pub(super) struct Shared {
    pub(super) page_bytes: usize,
    limit_bytes: usize,
    shelf: Mutex<Shelf>,
    /// A buffer came back, a freeze was let go of, or waiting is over.
    came_back: Condvar,
    /// A chunk was opened, or the toucher is to stop.
    opened: Condvar,
    stalls: Stalls,
    loans: Loans,
}

/// The buffers that nobody has.
#[derive(Default)]
struct Shelf {
    /// The buffer that came back last; each says in its first bytes which one came before it.
    free: Option<NonNull<u8>>,
    chunks: Vec<Chunk>,
    /// So many chunks have been opened.
    opened: usize,
    /// Buffers of the last open chunk that were never handed out.
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

    fn pages_max(&self) -> usize {
        self.limit_bytes / self.page_bytes
    }

    fn buffer_bytes(&self) -> usize {
        (HEADER_BYTES + self.page_bytes).next_multiple_of(ALIGN_BYTES)
    }

    fn buffers_per_chunk(&self) -> usize {
        CHUNK_BYTES / self.buffer_bytes()
    }

    /// The address of the header of a buffer (rules 1, 3 and 4).
    fn take(&self, is_needed: impl Fn() -> bool) -> Result<Option<NonNull<u8>>, PoolExhausted> {
        let mut shelf = self.shelf();
        if shelf.taken >= self.pages_max() {
            match self.wait_for_page(shelf, is_needed)? {
                Some(waited) => shelf = waited,
                None => return Ok(None),
            }
        }
        shelf.taken += 1;
        Ok(Some(shelf.pop().unwrap_or_else(|| self.take_fresh(&mut shelf))))
    }

    #[cold]
    fn wait_for_page<'a>(
        &'a self,
        mut shelf: MutexGuard<'a, Shelf>,
        is_needed: impl Fn() -> bool,
    ) -> Result<Option<MutexGuard<'a, Shelf>>, PoolExhausted> {
        let mut stall: Option<shortage::Stall<'_>> = None;
        let mut is_nothing_lent = false;
        loop {
            // Asked first: a freeze that goes after that is seen the next time, whatever it gives back.
            let waited = stall.as_ref().map_or(Duration::ZERO, shortage::Stall::waited);
            let is_worth_waiting = self.stalls.is_worth_waiting(waited);
            if shelf.taken < self.pages_max() {
                return Ok(Some(shelf));
            }
            if !is_needed() {
                return Ok(None);
            }
            if !is_nothing_lent && (!is_worth_waiting || self.stalls.are_loans_due(waited)) {
                drop(shelf);
                // Then all is asked once more: somebody else may have called back what there was.
                is_nothing_lent = !self.loans.recall();
                shelf = self.shelf();
                continue;
            }
            if !is_worth_waiting {
                return Err(PoolExhausted { limit_bytes: self.limit_bytes });
            }
            is_nothing_lent = false;
            stall.get_or_insert_with(|| self.stalls.begin());
            shelf = self.came_back.wait_timeout(shelf, LOOK_AGAIN).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A buffer that was never handed out (rule 2).
    fn take_fresh(&self, shelf: &mut Shelf) -> NonNull<u8> {
        if shelf.fresh == 0 {
            if shelf.opened == shelf.chunks.len() {
                shelf.chunks.push(Chunk::map());
            }
            shelf.opened += 1;
            shelf.fresh = self.buffers_per_chunk();
            self.opened.notify_all();
        }
        let index = self.buffers_per_chunk() - shelf.fresh;
        shelf.fresh -= 1;
        // SAFETY: `index` is below the number of buffers of the chunk.
        unsafe { shelf.chunks[shelf.opened - 1].start().add(index * self.buffer_bytes()) }
    }

    /// Takes a buffer back, by the address of its header.
    pub(super) fn put(&self, address: NonNull<u8>) {
        let mut shelf = self.shelf();
        shelf.taken -= 1;
        shelf.push(address);
        drop(shelf);
        self.wake_waiting();
    }

    /// Has who waits for a page look again. One who begins to wait just now may miss it, and looks again soon anyway.
    fn wake_waiting(&self) {
        if self.stalls.is_anybody_waiting() {
            self.came_back.notify_all();
        }
    }

    /// Whether another chunk is to be touched ahead: as many as are open, at most `window`, and none beyond the limit.
    fn wants_chunk(&self, shelf: &Shelf, window: usize) -> bool {
        let ahead = shelf.chunks.len() - shelf.opened;
        let chunks_max = self.pages_max().div_ceil(self.buffers_per_chunk());
        ahead < shelf.opened.min(window) && shelf.chunks.len() < chunks_max
    }
}

impl Shelf {
    /// Takes the buffer that came back last.
    fn pop(&mut self) -> Option<NonNull<u8>> {
        let first = self.free?;
        // SAFETY: `push` has written it there, and nobody has had the buffer since.
        self.free = unsafe { first.cast::<Option<NonNull<u8>>>().read() };
        Some(first)
    }

    fn push(&mut self, buffer: NonNull<u8>) {
        // SAFETY: the buffer begins with room for an aligned header, which is larger, and nobody has it any more.
        unsafe { buffer.cast::<Option<NonNull<u8>>>().write(self.free) };
        self.free = Some(buffer);
    }
}
