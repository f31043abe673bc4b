//! What a user draws: a [`Dataflow`] of [`Stream`]s, from sources to sinks, and how it is started.

mod back;
mod branch;
mod build;
mod channels;
mod drawing;
mod edge;
mod evolved;
mod feedback;
mod handles;
mod keyed;
mod renames;
mod start;
mod stream;

pub use feedback::Feedback;
pub use keyed::KeyedStream;
pub use stream::Stream;

use crate::error::Error;
use crate::graph::{Graph, Keeps};
use crate::operator::Source;
use crate::runtime::{Config, Job, Local, Reading, Share};
use drawing::{Drawing, named};
use start::Recipe;
use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

/// A dataflow under the pen.
pub struct Dataflow {
    drawing: Rc<RefCell<Drawing>>,
}

impl fmt::Debug for Dataflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataflow").field("graph", &self.drawing.borrow().graph).finish_non_exhaustive()
    }
}

impl Dataflow {
    /// An empty dataflow. The name is kept in its snapshots: another job's are refused.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut drawing = Drawing::default();
        name.clone_into(&mut drawing.graph.name);
        Self { drawing: Rc::new(RefCell::new(drawing)) }
    }

    /// Begins a stream with the records of a source. The name finds its offsets again.
    #[track_caller]
    pub fn source<S: Source>(&self, name: &str, source: S) -> Stream<S::Item> {
        let operator = named(name, "source", Location::caller(), Keeps::State);
        let (name, source) = (Arc::<str>::from(name), Arc::new(source));
        let mut draw = self.drawing.borrow_mut();
        draw.source(&name, {
            let source = source.clone();
            move |restored| crate::operator::find_splits(&*source, restored)
        });
        let port = draw.chain(operator, |port| {
            Box::new(move |build| {
                let batch_len = build.batch_len::<S::Item>();
                let pipe = build.pipe(port)?;
                let splits = build.splits(&name);
                let share = Share { skipped: build.skipped(&name, &splits)?, splits };
                let meter = build.start.meter.clone();
                let (open, care) = (build.open(&name), build.start.care.clone());
                Ok(Box::new(Reading::new(open, &source, share, batch_len, pipe, meter, care)))
            })
        });
        Stream::at(self.drawing.clone(), port)
    }

    /// What was drawn so far, as values: chains, operators and edges.
    #[must_use]
    pub fn graph(&self) -> Graph {
        let mut graph = self.drawing.borrow().graph.clone();
        graph.name_edges();
        graph
    }

    /// Starts the job on threads of its own. With checkpoints configured it goes on from the newest one in the state folder.
    ///
    /// # Errors
    /// The drawing or the configuration is wrong, an input or output cannot be opened, or the snapshot does not fit.
    pub fn start(self, config: Config) -> Result<Job, Error> {
        let mut recipe = Recipe::new(&self.drawing, config)?;
        let store = recipe.open_store()?;
        Job::start(Box::new(recipe), store)
    }

    /// Makes the job run on the caller's thread, step by step, with no thread of its own (but those that share in the
    /// checksums of a large checkpoint).
    ///
    /// # Errors
    /// As [`Dataflow::start`].
    pub fn into_local(self, config: Config) -> Result<Local, Error> {
        let mut recipe = Recipe::new(&self.drawing, config)?;
        let store = recipe.open_store()?;
        Local::start(Box::new(recipe), store)
    }
}
