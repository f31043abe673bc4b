//! Loops: a [`Feedback`] is opened where the loop is entered, and closed with what comes round.
//!
//! A feedback edge is drawn like any other that leads over rings, and never fuses (protocols, rule 29). What is drawn beside
//! it need not form a loop: that is found by looking at the whole graph, when the dataflow starts.

use super::drawing::named;
use super::edge::RingEntry;
use super::stream::Stream;
use crate::graph::{FEEDBACK, Keeps};
use crate::operator::Stage;
use crate::record::Record;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

/// The open end of a loop: see [`Stream::feedback`].
#[must_use = "a loop that is left open is an error when the dataflow starts: close it with `.close(…)`"]
pub struct Feedback<T> {
    head: RingEntry,
    name: String,
    types: PhantomData<fn(T)>,
}

impl<T> fmt::Debug for Feedback<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feedback").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T, C> Stream<T, C> {
    /// Opens a loop where it is entered: the stream goes on as it is, merged with what comes round. That is said later, by
    /// [`Feedback::close`], with a stream that is drawn from this one. The name finds again what was on its way in the loop
    /// when a checkpoint was made.
    ///
    /// The loop ends by itself, when its input has ended and nothing is under way in it any more. A loop can lie within
    /// another, and several can lead through the same operators.
    ///
    /// ```
    /// use snapring::connector::{Collect, Generate};
    /// use snapring::{Config, Dataflow, Record};
    ///
    /// #[derive(Clone, Record)]
    /// struct Order {
    ///     id: u64,
    ///     tries: u32,
    /// }
    ///
    /// # fn is_taken(order: &Order) -> bool { order.id % 3 == u64::from(order.tries) }
    /// let (flow, taken) = (Dataflow::new("orders"), Collect::new());
    /// let orders = flow.source("orders", Generate::new(9, 1, |id| Order { id, tries: 0 }));
    /// let (retry, orders) = orders.feedback::<Order>("retry");
    /// let (right, refused) = orders.stage("shop").split(|order| is_taken(order));
    /// retry.close(refused.map(|order| Order { tries: order.tries + 1, ..order }));
    /// right.sink("taken", taken.clone());
    ///
    /// println!("{}", flow.graph()); // … loop 1: retry, shop …
    /// flow.start(Config::new().unpinned_workers(1))?.wait()?;
    /// assert_eq!(taken.take().len(), 9);
    /// # Ok::<(), snapring::Error>(())
    /// ```
    #[track_caller]
    pub fn feedback<R: Record>(self, name: &str) -> (Feedback<R>, Stream<R>)
    where
        C: Stage<Out = R>,
    {
        let operator = named(name, FEEDBACK, Location::caller(), Keeps::Nothing);
        let head = RingEntry::draw::<R>(&self.drawing, operator);
        head.take_in(self.of::<R>());
        let stream = head.stream();
        (Feedback { head, name: name.to_owned(), types: PhantomData }, stream)
    }
}

impl<T: Record> Feedback<T> {
    /// Closes the loop: what this stream brings comes round. It has to be drawn from the loop's own stream.
    pub fn close<C: Stage<Out = T>>(self, stream: Stream<T, C>) {
        self.head.take_back(stream);
    }

    /// Closes the loop with several streams, each of which comes back by rings of its own. [`Stream::boxed`] makes streams
    /// of different chains fit.
    ///
    /// ```
    /// # use snapring::connector::{Collect, Generate};
    /// # use snapring::{Config, Dataflow};
    /// // L. Collatz: even numbers are halved, odd ones trebled and one added, and all of these come to 1.
    /// let (flow, ones) = (Dataflow::new("collatz"), Collect::new());
    /// let (again, numbers) = flow.source("numbers", Generate::new(99, 1, |index| index + 1)).feedback("again");
    /// let (one, more) = numbers.split(|number| *number == 1);
    /// let (even, odd) = more.split(|number| number % 2 == 0);
    /// again.close_all([even.map(|number| number / 2).boxed(), odd.map(|number| 3 * number + 1).boxed()]);
    /// one.sink("ones", ones.clone());
    /// flow.start(Config::new().unpinned_workers(1))?.wait()?;
    /// assert_eq!(ones.take(), [1; 99]);
    /// # Ok::<(), snapring::Error>(())
    /// ```
    pub fn close_all(self, streams: impl IntoIterator<Item = Stream<T>>) {
        streams.into_iter().for_each(|stream| self.head.take_back(stream));
    }
}

#[cfg(all(test, not(snapring_loom)))]
mod tests {
    use super::super::Dataflow;
    use super::super::start::Recipe;
    use crate::connector::{Discard, Generate};
    use crate::error::{BuildError, Error};
    use crate::runtime::Config;

    fn numbers(flow: &Dataflow) -> super::Stream<u64> {
        flow.source("numbers", Generate::new(10, 1, |index| index))
    }

    fn refused(flow: &Dataflow) -> BuildError {
        match Recipe::new(&flow.drawing, Config::new().unpinned_workers(1)) {
            Err(Error::Build(error)) => error,
            Err(error) => panic!("refused for another reason: {error}"),
            Ok(_) => panic!("it is not refused"),
        }
    }

    #[test]
    fn a_loop_that_is_left_open_is_named_with_its_place() {
        let flow = Dataflow::new("open");
        let (open, stream) = numbers(&flow).feedback::<u64>("retry");
        stream.sink("sink", Discard::new());
        drop(open);
        let message = refused(&flow).to_string();
        assert!(message.contains("`retry`") && message.contains("src/dataflow/feedback.rs:"), "{message}");
        let nothing = Dataflow::new("nothing");
        let (open, stream) = numbers(&nothing).feedback::<u64>("retry");
        stream.sink("sink", Discard::new());
        open.close_all([]);
        assert!(matches!(refused(&nothing), BuildError::OpenFeedback { .. }));
    }

    #[test]
    fn what_never_comes_back_is_refused() {
        let flow = Dataflow::new("straight");
        let (one, other) = numbers(&flow).fork();
        let (retry, stream) = one.feedback("retry");
        stream.sink("sink", Discard::new());
        retry.close(other);
        assert!(matches!(refused(&flow), BuildError::NoLoop { name, .. } if name == "retry"));
    }

    #[test]
    fn a_stream_of_another_dataflow_closes_nothing() {
        let (flow, other) = (Dataflow::new("one"), Dataflow::new("other"));
        let (retry, stream) = numbers(&flow).feedback("retry");
        stream.sink("sink", Discard::new());
        retry.close(numbers(&other));
        assert!(matches!(refused(&flow), BuildError::TwoDataflows { operator } if operator == "retry"));
    }

    #[test]
    fn loops_can_be_nested_cross_and_share() {
        let flow = Dataflow::new("loops");
        let (outer, stream) = numbers(&flow).feedback("outer");
        let (inner, stream) = stream.map(|number| number + 1).feedback("inner");
        let [again, inside, outside, done] = stream.key_by(|number| number % 7).count("count").split_by(|_| 0);
        inner.close_all([again.map(|(key, _)| key).boxed(), inside.map(|(_, count)| count).boxed()]);
        outer.close(outside.map(|(key, _)| key));
        done.sink("sink", Discard::new());
        let recipe = Recipe::new(&flow.drawing, Config::new().unpinned_workers(1)).unwrap();
        let names: Vec<&str> = recipe.graph().edges.iter().map(|edge| edge.name.as_str()).collect();
        let all =
            ["numbers->outer", "outer->inner", "inner->count", "feedback inner", "feedback inner #2", "feedback outer"];
        assert_eq!(names, all);
    }
}
