//! Aligned, until the coordinator says that it takes too long: then unaligned.
//!
//! The rules are those of the aligned protocol and of the unaligned one. It must not know the time: time-outs come in.
//!
//! - **22.** On time-out (one word from the coordinator; a cut of the epoch in any ring says the same) a task that has not
//!   frozen freezes at once, as in the unaligned protocol, before it reopens inputs. A task that has frozen, and whose
//!   barrier still waits in the outbox, removes it, publishes (epoch, tail) and amends its snapshot by the leftovers ahead
//!   of it. Each log closes at the cut or at the barrier, whichever comes first, so slots are logged as soon as they are
//!   seen. A snapshot is handed on as final only when no barrier waits in its outbox.
//!
//! A task that has not frozen need not have seen any barrier: what lies in its inputs ahead of barrier or cut is logged.

use super::decision::{Cut, Outputs};
use super::inputs::Inputs;

/// Rule 22.
pub(super) fn timed_out(inputs: &mut Inputs, epoch: u64) -> Cut {
    if inputs.is_stale(epoch) {
        return Cut::Go;
    }
    inputs.freeze(epoch, Outputs::Published)
}

/// Rule 22: whether the last freeze's barrier, if it waits, is to be taken out of the outbox.
pub(super) fn overtakes(inputs: &Inputs, timed_out: u64) -> bool {
    let frozen = inputs.frozen();
    timed_out == frozen && !inputs.is_given_up(frozen) && inputs.outputs() == Outputs::Barrier
}
