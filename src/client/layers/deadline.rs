//! Ends a request whose answer takes too long.
//!
//! Answers "how long may the whole request, the head of an answer, a read of its body, and a watch or stream take?" Invariants:
//! 1. The head has [`HEAD_DEADLINE`], with everything that is tried again because of credentials; 65 s if the request
//!    is not a read: the API server gives up after 60 s (`--request-timeout`), an admission webhook after 30 s, and only
//!    their answer says whether anything was written.
//! 2. A deadline of the body counts only while the reader waits. A slow reader does not exceed [`READ_DEADLINE`], and
//!    what has arrived before the end of a watch is delivered.
//! 3. Nothing comes after an error.
//!
//! Read next: `../transport.rs`, which names the deadlines.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::Response;
use tokio::time::{Instant, Sleep, sleep_until, timeout, timeout_at};

use super::super::error::TransportError;
use super::super::transport::{Body, HEAD_DEADLINE, READ_DEADLINE, RequestKind, Transport};

/// For the head of the answer to a request that may write.
const WRITE_DEADLINE: Duration = Duration::from_secs(65);

type Answer = Result<Response<Body>, TransportError>;

/// The deadlines of one attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    head: Duration,
    /// For each read of the body.
    idle: Option<Duration>,
    /// For the whole body, how long that is after the request, and what is late then.
    ends: Option<(Instant, Duration, &'static str)>,
}

impl Deadlines {
    /// `ends` is the end of the whole request, if it has one.
    pub(super) fn new(kind: RequestKind, is_read: bool, ends: Option<(Instant, Duration)>) -> Self {
        let head = if is_read { HEAD_DEADLINE } else { WRITE_DEADLINE };
        match kind {
            RequestKind::Unary => {
                let ends = ends.map(|(at, after)| (at, after, "the request"));
                Self { head, idle: Some(READ_DEADLINE), ends }
            }
            RequestKind::Upgrade => Self { head, idle: Some(READ_DEADLINE), ends: None },
            RequestKind::Watch { total } => Self { head, idle: None, ends: end(total, "the whole watch") },
            RequestKind::Stream { total } => Self { head, idle: None, ends: end(total, "the whole stream") },
        }
    }
}

/// The end of a body that may last so long. A time that an `Instant` cannot hold is never reached.
fn end(total: Duration, what: &'static str) -> Option<(Instant, Duration, &'static str)> {
    Instant::now().checked_add(total).map(|at| (at, total, what))
}

/// Ends a request with all its attempts.
pub(super) async fn whole(
    ends: Option<(Instant, Duration)>,
    sending: impl Future<Output = Answer>,
) -> Answer {
    let Some((at, after)) = ends else { return sending.await };
    let late = TransportError::Timeout { what: "the request", after };
    timeout_at(at, sending).await.unwrap_or(Err(late))
}

/// `sending` sends one attempt with `transport`, which learns when the head did not come in time.
pub(super) async fn send(
    transport: &dyn Transport,
    kind: RequestKind,
    deadlines: Deadlines,
    sending: impl Future<Output = Answer>,
) -> Answer {
    let Deadlines { head, idle, ends } = deadlines;
    let Ok(answer) = timeout(head, sending).await else {
        transport.timed_out(kind);
        return Err(TransportError::Timeout { what: "the head of the answer", after: head });
    };
    Ok(answer?.map(|body| Timed { body: Some(body), idle, ends, timer: None }.boxed_local()))
}

/// A body with deadlines.
struct Timed {
    /// Nothing after its end.
    body: Option<Body>,
    /// For each read.
    idle: Option<Duration>,
    /// For the whole body, how long that is after the request, and what is late then.
    ends: Option<(Instant, Duration, &'static str)>,
    /// Runs while the reader waits.
    timer: Option<Timer>,
}

struct Timer {
    sleep: Pin<Box<Sleep>>,
    is_armed: bool,
    late: (&'static str, Duration),
}

impl Timed {
    /// When the read that begins now must be over, and what was late then.
    fn limit(&self) -> Option<(Instant, (&'static str, Duration))> {
        let ends = self.ends.map(|(at, after, what)| (at, (what, after)));
        let idle = self.idle.map(|idle| (Instant::now() + idle, ("a read of the body", idle)));
        [ends, idle].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Resolves when the reader has waited for too long.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<TransportError> {
        if !self.timer.as_ref().is_some_and(|timer| timer.is_armed) {
            let Some((at, late)) = self.limit() else { return Poll::Pending };
            match &mut self.timer {
                Some(timer) => {
                    timer.sleep.as_mut().reset(at);
                    (timer.is_armed, timer.late) = (true, late);
                }
                None => self.timer = Some(Timer { sleep: Box::pin(sleep_until(at)), is_armed: true, late }),
            }
        }
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        let (what, after) = timer.late;
        timer.sleep.as_mut().poll(cx).map(|()| TransportError::Timeout { what, after })
    }
}

impl Stream for Timed {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        if let Poll::Ready(read) = body.poll_next_unpin(cx) {
            if let Some(timer) = &mut self.timer {
                timer.is_armed = false;
            }
            if !matches!(read, Some(Ok(_))) {
                self.body = None;
            }
            return Poll::Ready(read);
        }
        let late = std::task::ready!(self.poll_late(cx));
        self.body = None;
        Poll::Ready(Some(Err(late)))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{LocalBoxFuture, pending};
    use http::Request;

    use super::*;

    struct Silent(std::cell::Cell<u32>);

    impl Transport for Silent {
        fn send(&self, _request: Request<Bytes>, _kind: RequestKind) -> LocalBoxFuture<'static, Answer> {
            Box::pin(pending())
        }

        fn timed_out(&self, _kind: RequestKind) {
            self.0.set(self.0.get() + 1);
        }
    }

    const WATCH: RequestKind = RequestKind::Watch { total: Duration::from_secs(300) };

    #[tokio::test(start_paused = true)]
    async fn the_head_of_a_read_has_30_s_and_that_of_a_write_65() {
        let transport = Silent(std::cell::Cell::new(0));
        for (kind, is_read, expected) in
            [(RequestKind::Unary, true, 30), (RequestKind::Unary, false, 65), (WATCH, true, 30)]
        {
            let began = Instant::now();
            let deadlines = Deadlines::new(kind, is_read, None);
            let sending = transport.send(Request::new(Bytes::new()), kind);
            let error = send(&transport, kind, deadlines, sending).await.err().expect("nothing comes");
            assert!(
                matches!(error, TransportError::Timeout { what: "the head of the answer", .. }),
                "{error}"
            );
            assert_eq!(began.elapsed().as_secs(), expected);
        }
        assert_eq!(transport.0.get(), 3, "the transport learns of each");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_30_s_for_each_read_and_a_request_its_own_end() {
        let transport = Silent(std::cell::Cell::new(0));
        let end = |after: Duration| (Instant::now() + after, after);
        for (kind, ends, expected) in [
            (RequestKind::Unary, None, ("a read of the body", 30 + 29)),
            (RequestKind::Unary, Some(Duration::from_secs(40)), ("the request", 40)),
            (WATCH, None, ("the whole watch", 300)),
            (RequestKind::Stream { total: Duration::from_secs(90) }, None, ("the whole stream", 90)),
        ] {
            let began = Instant::now();
            // A chunk comes after 29 s, and then nothing.
            let chunk = async {
                tokio::time::sleep(Duration::from_secs(29)).await;
                Ok(Bytes::from_static(b"a"))
            };
            let body = futures_util::stream::once(chunk).chain(futures_util::stream::pending()).boxed_local();
            let deadlines = Deadlines::new(kind, true, ends.map(end));
            let mut body = send(&transport, kind, deadlines, async { Ok(Response::new(body)) })
                .await
                .expect("a head")
                .into_body();
            body.next().await.expect("a chunk").expect("in time");
            let error = body.next().await.expect("an end").expect_err("late");
            assert!(matches!(error, TransportError::Timeout { what, .. } if what == expected.0), "{error}");
            assert_eq!(began.elapsed().as_secs(), expected.1, "{error}");
            assert!(body.next().await.is_none(), "nothing comes after an error");
        }
    }
}
