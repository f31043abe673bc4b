//! How a record tells its key.

use crate::record::Record;

/// Tells the key of a record.
pub trait KeyOf<T>: Send + Sync + 'static {
    /// The key.
    type Key: Record;
    /// Shows the key.
    fn with<R>(&self, record: &T, show: impl FnOnce(&Self::Key) -> R) -> R;
    /// The key, to go on alone.
    fn owned(&self, record: &T) -> Self::Key;
}

/// A key that a closure computes.
pub struct Computed<F>(pub(crate) F);

impl<T, K: Record, F: Fn(&T) -> K + Send + Sync + 'static> KeyOf<T> for Computed<F> {
    type Key = K;
    #[inline]
    fn with<R>(&self, record: &T, show: impl FnOnce(&K) -> R) -> R {
        show(&(self.0)(record))
    }
    #[inline]
    fn owned(&self, record: &T) -> K {
        (self.0)(record)
    }
}

/// A key that is a part of the record.
pub struct Borrowed<F>(pub(crate) F);

impl<T, K: Record + Clone, F: Fn(&T) -> &K + Send + Sync + 'static> KeyOf<T> for Borrowed<F> {
    type Key = K;
    #[inline]
    fn with<R>(&self, record: &T, show: impl FnOnce(&K) -> R) -> R {
        show((self.0)(record))
    }
    #[inline]
    fn owned(&self, record: &T) -> K {
        (self.0)(record).clone()
    }
}
