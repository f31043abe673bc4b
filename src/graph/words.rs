//! A graph in words: what `--graph` prints.

use super::{Component, Edge, Graph, Loops};
use std::fmt;

/// One line a chain, then its outputs; then the loops that were found, or what is wrong with them.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "dataflow {}", self.name)?;
        for (index, chain) in self.chains.iter().enumerate() {
            let operators: Vec<_> = chain.operators.iter().map(|o| format!("{} ({})", o.name, o.kind)).collect();
            writeln!(f, "  chain {}: {}", chain.name, operators.join(" > "))?;
            for edge in self.edges.iter().filter(|edge| edge.from == index) {
                let back = if edge.back { " back" } else { "" };
                writeln!(f, "    {}{back} to chain {}", edge.route, self.chains[edge.to].name)?;
            }
        }
        let loops = Loops::find(self);
        if loops.components.is_empty() {
            writeln!(f, "  no loops")?;
        }
        for (index, component) in loops.components.iter().enumerate() {
            self.describe(f, index + 1, component)?;
        }
        loops.check(self).or_else(|error| writeln!(f, "  wrong: {error}"))
    }
}

impl Graph {
    fn describe(&self, f: &mut fmt::Formatter<'_>, number: usize, component: &Component) -> fmt::Result {
        let chains = |chains: &[usize]| list(chains.iter().map(|chain| self.chains[*chain].name.clone()));
        let edges = |edges: &[usize]| list(edges.iter().map(|edge| self.describe_edge(&self.edges[*edge])));
        writeln!(f, "  loop {number}: {}", chains(&component.chains))?;
        writeln!(f, "    begins at {}", chains(&component.heads))?;
        writeln!(f, "    comes back by {}", edges(&component.back))?;
        writeln!(f, "    is entered by {}", edges(&component.outside))
    }

    fn describe_edge(&self, edge: &Edge) -> String {
        if edge.back { format!("{} from {}", edge.name, self.chains[edge.from].name) } else { edge.name.clone() }
    }
}

fn list(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}
