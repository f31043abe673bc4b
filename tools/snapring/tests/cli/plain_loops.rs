//! What the jobs with loops should come to: union-find and breadth-first search over plain maps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The pairs `source,target` of CSV whose first columns these are; none for a line without a target.
fn pairs(csv: &str) -> Vec<(u64, Option<u64>)> {
    let mut lines = csv.lines();
    assert!(lines.next().expect("a header").starts_with("source,target"));
    let pair = |line: &str| {
        let mut cells = line.split(',');
        let source = cells.next().and_then(|cell| cell.parse().ok()).expect("a source");
        (source, cells.next().and_then(|cell| cell.parse().ok()))
    };
    lines.map(pair).collect()
}

/// The root of a node's tree; the way there becomes shorter.
fn root(parents: &mut BTreeMap<u64, u64>, mut node: u64) -> u64 {
    loop {
        let parent = *parents.entry(node).or_insert(node);
        let above = *parents.entry(parent).or_insert(parent);
        if above == parent {
            return parent;
        }
        parents.insert(node, above);
        node = above;
    }
}

/// `node,component` lines, sorted: a component is called by its smallest node.
pub fn components(csv: &str) -> Vec<String> {
    let mut parents = BTreeMap::new();
    for (source, target) in pairs(csv) {
        let (one, other) = (root(&mut parents, source), root(&mut parents, target.expect("an edge")));
        parents.insert(one.max(other), one.min(other));
    }
    let nodes: Vec<u64> = parents.keys().copied().collect();
    let mut lines: Vec<String> = nodes.into_iter().map(|node| format!("{node},{}", root(&mut parents, node))).collect();
    lines.sort_unstable();
    lines
}

/// `start,node` lines, sorted.
pub fn reached(csv: &str) -> Vec<String> {
    let (mut edges, mut starts) = (BTreeMap::<u64, Vec<u64>>::new(), BTreeSet::new());
    for (source, target) in pairs(csv) {
        match target {
            Some(target) => edges.entry(source).or_default().push(target),
            None => drop(starts.insert(source)),
        }
    }
    let mut lines = Vec::new();
    for start in starts {
        let (mut seen, mut queue) = (BTreeSet::from([start]), VecDeque::from([start]));
        while let Some(node) = queue.pop_front() {
            lines.push(format!("{start},{node}"));
            queue.extend(edges.get(&node).into_iter().flatten().copied().filter(|next| seen.insert(*next)));
        }
    }
    lines.sort_unstable();
    lines
}
