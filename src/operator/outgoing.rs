//! The producer's side of channels, as a cut sees it: the rings that leave a task, edge by edge. It must not know which
//! protocol cuts them.

use crate::marks::Mark;
use crate::record::{Record, Schema};
use crate::snapshot::{ChannelPart, Entry, Side};
use std::sync::Arc;

/// How a cut goes through the outputs of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    /// A barrier behind everything, in every ring.
    Barrier(u64),
    /// A cut beside every ring, at its tail; what waits for room is kept.
    Published(u64),
    /// Nothing is sent; what waits for room is kept.
    Kept(u64),
    /// Barriers of this epoch that wait for room become cuts, and what waits ahead of them is kept.
    Overtaken(u64),
}

/// The rings of one edge, at the task that they leave.
pub(crate) trait Outgoing {
    /// Sends a mark on all of them, behind all that was emitted.
    fn mark(&mut self, mark: Mark);
    /// Sends one on those that stay within their loop.
    fn mark_inside(&mut self, mark: Mark);
    /// The loop that they are in has ended: no record may go to its head any more.
    fn end_loop(&mut self);
    /// Nothing follows: says so beside the rings, where consumers look there.
    fn publish_end(&mut self);
    /// Cuts them.
    fn cut(&mut self, through: Through);
    /// Whether the barrier of this epoch waits for room.
    fn has_waiting_barrier(&self, epoch: u64) -> bool;
    /// What has been kept since the last cut that keeps anything, for the snapshot; nothing is kept any more.
    fn take_kept(&mut self) -> Option<Entry>;
}

/// What is done to each edge.
pub(crate) type VisitOutgoing<'a> = dyn FnMut(&mut dyn Outgoing) + 'a;

/// One end of an edge in a task: who is there, and what a snapshot calls it.
#[derive(Clone)]
pub(crate) struct EdgeEnd {
    /// The name of the edge.
    pub(crate) edge: Arc<str>,
    /// The chain of the task, and the task's place in it.
    pub(crate) chain: Arc<str>,
    pub(crate) task: u32,
    pub(crate) tasks: u32,
    /// Each task is connected to its like only.
    pub(crate) one_to_one: bool,
    /// Both ends are in the same loop.
    pub(crate) inside: bool,
    /// That, and it leads to a head of the loop: its name.
    pub(crate) head: Option<Arc<str>>,
}

impl EdgeEnd {
    /// The number of the task at the other end of a ring.
    pub(crate) fn other(&self, lane: usize) -> u32 {
        if self.one_to_one { self.task } else { lane as u32 }
    }

    /// What a snapshot holds of the edge at this end; none, if that is nothing.
    pub(crate) fn entry<T: Record>(&self, side: Side, parts: &Vec<ChannelPart>) -> Option<Entry> {
        if parts.is_empty() {
            return None;
        }
        let mut entry = Entry {
            operator: self.chain.to_string(),
            state: side.state(&self.edge),
            task: self.task,
            tasks: self.tasks,
            schema: Vec::new(),
            root: Vec::new(),
            pages: None,
        };
        Schema::encode(&T::schema(), &mut entry.schema);
        parts.encode(&mut entry.root);
        Some(entry)
    }
}
