//! Makes the tasks of a drawing: runs the recipes, and gives each task its ends of the rings.

use super::drawing::{Drawing, PortId};
use crate::channel::{Consumer, Gauge, Outbox, Producer, ring, slot_records};
use crate::error::{BuildError, Error};
use crate::graph::Plan;
use crate::operator::{Lane, Open, Pipe, Place, SKIPPED, SplitSkipped, SplitState, value};
use crate::runtime::{Care, ChannelDial, Config, Dials, Hydrate, SourceMeter, Task, TaskDial};
use crate::snapshot::RestoredEntry;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the recipes of one task need.
pub(super) struct Build<'a> {
    pub(super) drawing: &'a Drawing,
    pub(super) config: &'a Config,
    pub(super) plan: &'a Plan,
    /// What the start found out: splits, snapshot, place.
    pub(super) start: &'a Start,
    pub(super) grids: &'a mut Grids,
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

    /// This task's inputs along an edge.
    pub(super) fn consumers<T: Send + 'static>(&mut self, edge: usize) -> Vec<Consumer<T>> {
        let index = self.index as usize;
        std::mem::take(&mut self.grid::<T>(edge).consumers[index])
    }

    fn grid<T: Send + 'static>(&mut self, edge: usize) -> &mut Grid<T> {
        let drawn = &self.drawing.graph.edges[edge];
        let (from, to) = (self.plan.chains[drawn.from].tasks as usize, self.plan.chains[drawn.to].tasks as usize);
        let (slots, batch_len) = (self.config.ring_capacity, self.batch_len::<T>());
        let Grids { by_edge, dials } = self.grids;
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
    #[expect(dead_code, reason = "restored records are routed with it")]
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

    /// What the snapshot holds of an operator, from all its old tasks.
    pub(super) fn restored(&self, operator: &str) -> impl Iterator<Item = &RestoredEntry> {
        self.start.restored.iter().filter(move |entry| entry.operator == operator)
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
    let (mut grids, mut dials) = (Grids::default(), Dials::default());
    let mut tasks = Vec::with_capacity(plan.tasks.len());
    let hydrates = config.checkpoints.as_ref().is_some_and(|kept| kept.hydrate == Hydrate::Background);
    for (number, task) in plan.tasks.iter().enumerate() {
        let mut build = Build {
            drawing,
            config,
            plan,
            start,
            grids: &mut grids,
            index: task.index,
            tasks: plan.chains[task.chain].tasks,
        };
        let body = drawing.roots[task.chain](&mut build)?;
        let chain = &drawing.graph.chains[task.chain];
        let made = Task::new(number as u32, chain.name.as_str().into(), task.index, body, start.epoch, hydrates);
        let operators = chain.operators.iter().map(|operator| operator.name.clone()).collect();
        let gauge = made.gauge().clone();
        dials.tasks.push(TaskDial::new(chain.name.as_str().into(), task.index, task.worker, operators, gauge));
        tasks.push(made);
    }
    dials.channels = grids.dials;
    Ok((tasks, dials))
}

/// Checks that every port is read.
pub(super) fn check_ports(drawing: &Drawing) -> Result<(), BuildError> {
    match drawing.ports.iter().find(|port| port.reader.is_none()) {
        Some(port) => Err(BuildError::Unread { operator: port.operator.clone() }),
        None => Ok(()),
    }
}
