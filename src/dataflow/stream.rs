//! What a user draws with: [`Stream`], the operators that fuse into its chain, and the sinks that end it.

use super::build::Build;
use super::drawing::{Drawing, PortId, SinkDrawn, named, unnamed};
use crate::error::Error;
use crate::graph::{Keeps, Operator};
use crate::operator::stages::{Filter, FilterMap, FlatMap, Inspect, Map, Start, Then, TryMap};
use crate::operator::{Chain, Pipe, Sink, Stage, Writing, blamed};
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
    pub(super) stages: C,
    /// Fused operators that are not in the drawing yet.
    pub(super) operators: Vec<Operator>,
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

impl<T, C> Stream<T, C> {
    /// The same, with its records' type by the name that the caller has for it.
    pub(super) fn of<R>(self) -> Stream<R, C>
    where
        C: Stage<Out = R>,
    {
        let Self { drawing, port, stages, operators, .. } = self;
        Stream { drawing, port, stages, operators, types: PhantomData }
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
