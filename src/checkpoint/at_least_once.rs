//! At-least-once: barriers without waiting. After a restore no record is missing, but some count twice.
//!
//! The aligned protocol of Carbone et al. (2015) without its blocking; engines offer it under this name. It must not know
//! what freezing is.
//!
//! - **23.** No input waits: freeze at the last live input's barrier. Heads log as in rule 14 and the last sentence of rule
//!   13, without holding back: a barrier that is met in the spill before the freeze goes by, and then nothing of that edge
//!   is logged; one that still lies there ends the log. Exactly-once sinks are refused when the job is built.
//!
//! Why none is missing: a head counts what it processed ahead of its freeze, and logs what is unprocessed ahead of the
//! barrier. What was processed from *behind* a barrier counts on both sides.

use super::aligned::freeze_if_agreed;
use super::decision::{Cut, InputKind};
use super::inputs::{Inputs, Phase};

/// Rule 23. Draining is as in the aligned protocol.
pub(super) fn barrier(inputs: &mut Inputs, input: usize, epoch: u64) -> Cut {
    if !inputs.admits(input, epoch) {
        return Cut::Go;
    }
    inputs.deliver(input, epoch, Phase::Passed);
    match inputs.get(input).kind {
        InputKind::Forward => freeze_if_agreed(inputs),
        InputKind::Back => Cut::Go,
    }
}
