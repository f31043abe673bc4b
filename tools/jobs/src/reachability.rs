//! Which nodes can be reached from which: edges and start nodes arrive mixed, and each pair is told as soon as it is known,
//! once. An edge that arrives late goes the way of what has been found by then.

use crate::Output;
use snapring::connector::Csv;
use snapring::dataflow::Dataflow;
use snapring::error::{ConnectorError, Failed};
use snapring::operator::{Emit, Operator, Value};
use snapring::record::Record;

/// The columns that the job reads; the file may have more.
#[derive(Clone, Copy, Debug, Record)]
pub struct Line {
    /// Where the edge begins.
    pub source: u64,
    /// Where it ends; none: the line is no edge, and `source` a node to start from.
    pub target: Option<u64>,
}

/// A pair that has been found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Record)]
pub struct Reached {
    /// The node that was started from.
    pub start: u64,
    /// A node that can be reached from there; a start reaches itself.
    pub node: u64,
}

/// What a node is told.
#[derive(Clone, Copy, Debug, Record)]
struct Message {
    node: u64,
    news: News,
}

#[derive(Clone, Copy, Debug, Record)]
enum News {
    /// An edge leads to this one.
    EdgeTo(u64),
    /// It is reached from this one.
    ReachedFrom(u64),
}

/// What is kept of a node.
#[derive(Clone, Debug, Default, Record)]
struct Node {
    edges_to: Vec<u64>,
    reached_from: Vec<u64>,
}

/// Draws the job.
///
/// # Errors
/// The output's path is that of a file.
pub fn reachability(lines: Csv<Line>, output: &Output) -> Result<Dataflow, ConnectorError> {
    let flow = Dataflow::new("reachability");
    let (told, messages) = flow
        .source("lines", lines)
        .map(|Line { source, target }| match target {
            Some(target) => Message { node: source, news: News::EdgeTo(target) },
            None => Message { node: source, news: News::ReachedFrom(source) },
        })
        .feedback::<Message>("messages");
    let (messages, reached) = messages.key_by(|message| message.node).process("nodes", Spread).partition_result();
    told.close(messages);
    output.take("reached", reached)?;
    Ok(flow)
}

/// Has each node pass on from where it is reached.
struct Spread;

impl Operator for Spread {
    type Key = u64;
    type In = Message;
    /// A message goes round again, what has been found leaves the loop.
    type Out = Result<Message, Reached>;
    type State = Value<Node>;

    fn on_record<E: Emit<Self::Out>>(
        &self,
        node: &u64,
        Message { news, .. }: Message,
        state: &mut Value<Node>,
        out: &mut E,
    ) -> Result<(), Failed> {
        let is_news = state.get()?.is_none_or(|known| match &news {
            News::EdgeTo(target) => !known.edges_to.contains(target),
            News::ReachedFrom(start) => !known.reached_from.contains(start),
        });
        if !is_news {
            return Ok(());
        }
        let state = state.get_or_insert_with(Node::default)?;
        let tell = |node: u64, start: u64| Ok(Message { node, news: News::ReachedFrom(start) });
        match news {
            News::EdgeTo(target) => {
                state.edges_to.push(target);
                out.emit_all(state.reached_from.iter().map(|start| tell(target, *start)))
            }
            News::ReachedFrom(start) => {
                state.reached_from.push(start);
                out.emit(Err(Reached { start, node: *node }))?;
                out.emit_all(state.edges_to.iter().map(|target| tell(*target, start)))
            }
        }
    }
}
