//! The aligned protocol, for one task without back edges: when do its inputs agree on a cut?
//!
//! After P. Carbone, G. Fóra, S. Ewen, S. Haridi, K. Tzoumas, *Lightweight Asynchronous Snapshots for Distributed
//! Dataflows* (2015), the acyclic part; that is K. M. Chandy and L. Lamport, *Distributed Snapshots* (1985), with
//! channels that are made empty by waiting instead of being recorded. It must not know where barriers come from, what
//! freezing is, or what time it is.
//!
//! The rules, numbered as everywhere in the project:
//!
//! - **2.** The task acts on the highest epoch that it sees and abandons lower ones. It absorbs barriers of epochs below
//!   the one that it aligns, and of epochs not above the last one in which it froze or which was given up. When an epoch
//!   is given up, the inputs that wait in it are polled again.
//! - **3.** A cut falls between two batches; the shell asks only there.
//! - **9.** A task finishes only when its outbox is empty and no epoch in which it has frozen is still under way.
//! - **10.** At its barrier an input is not polled any more. Ended inputs count as having it.
//! - **11.** When every live input has it: freeze, forward the barrier, poll again. The barrier goes behind the
//!   leftovers; these belong before it and are not saved. Channels are empty in the cut.
//! - **32.** Where no input is live (a source; a task all of whose inputs have ended), nobody brings a barrier: such a
//!   task takes epochs from the word.
//!
//! Why an absorbed barrier of a *lower* epoch must not count for the one that is being aligned: it lies ahead of its
//! input's real barrier, so records between the two would be counted behind the cut though they were sent ahead of it.

/// What an event means for the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Cut {
    /// Nothing: go on.
    Go,
    /// All that was taken in so far lies ahead of this epoch's cut, and nothing that was not. The shell must, before it
    /// takes in anything else:
    /// 1. freeze the state (at a source: with its offsets; at a sink: prepare the open part);
    /// 2. put the barrier of this epoch behind everything in every output, leftovers included;
    /// 3. report the frozen snapshot to the coordinator.
    Freeze(u64),
}

/// What is known of one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Input {
    /// It is polled.
    Live,
    /// It has delivered the barrier of the epoch that is being aligned, and waits.
    AtBarrier,
    /// Nothing follows on it.
    Ended,
}

/// One task's side of the aligned protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Aligned {
    inputs: Vec<Input>,
    /// The epoch whose barriers are being collected; 0 when none is.
    aligning: u64,
    /// The last epoch in which the task froze.
    frozen: u64,
    /// The highest epoch known to be given up.
    given_up: u64,
}

impl Aligned {
    /// A task with this many inputs (a source has none), in a job that goes on from `restored_epoch` (0: afresh).
    #[must_use]
    pub fn new(inputs: usize, restored_epoch: u64) -> Self {
        Self { inputs: vec![Input::Live; inputs], aligning: 0, frozen: restored_epoch, given_up: 0 }
    }

    /// Whether records of this input may be processed now (rule 10). Its slots stay where they are otherwise.
    #[must_use]
    pub fn polls(&self, input: usize) -> bool {
        self.inputs[input] == Input::Live
    }

    /// Whether an input waits at its barrier for others.
    #[must_use]
    pub fn is_aligning(&self) -> bool {
        self.inputs.contains(&Input::AtBarrier)
    }

    /// A barrier came to the front of an input that is polled.
    ///
    /// # Panics
    /// If the input is not polled: the shell has processed what it should have left alone.
    pub fn barrier(&mut self, input: usize, epoch: u64) -> Cut {
        assert!(self.polls(input), "barrier {epoch} taken from input {input}, which is not polled");
        if self.is_past(epoch) || epoch < self.aligning {
            return Cut::Go; // rule 2: absorbed
        }
        if epoch > self.aligning {
            self.reopen(); // rule 2: a lower epoch is abandoned
            self.aligning = epoch;
        }
        self.inputs[input] = Input::AtBarrier;
        self.freeze_if_agreed()
    }

    /// An input came to its end.
    ///
    /// # Panics
    /// If the input is not polled, as with [`Aligned::barrier`].
    pub fn ended(&mut self, input: usize) -> Cut {
        assert!(self.polls(input), "end taken from input {input}, which is not polled");
        self.inputs[input] = Input::Ended;
        self.freeze_if_agreed()
    }

    /// The request word says that this epoch has begun. It concerns only a task without live inputs (rule 32); asking
    /// again with the same epoch changes nothing.
    pub fn requested(&mut self, epoch: u64) -> Cut {
        if !self.all_ended() || self.is_past(epoch) {
            return Cut::Go;
        }
        self.aligning = epoch;
        self.freeze_if_agreed()
    }

    /// The word `aborted_to` says that all epochs up to this one which are not durable have been given up. Inputs that
    /// wait in one of them are polled again. A freeze of such an epoch is dropped by the shell: what it wrote out counts
    /// as changed again, prepared parts of a sink are kept.
    pub fn aborted_to(&mut self, epoch: u64) {
        self.given_up = self.given_up.max(epoch);
        if self.aligning <= epoch {
            self.reopen();
        }
    }

    /// The last epoch in which the task froze, or the one that it was restored from.
    #[must_use]
    pub fn frozen(&self) -> u64 {
        self.frozen
    }

    /// Whether no input is live: always so at a source.
    #[must_use]
    pub fn all_ended(&self) -> bool {
        self.inputs.iter().all(|input| *input == Input::Ended)
    }

    /// Rule 9, as far as epochs go: no epoch in which the task froze is still under way. The shell adds: its outbox is
    /// empty, and it has nothing more to emit. A final snapshot that replaced one already frozen would count records that
    /// lie behind the cut.
    #[must_use]
    pub fn may_finish(&self, closed_to: u64) -> bool {
        self.all_ended() && self.frozen <= closed_to
    }

    /// Not above the last epoch in which the task froze or which was given up (rule 2).
    fn is_past(&self, epoch: u64) -> bool {
        epoch <= self.frozen.max(self.given_up)
    }

    /// Rule 11, with the second half of rule 10.
    fn freeze_if_agreed(&mut self) -> Cut {
        if self.aligning == 0 || self.inputs.contains(&Input::Live) {
            return Cut::Go;
        }
        self.frozen = self.aligning;
        self.reopen();
        Cut::Freeze(self.frozen)
    }

    /// No epoch is aligned any more; what waited is polled again.
    fn reopen(&mut self) {
        self.aligning = 0;
        for input in &mut self.inputs {
            if *input == Input::AtBarrier {
                *input = Input::Live;
            }
        }
    }
}
