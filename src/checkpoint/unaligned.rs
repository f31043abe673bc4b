//! The unaligned protocol: the idea of Chandy and Lamport (1985), without waiting for queues. A cut is published beside
//! each channel, and seen over whatever lies queued there.
//!
//! It must not know how a cut is published, nor what freezing is.
//!
//! - **8.** No task processes a slot behind a cut before its own freeze.
//! - **19.** A task freezes at the first cut that it sees on any input, or by the epoch word where all tasks begin at once
//!   (the clock that distributed systems lack). It publishes its own cuts at its tails; its leftovers lie behind them and
//!   are saved by itself as *output of the cut*; to its consumers they are ordinary later input, not to be logged again.
//! - **20.** For each input it logs what was unprocessed ahead of that input's position: slots already in the ring are
//!   encoded at once, without being taken; later ones as they come, until the position is known and reached.
//! - **21.** Loops need nothing special.
//! - **32**, last part. An input counts as ended, for taking epochs from the word, once (END, tail) is published. So a
//!   pending epoch completes without any slot moving.

use super::decision::{Cut, Outputs};
use super::inputs::Inputs;

/// Rule 19: the cut of this epoch is seen on an input, or in the word.
pub(super) fn published(inputs: &mut Inputs, epoch: u64) -> Cut {
    if inputs.is_stale(epoch) {
        return Cut::Go;
    }
    inputs.freeze(epoch, Outputs::Published)
}
