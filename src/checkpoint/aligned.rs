//! The aligned protocol: inputs wait at their barriers, and channels are empty in the cut.
//!
//! After P. Carbone, G. Fóra, S. Ewen, S. Haridi, K. Tzoumas, *Lightweight Asynchronous Snapshots for Distributed
//! Dataflows* (2015); that is K. M. Chandy and L. Lamport, *Distributed Snapshots* (1985), with channels that are made
//! empty by waiting instead of being recorded, except those that close a loop. It must not know what freezing is.
//!
//! The rules, numbered as everywhere in the project (those that all protocols share: `inputs.rs`):
//!
//! - **10.** At its barrier an input is not polled any more. Ended inputs count as having it.
//! - **11.** When every live input has it: freeze, forward the barrier, poll again. The barrier goes behind the
//!   leftovers; these belong before it and are not saved. Channels are empty in the cut.
//! - **12.** A head aligns over its forward inputs only.
//! - **13.** A barrier that comes over a back edge *before* the head has frozen holds that edge back: what follows it stays
//!   in the spill unprocessed until the freeze. The log of that edge is then what lay unprocessed ahead of the barrier.
//!   (It happens where the tail of a back edge does not lie downstream of its head by forward edges alone: heads that feed
//!   each other, as is common at parallelism above 1.)
//! - **14.** Otherwise the log of a back edge begins, at the freeze, with its unprocessed content, and grows by each
//!   whole batch drained from it until the barrier is *drained*.
//! - **15.** A barrier closes its own edge's log and blocks nothing. Heads absorb barriers that return.
//! - **16.** State plus logs is the head's snapshot, complete when all its back edges are closed.

use super::decision::{Cut, Drained, InputKind, Outputs};
use super::inputs::{Inputs, Phase};

/// Rules 10 to 12. Only a forward input has one at its front: those of back edges are held, or absorbed.
pub(super) fn barrier(inputs: &mut Inputs, input: usize, epoch: u64) -> Cut {
    if !inputs.admits(input, epoch) {
        return Cut::Go;
    }
    let kind = inputs.get(input).kind;
    assert!(kind == InputKind::Forward, "barrier {epoch} taken from the spill of input {input}, where it is held");
    inputs.deliver(input, epoch, Phase::Waiting);
    freeze_if_agreed(inputs)
}

/// Rules 13 to 15.
pub(super) fn drained(inputs: &mut Inputs, input: usize, epoch: u64) -> Drained {
    if !inputs.admits(input, epoch) {
        return Drained::Absorb;
    }
    inputs.queue(input, epoch);
    Drained::Queue
}

/// Rule 11, with the second half of rule 10.
pub(super) fn freeze_if_agreed(inputs: &mut Inputs) -> Cut {
    match inputs.agreed() {
        Some(epoch) => inputs.freeze(epoch, Outputs::Barrier),
        None => Cut::Go,
    }
}
