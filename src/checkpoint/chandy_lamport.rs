//! The protocol of K. M. Chandy and L. Lamport, *Distributed Snapshots: Determining Global States of Distributed Systems*
//! (1985): freeze at the first marker, record the other channels until theirs.
//!
//! It must not know what freezing is.
//!
//! - **17.** Markers queue like records, behind the leftovers. At the first marker, or by its own initiative, a task
//!   freezes and sends markers on all its outputs; the channel on which the first marker came is empty (at a head, where
//!   the marker acts when it is drained: what of it lies in the spill is logged); every other input is logged until its
//!   marker. A marker *ends* recording.
//! - **18.** Any process may begin. Sources always do, named tasks may too; rule 32 does the rest (`task.rs`).

use super::decision::{Cut, Drained, Outputs};
use super::inputs::{Inputs, Phase};

/// Rule 17, at the front of an input.
pub(super) fn barrier(inputs: &mut Inputs, input: usize, epoch: u64) -> Cut {
    if !inputs.admits(input, epoch) {
        return Cut::Go;
    }
    inputs.deliver(input, epoch, Phase::Passed);
    inputs.freeze(epoch, Outputs::Barrier)
}

/// Rule 17, at a head.
pub(super) fn drained(inputs: &mut Inputs, input: usize, epoch: u64) -> Drained {
    if !inputs.admits(input, epoch) {
        return Drained::Absorb;
    }
    inputs.queue(input, epoch); // its place is behind all that lies in the spill
    let Cut::Freeze(epoch) = inputs.freeze(epoch, Outputs::Barrier) else { unreachable!("it has just frozen") };
    Drained::Freeze(epoch)
}
