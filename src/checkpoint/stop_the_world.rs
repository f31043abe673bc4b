//! Stop-the-world, the baseline: all tasks pause, everything is saved, all go on.
//!
//! It must not know who else has paused: the coordinator says when all have.
//!
//! - **24.** All tasks pause between batches; states and the whole content of all channels are saved; all resume. No
//!   drain: a loop may never run dry.
//!
//! Why a paused task must not flush its outbox: a producer and its consumer freeze one after the other. What moved from
//! the outbox into the ring in between would be saved by both, or by none.

use super::decision::{Cut, Log, Outputs};
use super::inputs::{Input, Inputs};

/// The word asks for an epoch that is not stale: pause.
pub(super) fn pause(paused_in: &mut u64, epoch: u64) -> Cut {
    if epoch <= *paused_in {
        return Cut::Go;
    }
    *paused_in = epoch;
    Cut::Pause(epoch)
}

/// All tasks have paused.
pub(super) fn released(inputs: &mut Inputs, paused_in: u64, epoch: u64) -> Cut {
    if paused_in != epoch || inputs.is_past(epoch) {
        return Cut::Go;
    }
    let log = |input: &Input| if input.is_ended() { Log::Empty } else { Log::Whole };
    inputs.freeze_with(epoch, Outputs::Saved, log)
}
