//! The contracts between the runtime and what runs in it: [`Emit`], [`Source`], [`Sink`] and their parts.

mod bad_line;
mod custom;
mod delivering;
mod emitted;
mod fan;
mod fold;
mod kept;
mod kept_table;
mod key;
mod keyed_table;
mod kinds;
mod operating;
mod outgoing;
mod pipe;
mod process;
mod rings;
mod sink;
mod source;
mod splits;
mod stage;
mod states;
mod viewing;
mod writing;

pub use bad_line::{BadLine, Skipped};
pub use custom::Operator;
pub use key::{Borrowed, Computed, KeyOf};
pub use kinds::{Aggregate, Aggregator, List, ListIter, Map, MapIter, Value, stored};
pub use sink::{Committer, Part, Place, Sink, WentBack, Writer};
pub use snapring_derive::KeyedState;
pub use source::{Read, Reader, Source, Split};
pub use stage::Stage;
pub use states::KeyedState;

/// The stages that a chain is made of: types that only the compiler writes.
pub mod stages {
    pub use super::stage::{Filter, FilterMap, FlatMap, Inspect, Map, Start, Then, TryMap};
}

/// What the derived code calls.
#[doc(hidden)]
pub mod __private {
    pub use super::kinds::{Kind, Opening, Tables, Work};
    pub use super::states::{Several, States};
}

pub(crate) use delivering::Delivering;
pub(crate) use fan::{ByResult, Fan, ToEach, ToPicked};
pub(crate) use fold::{Counting, Fold, FromInitial, Reducing, Step};
pub(crate) use kept::{Typed, decoded, evolution, evolution_of_values, value};
pub(crate) use kept_table::{outdated_name, state_of};
pub(crate) use keyed_table::{EMITTED, TABLE};
pub(crate) use kinds::Tables;
pub(crate) use operating::{Open, Operate, Operating};
pub(crate) use outgoing::{EdgeEnd, Through};
pub(crate) use pipe::{Chain, Frozen, Link, Out, Output, Pipe, Stateful, Visit};
pub(crate) use process::Process;
pub(crate) use rings::{ByKey, InTurn, Lane, Rings, SendTo, ToAll};
pub(crate) use splits::{SKIPPED, SPLITS, SplitSkipped, SplitState, find_splits};
pub(crate) use stage::{Closure, blamed, take_blamed, take_left};
pub(crate) use states::Keep;
pub(crate) use viewing::{TableCut, Viewing};
pub(crate) use writing::Writing;

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

    /// Hands on one after the other: faster than one call for each, where many are at hand.
    ///
    /// # Errors
    /// As [`Emit::emit`]; records that come after the one that failed are lost.
    #[inline]
    fn emit_all(&mut self, records: impl IntoIterator<Item = T>) -> Result<(), Failed>
    where
        Self: Sized,
    {
        records.into_iter().try_for_each(|record| self.emit(record))
    }
}

/// For tests and for connectors that are tried alone.
impl<T> Emit<T> for Vec<T> {
    #[inline]
    fn emit(&mut self, record: T) -> Result<(), Failed> {
        self.push(record);
        Ok(())
    }

    #[inline]
    fn emit_all(&mut self, records: impl IntoIterator<Item = T>) -> Result<(), Failed> {
        self.extend(records);
        Ok(())
    }
}
