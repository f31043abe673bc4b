//! Where a stream goes on to the tasks of another chain, over rings: as it is, by key, to each in turn or to all.

use super::build::Build;
use super::drawing::{Drawing, MakeLane, PortId, named, unnamed};
use super::keyed::KeyedStream;
use super::stream::Stream;
use crate::error::BuildError;
use crate::graph::{Keeps, Operator, Route};
use crate::operator::{Borrowed, ByKey, Chain, Closure, Computed, InTurn, KeyOf, Rings, SendTo, Stage, ToAll};
use crate::record::Record;
use crate::runtime::Entry;
use crate::snapshot::Side;
use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;

// `T: Record` stands at each method: stood it here, the compiler would miss the method and not say what is no record.
impl<T: Send + 'static, C: Stage<Out = T>> Stream<T, C> {
    /// Begins a stage of its own, behind a ring: configuration can give it its own parallelism and cores. Where the
    /// parallelism stays the same each task hands on to one other, else to each in turn.
    #[track_caller]
    pub fn stage(self, name: &str) -> Stream<T>
    where
        T: Record,
    {
        let first = named(name, "stage", Location::caller(), Keeps::Nothing);
        self.repartitioned(first, Route::Forward, in_turn::<T>)
    }

    /// Begins a stage of its own in which *every task* gets *every record*: a stage of four tasks emits four times what
    /// one would. For what each task is to know or do by itself.
    #[track_caller]
    pub fn broadcast(self, name: &str) -> Stream<T>
    where
        T: Record + Clone,
    {
        let first = named(name, "broadcast", Location::caller(), Keeps::Nothing);
        self.repartitioned(first, Route::Broadcast, |_, _| ToAll)
    }

    /// Deals the records out evenly over all tasks of what follows, a batch to each in turn, also where the parallelism
    /// stays the same: against a source whose splits differ in size, or operators of which some tasks get more to do.
    #[track_caller]
    pub fn rebalance(self) -> Stream<T>
    where
        T: Record,
    {
        self.repartitioned(unnamed("rebalance", Location::caller()), Route::Rebalance, in_turn::<T>)
    }

    /// The records of both streams, in no particular order between them.
    #[track_caller]
    pub fn merge<D: Stage<Out = T>>(self, other: Stream<T, D>) -> Stream<T>
    where
        T: Record,
    {
        let entry = RingEntry::draw::<T>(&self.drawing, unnamed("merge", Location::caller()));
        entry.take_in(self);
        entry.take_in(other);
        entry.stream()
    }

    /// The records of all these streams, in no particular order between them. [`Stream::boxed`] makes streams of
    /// different chains fit.
    ///
    /// ```
    /// # use snapring::connector::{Collect, Items};
    /// # use snapring::{Config, Dataflow};
    /// let all = Collect::new();
    /// let flow = Dataflow::new("union");
    /// let ones = flow.source("ones", Items::new(vec![1, 2]));
    /// let tens = flow.source("tens", Items::new(vec![1, 2])).map(|number| number * 10);
    /// let hundreds = flow.source("hundreds", Items::new(vec![1])).map(|number| number * 100);
    /// ones.union([tens.boxed(), hundreds.boxed()]).sink("all", all.clone());
    /// flow.start(Config::new().unpinned_workers(1))?.wait()?;
    /// assert_eq!(all.take().iter().sum::<i32>(), 133);
    /// # Ok::<(), snapring::Error>(())
    /// ```
    #[track_caller]
    pub fn union(self, others: impl IntoIterator<Item = Stream<T>>) -> Stream<T>
    where
        T: Record,
    {
        let entry = RingEntry::draw::<T>(&self.drawing, unnamed("union", Location::caller()));
        entry.take_in(self);
        others.into_iter().for_each(|other| entry.take_in(other));
        entry.stream()
    }

    /// Brings records with the same key to the same task. `key` must always give the same key for the same record.
    #[track_caller]
    pub fn key_by<K, F>(self, key: F) -> KeyedStream<T, Computed<F>>
    where
        T: Record,
        K: Record,
        F: Fn(&T) -> K + Send + Sync + 'static,
    {
        self.keyed(Computed(key), unnamed("key_by", Location::caller()))
    }

    /// As [`Stream::key_by`], where the key is a part of the record: it is cloned only where it goes on alone.
    #[track_caller]
    pub fn key_by_ref<K, F>(self, key: F) -> KeyedStream<T, Borrowed<F>>
    where
        T: Record,
        K: Record + Clone,
        F: Fn(&T) -> &K + Send + Sync + 'static,
    {
        self.keyed(Borrowed(key), unnamed("key_by_ref", Location::caller()))
    }

    fn keyed<B: KeyOf<T>>(self, key: B, operator: Operator) -> KeyedStream<T, B>
    where
        T: Record,
    {
        let key = Closure::new(operator.name.as_str().into(), key);
        let of_record = key.clone();
        let stream = self.repartitioned(operator, Route::Key, move |build, _| {
            let (key, hasher, mut scratch) = (of_record.clone(), build.start.hasher, Vec::new());
            ByKey(move |record: &T| key.call(|key| key.with(record, |key| hasher.hash(key, &mut scratch))))
        });
        KeyedStream::new(stream, key)
    }

    /// Goes on at the beginning of a chain of its own.
    fn repartitioned<R: SendTo<T> + 'static>(
        self,
        first: Operator,
        route: Route,
        make_route: impl MakeRoute<R>,
    ) -> Stream<T>
    where
        T: Record,
    {
        let entry = RingEntry::draw::<T>(&self.drawing, first);
        self.into_rings(&entry, Way { route, back: false }, make_route);
        entry.stream()
    }

    /// Ends the chain in rings to the tasks of another.
    fn into_rings<R: SendTo<T> + 'static>(self, to: &RingEntry, way: Way, make_route: impl MakeRoute<R>)
    where
        T: Record,
    {
        let Self { drawing, port, stages, operators, .. } = self;
        let mut draw = drawing.borrow_mut();
        draw.operators(port, operators);
        let make_lane = make_route.clone();
        // From the same lane on at whichever task: each finds the same lane for the same record.
        let lane: MakeLane<T> = Box::new(move |build| Box::new(make_lane(build, 0)));
        let edge = draw.edge(port, to.chain, way.route, way.back, lane);
        draw.plug::<C::In>(
            port,
            Box::new(move |build| {
                let (outbox, end) = (build.outbox::<T>(edge), build.end(edge, Side::Output));
                let rings = Rings::new(outbox, make_route(build, build.index as usize), end);
                Ok(Box::new(Chain::new(stages.replicate(), rings)))
            }),
        );
    }
}

/// Makes the route of a task's records; it is told the lane to begin at, where that is free.
trait MakeRoute<R>: Fn(&Build<'_>, usize) -> R + Clone + Send + 'static {}

impl<R, F: Fn(&Build<'_>, usize) -> R + Clone + Send + 'static> MakeRoute<R> for F {}

fn in_turn<T>(build: &Build<'_>, first: usize) -> InTurn {
    InTurn::new(first, build.batch_len::<T>())
}

/// What kind of edge it is.
#[derive(Clone, Copy)]
struct Way {
    route: Route,
    back: bool,
}

/// The beginning of a chain that takes its records from rings.
pub(super) struct RingEntry {
    drawing: Rc<RefCell<Drawing>>,
    name: String,
    chain: usize,
    port: PortId,
}

impl RingEntry {
    pub(super) fn draw<T: Record>(drawing: &Rc<RefCell<Drawing>>, first: Operator) -> Self {
        let name = first.name.clone();
        let mut draw = drawing.borrow_mut();
        let port = draw.chain(first, |port| {
            Box::new(move |build| {
                let inputs = build.inputs::<T>(port)?;
                let (pipe, care) = (build.pipe::<T>(port)?, build.start.care.clone());
                Ok(Box::new(Entry::new(inputs, pipe, care)))
            })
        });
        Self { drawing: drawing.clone(), name, chain: draw.chain_of(port), port }
    }

    /// Leads a stream into it. One of another dataflow is a mistake, told when the dataflow starts.
    pub(super) fn take_in<T: Record, C: Stage<Out = T>>(&self, stream: Stream<T, C>) {
        self.join(stream, false);
    }

    /// Leads a stream back into it.
    pub(super) fn take_back<T: Record, C: Stage<Out = T>>(&self, stream: Stream<T, C>) {
        self.join(stream, true);
    }

    fn join<T: Record, C: Stage<Out = T>>(&self, stream: Stream<T, C>, back: bool) {
        if Rc::ptr_eq(&self.drawing, &stream.drawing) {
            stream.into_rings(self, Way { route: Route::Forward, back }, in_turn::<T>);
        } else {
            self.drawing.borrow_mut().mistake = Some(BuildError::TwoDataflows { operator: self.name.clone() });
        }
    }

    pub(super) fn stream<T: Send + 'static>(&self) -> Stream<T> {
        Stream::at(self.drawing.clone(), self.port)
    }
}
