//! Work on many pages at once (checksums, and copying to where they go) by threads of our own. It must not know whose pages
//! they are.

use super::sink::Run;
use rayon::ThreadPool;
use rayon::prelude::*;
use std::io;
use std::sync::OnceLock;

/// Below this many bytes the hand-over costs more than it brings.
const PARALLEL_BYTES_MIN: usize = 1 << 20;

/// The threads of a store.
pub struct Sums {
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
            let named = rayon::ThreadPoolBuilder::new().thread_name(|i| format!("snapring-store-{i}"));
            named.num_threads(self.threads).build().ok()
        };
        match self.pool.get_or_init(make) {
            Some(pool) => pool.install(|| work(true)),
            None => work(false),
        }
    }

    /// Does this with each of the runs, on several threads if there are any and the work is worth it. After an error
    /// others may still have been done.
    pub fn each<'a>(
        &self,
        runs: &mut [Run<'a>],
        work: impl Fn(&mut Run<'a>) -> io::Result<()> + Send + Sync,
    ) -> io::Result<()> {
        let bytes = runs.iter().map(Run::len_bytes).sum::<u64>() as usize;
        self.install(bytes, |parallel| {
            if parallel {
                runs.par_iter_mut().with_max_len(1).try_for_each(work)
            } else {
                runs.iter_mut().try_for_each(work)
            }
        })
    }
}
