//! `--graph`: the dataflow as drawn, and the loops in it.

use crate::args::GraphForm;
use crate::outcome::{Outcome, print, print_json};
use serde_json::{Value, json};
use snapring::graph::{Chain, Component, Edge, Graph, Keeps, Loops, Operator, Route};

/// Prints a graph.
pub fn show(graph: &Graph, form: GraphForm, as_json: bool) -> Outcome {
    match form {
        GraphForm::Words if as_json => print_json(&object(graph)),
        GraphForm::Words => print(graph.to_string()),
        GraphForm::Dot => print(graph.dot()),
    }
}

fn object(graph: &Graph) -> Value {
    let edge = |edge: &Edge| {
        let route = match edge.route {
            Route::Key => "key",
            Route::Forward => "forward",
            Route::Rebalance => "rebalance",
            Route::Broadcast => "broadcast",
        };
        let (from, to) = (&graph.chains[edge.from].name, &graph.chains[edge.to].name);
        json!({ "name": edge.name, "from": from, "to": to, "route": route, "back": edge.back })
    };
    json!({
        "name": graph.name,
        "chains": graph.chains.iter().map(chain).collect::<Value>(),
        "edges": graph.edges.iter().map(edge).collect::<Value>(),
        "components": Loops::find(graph).components.iter().map(|found| component(graph, found)).collect::<Value>(),
    })
}

/// Chains that lie on loops together.
fn component(graph: &Graph, component: &Component) -> Value {
    let chains = |chains: &[usize]| chains.iter().map(|chain| graph.chains[*chain].name.as_str()).collect::<Value>();
    let edges = |edges: &[usize]| edges.iter().map(|edge| graph.edges[*edge].name.as_str()).collect::<Value>();
    let Component { chains: all, heads, inside, back, outside } = component;
    json!({
        "chains": chains(all), "heads": chains(heads), "inside": edges(inside), "back": edges(back),
        "outside": edges(outside),
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
