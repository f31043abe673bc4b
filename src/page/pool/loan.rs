//! What is lent out until it is complete: where there is nothing else left to wait for, the pool calls it back.

use super::Pool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Something with pages in it that its owner can do without: it may be gone at any time.
pub(crate) struct Loan<T>(Arc<Mutex<Option<T>>>);

/// All that is lent out.
#[derive(Default)]
pub(super) struct Loans(Mutex<Vec<Weak<dyn Recall>>>);

trait Recall: Send + Sync {
    /// Drops it. False if it was gone.
    fn recall(&self) -> bool;
}

impl<T: Send> Recall for Mutex<Option<T>> {
    fn recall(&self) -> bool {
        let lent = whole(self).take();
        lent.is_some()
    }
}

impl Pool {
    /// Lends something out until it is [kept](Loan::keep).
    pub(in crate::page) fn lend<T: Send + 'static>(&self, what: T) -> Loan<T> {
        let lent = Arc::new(Mutex::new(Some(what)));
        let mut loans = whole(&self.shared.loans.0);
        loans.retain(|loan| loan.strong_count() > 0);
        let weak = Arc::downgrade(&lent);
        loans.push(weak);
        Loan(lent)
    }

    /// Calls all of it back, as somebody does who finds no page left.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn recall(&self) -> bool {
        self.shared.loans.recall()
    }
}

impl<T> Loan<T> {
    /// What it is now, unless it was called back. While it is looked at nobody must take a page: whoever finds none left calls
    /// it back himself.
    pub fn get(&self) -> MutexGuard<'_, Option<T>> {
        whole(&self.0)
    }

    /// It is complete, and is not called back any more; none: it was. `complete` says so to the pool, before anybody could find
    /// it in neither place.
    pub fn keep(self, complete: impl FnOnce(&mut T)) -> Option<T> {
        let mut lent = self.get();
        lent.as_mut().map(complete);
        lent.take()
    }
}

impl Loans {
    /// Calls everything back. Whether there was anything. Not with the shelf in hand: pages come back to it here. Whoever comes
    /// second waits until they have.
    pub fn recall(&self) -> bool {
        let mut loans = whole(&self.0);
        loans.drain(..).filter_map(|loan| loan.upgrade()).filter(|loan| loan.recall()).count() > 0
    }
}

/// No code that could panic half-way runs under these locks.
fn whole<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
