//! Which tasks have rings to which, and to which of them a marker comes (protocols, rule 18). Per task and not per operator:
//! where each task hands on to one other only, a marker that begins at one reaches just one. That is looked up once, when a
//! job is built: later nobody is cut off, for a task whose inputs have ended takes epochs from the word (rule 32).

use super::{Edge, Graph, Plan, Route};

/// The tasks to which no marker comes if `initiators` begin: numbers of the plan, in order. Markers go by back edges too.
#[must_use]
pub fn unreached(graph: &Graph, plan: &Plan, initiators: &[u32]) -> Vec<u32> {
    let next = receivers(graph, plan);
    let mut reached = vec![false; next.len()];
    let mut found = initiators.to_vec();
    while let Some(task) = found.pop() {
        if !std::mem::replace(&mut reached[task as usize], true) {
            found.extend(&next[task as usize]);
        }
    }
    (0..next.len() as u32).filter(|task| !reached[*task as usize]).collect()
}

/// For each task those that it has rings to.
fn receivers(graph: &Graph, plan: &Plan) -> Vec<Vec<u32>> {
    let mut next = vec![Vec::new(); plan.tasks.len()];
    for edge in &graph.edges {
        let (from, to) = (&plan.chains[edge.from], &plan.chains[edge.to]);
        for task in 0..from.tasks {
            let receivers = if edge.is_one_to_one(from.tasks, to.tasks) { task..task + 1 } else { 0..to.tasks };
            next[(from.first_task + task) as usize].extend(receivers.map(|receiver| to.first_task + receiver));
        }
    }
    next
}

impl Edge {
    /// Whether each task hands on to just the one of the same index, between chains of so many tasks.
    #[must_use]
    pub fn is_one_to_one(&self, from_tasks: u32, to_tasks: u32) -> bool {
        self.route == Route::Forward && from_tasks == to_tasks
    }
}
