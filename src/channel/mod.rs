//! How two tasks hand each other records: a ring of slots with one producer and one consumer ([`ring()`]), a task's
//! outputs ([`Outbox`]), what waits between a ring and a task ([`Spill`]), and how a worker waits
//! ([`Idle`]). It knows nothing of tasks, checkpoints or state: a barrier is to it one more
//! [`Mark`](crate::marks::Mark) that keeps its place.
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
//! 9. A cut is one word a ring, beside the slots: 24 bits of its epoch and 40 of the position of the first slot behind
//!    it. The producer publishes it at its tail, without a slot. A cut is replaced by one of a higher epoch or the end's
//!    only, and the end's by none.
//! 10. The producer stores the cut (Release) before it publishes a slot behind it. The consumer looks whether a slot is
//!     there (Acquire), *then* at the cut (Acquire), and only then takes that slot. So it takes none behind a cut that it
//!     has not seen. On an idle ring it looks between batches.
//! 11. Whoever sees a cut sees all slots ahead of it.
//! 12. What epoch and position are in full, the consumer finds out when it first sees the word: the position is the last
//!     one that the tail can have reached, the epoch the one nearest to an epoch that the caller names. A word that stays
//!     keeps its meaning.
//! 13. A slot that is published and not taken can be looked at in place, while the consumer's handle is borrowed for it:
//!     the producer touches it only when the head has passed it, and the head is moved by the consumer.

mod cut;
mod gauge;
mod idle;
mod outbox;
mod ring;
mod ring_consumer;
mod ring_producer;
mod ring_records;
mod slot;
mod spill;

#[cfg(all(test, snapring_loom))]
mod loom_tests;
#[cfg(all(test, not(snapring_loom)))]
mod tests;

pub use cut::SeenCut;
pub use gauge::{Flow, Gauge};
pub use idle::{Idle, Nap, TaskNap, Wait, Waker, Wakers};
pub use outbox::{Outbox, Save};
pub use ring::ring;
pub use ring_consumer::{Consumer, Peeked, Polled};
pub use ring_producer::Producer;
pub use ring_records::Records;
pub use spill::{Front, Spill, SpillLimits};

/// The bytes of records that a slot holds if no batch length is asked for.
const SLOT_BYTES: usize = 16 * 1024;

/// How many records of type `T` a slot should hold: the batch length asked for, or 16 KiB worth of records. At least one,
/// whatever its size.
pub fn slot_records<T>(batch_len_max: Option<usize>) -> usize {
    batch_len_max.unwrap_or(SLOT_BYTES / size_of::<T>().max(1)).max(1)
}
