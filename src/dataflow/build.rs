//! Makes the tasks of a drawing: runs the recipes, and gives each task its ends of the rings.

use super::drawing::{Drawing, PortId};
use crate::channel::{Consumer, Gauge, Outbox, Producer, Spill, SpillLimits, ring, slot_records};
use crate::checkpoint::InputKind;
use crate::error::{BuildError, Error};
use crate::graph::{self, Plan};
use crate::operator::{EdgeEnd, Lane, Open, Pipe, Place, SKIPPED, SplitSkipped, SplitState, value};
use crate::record::Record;
use crate::runtime::{
    Care, ChannelDial, Checkpoints, Component, Config, Dials, Hydrate, Initiators, Input, Inputs, Origin, Slots,
    SourceMeter, Task, TaskDial, TaskPlace, TaskRules,
};
use crate::snapshot::{RestoredEntry, Side};
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What the recipes of one task need.
pub(super) struct Build<'a> {
    pub(super) drawing: &'a Drawing,
    pub(super) config: &'a Config,
    pub(super) plan: &'a Plan,
    /// What the start found out: splits, snapshot, place.
    pub(super) start: &'a Start,
    pub(super) grids: &'a mut Grids,
    /// The chain of the task that is being made.
    pub(super) chain: usize,
    /// The task that is being made.
    pub(super) index: u32,
    pub(super) tasks: u32,
}

/// What is the same for all tasks of a job.
pub(super) struct Start {
    pub(super) place: Place,
    pub(super) splits: BTreeMap<Arc<str>, Vec<SplitState>>,
    pub(super) restored: Vec<RestoredEntry>,
    pub(super) epoch: u64,
    pub(super) pool: crate::page::Pool,
    pub(super) hasher: crate::state::Hasher,
    pub(super) meter: SourceMeter,
    /// Records are handed on one by one.
    pub(super) care: Option<Care>,
}

/// Rings that have been made and not been given to a task yet, by edge.
#[derive(Default)]
pub(super) struct Grids {
    by_edge: BTreeMap<usize, Box<dyn Any>>,
    /// What the snapshot holds of an edge, dealt out to tasks and not fetched yet.
    pub(super) dealt: BTreeMap<usize, Box<dyn Any>>,
    components: Vec<Arc<Component>>,
    dials: Vec<ChannelDial>,
}

/// The rings of one edge: ends by task, each given away once.
struct Grid<T> {
    producers: Vec<Vec<Producer<T>>>,
    consumers: Vec<Vec<Consumer<T>>>,
}

/// The rings of one edge together take at most so many bytes; with many tasks each gets fewer records per slot.
const GRID_BYTES_MAX: usize = 256 << 20;

impl Build<'_> {
    /// The pipe that was plugged into a port.
    pub(super) fn pipe<T: 'static>(&mut self, port: PortId) -> Result<Box<dyn Pipe<T>>, Error> {
        let drawing = self.drawing;
        let make =
            drawing.reader::<T>(port).expect("ports are checked before anything is built, and typed by the stream");
        make(self)
    }

    /// Records in a batch of `T`s within a task.
    pub(super) fn batch_len<T>(&self) -> usize {
        slot_records::<T>(self.config.batch_len_max)
    }

    /// This task's outputs along an edge.
    pub(super) fn outbox<T: Send + 'static>(&mut self, edge: usize) -> Outbox<T> {
        let index = self.index as usize;
        let limit_bytes = self.config.outbox_bytes_max;
        Outbox::new(std::mem::take(&mut self.grid::<T>(edge).producers[index]), limit_bytes)
    }

    /// What this task reads from: its ends of the rings, and what the snapshot holds of them.
    pub(super) fn inputs<T: Record>(&mut self, port: PortId) -> Result<Inputs<T>, Error> {
        let (mut inputs, mut edges, mut rest) = (Vec::new(), Vec::new(), VecDeque::new());
        for (number, edge) in self.drawing.edges_into(port).into_iter().enumerate() {
            let end = self.end(edge, Side::Input);
            let back = self.drawing.graph.edges[edge].back;
            for (lane, ring) in self.consumers::<T>(edge).into_iter().enumerate() {
                let kind = if back { InputKind::Back } else { InputKind::Forward };
                let enters = !end.inside && self.component().is_some();
                let origin = Origin { edge: number, from: end.other(lane), kind, inside: end.inside, enters };
                let spill = back.then(|| Spill::new(self.spill_limits()));
                inputs.push(Input::new(origin, Slots::new(inputs.len(), ring), spill));
            }
            edges.push(end);
            rest.extend(self.rest::<T>(edge)?.into_iter().map(|batch| (number, batch)));
        }
        // As much as fits the rings once more: what is above that makes the loop wait.
        let full_bytes = (self.config.ring_capacity * self.batch_len::<T>() * size_of::<T>()) as u64;
        let (component, shared) = (self.component(), self.start.meter.clone());
        Ok(Inputs { inputs, edges, rest, component, full_bytes, shared })
    }

    /// This task's end of an edge.
    pub(super) fn end(&self, edge: usize, side: Side) -> EdgeEnd {
        let graph = &self.drawing.graph;
        let drawn = &graph.edges[edge];
        let chain = match side {
            Side::Input => drawn.to,
            Side::Output => drawn.from,
        };
        let inside = self.plan.loops.is_inside(drawn);
        let is_head = inside && self.plan.loops.is_head(drawn.to);
        EdgeEnd {
            edge: drawn.name.as_str().into(),
            chain: graph.chains[chain].name.as_str().into(),
            task: self.index,
            tasks: self.tasks,
            one_to_one: drawn.is_one_to_one(self.plan.chains[drawn.from].tasks, self.plan.chains[drawn.to].tasks),
            inside,
            head: is_head.then(|| graph.chains[drawn.to].name.as_str().into()),
        }
    }

    /// The loop that this task is part of.
    fn component(&self) -> Option<Arc<Component>> {
        self.plan.loops.component_of(self.chain).map(|number| self.grids.components[number].clone())
    }

    fn spill_limits(&self) -> SpillLimits {
        let Config { spill_memory_bytes, spill_bytes_max, .. } = *self.config;
        SpillLimits { memory_bytes: spill_memory_bytes, bytes_max: spill_bytes_max, folder: std::env::temp_dir() }
    }

    /// This task's inputs along an edge.
    fn consumers<T: Send + 'static>(&mut self, edge: usize) -> Vec<Consumer<T>> {
        let index = self.index as usize;
        std::mem::take(&mut self.grid::<T>(edge).consumers[index])
    }

    fn grid<T: Send + 'static>(&mut self, edge: usize) -> &mut Grid<T> {
        let drawn = &self.drawing.graph.edges[edge];
        let (from, to) = (self.plan.chains[drawn.from].tasks as usize, self.plan.chains[drawn.to].tasks as usize);
        let (slots, batch_len) = (self.config.ring_capacity, self.batch_len::<T>());
        let Grids { by_edge, dials, .. } = self.grids;
        let number = |chain: usize, task: usize| self.plan.chains[chain].first_task as usize + task;
        let grid = by_edge.entry(edge).or_insert_with(|| {
            let one_to_one = drawn.is_one_to_one(from as u32, to as u32);
            Box::new(Grid::<T>::new(from, to, one_to_one, slots, batch_len, |from, to, gauge| {
                let (from, to) = (number(drawn.from, from), number(drawn.to, to));
                dials.push(ChannelDial { from, to, slots: slots as u64, gauge });
            }))
        });
        grid.downcast_mut().expect("an edge is drawn and built with one type")
    }

    /// What tells the lane of a record along an edge: to be asked about the records of a snapshot, all of them in the same
    /// order at whichever task.
    pub(super) fn lane<T: 'static>(&self, edge: usize) -> Box<dyn Lane<T>> {
        let make = self.drawing.lane::<T>(edge).expect("an edge is drawn and built with one type");
        make(self)
    }

    /// What an operator with state opens with.
    pub(super) fn open(&self, operator: &Arc<str>) -> Open {
        Open {
            operator: operator.clone(),
            task: self.index,
            tasks: self.tasks,
            pool: self.start.pool.clone(),
            hasher: self.start.hasher,
            clock: self.start.meter.meter.clock().clone(),
            epoch: self.start.epoch,
        }
    }

    /// This task's share of a source's splits.
    pub(super) fn splits(&self, source: &str) -> Vec<SplitState> {
        let splits = &self.start.splits[source];
        splits.iter().skip(self.index as usize).step_by(self.tasks as usize).cloned().collect()
    }

    /// What has been skipped in these splits of a source, up to where the snapshot was made.
    pub(super) fn skipped(&self, source: &str, splits: &[SplitState]) -> Result<Vec<SplitSkipped>, Error> {
        let entries = self.restored(source).filter(|entry| entry.state == SKIPPED);
        let skipped = entries.map(|entry| value::<Vec<SplitSkipped>>(entry, self.start.epoch));
        let mut skipped = skipped.collect::<Result<Vec<_>, _>>()?.concat();
        skipped.retain(|skipped| splits.iter().any(|split| split.id == skipped.id));
        Ok(skipped)
    }

    /// What the snapshot holds of an operator's own state, from all its old tasks.
    pub(super) fn restored(&self, operator: &str) -> impl Iterator<Item = &RestoredEntry> {
        let is_own = move |entry: &&RestoredEntry| entry.operator == operator && Side::of_state(&entry.state).is_none();
        self.start.restored.iter().filter(is_own)
    }
}

impl<T: Send> Grid<T> {
    /// `shown` gets what each ring shows, with the two tasks that it connects.
    fn new(
        from: usize,
        to: usize,
        one_to_one: bool,
        slots: usize,
        batch_len: usize,
        mut shown: impl FnMut(usize, usize, Arc<Gauge>),
    ) -> Self {
        let mut grid = Self {
            producers: (0..from).map(|_| Vec::new()).collect(),
            consumers: (0..to).map(|_| Vec::new()).collect(),
        };
        let rings = if one_to_one { from } else { from * to };
        let slot_bytes_max = GRID_BYTES_MAX / rings / slots;
        let batch_len = batch_len.min((slot_bytes_max / size_of::<T>().max(1)).max(1));
        for producer in 0..from {
            for consumer in 0..to {
                if !one_to_one || producer == consumer {
                    let (mut sender, mut receiver) = ring(slots, batch_len);
                    let gauge = Arc::<Gauge>::default();
                    sender.show(gauge.clone());
                    receiver.show(gauge.clone());
                    shown(producer, consumer, gauge);
                    grid.producers[producer].push(sender);
                    grid.consumers[consumer].push(receiver);
                }
            }
        }
        grid
    }
}

/// Makes all tasks, and what they and their channels show.
pub(super) fn tasks(
    drawing: &Drawing,
    config: &Config,
    plan: &Plan,
    start: &Start,
) -> Result<(Vec<Task>, Dials), Error> {
    let heads =
        |component: &graph::Component| component.heads.iter().map(|&chain| plan.chains[chain].tasks as usize).sum();
    let components = plan.loops.components.iter().map(|component| Arc::new(Component::new(heads(component))));
    let mut grids = Grids { components: components.collect(), ..Grids::default() };
    let mut dials = Dials::default();
    let initiates = initiators(drawing, config, plan);
    let mut tasks = Vec::with_capacity(plan.tasks.len());
    let hydrates = config.checkpoints.as_ref().is_some_and(|kept| kept.hydrate == Hydrate::Background);
    for (number, task) in plan.tasks.iter().enumerate() {
        let mut build = Build {
            drawing,
            config,
            plan,
            start,
            grids: &mut grids,
            chain: task.chain,
            index: task.index,
            tasks: plan.chains[task.chain].tasks,
        };
        let body = drawing.roots[task.chain](&mut build)?;
        let chain = &drawing.graph.chains[task.chain];
        let component = plan.loops.component_of(task.chain).map(|number| grids.components[number].clone());
        let (protocol, initiates) = (config.protocol(), initiates[number]);
        let rules = TaskRules { protocol, initiates, epoch: start.epoch, component };
        let place = TaskPlace { number: number as u32, name: chain.name.as_str().into(), index: task.index };
        let made = Task::new(place, body, rules, hydrates);
        let operators = chain.operators.iter().map(|operator| operator.name.clone()).collect();
        let gauge = made.gauge().clone();
        dials.tasks.push(TaskDial::new(chain.name.as_str().into(), task.index, task.worker, operators, gauge));
        tasks.push(made);
    }
    dials.channels = grids.dials;
    Ok((tasks, dials))
}

/// Checks that whoever is to begin cuts is there.
pub(super) fn check_initiators(graph: &graph::Graph, config: &Config) -> Result<(), BuildError> {
    let Some(Initiators::Named(names)) = config.checkpoints.as_ref().map(Checkpoints::begun_by) else {
        return Ok(());
    };
    let Some(name) = names.iter().find(|name| !graph.chains.iter().any(|chain| is_named(chain, name))) else {
        return Ok(());
    };
    let known: Vec<String> = graph.chains.iter().map(|chain| format!("`{}`", chain.name)).collect();
    Err(BuildError::UnknownStage { name: name.clone(), known: known.join(", ") })
}

fn is_named(chain: &graph::Chain, name: &str) -> bool {
    chain.name == name || chain.operators.iter().any(|operator| operator.name == name)
}

/// Of each task: whether it begins cuts by itself (protocols, rule 18). Those that no marker would reach begin too.
fn initiators(drawing: &Drawing, config: &Config, plan: &Plan) -> Vec<bool> {
    let graph = &drawing.graph;
    let wanted = config.checkpoints.as_ref().map_or(&Initiators::Sources, Checkpoints::begun_by);
    let begins = |chain: usize| match wanted {
        Initiators::Sources => !graph.edges.iter().any(|edge| edge.to == chain),
        Initiators::All => true,
        Initiators::Named(names) => names.iter().any(|name| is_named(&graph.chains[chain], name)),
    };
    let mut initiates: Vec<bool> = plan.tasks.iter().map(|task| begins(task.chain)).collect();
    let chosen: Vec<u32> = (0..plan.tasks.len() as u32).filter(|task| initiates[*task as usize]).collect();
    let unreached = graph::unreached(graph, plan, &chosen);
    if !unreached.is_empty() {
        tracing::info!(tasks = ?unreached, "no marker would reach these tasks: they begin cuts by themselves");
    }
    unreached.into_iter().for_each(|task| initiates[task as usize] = true);
    initiates
}

/// Checks that every port is read.
pub(super) fn check_ports(drawing: &Drawing) -> Result<(), BuildError> {
    match drawing.ports.iter().find(|port| port.reader.is_none()) {
        Some(port) => Err(BuildError::Unread { operator: port.operator.clone() }),
        None => Ok(()),
    }
}
