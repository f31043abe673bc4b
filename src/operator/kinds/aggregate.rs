//! One running result per key.

use super::super::operating::Open;
use super::super::viewing::Viewing;
use super::{Keys, Kind, Opening, Tables, Value, Work};
use crate::error::{Error, Failed, StateError};
use crate::record::Record;
use crate::snapshot::Entry;
use std::fmt;

/// How inputs become one result: for an [`Aggregate`].
///
/// ```
/// use snapring::operator::Aggregator;
///
/// struct Mean;
///
/// impl Aggregator for Mean {
///     type In = i64;
///     /// How many, and their sum.
///     type Acc = (u64, i64);
///     type Out = f64;
///
///     fn start() -> (u64, i64) {
///         (0, 0)
///     }
///     fn add((count, sum): &mut (u64, i64), input: i64) {
///         *count += 1;
///         *sum += input;
///     }
///     fn result((count, sum): &(u64, i64)) -> f64 {
///         *sum as f64 / *count as f64
///     }
/// }
/// ```
pub trait Aggregator: 'static {
    /// What is added.
    type In;
    /// What is kept. A checkpoint keeps its schema.
    type Acc: Record;
    /// What it comes to.
    type Out;

    /// What is kept before the first input.
    fn start() -> Self::Acc;
    /// Takes an input in.
    fn add(acc: &mut Self::Acc, input: Self::In);
    /// What the inputs so far come to. There has been at least one.
    fn result(acc: &Self::Acc) -> Self::Out;
}

/// One running result per key: what an [`Aggregator`] makes of all that was added.
///
/// Errors are as for [`Value`].
pub struct Aggregate<A: Aggregator> {
    acc: Value<A::Acc>,
}

impl<A: Aggregator> fmt::Debug for Aggregate<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aggregate").field("acc", &self.acc).finish()
    }
}

impl<A: Aggregator> Aggregate<A> {
    /// Takes an input in.
    ///
    /// # Errors
    /// What was kept cannot be read.
    #[inline]
    pub fn add(&mut self, input: A::In) -> Result<(), StateError> {
        A::add(self.acc.get_or_insert_with(A::start)?, input);
        Ok(())
    }

    /// The result; none before the first input.
    ///
    /// # Errors
    /// What was kept cannot be read.
    #[inline]
    pub fn result(&mut self) -> Result<Option<A::Out>, StateError> {
        Ok(self.acc.get()?.map(A::result))
    }

    /// Forgets all inputs.
    #[inline]
    pub fn clear(&mut self) {
        self.acc.clear();
    }
}

impl<A: Aggregator> Kind for Aggregate<A> {
    fn tables<K: Record>(name: &str, is_timed: bool, tables: &mut Tables) {
        Value::<A::Acc>::tables::<K>(name, is_timed, tables);
    }

    fn open<K: Record>(opening: &Opening<'_>, name: &str, ttl_ns: Option<u64>) -> Result<Self, Error> {
        Ok(Self { acc: Value::open::<K>(opening, name, ttl_ns)? })
    }
}

impl<A: Aggregator> Work for Aggregate<A> {
    fn name(&self) -> &str {
        self.acc.name()
    }

    #[inline]
    fn enter(&mut self, hash: u64, key: &[u8]) {
        self.acc.enter(hash, key);
    }

    #[inline]
    fn leave(&mut self) -> Result<(), StateError> {
        self.acc.leave()
    }

    fn prefetch(&self, hashes: &[u64]) {
        self.acc.prefetch(hashes);
    }

    fn tick(&mut self, clock_ns: u64) {
        self.acc.tick(clock_ns);
    }

    fn tidy(&mut self, records: u64) -> Result<(), StateError> {
        self.acc.tidy(records)
    }

    fn keys(&self, from: u64, keys: &mut Keys) -> Result<Option<u64>, StateError> {
        self.acc.keys(from, keys)
    }

    fn freeze(&mut self, open: &Open, entries: &mut Vec<Entry>) {
        self.acc.freeze(open, entries);
    }

    fn settle(&mut self, durable: bool) {
        self.acc.settle(durable);
    }

    fn view(&mut self, open: &Open, asked: &mut Viewing<'_>) -> Result<bool, Failed> {
        self.acc.view(open, asked)
    }

    fn hydrate(&mut self) -> Result<bool, Failed> {
        self.acc.hydrate()
    }

    fn forget(&mut self) -> Result<(), Failed> {
        self.acc.forget()
    }
}
