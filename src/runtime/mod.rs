//! What runs a dataflow: tasks, the workers that step them, the coordinator that checkpoints them, and the two forms of
//! a running job, [`Job`] on threads and [`Local`] on the caller's.

mod affinity;
mod attempt;
mod careful;
mod config;
mod control;
mod coordinator;
mod entry;
mod header;
mod job;
mod local;
mod panics;
mod pending;
mod pushed;
mod reading;
mod restart;
mod shared;
mod supervisor;
mod task;
mod worker;

pub(crate) use affinity::allowed_cores;
pub(crate) use attempt::{Kept, Made, Make};
pub(crate) use careful::Care;
pub(crate) use config::StatePlace;
pub use config::{Checkpoints, Config, StageConfig};
pub use coordinator::CheckpointReport;
pub use job::{Job, JobProgress, Summary};
pub use local::Local;
pub use pending::Pending;
pub use restart::Restart;

pub(crate) use coordinator::{Coordination, SinkState};
pub(crate) use entry::Entry;
pub(crate) use header::{Header, PARTS};
pub(crate) use pushed::Pushed;
pub(crate) use reading::{Reading, Share, SourceMeter};
pub(crate) use shared::Shared;
pub(crate) use task::{Body, Task};
