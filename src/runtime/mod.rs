//! What runs a dataflow: tasks, the workers that step them, the coordinator that checkpoints them, and the two forms of
//! a running job, [`Job`] on threads and [`Local`] on the caller's.

mod affinity;
mod config;
mod coordinator;
mod entry;
mod header;
mod job;
mod local;
mod panics;
mod pending;
mod reading;
mod shared;
mod task;
mod worker;

pub(crate) use affinity::allowed_cores;
pub(crate) use config::StatePlace;
pub use config::{Checkpoints, Config, StageConfig};
pub use coordinator::CheckpointReport;
pub use header::CheckpointInfo;
pub use job::{Job, JobProgress, Summary};
pub use local::Local;
pub use pending::Pending;

pub(crate) use coordinator::{Coordination, Event, SinkState};
pub(crate) use entry::Entry;
pub(crate) use header::{Header, PARTS};
pub(crate) use panics::caught_at;
pub(crate) use reading::{Reading, SourceMeter};
pub(crate) use shared::Shared;
pub(crate) use task::{Body, Task};

use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A job that is ready to run.
pub(crate) struct Made {
    pub(crate) config: Config,
    pub(crate) shared: Arc<Shared>,
    /// With the worker that each belongs to.
    pub(crate) tasks: Vec<(usize, Task)>,
    pub(crate) coordination: Coordination,
    pub(crate) events: Sender<Event>,
    /// One for each worker; none: it is not pinned.
    pub(crate) cores: Vec<Option<core_affinity::CoreId>>,
    /// The epoch that it goes on from.
    pub(crate) restored: Option<u64>,
    /// The snapshot says that the job has finished: nothing is left to do.
    pub(crate) finished: bool,
}
