//! What the machines of a task say to its shell. It must not know when they say it.

/// Where an input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// Its ring is what the task takes from, behind the rest of a restore.
    Forward,
    /// A declared feedback edge. Its shell drains the ring into a spill, and takes from there.
    Back,
}

/// What an event means for the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Cut {
    /// Nothing: go on.
    Go,
    /// Stop-the-world only: publish the open batches, then leave everything as it is (nothing is taken in, emitted or
    /// flushed; a back edge may be drained) until [`TaskCut::is_paused`](super::TaskCut::is_paused) is false, and tell the
    /// coordinator that the task has paused in this epoch.
    Pause(u64),
    /// All that was processed so far lies ahead of this epoch's cut, and nothing that was not. The shell must, before it
    /// takes in anything else:
    /// 1. publish every open batch, or put it behind the leftovers;
    /// 2. freeze the state (at a source: with its offsets; at a sink: prepare the open part);
    /// 3. drop what logs there still are of an earlier epoch, and begin that of each input as
    ///    [`TaskCut::log`](super::TaskCut::log) says;
    /// 4. remove barriers up to this epoch from the spills;
    /// 5. do to each output what [`TaskCut::outputs`](super::TaskCut::outputs) says;
    /// 6. once [`TaskCut::is_complete`](super::TaskCut::is_complete), and no barrier of this epoch waits in the outbox that
    ///    might still be taken out of it (rule 22), report the frozen state with its logs to the coordinator.
    Freeze(u64),
}

/// What a freeze does to the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outputs {
    /// The barrier goes behind everything, leftovers included.
    Barrier,
    /// The cut is published at the tail; the leftovers lie behind it and are saved.
    Published,
    /// Nothing is sent; the leftovers are saved.
    Saved,
}

/// How the log of an input begins at a freeze. Before the ring come the undrained rest of a restore, and the spill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Log {
    /// Nothing of it belongs to the cut.
    Empty,
    /// Rest and spill, up to the barrier of the epoch if it lies in the spill; nothing is added later.
    Backlog,
    /// Rest and spill; then each slot of the ring, until the log is closed: when the slot is taken out of the ring (also
    /// into the spill), or as soon as it is seen where [`TaskCut::looks_ahead`](super::TaskCut::looks_ahead).
    Open,
    /// Rest, spill and all of the ring; nothing is added later.
    Whole,
}

/// What becomes of a barrier that was taken out of the ring of a back edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Drained {
    /// It has done its work.
    Absorb,
    /// It goes into the spill, in its place.
    Queue,
    /// It has done its work: see [`Cut::Freeze`]; before anything else is drained.
    Freeze(u64),
}
