//! Generated events: a source that can seek anywhere because event `i` is a function of `i`.

use super::stretch::Stretch;
use crate::error::{ConnectorError, Failed};
use crate::operator::{Emit, Read, Reader, Source, Split};
use crate::record::Record;
use std::marker::PhantomData;
use std::sync::Arc;

/// A source of `events` events, the i-th of which is `make(i)`.
///
/// `make` must give the same event for the same index at any time, or a replay does not repeat what was read before.
pub struct Generate<T, F> {
    events: u64,
    splits: u32,
    label: String,
    make: Arc<F>,
    item: PhantomData<fn() -> T>,
}

impl<T: Record, F: Fn(u64) -> T + Send + Sync + 'static> Generate<T, F> {
    /// A source of `events` events in `splits` splits (at least one) of equal length.
    pub fn new(events: u64, splits: u32, make: F) -> Self {
        let (label, make) = ("generated".to_owned(), Arc::new(make));
        Self { events, splits: splits.max(1), label, make, item: PhantomData }
    }

    /// Says what the events depend on, for instance `keys 1000, seed 7`. It is kept in the checkpoint: a job that goes
    /// on from it with another label is refused instead of continuing with other events.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
}

impl<T: Record, F: Fn(u64) -> T + Send + Sync + 'static> Source for Generate<T, F> {
    type Item = T;
    type Reader = GenerateReader<T, F>;

    fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        Ok(Stretch::cut(&self.label, self.events, self.splits))
    }

    fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError> {
        Stretch::verify(&self.label, self.events, splits)
    }

    fn open(&self, split: &Split, offset: u64) -> Result<Self::Reader, ConnectorError> {
        let stretch = Stretch::of(split)?;
        let next = stretch.seek(offset)?;
        Ok(GenerateReader { next, from: stretch.from, to: stretch.to, make: self.make.clone(), item: PhantomData })
    }
}

/// Makes the events of one split, one after the other. Its offset is the number of events made.
pub struct GenerateReader<T, F> {
    next: u64,
    from: u64,
    to: u64,
    make: Arc<F>,
    item: PhantomData<fn() -> T>,
}

impl<T: Record, F: Fn(u64) -> T + Send + Sync + 'static> Reader for GenerateReader<T, F> {
    type Item = T;

    #[inline]
    fn read<E: Emit<T>>(&mut self, max: usize, out: &mut E) -> Result<Read, Failed> {
        let begin = self.next;
        self.next = begin.saturating_add(max as u64).min(self.to);
        let make = &*self.make;
        out.emit_all((begin..self.next).map(make))?;
        Ok(if self.next == self.to { Read::Done } else { Read::More })
    }

    fn offset(&self) -> u64 {
        self.next - self.from
    }
}
