//! `--graph`: the dataflow as drawn.

use crate::outcome::{Outcome, print, print_json};
use serde_json::{Value, json};
use snapring::graph::{Chain, Edge, Graph, Keeps, Operator, Route};

/// Prints a graph.
pub fn show(graph: &Graph, as_json: bool) -> Outcome {
    if as_json { print_json(&object(graph)) } else { print(graph.to_string()) }
}

fn object(graph: &Graph) -> Value {
    let edge = |edge: &Edge| {
        let route = match edge.route {
            Route::Key => "key",
            Route::Forward => "forward",
            Route::Rebalance => "rebalance",
            Route::Broadcast => "broadcast",
        };
        json!({ "from": graph.chains[edge.from].name, "to": graph.chains[edge.to].name, "route": route })
    };
    json!({
        "name": graph.name,
        "chains": graph.chains.iter().map(chain).collect::<Value>(),
        "edges": graph.edges.iter().map(edge).collect::<Value>(),
    })
}

fn chain(chain: &Chain) -> Value {
    json!({ "name": chain.name, "operators": chain.operators.iter().map(operator).collect::<Value>() })
}

fn operator(operator: &Operator) -> Value {
    let keeps = match operator.keeps {
        Keeps::Nothing => "nothing",
        Keeps::State => "state",
        Keeps::Parts => "parts",
    };
    json!({ "name": operator.name, "kind": operator.kind, "place": operator.place, "keeps": keeps })
}
