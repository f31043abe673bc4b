//! The checkpoint machines under every order of events, up to a bound. See each part for its bound.

#[path = "checkpoint/coordinator.rs"]
mod coordinator;
#[path = "checkpoint/explore.rs"]
mod explore;
#[path = "checkpoint/graphs.rs"]
mod graphs;
#[path = "checkpoint/job.rs"]
mod job;
#[path = "checkpoint/laps.rs"]
mod laps;
#[path = "checkpoint/one_task.rs"]
mod one_task;
#[path = "checkpoint/shell.rs"]
mod shell;
#[path = "checkpoint/tasks.rs"]
mod tasks;
#[path = "checkpoint/world.rs"]
mod world;
#[path = "checkpoint/wrong.rs"]
mod wrong;
