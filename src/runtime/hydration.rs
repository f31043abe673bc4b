//! When a task reads restored state ahead of its need, so that a job soon has all of it in memory and lets go of the
//! snapshot. It does not know what is read.
//!
//! A page at a time, in the task's own steps: one in every step that finds no input, and one every so many batches under
//! load. So a record waits for one page at most, and the reading takes a small part of a busy task's time.

/// Reading a page takes some microseconds, a full batch some dozens.
const BATCHES_A_PAGE: u32 = 16;

/// How far a task is.
pub(crate) struct Hydration {
    done: bool,
    batches: u32,
}

impl Hydration {
    /// Of a task whose state may not be all there, if it is to be read ahead at all.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { done: !wanted, batches: 0 }
    }

    /// All is there, or comes when it is needed.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// A batch has been taken in: whether it is time for a page.
    pub(crate) fn is_due(&mut self) -> bool {
        self.batches += 1;
        self.batches %= BATCHES_A_PAGE;
        !self.done && self.batches == 0
    }

    /// What reading a page has found.
    pub(crate) fn note(&mut self, done: bool) {
        self.done = done;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_task_reads_a_page_every_so_many_batches_until_all_is_there() {
        let due = |hydration: &mut Hydration| (0..160).filter(|_| hydration.is_due()).count();
        let mut hydration = Hydration::new(true);
        assert_eq!((due(&mut hydration), hydration.is_done()), (160 / BATCHES_A_PAGE as usize, false));
        hydration.note(true);
        assert_eq!((due(&mut hydration), hydration.is_done()), (0, true));
        assert_eq!(due(&mut Hydration::new(false)), 0);
    }
}
