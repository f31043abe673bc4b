//! Drawings as values: names of edges, loops declared and not, how they are told.

use super::*;

/// Chains by name; one that begins with `@` begins with a feedback of that name. Edges by the names of their ends, `=>` for
/// feedback edges.
fn graph(chains: &str, edges: &str) -> Graph {
    let names: Vec<&str> = chains.split_whitespace().map(|name| name.trim_start_matches('@')).collect();
    let at = |name: &str| names.iter().position(|other| *other == name).unwrap();
    let chain = |name: &str| {
        let kind = if name.starts_with('@') { FEEDBACK } else { "stage" };
        let name = name.trim_start_matches('@').to_owned();
        let place = format!("src/{name}.rs:1");
        let operator = Operator { name: name.clone(), named: true, kind, place, keeps: Keeps::Nothing };
        Chain { name, operators: vec![operator] }
    };
    let edge = |edge: &str| {
        let back = edge.contains("=>");
        let (from, to) = edge.split_once(if back { "=>" } else { "->" }).unwrap();
        Edge { name: String::new(), from: at(from), to: at(to), route: Route::Forward, back }
    };
    let mut graph = Graph {
        name: "test".into(),
        chains: chains.split_whitespace().map(chain).collect(),
        edges: edges.split_whitespace().map(edge).collect(),
    };
    graph.name_edges();
    graph
}

/// A component as text: its chains, heads, and edges inside and outside.
fn components(graph: &Graph) -> Vec<String> {
    let loops = Loops::find(graph);
    let chains =
        |list: &[usize]| list.iter().map(|chain| graph.chains[*chain].name.as_str()).collect::<Vec<_>>().join(" ");
    let edges =
        |list: &[usize]| list.iter().map(|edge| graph.edges[*edge].name.as_str()).collect::<Vec<_>>().join(", ");
    let text = |component: &Component| {
        let Component { chains: all, heads, inside, back, outside } = component;
        format!("{} | {} | {} | {} | {}", chains(all), chains(heads), edges(inside), edges(back), edges(outside))
    };
    loops.components.iter().map(text).collect()
}

fn wrong(graph: &Graph) -> String {
    graph.validate().unwrap_err().to_string()
}

#[test]
fn edges_have_names_of_their_own() {
    let graph = graph("a @l b", "a->l a->l l->b b=>l b=>l a->b a->l");
    let names: Vec<&str> = graph.edges.iter().map(|edge| edge.name.as_str()).collect();
    assert_eq!(names, ["a->l", "a->l #2", "l->b", "feedback l", "feedback l #2", "a->b", "a->l #3"]);
}

#[test]
fn a_drawing_without_loops_has_none() {
    let graph = graph("a b c d", "a->b a->c b->d c->d");
    assert!(components(&graph).is_empty());
    graph.validate().unwrap();
    assert!(graph.to_string().ends_with("  no loops\n"), "{graph}");
}

#[test]
fn a_loop_has_a_head_an_inside_and_an_outside() {
    let graph = graph("in side @l body out", "in->l l->body side->body body=>l body->out");
    graph.validate().unwrap();
    assert_eq!(components(&graph), ["l body | l | l->body, feedback l | feedback l | in->l, side->body"]);
    let loops = Loops::find(&graph);
    assert_eq!([0, 2, 4].map(|chain| loops.component_of(chain)), [None, Some(0), None]);
    let inside: Vec<bool> = graph.edges.iter().map(|edge| loops.is_inside(edge)).collect();
    assert_eq!(inside, [false, true, false, true, false]);
}

#[test]
fn a_chain_can_lead_to_itself() {
    let graph = graph("in @l out", "in->l l=>l l->out");
    graph.validate().unwrap();
    assert_eq!(components(&graph), ["l | l | feedback l | feedback l | in->l"]);
}

#[test]
fn nested_loops_and_loops_that_share_a_chain_are_one_component() {
    let nested = graph("in @outer @inner body", "in->outer outer->inner inner->body body=>inner body=>outer");
    nested.validate().unwrap();
    let edges = "outer->inner, inner->body, feedback inner, feedback outer";
    assert_eq!(
        components(&nested),
        [format!("outer inner body | outer inner | {edges} | feedback inner, feedback outer | in->outer")]
    );
    let shared = graph("in @p @q join", "in->p in->q p->join q->join join=>p join=>q");
    shared.validate().unwrap();
    assert_eq!(components(&shared).len(), 1);
    let apart = graph("in @p @q", "in->p p=>p p->q q=>q q=>q");
    apart.validate().unwrap();
    let loops = components(&apart);
    assert_eq!(loops[0], "p | p | feedback p | feedback p | in->p");
    assert_eq!(loops[1], "q | q | feedback q, feedback q #2 | feedback q, feedback q #2 | p->q");
}

#[test]
fn heads_can_feed_each_other() {
    let cross = graph("in @p @q", "in->p in->q p=>q q=>p");
    cross.validate().unwrap();
    assert_eq!(components(&cross), ["p q | p q | feedback q, feedback p | feedback q, feedback p | in->p, in->q"]);
}

#[test]
fn what_is_no_declared_loop_is_refused() {
    let open = wrong(&graph("in @l out", "in->l l->out"));
    assert!(open.contains("`l` (src/l.rs:1)") && open.contains("left open"), "{open}");
    let straight = wrong(&graph("in @l out", "in->l l->out in=>l"));
    assert!(straight.contains("`l` (src/l.rs:1)") && straight.contains("never comes back"), "{straight}");
    let undeclared = graph("in a b @l", "in->a a->b b->a b->l l=>l");
    let message = wrong(&undeclared);
    assert!(message.contains("`a`, `b`") && !message.contains("`l`"), "{message}");
    assert!(undeclared.to_string().contains("wrong: a loop leads through"), "{undeclared}");
}

#[test]
fn a_loop_is_told_in_words() {
    let text = graph("in @l body", "in->l l->body body=>l").to_string();
    let told = "
    forward back to chain l
  loop 1: l, body
    begins at l
    comes back by feedback l from body
    is entered by in->l
";
    assert!(text.ends_with(told), "{text}");
}

#[test]
fn a_loop_is_drawn_in_dot() {
    let mut graph = graph("in @l body", "in->l l->body body=>l");
    graph.name = r#"a "b" \c"#.into();
    let dot = r#"digraph "a \"b\" \\c" {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_1 {
    label="loop 1";
    c1 [label="l\nl (feedback)"];
    c2 [label="body\nbody (stage)"];
  }
  c0 [label="in\nin (stage)"];
  c0 -> c1 [label="forward"];
  c1 -> c2 [label="forward"];
  c2 -> c1 [label="feedback l, forward", style=dashed, constraint=false];
}
"#;
    assert_eq!(graph.dot(), dot);
}

/// As many tasks for each chain as said.
fn planned(graph: &Graph, tasks: &[u32]) -> Plan {
    let stage = |(chain, tasks): (&Chain, &u32)| (chain.name.clone(), (Some(*tasks), Vec::new()));
    let stages = graph.chains.iter().zip(tasks).map(stage).collect();
    plan(graph, &Settings { workers: 1, parallelism: 1, stages }).unwrap()
}

#[test]
fn a_marker_reaches_tasks_and_not_operators() {
    let mut graph = graph("a b", "a->b");
    let plan = planned(&graph, &[2, 2]);
    assert!(unreached(&graph, &plan, &[0, 1]).is_empty());
    assert_eq!(unreached(&graph, &plan, &[0]), [1, 3], "each task hands on to one other");
    assert_eq!(unreached(&graph, &plan, &[3]), [0, 1, 2]);
    assert_eq!(unreached(&graph, &planned(&graph, &[2, 3]), &[0]), [1]);
    graph.edges[0].route = Route::Key;
    assert_eq!(unreached(&graph, &plan, &[0]), [1]);
}

#[test]
fn a_marker_goes_by_feedback_too() {
    let graph = graph("in @l body", "in->l l->body body=>l");
    assert_eq!(unreached(&graph, &planned(&graph, &[1, 2, 2]), &[4]), [0, 1, 3]);
    assert_eq!(unreached(&graph, &planned(&graph, &[1, 2, 1]), &[3]), [0]);
}
