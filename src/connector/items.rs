//! The items of a list as a source, for tests and examples.

use super::stretch::Stretch;
use crate::error::{ConnectorError, Failed};
use crate::operator::{Emit, Read, Reader, Source, Split};
use crate::record::Record;
use std::sync::Arc;

/// A source that gives the items of a list, in order (within each split).
#[derive(Clone, Debug)]
pub struct Items<T> {
    items: Arc<[T]>,
    splits: u32,
}

impl<T: Record + Clone + Sync> Items<T> {
    /// A source of these items, in one split.
    pub fn new(items: impl Into<Vec<T>>) -> Self {
        Self { items: Arc::from(items.into()), splits: 1 }
    }

    /// Cuts the list into so many splits (at least one) of equal length.
    #[must_use]
    pub fn in_splits(mut self, splits: u32) -> Self {
        self.splits = splits.max(1);
        self
    }

    /// The name of the list holds a hash of its content: another list is another input.
    fn name(&self) -> String {
        let mut bytes = Vec::new();
        self.items.iter().for_each(|item| item.encode(&mut bytes));
        format!("items-{:016x}", rapidhash::v3::rapidhash_v3(&bytes))
    }
}

impl<T: Record + Clone + Sync> Source for Items<T> {
    type Item = T;
    type Reader = ItemsReader<T>;

    fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        Ok(Stretch::cut(&self.name(), self.items.len() as u64, self.splits))
    }

    fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError> {
        Stretch::verify(&self.name(), self.items.len() as u64, splits)
    }

    fn open(&self, split: &Split, offset: u64) -> Result<Self::Reader, ConnectorError> {
        let stretch = Stretch::of(split)?;
        let next = stretch.seek(offset)? as usize;
        // The list may be shorter than the split says if nobody has verified it: then there is nothing more.
        let to = (stretch.to as usize).min(self.items.len());
        Ok(ItemsReader { next: next.min(to), from: stretch.from as usize, to, items: self.items.clone() })
    }
}

/// Gives the items of one split. Its offset is the number of items given.
#[derive(Debug)]
pub struct ItemsReader<T> {
    next: usize,
    from: usize,
    to: usize,
    items: Arc<[T]>,
}

impl<T: Record + Clone + Sync> Reader for ItemsReader<T> {
    type Item = T;

    fn read<E: Emit<T>>(&mut self, max: usize, out: &mut E) -> Result<Read, Failed> {
        let begin = self.next;
        self.next = begin.saturating_add(max).min(self.to);
        out.emit_all(self.items[begin..self.next].iter().cloned())?;
        Ok(if self.next == self.to { Read::Done } else { Read::More })
    }

    fn offset(&self) -> u64 {
        (self.next - self.from) as u64
    }
}
