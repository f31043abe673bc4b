//! Checksums of many pages at once, by threads of our own. It must not know whose pages they are.

use rayon::ThreadPool;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Below this many bytes the hand-over costs more than it brings.
const PARALLEL_BYTES_MIN: usize = 1 << 20;

pub(super) struct Sums {
    threads: usize,
    /// Made when first needed, by the thread that commits: it must not be pinned, or all of these would be as well.
    pool: OnceLock<Option<ThreadPool>>,
}

impl Sums {
    /// `threads`: 0 leaves it to the machine, which gives one thread where there are few cores.
    pub fn new(threads: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { (cores / 2).clamp(1, 4) } else { threads };
        Self { threads, pool: OnceLock::new() }
    }

    /// Runs `work` where parallel iterators use our threads, if there are any and the work is worth it.
    pub fn install<R: Send>(&self, bytes: usize, work: impl FnOnce(bool) -> R + Send) -> R {
        if self.threads == 1 || bytes < PARALLEL_BYTES_MIN {
            return work(false);
        }
        let make = || {
            let named = rayon::ThreadPoolBuilder::new().thread_name(|i| format!("snapring-sums-{i}"));
            named.num_threads(self.threads).build().ok()
        };
        match self.pool.get_or_init(make) {
            Some(pool) => pool.install(|| work(true)),
            None => work(false),
        }
    }

    /// The crc32c of each page.
    pub fn of(&self, pages: &[&[u8]]) -> Vec<u32> {
        let bytes = pages.iter().map(|page| page.len()).sum();
        self.install(bytes, |parallel| {
            if parallel {
                pages.par_iter().with_min_len(16).map(|page| crc32c::crc32c(page)).collect()
            } else {
                pages.iter().map(|page| crc32c::crc32c(page)).collect()
            }
        })
    }
}
