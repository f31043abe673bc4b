//! What can be done where records with the same key meet.

use super::build::Build;
use super::drawing::named;
use super::stream::Stream;
use crate::error::Error;
use crate::graph::Keeps;
use crate::operator::{
    Closure, Counting, Fold, FromInitial, Keep, KeyOf, KeyedState, Operate, Operating, Operator, Out, Process,
    Reducing, Step, TABLE, Tables,
};
use crate::record::Record;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// Records, each at the task that its key belongs to. `B` tells the key.
#[must_use = "a stream that nothing reads is an error when the dataflow starts: continue it with `.fold(…)` or the like"]
pub struct KeyedStream<T, B> {
    stream: Stream<T>,
    key: Closure<B>,
}

impl<T, B> fmt::Debug for KeyedStream<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedStream").finish_non_exhaustive()
    }
}

impl<T: Record, B: KeyOf<T>> KeyedStream<T, B> {
    pub(super) fn new(stream: Stream<T>, key: Closure<B>) -> Self {
        Self { stream, key }
    }

    /// Keeps a value per key, beginning with `initial`, that `f` changes with each record. Emits `(key, value)` after each.
    #[track_caller]
    pub fn fold<S, F>(self, name: &str, initial: S, f: F) -> Stream<(B::Key, S)>
    where
        B::Key: Clone,
        S: Record + Clone + Sync,
        F: Fn(&mut S, T) + Send + Sync + 'static,
    {
        let f = Closure::new(name.into(), f);
        self.folded(name, "fold", false, move || FromInitial(initial.clone(), f.clone()))
    }

    /// As [`KeyedStream::fold`], but emits each key once, when the input has ended.
    #[track_caller]
    pub fn fold_to_end<S, F>(self, name: &str, initial: S, f: F) -> Stream<(B::Key, S)>
    where
        B::Key: Clone,
        S: Record + Clone + Sync,
        F: Fn(&mut S, T) + Send + Sync + 'static,
    {
        let f = Closure::new(name.into(), f);
        self.folded(name, "fold_to_end", true, move || FromInitial(initial.clone(), f.clone()))
    }

    /// Joins the records of a key into one: the first stays as it is, `f` takes each further one into it. Emits
    /// `(key, record)` after each.
    #[track_caller]
    pub fn reduce<F>(self, name: &str, f: F) -> Stream<(B::Key, T)>
    where
        B::Key: Clone,
        T: Clone,
        F: Fn(&mut T, T) + Send + Sync + 'static,
    {
        let f = Closure::new(name.into(), f);
        self.folded(name, "reduce", false, move || Reducing(f.clone()))
    }

    /// Counts the records of each key. Emits `(key, count)` after each record.
    #[track_caller]
    pub fn count(self, name: &str) -> Stream<(B::Key, u64)>
    where
        B::Key: Clone,
    {
        self.folded(name, "count", false, || Counting)
    }

    /// What an operator of one's own makes of the records: see [`Operator`].
    #[track_caller]
    pub fn process<O>(self, name: &str, operator: O) -> Stream<O::Out>
    where
        O: Operator<Key = B::Key, In = T>,
    {
        let operator = Arc::new(operator);
        let tables = <O::State as KeyedState>::Kept::<O::Key>::tables();
        self.with_state(name, "process", tables, move |build, key, name| {
            Process::open(build.open(name), key.clone(), operator.clone(), build.restored(name))
        })
    }

    #[track_caller]
    fn folded<S>(
        self,
        name: &str,
        kind: &'static str,
        at_end: bool,
        step: impl Fn() -> S + Send + 'static,
    ) -> Stream<(B::Key, S::Value)>
    where
        S: Step<T>,
        S::Value: Clone,
        B::Key: Clone,
    {
        let mut tables = Tables::default();
        tables.add::<B::Key, S::Value>(TABLE.to_owned());
        self.with_state(name, kind, tables, move |build, key, name| {
            Fold::open(build.open(name), key.clone(), step(), at_end, build.restored(name))
        })
    }

    /// Draws an operator that keeps these tables; `open` makes that of a task.
    #[track_caller]
    fn with_state<O>(
        self,
        name: &str,
        kind: &'static str,
        tables: Tables,
        open: impl Fn(&Build<'_>, &Closure<B>, &Arc<str>) -> Result<O, Error> + Send + 'static,
    ) -> Stream<O::Out>
    where
        O: Operate<In = T, Out: Send> + 'static,
    {
        let Self { stream, key } = self;
        let operator = named(name, kind, Location::caller(), Keeps::State);
        let name = Arc::<str>::from(name);
        let drawing = stream.drawing;
        let mut draw = drawing.borrow_mut();
        draw.operators(stream.port, [operator]);
        draw.tables.push((name.clone(), tables));
        let port = draw.port_behind(stream.port, &name);
        draw.plug::<T>(
            stream.port,
            Box::new(move |build| {
                let operator = open(build, &key, &name)?;
                let out = Out::new(build.batch_len::<O::Out>(), build.pipe(port)?);
                Ok(Box::new(Operating::new(name.clone(), operator, out)))
            }),
        );
        drop(draw);
        Stream::at(drawing, port)
    }
}
