//! What is wrong with a dataflow as drawn, or with its configuration: found before anything runs.

/// Why a dataflow cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Nothing was drawn.
    #[error("dataflow `{0}` is empty: draw at least one source and one sink")]
    Empty(String),
    /// A stream that nothing reads.
    #[error("the stream that begins at operator `{operator}` ends nowhere: end it with `.sink(…)`")]
    Unread {
        /// The operator that it begins at: a source, a stage, a fork, or one with state.
        operator: String,
    },
    /// Two operators with one name.
    #[error(
        "two operators are named `{name}` ({first} and {second}): a name finds the state again, so give each its own"
    )]
    DuplicateName {
        /// The name.
        name: String,
        /// Where the first is drawn.
        first: String,
        /// Where the second is drawn.
        second: String,
    },
    /// An empty name.
    #[error("an operator drawn at {place} has an empty name")]
    EmptyName {
        /// Where it is drawn.
        place: String,
    },
    /// A configured stage that is not drawn.
    #[error("the configuration names stage `{name}`, which the dataflow does not have; its stages are: {known}")]
    UnknownStage {
        /// The name.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// Streams of two dataflows were joined.
    #[error("operator `{operator}` joins streams of two different dataflows")]
    TwoDataflows {
        /// The operator.
        operator: String,
    },
    /// A feedback that nothing comes back by.
    #[error("feedback `{name}` ({place}) is left open: close it with what is to come round, `.close(stream)`")]
    OpenFeedback {
        /// The feedback.
        name: String,
        /// Where it is drawn.
        place: String,
    },
    /// A feedback that makes no loop.
    #[error(
        "feedback `{name}` ({place}) never comes back: it is closed with a stream that does not come from its own. Close it with one that does; `merge` joins streams without a loop"
    )]
    NoLoop {
        /// The feedback.
        name: String,
        /// Where it is drawn.
        place: String,
    },
    /// A loop that no feedback has declared.
    #[error("a loop leads through {chains}, and no edge of it is a feedback: open it with `.feedback(…)`")]
    UndeclaredLoop {
        /// The chains that it leads through.
        chains: String,
    },
    /// A number that makes no sense.
    #[error("{what} must be {must}, not {is}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// What it must be.
        must: String,
        /// What it is.
        is: String,
    },
    /// A number of tasks that makes no sense.
    #[error("stage `{stage}`: its parallelism must be between 1 and {max}, not {is}")]
    Parallelism {
        /// The stage.
        stage: String,
        /// The most tasks that it can have: a repartition has a ring from each task to each.
        max: u32,
        /// The number asked for.
        is: u32,
    },
    /// Workers that are to be pinned and not to be pinned.
    #[error(
        "the configuration has both `cores` and `unpinned_workers`: the first pins a worker to each core, the second pins none, so leave one of them out"
    )]
    CoresAndUnpinned,
    /// An exactly-once sink without checkpoints.
    #[error("sink `{operator}` is exactly-once and publishes only what a checkpoint covers: configure checkpoints")]
    NeedsCheckpoints {
        /// The sink.
        operator: String,
    },
    /// An exactly-once sink under a protocol that may count records twice.
    #[error(
        "sink `{operator}` is exactly-once, and under the protocol at-least-once records may count twice after a restore: choose an exact protocol, or a plain sink"
    )]
    NeedsExactProtocol {
        /// The sink.
        operator: String,
    },
    /// Restarts without checkpoints.
    #[error("a restart goes on from a checkpoint, and the job has none: configure checkpoints, or leave out `restart`")]
    RestartNeedsCheckpoints,
    /// Checkpoints without a place.
    #[error("checkpoints are configured but have no place: add `.to(\"some/folder\")`")]
    NoStateFolder,
    /// A stage on a core without a worker.
    #[error("stage `{stage}` is to run on core {core}, which is not one of the job's; those are: {cores}")]
    StageCore {
        /// The stage.
        stage: String,
        /// The core asked for.
        core: usize,
        /// The cores of the job.
        cores: String,
    },
    /// A core that this process may not use.
    #[error("core {core} is not allowed to this process; allowed are: {allowed}")]
    Core {
        /// The core asked for.
        core: usize,
        /// The allowed ones.
        allowed: String,
    },
}
