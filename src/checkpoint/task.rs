//! One task's side of every protocol: what it asks the machine, what it tells it, and which protocol answers. What the
//! answers are is in the protocols' own files. It must not know where barriers come from, what freezing is, or what time
//! it is.
//!
//! - **3.** A cut falls between two batches; the shell asks only there.
//! - **9.** A task finishes (a head: sends End) only when its outbox is empty and no epoch in which it has frozen is still
//!   under way.
//! - **28.** While an epoch is pending, an input that has not delivered its barrier is taken regardless.

use super::decision::{Cut, Drained, InputKind, Log, Outputs};
use super::inputs::Inputs;
use super::protocol::Protocol;
use super::{aligned, aligned_then_unaligned, at_least_once, chandy_lamport, stop_the_world, unaligned};

/// When does this task freeze, and what of its inputs belongs to the cut?
///
/// The looks are cheap and may be asked for each batch. Events may be told late and again: what is over is absorbed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaskCut {
    protocol: Protocol,
    is_initiator: bool,
    inputs: Inputs,
    /// The highest epoch known to have timed out (aligned, then unaligned).
    timed_out: u64,
    /// The epoch in which the task pauses (stop-the-world); 0 when it does not.
    paused_in: u64,
}

impl TaskCut {
    /// A task with these inputs (a source has none), in a job that goes on from `restored_epoch` (0: afresh). An initiator
    /// takes each epoch from the word, where the protocol leaves that free: Chandy-Lamport, unaligned. Sources always do.
    #[must_use]
    pub fn new(protocol: Protocol, inputs: &[InputKind], initiator: bool, restored_epoch: u64) -> Self {
        let inputs = Inputs::new(inputs, restored_epoch);
        Self { protocol, is_initiator: initiator, inputs, timed_out: 0, paused_in: 0 }
    }

    /// Whether what is at the front of this input may be processed now, marks included; a barrier at the front of a spill
    /// only if it is not [held](Self::holds). Otherwise all stays where it is: the input is at its barrier, or has ended, or
    /// the task is paused.
    #[inline]
    #[must_use]
    pub fn polls(&self, input: usize) -> bool {
        self.paused_in == 0 && self.inputs.polls(input)
    }

    /// Whether a barrier of this epoch at the front of a spill stays there until the freeze, and holds back what follows
    /// (rule 13).
    #[inline]
    #[must_use]
    pub fn holds(&self, epoch: u64) -> bool {
        matches!(self.protocol, Protocol::Aligned | Protocol::AlignedThenUnaligned) && !self.inputs.is_stale(epoch)
    }

    /// Whether the log of this input is open.
    #[inline]
    #[must_use]
    pub fn is_logging(&self, input: usize) -> bool {
        self.inputs.is_logging(input)
    }

    /// Whether cuts are published beside channels, so that the shell looks for them before it takes a slot.
    #[inline]
    #[must_use]
    pub fn watches_cuts(&self) -> bool {
        matches!(self.protocol, Protocol::Unaligned | Protocol::AlignedThenUnaligned)
    }

    /// Whether open logs take slots as soon as they are seen in the ring, not when they are taken out of it: the log may
    /// have to close at a position, which slots do not show.
    #[inline]
    #[must_use]
    pub fn looks_ahead(&self) -> bool {
        self.watches_cuts()
    }

    /// The last epoch in which the task froze, or the one that it was restored from.
    #[must_use]
    pub fn frozen(&self) -> u64 {
        self.inputs.frozen()
    }

    /// Whether this input was at its End.
    #[must_use]
    pub fn has_ended(&self, input: usize) -> bool {
        self.inputs.get(input).is_ended()
    }

    /// Whether every input was at its End: always so at a source.
    #[must_use]
    pub fn all_ended(&self) -> bool {
        self.inputs.all_ended()
    }

    /// Whether an input waits at its barrier for others.
    #[must_use]
    pub fn is_aligning(&self) -> bool {
        self.inputs.any_waits()
    }

    /// Whether the task pauses: nothing is taken in, emitted or flushed.
    #[inline]
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused_in > 0
    }

    /// Rule 28: the epoch `requested` is pending here, and needs what this input has yet to deliver.
    #[must_use]
    pub fn needs_barrier(&self, input: usize, requested: u64) -> bool {
        match self.protocol {
            Protocol::Unaligned | Protocol::StopTheWorld => false, // no slot needs to move
            _ if self.inputs.get(input).is_ended() => false,
            _ => self.is_logging(input) || !self.inputs.is_past(requested) && !self.inputs.get(input).has_barrier(),
        }
    }

    /// Rule 9, as far as epochs go: no epoch in which the task froze is still under way. The shell adds: its outbox is
    /// empty, and it has nothing more to emit. A final snapshot that replaced one already frozen would count records that
    /// lie behind the cut.
    #[must_use]
    pub fn may_finish(&self, closed_to: u64) -> bool {
        !self.is_paused() && self.frozen() <= closed_to
    }

    /// The word `request` says that this epoch has begun. It concerns tasks that begin by themselves, and those to which
    /// no input will bring it (rule 32); stop-the-world pauses. Asking again with the same epoch changes nothing. Ask last:
    /// what the other words and the cuts beside inputs say may matter.
    pub fn requested(&mut self, epoch: u64) -> Cut {
        if self.inputs.is_stale(epoch) {
            return Cut::Go;
        }
        let (none_brings, is_initiator) = (self.inputs.none_brings(), self.is_initiator);
        match self.protocol {
            Protocol::StopTheWorld => stop_the_world::pause(&mut self.paused_in, epoch),
            Protocol::Unaligned if is_initiator || none_brings => self.inputs.freeze(epoch, Outputs::Published),
            Protocol::ChandyLamport if is_initiator || none_brings => self.inputs.freeze(epoch, Outputs::Barrier),
            _ if none_brings => self.inputs.freeze(epoch, Outputs::Barrier),
            _ => Cut::Go,
        }
    }

    /// The word `aborted_to` says that all epochs up to this one which are not durable have been given up. Inputs that
    /// wait in one of them are polled again. A freeze of such an epoch is dropped by the shell, its logs too: what it wrote
    /// out counts as changed again, prepared parts of a sink are kept.
    pub fn aborted_to(&mut self, epoch: u64) {
        self.inputs.give_up(epoch);
        self.resume(epoch);
    }

    /// The word `timed_out` says that the tasks take too long over this epoch (rule 22). Ask
    /// [`overtakes`](Self::overtakes) behind it.
    pub fn timed_out(&mut self, epoch: u64) -> Cut {
        if self.protocol != Protocol::AlignedThenUnaligned || epoch <= self.timed_out {
            return Cut::Go;
        }
        self.timed_out = epoch;
        aligned_then_unaligned::timed_out(&mut self.inputs, epoch)
    }

    /// The word `released` says that all tasks have paused in this epoch (stop-the-world).
    pub fn released(&mut self, epoch: u64) -> Cut {
        stop_the_world::released(&mut self.inputs, self.paused_in, epoch)
    }

    /// The word `closed_to` says that all epochs up to this one are durable or given up: who paused goes on.
    pub fn closed_to(&mut self, epoch: u64) {
        self.resume(epoch);
    }

    /// The cut of this epoch is seen beside an input. Its position is the shell's to keep: see [`reached`](Self::reached).
    ///
    /// # Panics
    /// If this protocol publishes no cuts.
    pub fn published(&mut self, input: usize, epoch: u64) -> Cut {
        match self.protocol {
            Protocol::Unaligned => unaligned::published(&mut self.inputs, epoch),
            Protocol::AlignedThenUnaligned => self.timed_out(epoch),
            other => panic!("a cut of epoch {epoch} beside input {input} under {other}"),
        }
    }

    /// (END, tail) is seen beside an input (rule 32, last part). An open log of it closes there: see
    /// [`reached`](Self::reached).
    pub fn published_end(&mut self, input: usize) {
        // Otherwise its barrier may lie ahead.
        if self.protocol == Protocol::Unaligned {
            self.inputs.brings_none(input);
        }
    }

    /// A barrier was taken out of the ring of a back edge.
    ///
    /// # Panics
    /// If this protocol has no barriers.
    pub fn drained(&mut self, input: usize, epoch: u64) -> Drained {
        match self.protocol {
            Protocol::Aligned | Protocol::AlignedThenUnaligned | Protocol::AtLeastOnce => {
                aligned::drained(&mut self.inputs, input, epoch)
            }
            Protocol::ChandyLamport => chandy_lamport::drained(&mut self.inputs, input, epoch),
            Protocol::Unaligned | Protocol::StopTheWorld => self.no_barriers(input, epoch),
        }
    }

    /// The End was taken out of the ring of a back edge and put into its spill. It closes its input's log.
    pub fn end_drained(&mut self, input: usize) {
        self.inputs.dry(input);
    }

    /// A barrier came to the front of an input that is polled, and is not held.
    ///
    /// # Panics
    /// If the input is not polled, or the barrier is held: the shell has processed what it should have left alone. If this
    /// protocol has no barriers.
    pub fn barrier(&mut self, input: usize, epoch: u64) -> Cut {
        assert!(self.polls(input), "barrier {epoch} taken from input {input}, which is not polled");
        match self.protocol {
            Protocol::Aligned | Protocol::AlignedThenUnaligned => aligned::barrier(&mut self.inputs, input, epoch),
            Protocol::AtLeastOnce => at_least_once::barrier(&mut self.inputs, input, epoch),
            Protocol::ChandyLamport => chandy_lamport::barrier(&mut self.inputs, input, epoch),
            Protocol::Unaligned | Protocol::StopTheWorld => self.no_barriers(input, epoch),
        }
    }

    /// The End came to the front of an input that is polled.
    ///
    /// # Panics
    /// If the input is not polled, as with [`TaskCut::barrier`].
    pub fn ended(&mut self, input: usize) -> Cut {
        assert!(self.polls(input), "end taken from input {input}, which is not polled");
        self.inputs.end(input);
        match self.protocol {
            Protocol::Aligned | Protocol::AlignedThenUnaligned | Protocol::AtLeastOnce => {
                aligned::freeze_if_agreed(&mut self.inputs)
            }
            Protocol::ChandyLamport | Protocol::Unaligned | Protocol::StopTheWorld => Cut::Go,
        }
    }

    /// The open log of an input holds all that lies ahead of the cut of [`frozen`](Self::frozen): it has come to the
    /// position of that cut or of (END, tail), or to a slot in the ring that is that barrier or End.
    ///
    /// # Panics
    /// If the log is not open.
    pub fn reached(&mut self, input: usize) {
        assert!(self.is_logging(input), "the log of input {input} reached its cut, but is closed");
        self.inputs.close(input);
    }

    /// After a freeze: what becomes of the outputs.
    #[must_use]
    pub fn outputs(&self) -> Outputs {
        self.inputs.outputs()
    }

    /// After a freeze: how the log of this input begins.
    #[must_use]
    pub fn log(&self, input: usize) -> Log {
        self.inputs.log(input)
    }

    /// Whether no log is open.
    #[inline]
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.inputs.has_open_logs()
    }

    /// Rule 22: whether barriers of [`frozen`](Self::frozen) that wait in the outbox give way to a published cut there.
    /// What lies ahead of them then joins the snapshot.
    #[must_use]
    pub fn overtakes(&self) -> bool {
        aligned_then_unaligned::overtakes(&self.inputs, self.timed_out)
    }

    fn resume(&mut self, closed_to: u64) {
        if self.paused_in <= closed_to {
            self.paused_in = 0;
        }
    }

    fn no_barriers(&self, input: usize, epoch: u64) -> ! {
        panic!("barrier {epoch} on input {input} under {}", self.protocol)
    }
}
