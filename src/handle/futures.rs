//! The handles as the `futures` traits know them, for programs that run on an executor. The feature `futures`.

use super::{Input, Output, OutputError, PushError, Received};
use futures_core::Stream;
use futures_sink::Sink;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Ready when there is room. What is sent goes at once; closing the sink closes the input.
impl<T: Send> Sink<T> for Input<T> {
    type Error = PushError<()>;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // Again after the announcement: what came in between woke nobody.
        for announced in [false, true] {
            if self.has_room()? {
                return Poll::Ready(Ok(()));
            }
            if !announced {
                self.sleeper.task.announce(context.waker());
            }
        }
        Poll::Pending
    }

    fn start_send(mut self: Pin<&mut Self>, record: T) -> Result<(), Self::Error> {
        self.push(record).map_err(|error| error.map(drop))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match self.close() {
            // Closing what is closed is no error to a sink.
            Err(PushError::Closed { error: None, .. }) | Ok(()) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

/// Ends when the job has come to its end. `Rewound`, and the error of a job that failed, come as items; the latter is the last.
impl<T: Send> Stream for Output<T> {
    type Item = Result<Received<T>, OutputError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_told_error {
            return Poll::Ready(None);
        }
        for announced in [false, true] {
            match self.poll() {
                Ok(Some(received)) => return Poll::Ready(Some(Ok(received))),
                Ok(None) if announced => return Poll::Pending,
                Ok(None) => self.sleeper.task.announce(context.waker()),
                Err(OutputError::Closed { error: None }) => return Poll::Ready(None),
                Err(error) => {
                    self.has_told_error = matches!(error, OutputError::Closed { .. });
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        Poll::Pending
    }
}
