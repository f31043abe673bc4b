//! User code that does not return while a gate is closed.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn closed() -> Self {
        Self(Arc::new((Mutex::new(false), Condvar::new())))
    }

    fn set(&self, open: bool) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = open;
        self.0.1.notify_all();
    }

    pub fn open(&self) {
        self.set(true);
    }

    pub fn close(&self) {
        self.set(false);
    }

    pub fn pass(&self) {
        let open = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        // No longer than it takes: a test that fails with the gate closed must end.
        let waited = self.0.1.wait_timeout_while(open, Duration::from_secs(20), |open| !*open);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
