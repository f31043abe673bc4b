//! What a user draws with: [`Stream`], and [`KeyedStream`] behind a `key_by`.

use super::build::Build;
use super::drawing::{Drawing, PortId, SinkDrawn, named, unnamed};
use super::keyed::KeyedStream;
use crate::channel::Inbox;
use crate::error::{BuildError, Error};
use crate::graph::{Keeps, Operator, Route};
use crate::operator::{
    Borrowed, Branches, ByKey, Chain, Closure, Computed, Filter, FilterMap, FlatMap, InTurn, Inspect, KeyOf, Map, Out,
    PickLane, Pipe, Rings, Sink, Stage, Start, Then, TryMap, Writing, blamed,
};
use crate::record::Record;
use crate::runtime::Entry;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

/// Records on their way from one operator to the next.
///
/// `C` is the chain of fused operators since the last boundary; code that takes or returns a stream writes
/// `Stream<T>` or `Stream<T, impl Stage<Out = T>>`.
#[must_use = "a stream that nothing reads is an error when the dataflow starts: end it with `.sink(…)`"]
pub struct Stream<T, C = Start<T>> {
    pub(super) drawing: Rc<RefCell<Drawing>>,
    pub(super) port: PortId,
    stages: C,
    /// Fused operators that are not in the drawing yet.
    operators: Vec<Operator>,
    types: PhantomData<fn() -> T>,
}

impl<T, C> fmt::Debug for Stream<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fused: Vec<&str> = self.operators.iter().map(|operator| operator.name.as_str()).collect();
        f.debug_struct("Stream").field("fused", &fused).finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Stream<T> {
    pub(super) fn at(drawing: Rc<RefCell<Drawing>>, port: PortId) -> Self {
        Self { drawing, port, stages: Start::new(), operators: Vec::new(), types: PhantomData }
    }
}

// The type of a stream spells out its chain; an alias would hide just that.
#[allow(clippy::type_complexity)]
impl<T: Send + 'static, C: Stage<Out = T>> Stream<T, C> {
    fn then<S: Stage<In = T>>(mut self, operator: Operator, stage: S) -> Stream<S::Out, Then<C, S>> {
        self.operators.push(operator);
        let stages = Then::new(self.stages, stage);
        Stream { drawing: self.drawing, port: self.port, stages, operators: self.operators, types: PhantomData }
    }

    /// Each record becomes another.
    #[track_caller]
    pub fn map<U, F>(self, f: F) -> Stream<U, Then<C, Map<T, U, F>>>
    where
        U: Send + 'static,
        F: Fn(T) -> U + Send + Sync + 'static,
    {
        let operator = unnamed("map", Location::caller());
        let stage = Map::new(operator.name.as_str().into(), f);
        self.then(operator, stage)
    }

    /// Keeps the records for which `f` says true.
    #[track_caller]
    pub fn filter<F>(self, f: F) -> Stream<T, Then<C, Filter<T, F>>>
    where
        F: Fn(&T) -> bool + Send + Sync + 'static,
    {
        let operator = unnamed("filter", Location::caller());
        let stage = Filter::new(operator.name.as_str().into(), f);
        self.then(operator, stage)
    }

    /// Each record becomes another, or nothing.
    #[track_caller]
    pub fn filter_map<U, F>(self, f: F) -> Stream<U, Then<C, FilterMap<T, U, F>>>
    where
        U: Send + 'static,
        F: Fn(T) -> Option<U> + Send + Sync + 'static,
    {
        let operator = unnamed("filter_map", Location::caller());
        let stage = FilterMap::new(operator.name.as_str().into(), f);
        self.then(operator, stage)
    }

    /// Each record becomes any number of others.
    #[track_caller]
    pub fn flat_map<I, F>(self, f: F) -> Stream<I::Item, Then<C, FlatMap<T, I, F>>>
    where
        I: IntoIterator + Send + 'static,
        I::Item: Send + 'static,
        F: Fn(T) -> I + Send + Sync + 'static,
    {
        let operator = unnamed("flat_map", Location::caller());
        let stage = FlatMap::new(operator.name.as_str().into(), f);
        self.then(operator, stage)
    }

    /// Each record becomes another, or an error that stops the job and names the operator, task, epoch and record.
    #[track_caller]
    pub fn try_map<U, X, F>(self, f: F) -> Stream<U, Then<C, TryMap<T, U, X, F>>>
    where
        U: Send + 'static,
        X: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
        F: Fn(T) -> Result<U, X> + Send + Sync + 'static,
    {
        let operator = unnamed("try_map", Location::caller());
        let stage = TryMap::new(operator.name.as_str().into(), f);
        self.then(operator, stage)
    }

    /// Looks at each record and hands it on.
    #[track_caller]
    pub fn inspect<F>(self, f: F) -> Stream<T, Then<C, Inspect<T, F>>>
    where
        F: Fn(&T) + Send + Sync + 'static,
    {
        let operator = unnamed("inspect", Location::caller());
        let stage = Inspect::new(operator.name.as_str().into(), f);
        self.then(operator, stage)
    }

    /// Two streams with every record on both.
    #[track_caller]
    pub fn fork(self) -> (Stream<T>, Stream<T>)
    where
        T: Clone,
    {
        let operator = unnamed("fork", Location::caller());
        let Self { drawing, port, stages, mut operators, .. } = self;
        let name = operator.name.clone();
        operators.push(operator);
        let mut draw = drawing.borrow_mut();
        draw.operators(port, operators);
        let ports = [draw.port_behind(port, &name), draw.port_behind(port, &name)];
        draw.plug::<C::In>(
            port,
            Box::new(move |build| {
                let batch_len = build.batch_len::<T>();
                let branch = |port| Ok::<_, Error>(Out::new(batch_len, build.pipe::<T>(port)?));
                let branches = ports.into_iter().map(branch).collect::<Result<_, _>>()?;
                Ok(Box::new(Chain::new(stages.replicate(), Branches(branches))))
            }),
        );
        drop(draw);
        (Stream::at(drawing.clone(), ports[0]), Stream::at(drawing, ports[1]))
    }

    /// Ends the stream in what `make` makes for each task, of the chain of stages so far.
    pub(super) fn end(
        self,
        operator: Operator,
        make: impl Fn(&mut Build<'_>, C) -> Result<Box<dyn Pipe<C::In>>, Error> + Send + 'static,
    ) {
        let Self { drawing, port, stages, mut operators, .. } = self;
        operators.push(operator);
        let mut draw = drawing.borrow_mut();
        draw.operators(port, operators);
        draw.plug::<C::In>(port, Box::new(move |build| make(build, stages.replicate())));
    }

    /// Ends the stream in a sink. The name finds its uncommitted parts again.
    #[track_caller]
    pub fn sink<S: Sink<In = T>>(self, name: &str, sink: S) {
        let keeps = if sink.exactly_once() { Keeps::Parts } else { Keeps::Nothing };
        let operator = named(name, "sink", Location::caller(), keeps);
        let (name, sink) = (Arc::<str>::from(name), Arc::new(sink));
        self.drawing.borrow_mut().sinks.push(SinkDrawn {
            name: name.clone(),
            exactly_once: sink.exactly_once(),
            claim: Box::new({
                let sink = sink.clone();
                move |place| Ok(sink.claim(place)?)
            }),
        });
        self.end(operator, move |build, stages| {
            let writer = blamed(&name, || sink.writer(&build.start.place, build.index))?;
            Ok(Box::new(Chain::new(stages, Writing::new(name.clone(), writer))))
        });
    }
}

// `T: Record` stands at each method: stood it here, the compiler would miss the method and not say what is no record.
impl<T: Send + 'static, C: Stage<Out = T>> Stream<T, C> {
    /// Begins a stage of its own, behind a ring: configuration can give it its own parallelism and cores.
    #[track_caller]
    pub fn stage(self, name: &str) -> Stream<T>
    where
        T: Record,
    {
        let first = named(name, "stage", Location::caller(), Keeps::Nothing);
        let drawing = self.drawing.clone();
        let entry = RingEntry::draw::<T>(&drawing, first);
        self.into_rings(&entry, Route::Forward, in_turn::<T>);
        Stream::at(drawing, entry.port)
    }

    /// The records of both streams, in no particular order between them.
    #[track_caller]
    pub fn merge<D: Stage<Out = T>>(self, other: Stream<T, D>) -> Stream<T>
    where
        T: Record,
    {
        let first = unnamed("merge", Location::caller());
        let drawing = self.drawing.clone();
        let same = Rc::ptr_eq(&drawing, &other.drawing);
        if !same {
            drawing.borrow_mut().mistake = Some(BuildError::TwoDataflows { operator: first.name.clone() });
        }
        let entry = RingEntry::draw::<T>(&drawing, first);
        self.into_rings(&entry, Route::Forward, in_turn::<T>);
        if same {
            other.into_rings(&entry, Route::Forward, in_turn::<T>);
        }
        Stream::at(drawing, entry.port)
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
        let drawing = self.drawing.clone();
        let entry = RingEntry::draw::<T>(&drawing, operator);
        let of_record = key.clone();
        self.into_rings(&entry, Route::Key, move |build| {
            let (key, hasher, mut scratch) = (of_record.clone(), build.start.hasher, Vec::new());
            ByKey(move |record: &T| key.call(|key| key.with(record, |key| hasher.hash(key, &mut scratch))))
        });
        KeyedStream::new(Stream::at(drawing, entry.port), key)
    }

    /// Ends the chain in rings to the tasks of another.
    fn into_rings<R: PickLane<T> + 'static>(
        self,
        to: &RingEntry,
        route: Route,
        make_route: impl Fn(&Build<'_>) -> R + Send + 'static,
    ) where
        T: Record,
    {
        let Self { drawing, port, stages, operators, .. } = self;
        let mut draw = drawing.borrow_mut();
        draw.operators(port, operators);
        let edge = draw.edge(port, to.chain, route);
        draw.plug::<C::In>(
            port,
            Box::new(move |build| {
                let rings = Rings::new(build.outbox::<T>(edge), make_route(build));
                Ok(Box::new(Chain::new(stages.replicate(), rings)))
            }),
        );
    }
}

fn in_turn<T>(build: &Build<'_>) -> InTurn {
    InTurn::new(build.index as usize, build.batch_len::<T>())
}

/// The beginning of a chain that takes its records from rings.
struct RingEntry {
    chain: usize,
    port: PortId,
}

impl RingEntry {
    fn draw<T: Record>(drawing: &Rc<RefCell<Drawing>>, first: Operator) -> Self {
        let mut draw = drawing.borrow_mut();
        let port = draw.chain(first, |port| {
            Box::new(move |build| {
                let edges = build.drawing.edges_into(port);
                let consumers = edges.into_iter().flat_map(|edge| build.consumers::<T>(edge)).collect();
                Ok(Box::new(Entry::new(Inbox::new(consumers), build.pipe::<T>(port)?, build.start.care.clone())))
            })
        });
        Self { chain: draw.chain_of(port), port }
    }
}
