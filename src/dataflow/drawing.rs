//! The drawing under the user's hands: the graph as values, and for each piece the recipe that makes it for a task.
//!
//! A *port* is an output that the next piece plugs into. What is plugged in is a recipe for a [`Pipe`]; recipes differ
//! in the type of their records, so they lie there as `Any` and are taken out where the type is known again. Recipes can
//! be followed any number of times, on any thread: that is how a job is made anew after a failure.

use super::build::Build;
use crate::error::{BuildError, Error};
use crate::graph::{Edge, Graph, Keeps, Operator, Route};
use crate::handle::Outside;
use crate::operator::{Committer, Lane, Pipe, Place, SplitState, Tables};
use crate::runtime::Body;
use std::any::Any;
use std::panic::Location;
use std::sync::Arc;

/// Makes a pipe for one task.
pub(super) type MakePipe<T> = Box<dyn Fn(&mut Build<'_>) -> Result<Box<dyn Pipe<T>>, Error> + Send>;
/// Makes what tells the lane of a record along an edge, the same at whichever task.
pub(super) type MakeLane<T> = Box<dyn Fn(&Build<'_>) -> Box<dyn Lane<T>> + Send>;
/// Makes the root of one task.
pub(super) type MakeBody = Box<dyn Fn(&mut Build<'_>) -> Result<Box<dyn Body>, Error> + Send>;
/// Lists a source's splits: those of the snapshot, checked, or the first ones.
pub(super) type FindSplits = Box<dyn Fn(Option<Vec<SplitState>>) -> Result<Vec<SplitState>, Error> + Send>;
/// Claims a sink's place.
pub(super) type Claim = Box<dyn Fn(&Place) -> Result<Box<dyn Committer>, Error> + Send>;

/// Names a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortId(usize);

pub(super) struct Port {
    /// The chain it belongs to.
    chain: usize,
    /// The operator whose output it is, for error messages.
    pub(super) operator: String,
    /// A `MakePipe<T>`, once something reads it.
    pub(super) reader: Option<Box<dyn Any + Send>>,
}

pub(super) struct SourceDrawn {
    pub(super) name: Arc<str>,
    pub(super) find_splits: FindSplits,
}

pub(super) struct SinkDrawn {
    pub(super) name: Arc<str>,
    pub(super) exactly_once: bool,
    pub(super) claim: Claim,
}

#[derive(Default)]
pub(super) struct Drawing {
    pub(super) graph: Graph,
    /// One for each chain.
    pub(super) roots: Vec<MakeBody>,
    pub(super) ports: Vec<Port>,
    /// For each edge a `MakeLane<T>`.
    lanes: Vec<Box<dyn Any + Send>>,
    pub(super) sources: Vec<SourceDrawn>,
    pub(super) sinks: Vec<SinkDrawn>,
    /// Operators with tables, and what is in them.
    pub(super) tables: Vec<(Arc<str>, Tables)>,
    /// What the handles see of the job.
    pub(super) outside: Arc<Outside>,
    /// What was noticed while drawing; reported when the dataflow starts.
    pub(super) mistake: Option<BuildError>,
}

/// Nobody will make a job of it any more.
impl Drop for Drawing {
    fn drop(&mut self) {
        self.outside.over(None);
    }
}

impl Drawing {
    /// Begins a chain; its root is made by `root`, which is told the port that the rest of the chain plugs into.
    pub(super) fn chain(&mut self, first: Operator, root: impl FnOnce(PortId) -> MakeBody) -> PortId {
        let chain = self.graph.chains.len();
        let operator = first.name.clone();
        self.graph.chains.push(crate::graph::Chain { name: operator.clone(), operators: vec![first] });
        let port = self.port(chain, operator);
        self.roots.push(root(port));
        port
    }

    /// Notes a source, and how its splits are found.
    pub(super) fn source(
        &mut self,
        name: &Arc<str>,
        find_splits: impl Fn(Option<Vec<SplitState>>) -> Result<Vec<SplitState>, Error> + Send + 'static,
    ) {
        self.sources.push(SourceDrawn { name: name.clone(), find_splits: Box::new(find_splits) });
    }

    /// An output in a chain.
    pub(super) fn port(&mut self, chain: usize, operator: String) -> PortId {
        self.ports.push(Port { chain, operator, reader: None });
        PortId(self.ports.len() - 1)
    }

    /// Adds operators to the chain of a port, behind it.
    pub(super) fn operators(&mut self, at: PortId, operators: impl IntoIterator<Item = Operator>) {
        let chain = &mut self.graph.chains[self.ports[at.0].chain];
        chain.operators.extend(operators);
        if let Some(first) = chain.operators.iter().find(|operator| operator.named) {
            chain.name.clone_from(&first.name);
        }
    }

    /// Plugs a reader into a port. A port is owned by one stream, so it is free.
    pub(super) fn plug<T: 'static>(&mut self, at: PortId, make: MakePipe<T>) {
        self.ports[at.0].reader = Some(Box::new(make));
    }

    /// An output behind the operators of a port's chain.
    pub(super) fn port_behind(&mut self, at: PortId, operator: &str) -> PortId {
        self.port(self.ports[at.0].chain, operator.to_owned())
    }

    /// The edges that lead into the chain of a port, in the order in which they were drawn.
    pub(super) fn edges_into(&self, at: PortId) -> Vec<usize> {
        let chain = self.chain_of(at);
        (0..self.graph.edges.len()).filter(|edge| self.graph.edges[*edge].to == chain).collect()
    }

    pub(super) fn chain_of(&self, at: PortId) -> usize {
        self.ports[at.0].chain
    }

    /// Draws an edge and returns its index. `back`: it closes a loop.
    pub(super) fn edge<T: 'static>(
        &mut self,
        from: PortId,
        to: usize,
        route: Route,
        back: bool,
        lane: MakeLane<T>,
    ) -> usize {
        // It gets its name when its chains have theirs.
        self.graph.edges.push(Edge { name: String::new(), from: self.ports[from.0].chain, to, route, back });
        self.lanes.push(Box::new(lane));
        self.graph.edges.len() - 1
    }

    pub(super) fn lane<T: 'static>(&self, edge: usize) -> Option<&MakeLane<T>> {
        self.lanes[edge].downcast_ref()
    }

    pub(super) fn reader<T: 'static>(&self, at: PortId) -> Option<&MakePipe<T>> {
        self.ports[at.0].reader.as_ref()?.downcast_ref()
    }
}

/// An operator whose name was given.
pub(super) fn named(name: &str, kind: &'static str, place: &Location<'_>, keeps: Keeps) -> Operator {
    Operator { name: name.to_owned(), named: true, kind, place: at(place), keeps }
}

/// An operator that is called by its place.
pub(super) fn unnamed(kind: &'static str, place: &Location<'_>) -> Operator {
    Operator { name: format!("{kind}@{}", at(place)), named: false, kind, place: at(place), keeps: Keeps::Nothing }
}

fn at(place: &Location<'_>) -> String {
    format!("{}:{}", place.file(), place.line())
}
