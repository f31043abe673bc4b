//! A snapshot that is sound but does not fit what is to go on from it.

/// Why a snapshot does not fit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// It was made by another job.
    #[error("the state folder belongs to job `{found}`, not to `{expected}`: name another folder")]
    OtherJob {
        /// The job that is to start.
        expected: String,
        /// The job that made the snapshot.
        found: String,
    },
    /// Operators with state in the snapshot and in the dataflow differ.
    #[error(
        "the operators with state, exactly-once sinks among them, have changed since epoch {epoch}: {}; give each its old name back, or start with a new state folder",
        sides(snapshot_only, dataflow_only)
    )]
    Operators {
        /// The epoch of the snapshot.
        epoch: u64,
        /// Names that only the snapshot has.
        snapshot_only: String,
        /// Names that only the dataflow has.
        dataflow_only: String,
    },
    /// A state has another type, and what is kept of it cannot become one of that.
    #[error(
        "operator `{operator}`: its state `{state}` is {now} now, but was {then} in epoch {epoch}, and cannot be migrated: {reason}; give the type back what it had, or start with a new state folder"
    )]
    Schema {
        /// The operator.
        operator: String,
        /// Which state.
        state: String,
        /// The epoch of the snapshot.
        epoch: u64,
        /// The schema in the dataflow.
        now: Box<str>,
        /// The schema in the snapshot.
        then: Box<str>,
        /// What keeps it from being migrated.
        reason: Box<str>,
    },
    /// A name was to stand for another that the snapshot has.
    #[error("`{old}` cannot go on as `{new}`: {reason}")]
    Renamed {
        /// The name in the snapshot.
        old: String,
        /// The name in the dataflow.
        new: String,
        /// What is in the way.
        reason: String,
    },
    /// An operator has lost a state.
    #[error(
        "operator `{operator}` has no state `{state}` now, but had one in epoch {epoch} (now it has {drawn}): give the state its old name back, or start with a new state folder"
    )]
    State {
        /// The operator.
        operator: String,
        /// The state.
        state: String,
        /// The epoch of the snapshot.
        epoch: u64,
        /// The states that the operator has in the dataflow.
        drawn: String,
    },
    /// A sink has committed results after the epoch that the job is to go back to, and cannot take them back.
    #[error(
        "cannot go back from epoch {from} to {to}: sink `{sink}` cannot take back the results that it has committed since; to have them twice, accept duplicates (`--accept-duplicates`, `Checkpoints::accept_duplicates`)"
    )]
    NoRetraction {
        /// The sink.
        sink: String,
        /// The epoch to go back to.
        to: u64,
        /// The newest epoch.
        from: u64,
    },
    /// Records were on their way along an edge that is not drawn any more.
    #[error(
        "epoch {epoch} holds {records} records that were on their way along `{edge}`, and the dataflow has no such edge now (it has {drawn}): give the stages their old names back, or start with a new state folder"
    )]
    Channel {
        /// The epoch of the snapshot.
        epoch: u64,
        /// The edge.
        edge: String,
        /// How many records.
        records: u64,
        /// The edges of the dataflow.
        drawn: String,
    },
    /// Records were on their way to all tasks of a stage, each to one of them.
    #[error(
        "epoch {epoch} holds records on their way along `{edge}`, which go to every task: they were on their way to {then} tasks and cannot be dealt out to {now}. Start with {then} tasks there, and change that after a checkpoint without such records (an aligned one, or at a moment without load)"
    )]
    Broadcast {
        /// The epoch of the snapshot.
        epoch: u64,
        /// The edge.
        edge: String,
        /// How many tasks there were.
        then: u32,
        /// How many there are.
        now: u32,
    },
    /// The checkpoint was made with another hash function.
    #[error("the snapshot was made with the hash function `{found}`, this version uses `{expected}`")]
    Hash {
        /// What this version uses.
        expected: String,
        /// What the snapshot says.
        found: String,
    },
}

/// What only one side has, where it has something.
fn sides(snapshot_only: &str, dataflow_only: &str) -> String {
    let sides = [("snapshot", snapshot_only), ("dataflow", dataflow_only)];
    let there = sides.iter().filter(|(_, names)| !names.is_empty());
    there.map(|(side, names)| format!("only in the {side}: {names}")).collect::<Vec<_>>().join(", ")
}
