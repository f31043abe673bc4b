//! Lays a graph out: how many tasks each chain has, and which worker runs which.

use super::{Graph, Loops};
use crate::error::BuildError;
use std::collections::BTreeMap;

/// What the configuration says about the layout.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number of workers, at least 1.
    pub workers: usize,
    /// Tasks per chain where nothing else is said, at least 1.
    pub parallelism: u32,
    /// By the name of a chain or of an operator in it: tasks, and the workers that may run them (all, if empty).
    pub stages: BTreeMap<String, (Option<u32>, Vec<usize>)>,
}

/// The layout.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One for each chain of the graph.
    pub chains: Vec<ChainPlan>,
    /// All tasks; their index is their number.
    pub tasks: Vec<TaskPlan>,
    /// The loops.
    pub loops: Loops,
}

/// A chain's layout.
#[derive(Clone, Debug)]
pub struct ChainPlan {
    /// Number of its tasks.
    pub tasks: u32,
    /// The number of its first task.
    pub first_task: u32,
}

/// Where a task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPlan {
    /// Index of its chain.
    pub chain: usize,
    /// Its index within the chain.
    pub index: u32,
    /// The worker that runs it.
    pub worker: usize,
}

/// A repartition has a ring from each task to each: their number grows with the square.
const TASKS_MAX: u32 = 256;

/// Lays out a validated graph.
///
/// # Errors
/// A stage that is not drawn, a parallelism that is not between 1 and 256, or no worker.
pub fn plan(graph: &Graph, settings: &Settings) -> Result<Plan, BuildError> {
    if settings.workers == 0 {
        let (what, must, is) = ("the number of workers", "at least 1".to_owned(), "0".to_owned());
        return Err(BuildError::Setting { what, must, is });
    }
    check_names(graph, settings)?;
    let mut plan = Plan { chains: Vec::new(), tasks: Vec::new(), loops: Loops::find(graph) };
    for (index, chain) in graph.chains.iter().enumerate() {
        let own = |name: &str| settings.stages.get(name);
        let stage = own(&chain.name).or_else(|| chain.operators.iter().find_map(|operator| own(&operator.name)));
        let tasks = stage.and_then(|(tasks, _)| *tasks).unwrap_or(settings.parallelism);
        if !(1..=TASKS_MAX).contains(&tasks) {
            return Err(BuildError::Parallelism { stage: chain.name.clone(), max: TASKS_MAX, is: tasks });
        }
        let all: Vec<usize> = (0..settings.workers).collect();
        let workers = stage.map(|(_, workers)| workers).filter(|workers| !workers.is_empty()).unwrap_or(&all);
        // With fewer tasks than workers, each chain begins at another worker, so that a pipeline spreads out. But a loop stays
        // together: in a lap over several cores each waits for the others most of the time.
        let together = plan.loops.component_of(index).map(|component| plan.loops.components[component].chains[0]);
        let first = if (tasks as usize) < workers.len() { together.unwrap_or(index) } else { 0 };
        plan.chains.push(ChainPlan { tasks, first_task: plan.tasks.len() as u32 });
        plan.tasks.extend((0..tasks).map(|task| TaskPlan {
            chain: index,
            index: task,
            worker: workers[(first + task as usize) % workers.len()],
        }));
    }
    Ok(plan)
}

fn check_names(graph: &Graph, settings: &Settings) -> Result<(), BuildError> {
    let known = |name: &String| {
        graph.chains.iter().any(|chain| &chain.name == name) || graph.operators().any(|operator| &operator.name == name)
    };
    match settings.stages.keys().find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => Err(BuildError::UnknownStage {
            name: name.clone(),
            known: graph.chains.iter().map(|chain| format!("`{}`", chain.name)).collect::<Vec<_>>().join(", "),
        }),
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::super::{Chain, Edge, Graph, Route};
    use super::*;

    fn graph(names: &[&str]) -> Graph {
        let chain = |name: &&str| Chain { name: (*name).to_owned(), operators: Vec::new() };
        Graph { name: "test".into(), chains: names.iter().map(chain).collect(), edges: Vec::new() }
    }

    fn settings(workers: usize, parallelism: u32) -> Settings {
        Settings { workers, parallelism, stages: BTreeMap::new() }
    }

    #[test]
    fn a_pipeline_spreads_over_the_workers() {
        let plan = plan(&graph(&["a", "b"]), &settings(2, 1)).unwrap();
        assert_eq!(plan.tasks.iter().map(|task| task.worker).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_loop_stays_together() {
        let mut graph = graph(&["a", "b", "c", "d"]);
        let edge = |from, to, back| Edge { name: String::new(), from, to, route: Route::Forward, back };
        graph.edges = vec![edge(0, 1, false), edge(1, 2, false), edge(2, 1, true), edge(2, 3, false)];
        let plan = plan(&graph, &settings(4, 1)).unwrap();
        assert_eq!(plan.tasks.iter().map(|task| task.worker).collect::<Vec<_>>(), [0, 1, 1, 3]);
    }

    #[test]
    fn equal_parallelism_keeps_neighbours_together() {
        let plan = plan(&graph(&["a", "b"]), &settings(2, 2)).unwrap();
        assert_eq!(plan.tasks.iter().map(|task| task.worker).collect::<Vec<_>>(), [0, 1, 0, 1]);
        assert_eq!(plan.chains[1].first_task, 2);
    }

    #[test]
    fn a_stage_has_its_own_tasks_and_workers() {
        let mut settings = settings(3, 1);
        settings.stages.insert("b".into(), (Some(4), vec![2]));
        let plan = plan(&graph(&["a", "b"]), &settings).unwrap();
        assert_eq!(plan.chains[1].tasks, 4);
        assert!(plan.tasks[1..].iter().all(|task| task.worker == 2));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let mut many = settings(1, 1);
        many.stages.insert("b".into(), (Some(257), vec![]));
        let message = plan(&graph(&["a", "b"]), &many).unwrap_err().to_string();
        assert!(message.contains("stage `b`") && message.contains("257"), "{message}");
        assert!(plan(&graph(&["a"]), &settings(1, 0)).is_err());
        assert!(plan(&graph(&["a"]), &settings(0, 1)).is_err());
        let mut unknown = settings(1, 1);
        unknown.stages.insert("x".into(), (None, vec![]));
        let message = plan(&graph(&["a"]), &unknown).unwrap_err().to_string();
        assert!(message.contains("`x`") && message.contains("`a`"), "{message}");
    }
}
