//! The loops of a drawing, found by looking at it: what the declared feedback edges are held against (protocols, rule 29). It
//! knows chains and edges only; what becomes of loops while the job runs is not known here.
//!
//! A *component* is a set of chains each of which leads to all others (R. E. Tarjan's strongly connected components; graphs
//! are small, so each chain is asked what it leads to). A single chain is one if an edge leads from it to itself. Loops that
//! share a chain are one component, and so are nested ones.
//!
//! 1. Without the feedback edges there is no component: what is drawn sorts topologically.
//! 2. Each feedback edge lies in a component: what enters it comes back.
//! 3. Each feedback is closed.

use super::{Edge, Graph};
use crate::error::BuildError;

/// What there is of loops in a graph. Chains and edges are given by their index.
#[derive(Clone, Debug)]
pub struct Loops {
    /// In the order of their first chains.
    pub components: Vec<Component>,
    /// For each chain the component that it is in.
    by_chain: Vec<Option<usize>>,
}

/// Chains that lie on loops together. All lists rise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Component {
    /// Its chains.
    pub chains: Vec<usize>,
    /// Those of them into which feedback edges of its own lead.
    pub heads: Vec<usize>,
    /// The edges between its chains, feedback edges among them.
    pub inside: Vec<usize>,
    /// Those of them that are feedback edges.
    pub back: Vec<usize>,
    /// The edges that enter it from without, wherever.
    pub outside: Vec<usize>,
}

impl Loops {
    /// Looks for the loops of a graph, declared or not.
    #[must_use]
    pub fn find(graph: &Graph) -> Self {
        let by_chain = components(graph, |_| true);
        let count = by_chain.iter().flatten().max().map_or(0, |last| last + 1);
        let mut components = vec![Component::default(); count];
        for (chain, component) in by_chain.iter().enumerate() {
            let Some(component) = component.map(|index| &mut components[index]) else { continue };
            component.chains.push(chain);
        }
        for (index, edge) in graph.edges.iter().enumerate() {
            let Some(to) = by_chain[edge.to] else { continue };
            let component = &mut components[to];
            if by_chain[edge.from] != Some(to) {
                component.outside.push(index);
                continue;
            }
            component.inside.push(index);
            if edge.back {
                component.back.push(index);
                component.heads.push(edge.to);
            }
        }
        for component in &mut components {
            component.heads.sort_unstable();
            component.heads.dedup();
        }
        Self { components, by_chain }
    }

    /// The component that a chain is in.
    #[must_use]
    pub fn component_of(&self, chain: usize) -> Option<usize> {
        self.by_chain[chain]
    }

    /// Whether both ends of an edge are in one component.
    #[must_use]
    pub fn is_inside(&self, edge: &Edge) -> bool {
        self.by_chain[edge.from].is_some_and(|component| self.by_chain[edge.to] == Some(component))
    }

    /// Whether feedback edges lead into a chain.
    #[must_use]
    pub fn is_head(&self, chain: usize) -> bool {
        self.by_chain[chain].is_some_and(|component| self.components[component].heads.contains(&chain))
    }

    /// Holds them against the feedback edges that were declared.
    ///
    /// # Errors
    /// A feedback is open, or makes no loop; a loop is no feedback's.
    pub fn check(&self, graph: &Graph) -> Result<(), BuildError> {
        let is_closed = |chain| graph.edges.iter().any(|edge| edge.back && edge.to == chain);
        for (index, chain) in graph.chains.iter().enumerate() {
            if let Some(feedback) = chain.feedback().filter(|_| !is_closed(index)) {
                let (name, place) = (feedback.name.clone(), feedback.place.clone());
                return Err(BuildError::OpenFeedback { name, place });
            }
        }
        if let Some(edge) = graph.edges.iter().find(|edge| edge.back && !self.is_inside(edge)) {
            let to = &graph.chains[edge.to];
            let place = to.operators.first().map_or_else(String::new, |operator| operator.place.clone());
            return Err(BuildError::NoLoop { name: to.name.clone(), place });
        }
        let undeclared = components(graph, |edge| !edge.back);
        if undeclared.iter().any(Option::is_some) {
            let on_loop = graph.chains.iter().zip(&undeclared).filter(|(_, component)| **component == Some(0));
            let chains: Vec<String> = on_loop.map(|(chain, _)| format!("`{}`", chain.name)).collect();
            return Err(BuildError::UndeclaredLoop { chains: chains.join(", ") });
        }
        Ok(())
    }
}

/// For each chain the component that it is in, by those edges that count.
fn components(graph: &Graph, counts: impl Fn(&Edge) -> bool) -> Vec<Option<usize>> {
    let chains = graph.chains.len();
    let mut next = vec![Vec::new(); chains];
    graph.edges.iter().filter(|edge| counts(edge)).for_each(|edge| next[edge.from].push(edge.to));
    let leads_to: Vec<Vec<bool>> = (0..chains).map(|chain| led_to(&next, chain)).collect();
    let (mut found, mut count) = (vec![None; chains], 0);
    for first in 0..chains {
        // Only who leads to itself lies on a loop.
        if found[first].is_some() || !leads_to[first][first] {
            continue;
        }
        for chain in first..chains {
            if leads_to[first][chain] && leads_to[chain][first] {
                found[chain] = Some(count);
            }
        }
        count += 1;
    }
    found
}

/// The chains to which at least one edge leads from this one.
fn led_to(next: &[Vec<usize>], chain: usize) -> Vec<bool> {
    let mut led_to = vec![false; next.len()];
    let mut found = next[chain].clone();
    while let Some(chain) = found.pop() {
        if !std::mem::replace(&mut led_to[chain], true) {
            found.extend(&next[chain]);
        }
    }
    led_to
}
