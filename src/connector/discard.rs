//! A sink that keeps nothing: for measurements.

use super::collect::Plain;
use crate::error::{ConnectorError, Failed};
use crate::operator::{Committer, Part, Place, Sink, Writer};
use crate::record::Record;
use std::hint::black_box;
use std::marker::PhantomData;

/// Drops each record, but lets no compiler see that nobody reads it.
#[derive(Debug)]
pub struct Discard<T>(PhantomData<fn(T)>);

impl<T> Discard<T> {
    /// Nothing.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Discard<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Record> Sink for Discard<T> {
    type In = T;
    type Writer = Self;

    fn exactly_once(&self) -> bool {
        false
    }

    fn claim(&self, _: &Place) -> Result<Box<dyn Committer>, ConnectorError> {
        Ok(Box::new(Plain))
    }

    fn writer(&self, _: &Place, _: u32) -> Result<Self, ConnectorError> {
        Ok(Self::new())
    }
}

impl<T: Record> Writer for Discard<T> {
    type In = T;

    #[inline]
    fn write(&mut self, record: T) -> Result<(), Failed> {
        // By reference: a look at a record is no reason to move it.
        black_box(&record);
        Ok(())
    }

    fn prepare(&mut self, _: u64) -> Result<Option<Part>, Failed> {
        Ok(None)
    }
}
