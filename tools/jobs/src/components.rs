//! Connected components of a graph given by its edges: each node takes the smallest name that it hears of and tells its
//! neighbours, round a loop, until nobody hears anything new.

use crate::Output;
use snapring::connector::Csv;
use snapring::dataflow::Dataflow;
use snapring::error::{ConnectorError, Failed};
use snapring::operator::{Emit, Operator, Value};
use snapring::record::Record;

/// The columns that the job reads; the file may have more. Which of the two nodes comes first does not matter.
#[derive(Clone, Copy, Debug, Record)]
pub struct Edge {
    /// A node.
    pub source: u64,
    /// Another.
    pub target: u64,
}

/// A node and what it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Record)]
pub struct NodeComponent {
    /// The node.
    pub node: u64,
    /// The smallest node of its component.
    pub component: u64,
}

/// What a node is told.
#[derive(Clone, Copy, Debug, Record)]
struct Message {
    node: u64,
    news: News,
}

#[derive(Clone, Copy, Debug, Record)]
enum News {
    Neighbour(u64),
    Component(u64),
}

/// What is kept of a node.
#[derive(Clone, Debug, Record)]
struct Node {
    /// The smallest node that it has heard of.
    component: u64,
    neighbours: Vec<u64>,
}

/// Draws the job.
///
/// # Errors
/// The output's path is that of a file.
pub fn components(edges: Csv<Edge>, output: &Output) -> Result<Dataflow, ConnectorError> {
    let flow = Dataflow::new("components");
    let (told, messages) = flow
        .source("edges", edges)
        .flat_map(|Edge { source, target }| {
            let neighbour = |node, of| Message { node: of, news: News::Neighbour(node) };
            [neighbour(source, target), neighbour(target, source)]
        })
        .feedback::<Message>("messages");
    let (messages, components) =
        messages.key_by(|message| message.node).process("components", Smallest).partition_result();
    told.close(messages);
    output.take("nodes", components)?;
    Ok(flow)
}

/// Has each node find the smallest one.
struct Smallest;

impl Operator for Smallest {
    type Key = u64;
    type In = Message;
    /// A message goes round again, what is known in the end leaves the loop.
    type Out = Result<Message, NodeComponent>;
    type State = Value<Node>;

    fn on_record<E: Emit<Self::Out>>(
        &self,
        node: &u64,
        Message { news, .. }: Message,
        state: &mut Value<Node>,
        out: &mut E,
    ) -> Result<(), Failed> {
        let is_news = state.get()?.is_none_or(|known| match &news {
            News::Neighbour(neighbour) => !known.neighbours.contains(neighbour),
            News::Component(component) => *component < known.component,
        });
        if !is_news {
            return Ok(());
        }
        let state = state.get_or_insert_with(|| Node { component: *node, neighbours: Vec::new() })?;
        let tell = |node: u64, component: u64| Ok(Message { node, news: News::Component(component) });
        match news {
            News::Neighbour(neighbour) => {
                state.neighbours.push(neighbour);
                out.emit(tell(neighbour, state.component))
            }
            News::Component(component) => {
                state.component = state.component.min(component);
                out.emit_all(state.neighbours.iter().map(|neighbour| tell(*neighbour, component)))
            }
        }
    }

    fn on_end<E: Emit<Self::Out>>(&self, node: &u64, state: &mut Value<Node>, out: &mut E) -> Result<(), Failed> {
        match state.get()? {
            Some(known) => out.emit(Err(NodeComponent { node: *node, component: known.component })),
            None => Ok(()),
        }
    }
}
