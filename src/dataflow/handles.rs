//! Streams that begin or end in the hands of the program.

use super::drawing::named;
use super::{Dataflow, Stream};
use crate::channel::ring;
use crate::error::ConnectorError;
use crate::graph::Keeps;
use crate::handle::{Input, InputPort, Output, OutputPort};
use crate::operator::{Chain, Delivering, SplitState, Stage};
use crate::record::Record;
use crate::runtime::Pushed;
use std::panic::Location;
use std::sync::Arc;

impl Dataflow {
    /// Begins a stream with what this program pushes. The name finds again how much of it was taken in: see
    /// [`handle`](crate::handle) for what that means after a restart. One task reads it, whatever the parallelism.
    #[track_caller]
    pub fn input<T: Record>(&self, name: &str) -> (Input<T>, Stream<T>) {
        let operator = named(name, "input", Location::caller(), Keeps::State);
        let mut draw = self.drawing.borrow_mut();
        let port = Arc::new(InputPort::new(draw.outside.clone()));
        let input = Input::new(name, port.clone());
        let name = Arc::<str>::from(name);
        draw.source(&name, {
            let name = name.to_string();
            move |restored| match restored {
                None => Ok(vec![SplitState::new(0, &name)]),
                Some(splits) if matches!(&splits[..], [only] if only.is_pushed(&name)) => Ok(splits),
                Some(_) => Err(ConnectorError::Changed {
                    path: name.clone().into(),
                    what: "it was a source that is read, and is an input that is pushed now".to_owned(),
                }
                .into()),
            }
        });
        let stream = draw.chain(operator, |pipe| {
            Box::new(move |build| {
                let batch_len = build.batch_len::<T>();
                let splits = build.splits(&name);
                let meter = build.start.meter.clone();
                let ring = splits.first().map(|split| {
                    let (producer, consumer) = ring(build.config.ring_capacity, batch_len);
                    port.begin((!split.done).then_some(producer), split.offset, meter.workers().clone());
                    consumer
                });
                let ring = ring.filter(|_| !splits[0].done);
                let (pipe, care) = (build.pipe(pipe)?, build.start.care.clone());
                Ok(Box::new(Pushed::new(build.open(&name), port.clone(), ring, splits, pipe, meter, care)))
            })
        });
        (input, Stream::at(self.drawing.clone(), stream))
    }
}

impl<T: Record, C: Stage<Out = T>> Stream<T, C> {
    /// Ends the stream in a handle from which this program polls the results. They lie in memory: see
    /// [`handle`](crate::handle) for what is promised of them.
    #[track_caller]
    pub fn output(self, name: &str) -> Output<T> {
        let operator = named(name, "output", Location::caller(), Keeps::Nothing);
        let outside = self.drawing.borrow().outside.clone();
        let port = Arc::new(OutputPort::new(outside));
        let output = Output::new(port.clone());
        self.end(operator, move |build, stages| {
            if build.index == 0 {
                port.begin(build.start.epoch, build.start.meter.workers().clone(), build.tasks as usize);
            }
            let ring = ring(build.config.ring_capacity, build.batch_len::<T>());
            let delivering = Delivering::new(port.clone(), ring, build.config.outbox_bytes_max);
            Ok(Box::new(Chain::new(stages, delivering)))
        });
        output
    }
}
