//! The input of a bed: records that come when they are let through. It must not know where they go.

use super::Trip;
use crate::connector::{Items, ItemsReader};
use crate::error::{ConnectorError, Failed};
use crate::operator::{Emit, Read, Reader, Source, Split};
use crate::record::Record;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many records of each split may pass. A clone is the same gate.
#[derive(Clone, Debug)]
pub(super) struct Gate(Arc<AtomicU64>);

impl Gate {
    pub(super) fn open() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// Also where all records have passed, the end has not, before the gate is opened altogether (`u64::MAX`).
    pub(super) fn set(&self, records: u64) {
        self.0.store(records, Ordering::Relaxed);
    }
}

/// The records of a list, as far as the gate lets them through.
pub(super) struct Feed<T> {
    pub(super) items: Items<T>,
    pub(super) gate: Gate,
    pub(super) trip: Trip,
}

impl<T: Record + Clone + Sync> Source for Feed<T> {
    type Item = T;
    type Reader = FeedReader<T>;

    fn splits(&self) -> Result<Vec<Split>, ConnectorError> {
        self.items.splits()
    }

    fn verify(&self, splits: &[Split]) -> Result<(), ConnectorError> {
        self.items.verify(splits)
    }

    fn open(&self, split: &Split, offset: u64) -> Result<Self::Reader, ConnectorError> {
        let items = self.items.open(split, offset)?;
        Ok(FeedReader { items, gate: self.gate.clone(), trip: self.trip.clone() })
    }
}

pub(super) struct FeedReader<T> {
    items: ItemsReader<T>,
    gate: Gate,
    trip: Trip,
}

impl<T: Record + Clone + Sync> Reader for FeedReader<T> {
    type Item = T;

    fn read<E: Emit<T>>(&mut self, max: usize, out: &mut E) -> Result<Read, Failed> {
        self.trip.pass();
        let passes = self.gate.0.load(Ordering::Relaxed);
        if passes == u64::MAX {
            return self.items.read(max, out);
        }
        let left = passes.saturating_sub(self.items.offset());
        self.items.read(max.min(usize::try_from(left).unwrap_or(usize::MAX)), out)?;
        Ok(Read::Pending)
    }

    fn offset(&self) -> u64 {
        self.items.offset()
    }
}
