//! A graph in DOT, the language of Graphviz (its manual, "The DOT Language"): chains as boxes, components as clusters, feedback edges dashed.

use super::{Chain, Graph, Loops};
use std::fmt::Write;

impl Graph {
    /// The graph in DOT: `dot -Tsvg` makes a picture of it. Chains are boxes with their operators, each set of chains that
    /// lie on loops together has a frame, feedback edges are dashed.
    #[must_use]
    pub fn dot(&self) -> String {
        let loops = Loops::find(self);
        let mut dot = format!("digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n", quoted(&self.name));
        for (index, component) in loops.components.iter().enumerate() {
            let number = index + 1;
            dot += &format!("  subgraph cluster_{number} {{\n    label={};\n", quoted(&format!("loop {number}")));
            component.chains.iter().for_each(|chain| self.dot_chain(*chain, "    ", &mut dot));
            dot += "  }\n";
        }
        let alone = (0..self.chains.len()).filter(|chain| loops.component_of(*chain).is_none());
        alone.for_each(|chain| self.dot_chain(chain, "  ", &mut dot));
        for edge in &self.edges {
            let mut label = edge.route.to_string();
            if edge.back {
                label = format!("{}, {label}", edge.name);
            }
            // A dashed edge does not say who stands to the left: the graph without it does.
            let style = if edge.back { ", style=dashed, constraint=false" } else { "" };
            let _ = writeln!(dot, "  c{} -> c{} [label={}{style}];", edge.from, edge.to, quoted(&label));
        }
        dot + "}\n"
    }

    fn dot_chain(&self, index: usize, indent: &str, dot: &mut String) {
        let Chain { name, operators } = &self.chains[index];
        let operators = operators.iter().map(|operator| format!("{} ({})", operator.name, operator.kind));
        let lines: Vec<String> = std::iter::once(name.clone()).chain(operators).collect();
        let _ = writeln!(dot, "{indent}c{index} [label={}];", quoted(&lines.join("\n")));
    }
}

/// A string of DOT: only the quote has to be escaped for its grammar, the backslash for its labels.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
