//! A thread that has the system give memory before it is needed: the first touch of a huge page takes a tenth of a
//! millisecond, and whoever needs a page has no time for that.

use super::chunk::{CHUNK_BYTES, Chunk};
use super::{Pool, Shared};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

/// Keeps memory touched ahead as long as it lives; see [`Pool::keep_touched`].
#[must_use = "it stops when it is dropped"]
pub struct Toucher {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    /// None: the system gave no thread.
    thread: Option<JoinHandle<()>>,
}

impl Pool {
    /// Starts a thread, `snapring-pages`, that touches memory before pages of it are needed: as much as is in use already,
    /// and at most `window_bytes`, within the pool's limit. It runs where the caller may run. Without it, or where the system
    /// gives no thread, memory is touched by whoever needs it.
    pub fn keep_touched(&self, window_bytes: usize) -> Toucher {
        let (shared, stop) = (Arc::clone(&self.shared), Arc::new(AtomicBool::new(false)));
        let theirs = (Arc::clone(&shared), Arc::clone(&stop));
        let work = move || touch_ahead(&theirs.0, &theirs.1, window_bytes / CHUNK_BYTES);
        let thread = std::thread::Builder::new().name("snapring-pages".into()).spawn(work).ok();
        Toucher { shared, stop, thread }
    }
}

impl Drop for Toucher {
    fn drop(&mut self) {
        {
            let _shelf = self.shared.shelf();
            // Relaxed: the lock orders it.
            self.stop.store(true, Ordering::Relaxed);
        }
        self.shared.opened.notify_all();
        // It does not panic; and if it did, memory would be touched as it is needed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn touch_ahead(shared: &Shared, stop: &AtomicBool, window: usize) {
    let mut shelf = shared.shelf();
    while !stop.load(Ordering::Relaxed) {
        if !shared.wants_chunk(&shelf, window) {
            shelf = shared.opened.wait(shelf).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        drop(shelf);
        let mut chunk = Chunk::map();
        chunk.touch();
        shelf = shared.shelf();
        // Meanwhile somebody may have made one in a hurry: then this is the next.
        shelf.chunks.push(chunk);
    }
}
