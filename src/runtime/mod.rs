//! What runs a dataflow: tasks, the workers that step them, the coordinator that checkpoints them, and the two forms of
//! a running job, [`Job`] on threads and [`Local`] on the caller's.

mod affinity;
mod attempt;
mod careful;
mod config;
mod control;
mod coordinator;
mod entry;
mod gauges;
mod header;
mod hydration;
mod job;
mod ledger;
mod local;
mod metrics;
mod panics;
mod pending;
mod pushed;
mod reading;
mod resident;
mod restart;
mod shared;
mod sink_state;
mod stop;
mod supervisor;
mod task;
mod watch;
mod worker;

pub(crate) use affinity::allowed_cores;
pub(crate) use attempt::{Kept, Made, Make};
pub(crate) use careful::Care;
pub(crate) use config::StatePlace;
pub use config::{Checkpoints, Config, Hydrate, StageConfig};
pub use coordinator::CheckpointReport;
pub use gauges::TaskState;
pub use header::CheckpointInfo;
pub use job::{Job, JobProgress, Summary};
pub use ledger::{CheckpointMetrics, CheckpointOutcome};
pub use local::Local;
pub use metrics::{ChannelMetrics, Metrics, Samples, Stall, TaskMetrics};
pub use pending::Pending;
pub use restart::Restart;
pub use stop::Stopped;

pub(crate) use coordinator::Coordination;
pub(crate) use entry::Entry;
pub(crate) use gauges::{ChannelDial, Dials, TaskDial};
pub(crate) use header::{Header, PARTS};
pub(crate) use pushed::Pushed;
pub(crate) use reading::{Reading, Share, SourceMeter};
pub(crate) use shared::Shared;
pub(crate) use sink_state::SinkState;
pub(crate) use task::{Body, Task};
