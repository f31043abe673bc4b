//! Where a stream parts into several within its tasks: no record is copied (but by a fork), and no ring lies between.

use super::build::Build;
use super::drawing::{PortId, unnamed};
use super::stream::Stream;
use crate::error::Error;
use crate::graph::Operator;
use crate::operator::{ByResult, Chain, Closure, Fan, Out, Output, Stage, ToEach, ToPicked};
use std::panic::Location;

impl<T: Send + 'static, C: Stage<Out = T>> Stream<T, C> {
    /// Two streams with every record on both.
    #[track_caller]
    pub fn fork(self) -> (Stream<T>, Stream<T>)
    where
        T: Clone,
    {
        let ends = self.ends::<2>(unnamed("fork", Location::caller()));
        let ports = ends.ports;
        let [one, other] = ends.plug(move |build| Ok(Fan::new(outs(build, &ports)?, ToEach)));
        (one, other)
    }

    /// Two streams: of the records for which `f` says true, and of the others.
    ///
    /// ```
    /// # use snapring::connector::{Collect, Items};
    /// # use snapring::{Config, Dataflow};
    /// let (small, large) = (Collect::new(), Collect::new());
    /// let flow = Dataflow::new("sizes");
    /// let (below, above) = flow.source("numbers", Items::new(vec![1, 20, 3])).split(|number| *number < 10);
    /// below.sink("small", small.clone());
    /// above.sink("large", large.clone());
    /// flow.start(Config::new().unpinned_workers(1))?.wait()?;
    /// assert_eq!((small.take(), large.take()), (vec![1, 3], vec![20]));
    /// # Ok::<(), snapring::Error>(())
    /// ```
    #[track_caller]
    pub fn split<F>(self, f: F) -> (Stream<T>, Stream<T>)
    where
        F: Fn(&T) -> bool + Send + Sync + 'static,
    {
        let [yes, no] = self.parted(unnamed("split", Location::caller()), move |record| usize::from(!f(record)));
        (yes, no)
    }

    /// `N` streams: each record goes on the one whose number `f` says, from 0. A number above stops the job.
    ///
    /// ```
    /// # use snapring::connector::{Discard, Items};
    /// # use snapring::{Config, Dataflow};
    /// let flow = Dataflow::new("remainders");
    /// let remainders: [_; 3] = flow.source("numbers", Items::new(vec![1, 20, 3])).split_by(|number| number % 3);
    /// for (number, stream) in remainders.into_iter().enumerate() {
    ///     stream.sink(&format!("remainder {number}"), Discard::new());
    /// }
    /// # flow.start(Config::new().unpinned_workers(1))?.wait()?;
    /// # Ok::<(), snapring::Error>(())
    /// ```
    #[track_caller]
    pub fn split_by<const N: usize, F>(self, f: F) -> [Stream<T>; N]
    where
        F: Fn(&T) -> usize + Send + Sync + 'static,
    {
        self.parted(unnamed("split_by", Location::caller()), f)
    }

    /// The same stream with its chain forgotten, so that streams of different chains fit one collection (see
    /// [`Stream::union`]) or one variable. No ring; one dynamic call a batch.
    #[track_caller]
    pub fn boxed(self) -> Stream<T> {
        let ends = self.ends::<1>(unnamed("boxed", Location::caller()));
        let [port] = ends.ports;
        let [stream] = ends.plug(move |build| out(build, port));
        stream
    }

    fn parted<const N: usize, F>(self, operator: Operator, f: F) -> [Stream<T>; N]
    where
        F: Fn(&T) -> usize + Send + Sync + 'static,
    {
        let pick = Closure::new(operator.name.as_str().into(), f);
        let ends = self.ends::<N>(operator);
        let ports = ends.ports;
        ends.plug(move |build| Ok(Fan::new(outs(build, &ports)?, ToPicked(pick.clone()))))
    }
}

impl<T: Send + 'static, X: Send + 'static, C: Stage<Out = Result<T, X>>> Stream<Result<T, X>, C> {
    /// Two streams: of what is right, and of what went wrong. The way for bad records to leave by the side while the job
    /// runs on.
    ///
    /// ```
    /// # use snapring::connector::{Collect, Items};
    /// # use snapring::{Config, Dataflow};
    /// let (numbers, errors) = (Collect::new(), Collect::new());
    /// let flow = Dataflow::new("parse");
    /// let texts = flow.source("texts", Items::new(vec!["7".to_owned(), "seven".to_owned()]));
    /// let (right, wrong) = texts.map(|text| text.parse::<u64>().map_err(|_| text)).partition_result();
    /// right.sink("numbers", numbers.clone());
    /// wrong.sink("errors", errors.clone());
    /// flow.start(Config::new().unpinned_workers(1))?.wait()?;
    /// assert_eq!((numbers.take(), errors.take()), (vec![7], vec!["seven".to_owned()]));
    /// # Ok::<(), snapring::Error>(())
    /// ```
    #[track_caller]
    pub fn partition_result(self) -> (Stream<T>, Stream<X>) {
        let ends = self.ends::<2>(unnamed("partition_result", Location::caller()));
        let (drawing, [right, wrong]) = (ends.stream.drawing.clone(), ends.ports);
        let [_, _] = ends.plug(move |build| Ok(Fan::new((out(build, right)?, out(build, wrong)?), ByResult)));
        (Stream::at(drawing.clone(), right), Stream::at(drawing, wrong))
    }
}

/// A stream whose chain ends in `N` outputs.
struct Ends<T, C, const N: usize> {
    stream: Stream<T, C>,
    ports: [PortId; N],
}

impl<T: Send + 'static, C: Stage<Out = T>> Stream<T, C> {
    fn ends<const N: usize>(mut self, operator: Operator) -> Ends<T, C, N> {
        let name = operator.name.clone();
        let mut draw = self.drawing.borrow_mut();
        draw.operators(self.port, self.operators.drain(..).chain([operator]));
        let ports = std::array::from_fn(|_| draw.port_behind(self.port, &name));
        drop(draw);
        Ends { stream: self, ports }
    }
}

impl<T: Send + 'static, C: Stage<Out = T>, const N: usize> Ends<T, C, N> {
    /// Ends the chain in an output that hands on to the ports.
    fn plug<O: Output<T> + 'static>(
        self,
        output: impl Fn(&mut Build<'_>) -> Result<O, Error> + Send + 'static,
    ) -> [Stream<T>; N] {
        let Stream { drawing, port, stages, .. } = self.stream;
        drawing
            .borrow_mut()
            .plug::<C::In>(port, Box::new(move |build| Ok(Box::new(Chain::new(stages.replicate(), output(build)?)))));
        self.ports.map(|port| Stream::at(drawing.clone(), port))
    }
}

fn out<T: Send + 'static>(build: &mut Build<'_>, port: PortId) -> Result<Out<T>, Error> {
    Ok(Out::new(build.batch_len::<T>(), build.pipe::<T>(port)?))
}

fn outs<T: Send + 'static>(build: &mut Build<'_>, ports: &[PortId]) -> Result<Vec<Out<T>>, Error> {
    ports.iter().map(|port| out(build, *port)).collect()
}
