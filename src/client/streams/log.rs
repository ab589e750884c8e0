//! The log of a container as a stream of lines.
//!
//! Answers "how do I read a log while it is written?" Invariants:
//! 1. Lines come as they arrive. What is not read is not read from the connection: the server waits.
//! 2. A log that was cut off ends with an error, behind the lines that were complete.
//! 3. It is not asked for again: which lines were missed, only the caller can know (`since_time`).
//!
//! Read next: `lines.rs`.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt};

use super::lines::{LogLine, LogLines};
use crate::client::error::Error;
use crate::client::worker::BodyStream;

/// The lines of a log; made by [`Api::log_stream`](crate::client::Api::log_stream). Dropping it ends the request.
#[must_use = "a log that is dropped ends its request"]
pub struct LogStream {
    /// Nothing after its end.
    body: Option<BodyStream>,
    lines: LogLines,
}

impl LogStream {
    pub(crate) fn new(body: BodyStream) -> Self {
        Self { body: Some(body), lines: LogLines::default() }
    }
}

impl Stream for LogStream {
    type Item = Result<LogLine, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(line) = this.lines.next_line() {
                return Poll::Ready(Some(Ok(line)));
            }
            let Some(body) = &mut this.body else { return Poll::Ready(None) };
            match ready!(body.poll_next_unpin(context)) {
                Some(Ok(chunk)) => this.lines.push(chunk),
                Some(Err(error)) => {
                    this.body = None;
                    return Poll::Ready(Some(Err(error.into())));
                }
                None => {
                    this.body = None;
                    return Poll::Ready(this.lines.finish().map(Ok));
                }
            }
        }
    }
}

informer_core::debug_as!(LogStream, self, has_ended = self.body.is_none());
