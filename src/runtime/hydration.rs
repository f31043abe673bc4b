//! When a task reads restored state ahead of its need, so that a job soon has all of it in memory and lets go of the
//! snapshot. It does not know what is read.
//!
//! A page at a time, in the task's own steps: one in every step that finds no input; under load one every so many batches at
//! most, and never for more than a small part of the task's time. So a record waits for one page at most, small batches are
//! not held up by more reading than they are worth, and where the disk is slow a busy task leaves it alone for longer.

/// Reading a page takes some microseconds, a full batch some dozens.
const BATCHES_A_PAGE: u32 = 16;

/// A busy task lets this many times as long pass as the last page took: it spends 3 % of its time on reading at most.
const REST: u64 = 32;

/// How far a task is.
pub(crate) struct Hydration {
    done: bool,
    batches: u32,
    /// Under load not before.
    next_ns: u64,
}

impl Hydration {
    /// Of a task whose state may not be all there, if it is to be read ahead at all.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { done: !wanted, batches: 0, next_ns: 0 }
    }

    /// All is there, or comes when it is needed.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// A batch has been taken in: whether it is time for a page. The clock is looked at only if it may be.
    pub(crate) fn is_due(&mut self, now_ns: impl FnOnce() -> u64) -> bool {
        self.batches += 1;
        self.batches %= BATCHES_A_PAGE;
        !self.done && self.batches == 0 && now_ns() >= self.next_ns
    }

    /// What reading a page has found, and when it was.
    pub(crate) fn note(&mut self, done: bool, begun_ns: u64, ended_ns: u64) {
        self.done = done;
        self.next_ns = ended_ns + REST * ended_ns.saturating_sub(begun_ns);
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_busy_task_reads_a_page_every_so_many_batches_until_all_is_there() {
        let due = |hydration: &mut Hydration| (0..160).filter(|_| hydration.is_due(|| 0)).count();
        let mut hydration = Hydration::new(true);
        assert_eq!((due(&mut hydration), hydration.is_done()), (160 / BATCHES_A_PAGE as usize, false));
        hydration.note(true, 0, 0);
        assert_eq!((due(&mut hydration), hydration.is_done()), (0, true));
        assert_eq!(due(&mut Hydration::new(false)), 0);
    }

    #[test]
    fn a_busy_task_spends_a_small_part_of_its_time_on_it() {
        for (batch_ns, page_ns) in [(100, 5000), (2000, 5000), (100_000, 5000), (2000, 3_000_000)] {
            let (mut hydration, mut now_ns, mut reading_ns) = (Hydration::new(true), 0, 0);
            for _ in 0..1_000_000 {
                now_ns += batch_ns;
                if hydration.is_due(|| now_ns) {
                    hydration.note(false, now_ns, now_ns + page_ns);
                    now_ns += page_ns;
                    reading_ns += page_ns;
                }
            }
            let share = reading_ns as f64 / now_ns as f64;
            assert!(share > 0.0 && share <= 1.0 / REST as f64, "batches of {batch_ns} ns, pages of {page_ns}: {share}");
        }
    }
}
