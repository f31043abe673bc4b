//! A plain sink in memory, for tests and examples.

use crate::error::{ConnectorError, Failed};
use crate::operator::{Committer, Part, Place, Sink, Writer};
use crate::record::Record;
use std::sync::{Arc, Mutex, PoisonError};

/// Collects what arrives, at once and without regard to checkpoints: after a crash records may be there twice.
///
/// A clone is another handle of the same collection.
#[derive(Debug)]
pub struct Collect<T> {
    items: Arc<Mutex<Vec<T>>>,
}

impl<T: Record> Collect<T> {
    /// An empty collection.
    pub fn new() -> Self {
        Self { items: Arc::default() }
    }

    /// Takes out what has arrived, in the order of arrival.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.items.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Clone for Collect<T> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone() }
    }
}

impl<T: Record> Default for Collect<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Record> Sink for Collect<T> {
    type In = T;
    type Writer = CollectWriter<T>;

    fn exactly_once(&self) -> bool {
        false
    }

    fn claim(&self, _: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        Ok(Box::new(Plain))
    }

    fn writer(&self, _: &Place, _: u32) -> Result<Self::Writer, ConnectorError> {
        Ok(CollectWriter { held: Vec::new(), items: self.items.clone() })
    }
}

/// Hands over what it has been given whenever it is flushed.
#[derive(Debug)]
pub struct CollectWriter<T> {
    held: Vec<T>,
    items: Arc<Mutex<Vec<T>>>,
}

impl<T: Record> Writer for CollectWriter<T> {
    type In = T;

    fn write(&mut self, record: T) -> Result<(), Failed> {
        self.held.push(record);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failed> {
        if !self.held.is_empty() {
            self.items.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.held);
        }
        Ok(())
    }

    fn prepare(&mut self, _: u64) -> Result<Option<Part>, Failed> {
        self.flush()?;
        Ok(None)
    }
}

/// The committer of every plain sink: there are no parts.
pub(super) struct Plain;

impl Committer for Plain {
    fn recover(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn sync(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn commit(&mut self, _: &[Part]) -> Result<(), ConnectorError> {
        Ok(())
    }
}
