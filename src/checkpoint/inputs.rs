//! What every protocol keeps of one task: its inputs, and the epochs that it knows of. It must not know which protocol
//! asks, nor when a freeze is due: that is the protocols' own.
//!
//! The rules that they share:
//!
//! - **2.** A task acts on the highest epoch that it sees and abandons lower ones. It absorbs barriers and cuts of epochs
//!   below the one that it aligns, and of epochs not above the last one in which it froze or which was given up; an equal
//!   one still closes its input's log. When an epoch is given up, the inputs that wait in it are polled again, and logs
//!   are dropped.
//! - **9.** The end of an input closes its log, in every later epoch too.
//! - **10.** Ended inputs count as having the barrier.
//! - **14.** What an input's log begins with, and what closes it (see [`Log`]).
//! - **32.** After the outside inputs have ended, nobody brings a barrier: a task whose forward inputs have all ended (a
//!   source has none at all) takes epochs from the word.
//!
//! Why an absorbed barrier of a *lower* epoch must not count for the one that is being aligned: it lies ahead of its
//! input's real barrier, so records between the two would be counted behind the cut though they were sent ahead of it.

use super::decision::{Cut, InputKind, Log, Outputs};

/// How far an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// Nothing of the epoch that is being aligned has come.
    Live,
    /// It has delivered the barrier of that epoch, and goes on.
    Passed,
    /// It has delivered the barrier of that epoch, and waits.
    Waiting,
    /// Its End was at the front: nothing follows.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Input {
    pub(super) kind: InputKind,
    pub(super) phase: Phase,
    /// Whether it may yet bring a barrier, or a cut, by itself. Back edges only return what their head began.
    brings: bool,
    /// The highest epoch of the barriers that lie in its spill; 0 if none does.
    queued: u64,
    /// Its End has been taken out of the ring.
    is_dry: bool,
    /// How its log began at the last freeze.
    log: Log,
    is_logging: bool,
}

/// One task's inputs and epochs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Inputs {
    inputs: Vec<Input>,
    /// Number of inputs that may yet bring a barrier.
    bringing: usize,
    /// Number of open logs.
    logging: usize,
    /// The epoch whose barriers are being collected; 0 when none is.
    aligning: u64,
    /// The last epoch in which the task froze.
    frozen: u64,
    /// The highest epoch known to be given up.
    given_up: u64,
    /// What the last freeze does to the outputs.
    outputs: Outputs,
}

impl Inputs {
    pub(super) fn new(kinds: &[InputKind], restored_epoch: u64) -> Self {
        let input = |&kind: &InputKind| Input {
            kind,
            phase: Phase::Live,
            brings: kind == InputKind::Forward,
            queued: 0,
            is_dry: false,
            log: Log::Empty,
            is_logging: false,
        };
        Self {
            inputs: kinds.iter().map(input).collect(),
            bringing: kinds.iter().filter(|kind| **kind == InputKind::Forward).count(),
            logging: 0,
            aligning: 0,
            frozen: restored_epoch,
            given_up: 0,
            outputs: Outputs::Barrier,
        }
    }

    pub(super) fn get(&self, input: usize) -> &Input {
        &self.inputs[input]
    }

    pub(super) fn polls(&self, input: usize) -> bool {
        matches!(self.inputs[input].phase, Phase::Live | Phase::Passed)
    }

    pub(super) fn is_logging(&self, input: usize) -> bool {
        self.inputs[input].is_logging
    }

    pub(super) fn has_open_logs(&self) -> bool {
        self.logging > 0
    }

    pub(super) fn frozen(&self) -> u64 {
        self.frozen
    }

    pub(super) fn outputs(&self) -> Outputs {
        self.outputs
    }

    pub(super) fn log(&self, input: usize) -> Log {
        self.inputs[input].log
    }

    pub(super) fn all_ended(&self) -> bool {
        self.inputs.iter().all(|input| input.phase == Phase::Ended)
    }

    pub(super) fn any_waits(&self) -> bool {
        self.inputs.iter().any(|input| input.phase == Phase::Waiting)
    }

    /// Not above the last epoch in which the task froze or which was given up.
    pub(super) fn is_past(&self, epoch: u64) -> bool {
        epoch <= self.frozen.max(self.given_up)
    }

    /// Nothing begins for this epoch any more (rule 2).
    pub(super) fn is_stale(&self, epoch: u64) -> bool {
        self.is_past(epoch) || epoch < self.aligning
    }

    pub(super) fn is_given_up(&self, epoch: u64) -> bool {
        epoch <= self.given_up
    }

    /// Whether a barrier that has come out of this input means something; it closes the log if it is that of the freeze.
    pub(super) fn admits(&mut self, input: usize, epoch: u64) -> bool {
        if epoch == self.frozen {
            self.close(input);
        }
        !self.is_stale(epoch)
    }

    /// This input has delivered the barrier of an epoch that is not stale.
    pub(super) fn deliver(&mut self, input: usize, epoch: u64, phase: Phase) {
        if epoch > self.aligning {
            self.reopen(); // rule 2: a lower epoch is abandoned
            self.aligning = epoch;
        }
        self.inputs[input].phase = phase;
    }

    /// The barrier of an epoch that is not stale goes into the spill of this input.
    pub(super) fn queue(&mut self, input: usize, epoch: u64) {
        let input = &mut self.inputs[input];
        input.queued = input.queued.max(epoch);
    }

    /// The End of this input is at the front.
    pub(super) fn end(&mut self, input: usize) {
        self.inputs[input].phase = Phase::Ended;
        self.dry(input);
        self.brings_none(input);
    }

    /// The End of this input has been taken out of its ring.
    pub(super) fn dry(&mut self, input: usize) {
        self.inputs[input].is_dry = true;
        self.close(input);
    }

    /// Nobody will bring a barrier on this input any more.
    pub(super) fn brings_none(&mut self, input: usize) {
        self.bringing -= usize::from(std::mem::take(&mut self.inputs[input].brings));
    }

    /// Rule 32: whether no input will bring a barrier, or a cut.
    pub(super) fn none_brings(&self) -> bool {
        self.bringing == 0
    }

    /// The epoch of which every forward input has delivered the barrier, or has ended.
    pub(super) fn agreed(&self) -> Option<u64> {
        let misses = |input: &Input| input.kind == InputKind::Forward && input.phase == Phase::Live;
        (self.aligning > 0 && !self.inputs.iter().any(misses)).then_some(self.aligning)
    }

    /// The task freezes: each input's log begins, nothing is aligned any more.
    pub(super) fn freeze(&mut self, epoch: u64, outputs: Outputs) -> Cut {
        // A barrier of a lower epoch that was aligned until now says nothing of this one.
        let aligned = self.aligning == epoch;
        self.freeze_with(epoch, outputs, |input| input.log_at(epoch, aligned))
    }

    pub(super) fn freeze_with(&mut self, epoch: u64, outputs: Outputs, log: impl Fn(&Input) -> Log) -> Cut {
        assert!(!self.is_past(epoch), "froze in {epoch} after {}, given up to {}", self.frozen, self.given_up);
        for input in &mut self.inputs {
            input.log = log(input);
            input.is_logging = input.log == Log::Open;
            if input.queued <= epoch {
                input.queued = 0;
            }
        }
        self.logging = self.inputs.iter().filter(|input| input.is_logging).count();
        self.frozen = epoch;
        self.outputs = outputs;
        self.reopen();
        Cut::Freeze(epoch)
    }

    /// Rule 2. Asked again with the same epoch, or a lower one, nothing changes.
    pub(super) fn give_up(&mut self, epoch: u64) {
        if epoch <= self.given_up {
            return;
        }
        self.given_up = epoch;
        if self.aligning <= epoch {
            self.reopen();
        }
        if self.frozen <= epoch {
            (0..self.inputs.len()).for_each(|input| self.close(input));
        }
    }

    pub(super) fn close(&mut self, input: usize) {
        self.logging -= usize::from(std::mem::take(&mut self.inputs[input].is_logging));
    }

    /// No epoch is aligned any more; what waited is polled again.
    fn reopen(&mut self) {
        self.aligning = 0;
        for input in &mut self.inputs {
            if input.phase != Phase::Ended {
                input.phase = Phase::Live;
            }
        }
    }
}

impl Input {
    pub(super) fn has_barrier(&self) -> bool {
        matches!(self.phase, Phase::Passed | Phase::Waiting)
    }

    pub(super) fn is_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// How the log begins: what of this input is unprocessed at the freeze, and lies ahead of its barrier.
    fn log_at(&self, epoch: u64, aligned: bool) -> Log {
        if self.is_ended() || aligned && self.has_barrier() {
            Log::Empty
        } else if self.is_dry || self.queued >= epoch {
            Log::Backlog
        } else {
            Log::Open
        }
    }
}
