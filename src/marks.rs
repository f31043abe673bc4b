//! What travels in special slots, between the records of a channel.

/// A special slot: it keeps its place among the records of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Records before it belong to `epoch`, records after it to the next one.
    Barrier(u64),
    /// No record with an event time below this one follows (nanoseconds).
    Watermark(i64),
    /// A round through a loop whose outside inputs have ended, by its number: is anything left in it?
    Lap(u64),
    /// Nothing follows.
    End,
}
