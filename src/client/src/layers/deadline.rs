//! Ends a request whose answer takes too long. `../config/limits.rs` has the limits.
//!
//! 1. The head of a list or a write has a longer limit: only the server's answer says whether anything was
//!    written.
//! 2. A deadline of the body counts only while the reader waits. Bytes that arrived before the end of a watch
//!    are delivered.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{Method, Request, Response};
use tokio::time::{Instant, Sleep, sleep_until, timeout, timeout_at};

use super::super::config::limits::Limits;
use super::super::error::TransportError;
use super::super::request::RequestKind;
use super::super::transport::{Body, Transport};

type Answer = Result<Response<Body>, TransportError>;

#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    head: Duration,
    idle: Option<Duration>,
    /// The body's end, how long that is after the request, and what is late.
    ends: Option<(Instant, Duration, &'static str)>,
}

impl Deadlines {
    /// `ends`: of the whole request.
    pub(super) fn new(
        kind: RequestKind,
        is_slow: bool,
        ends: Option<(Instant, Duration)>,
        limits: &Limits,
    ) -> Self {
        let is_slow = is_slow && !matches!(kind, RequestKind::Watch { .. });
        let (head, idle) = (if is_slow { limits.slow_head } else { limits.head }, Some(limits.read));
        match kind {
            RequestKind::Unary => {
                let ends = ends.map(|(at, after)| (at, after, "the request"));
                Self { head, idle, ends }
            }
            RequestKind::Upgrade => Self { head, idle, ends: None },
            RequestKind::Watch { total } => Self { head, idle: None, ends: end(total, "the whole watch") },
            RequestKind::Stream { total } => Self { head, idle: None, ends: end(total, "the whole stream") },
        }
    }
}

pub(super) fn is_slow<B>(request: &Request<B>) -> bool {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    !is_read || is_collection(request.uri().path())
}

/// As `/apis/apps/v1/namespaces/shop/deployments`.
fn is_collection(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    let below = match parts[..] {
        ["api", _version, ..] => &parts[2..],
        ["apis", _group, _version, ..] => &parts[3..],
        _ => return false,
    };
    matches!(below, [_] | ["namespaces", _, _])
}

/// `None`: no `Instant` can hold it, so it is never reached.
fn end(total: Duration, what: &'static str) -> Option<(Instant, Duration, &'static str)> {
    Instant::now().checked_add(total).map(|at| (at, total, what))
}

pub(super) async fn whole(
    ends: Option<(Instant, Duration)>,
    sending: impl Future<Output = Answer>,
) -> Answer {
    let Some((at, after)) = ends else { return sending.await };
    let late = TransportError::Timeout { what: "the request", after };
    timeout_at(at, sending).await.unwrap_or(Err(late))
}

/// Limits one attempt. `transport` learns that the head was late.
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

struct Timed {
    body: Option<Body>,
    idle: Option<Duration>,
    ends: Option<(Instant, Duration, &'static str)>,
    timer: Option<Timer>,
}

struct Timer {
    sleep: Pin<Box<Sleep>>,
    is_armed: bool,
    late: (&'static str, Duration),
}

impl Timed {
    /// When the read that begins now is late, and as what.
    fn limit(&self) -> Option<(Instant, (&'static str, Duration))> {
        let idle = self.idle.and_then(|idle| end(idle, "a read of the body"));
        let (at, after, what) = [self.ends, idle].into_iter().flatten().min_by_key(|(at, ..)| *at)?;
        Some((at, (what, after)))
    }

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
    async fn client_p7_the_head_of_a_read_has_30_s_and_that_of_a_list_or_a_write_65() {
        let transport = Silent(std::cell::Cell::new(0));
        let limits = Limits::default();
        for (kind, method, path, expected) in [
            (RequestKind::Unary, Method::GET, "/api/v1/namespaces/a/pods/web", 30),
            (RequestKind::Unary, Method::GET, "/version", 30),
            (RequestKind::Unary, Method::GET, "/apis", 30),
            (RequestKind::Unary, Method::GET, "/api/v1/nodes/one", 30),
            (RequestKind::Unary, Method::GET, "/api/v1/pods", 65),
            (RequestKind::Unary, Method::GET, "/api/v1/namespaces", 65),
            (RequestKind::Unary, Method::GET, "/apis/apps/v1/namespaces/a/deployments", 65),
            (RequestKind::Unary, Method::PUT, "/api/v1/namespaces/a/pods/web", 65),
            (WATCH, Method::GET, "/api/v1/pods", 30),
        ] {
            let began = Instant::now();
            let request = Request::builder().method(method).uri(path).body(Bytes::new()).expect("a request");
            let deadlines = Deadlines::new(kind, is_slow(&request), None, &limits);
            let sending = transport.send(request, kind);
            let error = send(&transport, kind, deadlines, sending).await.err().expect("nothing comes");
            assert!(
                matches!(error, TransportError::Timeout { what: "the head of the answer", .. }),
                "{error}"
            );
            assert_eq!(began.elapsed().as_secs(), expected, "{path}");
        }
        assert_eq!(transport.0.get(), 9, "the transport learns of each");
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_may_last_forever_has_no_end_of_its_own() {
        let limits = Limits { read: Duration::MAX, head: Duration::MAX, ..Limits::default() };
        let transport = Silent(std::cell::Cell::new(0));
        let deadlines = Deadlines::new(RequestKind::Unary, false, None, &limits);
        let body = futures_util::stream::pending().boxed_local();
        let answer = send(&transport, RequestKind::Unary, deadlines, async { Ok(Response::new(body)) }).await;
        let mut body = answer.expect("a head").into_body();
        let reading = timeout(Duration::from_secs(1_000_000), body.next()).await;
        assert!(reading.is_err(), "it waits");
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
            let deadlines = Deadlines::new(kind, false, ends.map(end), &Limits::default());
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
