//! The contracts between the runtime and what runs in it: [`Emit`], [`Source`], [`Sink`] and their parts.

mod sink;
mod source;

pub use sink::{Committer, Part, Place, Sink, Writer};
pub use source::{Read, Reader, Source, Split};

use crate::error::Failed;

/// Whether a step did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It did; there may be more.
    Made,
    /// Nothing to do now.
    None,
    /// Nothing to do ever again.
    Done,
}

/// Where records go.
pub trait Emit<T> {
    /// Hands one record on. It always takes it: what finds no room waits in the outbox.
    ///
    /// # Errors
    /// What the record met further down, or an outbox over its limit. Pass it on with `?`.
    fn emit(&mut self, record: T) -> Result<(), Failed>;

    /// Whether a long emission should go on now. An emission that can be resumed looks here between two portions.
    fn has_room(&self) -> bool {
        true
    }
}

/// For tests and for connectors that are tried alone.
impl<T> Emit<T> for Vec<T> {
    fn emit(&mut self, record: T) -> Result<(), Failed> {
        self.push(record);
        Ok(())
    }
}
