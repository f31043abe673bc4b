//! Which tasks have rings to which, and which of them a marker comes to (protocols, rule 18). Per task and not per operator:
//! where each task hands on to one other only, a marker that begins at one reaches just one.

use super::{Edge, Graph, Plan, Route};
use crate::checkpoint::Reach;

/// Who sends to whom, back edges included: markers go by them too.
#[must_use]
pub fn reach(graph: &Graph, plan: &Plan) -> Reach {
    let mut next = vec![Vec::new(); plan.tasks.len()];
    for edge in &graph.edges {
        let (from, to) = (&plan.chains[edge.from], &plan.chains[edge.to]);
        for task in 0..from.tasks {
            let receivers = if edge.is_one_to_one(from.tasks, to.tasks) { task..task + 1 } else { 0..to.tasks };
            next[(from.first_task + task) as usize].extend(receivers.map(|receiver| to.first_task + receiver));
        }
    }
    Reach::new(next)
}

/// The tasks to which no marker comes if `initiators` begin: numbers of the plan, in order.
#[must_use]
pub fn unreached(graph: &Graph, plan: &Plan, initiators: &[u32]) -> Vec<u32> {
    reach(graph, plan).unreached(initiators, |_| true)
}

impl Edge {
    /// Whether each task hands on to just the one of the same index, between chains of so many tasks.
    #[must_use]
    pub fn is_one_to_one(&self, from_tasks: u32, to_tasks: u32) -> bool {
        self.route == Route::Forward && from_tasks == to_tasks
    }
}
