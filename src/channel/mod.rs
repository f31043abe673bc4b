//! How two tasks hand each other records: a ring of slots with one producer and one consumer ([`ring()`]), a task's
//! outputs ([`Outbox`]) and inputs ([`Inbox`]), and how a worker waits ([`Idle`]). It knows nothing of tasks,
//! checkpoints or state: a barrier is to it one more [`Mark`](crate::marks::Mark) that keeps its place.
//!
//! # Rules
//!
//! 1. A ring has one producer and one consumer, fixed for life. Its memory is one allocation, left untouched by the
//!    builder, so that the producer's first write places its pages.
//! 2. Positions count slots from the start of the ring, modulo 2^64. The slot at position `p` is *published* when its
//!    sequence is `p + 1`. The producer fills a slot in place and then stores the sequence (Release); the consumer's
//!    load of it (Acquire) makes the whole slot visible.
//! 3. The head is the number of slots that the consumer has released. The consumer stores it (Release) when it has
//!    moved out or dropped everything in the slot; the producer's load of it (Acquire), kept until it no longer
//!    suffices, comes before it writes to the slot again.
//! 4. A mark is published in a slot of its own. So order needs no protocol.
//! 5. Each handle, as its last act, sets its bit in the state word (AcqRel). The second one to do so owns the memory:
//!    it drops what was published and not taken, then frees. The consumer reads the state word (Acquire) *before* the
//!    sequence, so that one who sees the producer gone also sees all that it has published.
//! 6. A producer that goes away without [`Mark::End`](crate::marks::Mark::End) has ended abnormally: the consumer
//!    takes what was published, then sees [`Polled::Closed`]. A consumer that goes away is seen by
//!    [`Producer::is_closed`].
//! 7. Either side can poison the ring; then nothing more is taken from it. A task that fails poisons its channels. What
//!    lies in the producer's open slot is dropped, never published, when the producer poisons or goes away.
//! 8. An index advances before foreign code runs (a record's `drop`, a closure that got a record). So a panic neither
//!    loses, doubles nor leaks a drop: the rest of a batch is dropped and its slot released while unwinding.

mod idle;
mod inbox;
mod outbox;
mod ring;
mod ring_consumer;
mod ring_producer;
mod ring_records;
mod slot;

#[cfg(all(test, snapring_loom))]
mod loom_tests;
#[cfg(all(test, not(snapring_loom)))]
mod tests;

pub use idle::{Idle, Nap, TaskNap, Wait, Waker, Wakers};
pub use inbox::Inbox;
pub use outbox::Outbox;
pub use ring::ring;
pub use ring_consumer::{Consumer, Polled};
pub use ring_producer::Producer;
pub use ring_records::Records;

/// The bytes of records that a slot holds if no batch length is asked for.
const SLOT_BYTES: usize = 16 * 1024;

/// How many records of type `T` a slot should hold: the batch length asked for, or 16 KiB worth of records. At least one,
/// whatever its size.
pub fn slot_records<T>(batch_len_max: Option<usize>) -> usize {
    batch_len_max.unwrap_or(SLOT_BYTES / size_of::<T>().max(1)).max(1)
}
