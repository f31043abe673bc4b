//! The checkpoint machines under every order of events, up to a bound. See each part for its bound.

#[path = "checkpoint/coordinator.rs"]
mod coordinator;
#[path = "checkpoint/one_task.rs"]
mod one_task;
#[path = "checkpoint/tasks.rs"]
mod tasks;
