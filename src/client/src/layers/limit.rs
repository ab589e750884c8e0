//! Bounds how many requests of a client are under way on all threads, and how many it sends a second.
//!
//! 1. A unary request is under way until its body ends. Watches and streams do not count: they last.
//! 2. Requests pass in the order of arrival.
//! 3. A request whose turn would come after its own end is refused at once. The error names this limit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::super::error::TransportError;
use super::super::request::RequestKind;
use super::super::transport::Body;
use super::traffic::{Asked, Counted, Traffic};

/// Shorter waits are not logged: they are what a limit is for.
const LONG: Duration = Duration::from_secs(1);
const LOG_EACH: Duration = Duration::from_secs(10);

pub(super) struct Limits {
    in_flight: Arc<Semaphore>,
    rate: Option<Rate>,
    log: Log,
}

pub(super) struct Place(Option<OwnedSemaphorePermit>);

struct Rate {
    interval: Duration,
    burst: u32,
    /// When the next request may be sent after the burst; before that, in the past.
    next: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Log(Mutex<Logged>);

#[derive(Default)]
struct Logged {
    last: Option<Instant>,
    unlogged: u64,
}

impl Limits {
    pub(super) fn new(in_flight: usize, rate: Option<(u32, u32)>) -> Self {
        let rate = rate.map(|(per_second, burst)| Rate {
            interval: Duration::from_secs(1) / per_second.max(1),
            burst,
            next: Mutex::new(None),
        });
        let permits = in_flight.clamp(1, Semaphore::MAX_PERMITS);
        Self { in_flight: Arc::new(Semaphore::new(permits)), rate, log: Log::default() }
    }

    pub(super) async fn enter(
        &self,
        kind: RequestKind,
        ends: Option<Instant>,
    ) -> Result<Place, TransportError> {
        let place = match kind {
            RequestKind::Unary => self.place(ends).await?,
            RequestKind::Watch { .. } | RequestKind::Stream { .. } | RequestKind::Upgrade => Place(None),
        };
        if let Some(rate) = &self.rate {
            let now = Instant::now();
            let turn = rate.turn(now, ends)?;
            if turn > now {
                self.log.waits(turn - now, "the client's rate limit");
                sleep_until(turn).await;
            }
        }
        Ok(place)
    }

    async fn place(&self, ends: Option<Instant>) -> Result<Place, TransportError> {
        if let Ok(permit) = Arc::clone(&self.in_flight).try_acquire_owned() {
            return Ok(Place(Some(permit)));
        }
        let began = Instant::now();
        let waiting = Arc::clone(&self.in_flight).acquire_owned();
        let permit = match ends {
            None => waiting.await,
            Some(ends) => timeout_at(ends, waiting).await.map_err(|_| TransportError::Limited {
                what: "the client's limit of requests under way",
                after: ends - began,
            })?,
        };
        let waited = began.elapsed();
        if waited >= LONG {
            self.log.waits(waited, "the client's limit of requests under way");
        }
        // The semaphore is never closed.
        Ok(Place(permit.ok()))
    }
}

impl Place {
    pub(super) fn until_read(self, answer: Response<Body>, of: (&Arc<Traffic>, &Asked)) -> Response<Body> {
        match self.0 {
            Some(permit) => Counted::wrap(answer, permit, of),
            None => answer,
        }
    }
}

impl Rate {
    fn turn(&self, now: Instant, ends: Option<Instant>) -> Result<Instant, TransportError> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = self.interval * (self.burst - 1);
        let due = next.map_or(now, |next| next.max(now));
        let turn = due.checked_sub(ahead).map_or(now, |turn| turn.max(now));
        if ends.is_some_and(|ends| turn > ends) {
            return Err(TransportError::Limited { what: "the client's rate limit", after: turn - now });
        }
        *next = Some(due + self.interval);
        Ok(turn)
    }
}

impl Log {
    fn waits(&self, wait: Duration, limit: &'static str) {
        if wait >= LONG
            && let Some(others) = self.due(Instant::now())
        {
            tracing::info!(target: "actix_informer::client", ?wait, others, limit, "a request waits for its turn on this side of the network");
        }
    }

    /// The waits not logged since the last log; `None` if this one is not logged either.
    fn due(&self, now: Instant) -> Option<u64> {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.last.is_some_and(|last| now < last + LOG_EACH) {
            logged.unlogged += 1;
            return None;
        }
        logged.last = Some(now);
        Some(std::mem::take(&mut logged.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use futures_util::StreamExt as _;
    use futures_util::future::join_all;
    use futures_util::poll;

    use super::*;

    const UNARY: RequestKind = RequestKind::Unary;
    const WATCH: RequestKind = RequestKind::Watch { total: Duration::from_secs(300) };

    async fn turns(limits: &Limits, requests: usize) -> Vec<u128> {
        let began = Instant::now();
        let enter = async || {
            limits.enter(UNARY, None).await.expect("no end");
            began.elapsed().as_millis()
        };
        join_all((0..requests).map(|_| enter())).await
    }

    // REST-10: given no rate limit, or one, when constructing, then requests are not limited, or so many at
    // once and then so many a second (client-go's default of 5 and 10 is not taken: the server's priority and
    // fairness decides).
    // - a no limit unless set
    // - b the set one holds
    #[tokio::test(start_paused = true)]
    async fn rest_10_there_is_no_rate_limit_unless_one_is_set() {
        assert!(turns(&Limits::new(10_000, None), 1000).await.iter().all(|turn| *turn == 0));
        let turns = turns(&Limits::new(10_000, Some((10, 3))), 6).await;
        for (turn, expected) in turns.iter().zip([0, 0, 0, 100, 200, 300]) {
            assert!((expected..expected + 5).contains(turn), "{turns:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rest_11_a_wait_beyond_the_end_of_the_request_is_refused_at_once_and_names_the_client() {
        let limits = Limits::new(1, Some((1, 1)));
        let end = || Some(Instant::now() + Duration::from_millis(500));
        drop(limits.enter(UNARY, end()).await.expect("the first has its turn"));
        let began = Instant::now();
        let error = limits.enter(UNARY, end()).await.err().expect("its turn comes after a second");
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(error.to_string().contains("the client's rate limit"), "{error}");
        let held = Limits::new(1, None);
        let _place = held.enter(UNARY, None).await.expect("the first");
        let error = held.enter(UNARY, end()).await.err().expect("nobody leaves");
        assert!(error.to_string().contains("the client's limit of requests under way"), "{error}");
    }

    // REST-12: given repeated long waits for the limiter, when logged, then at most one per window.
    #[tokio::test(start_paused = true)]
    async fn rest_12_long_waits_are_logged_at_most_once_in_ten_seconds() {
        let log = Log::default();
        let began = Instant::now();
        let after = |seconds| log.due(began + Duration::from_secs(seconds));
        let logged: Vec<_> = [0, 1, 5, 9, 10, 11, 30].into_iter().map(after).collect();
        assert_eq!(logged, [Some(0), None, None, None, Some(3), None, Some(1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_under_way_are_bounded_until_their_body_is_read_and_watches_are_not_counted() {
        let limits = Limits::new(1, None);
        let first = limits.enter(UNARY, None).await.expect("the first");
        let mut second = Box::pin(limits.enter(UNARY, None));
        assert!(poll!(&mut second).is_pending());
        limits.enter(WATCH, None).await.expect("a watch does not wait");
        let body = futures_util::stream::iter([Ok(bytes::Bytes::from_static(b"a"))]).boxed_local();
        let traffic = Arc::new(Traffic::new("a", Weak::new()));
        let asked = Asked::of(&http::Request::new(bytes::Bytes::new()), UNARY);
        let mut body = first.until_read(Response::new(body), (&traffic, &asked)).into_body();
        body.next().await.expect("a chunk").expect("read");
        assert!(poll!(&mut second).is_pending(), "the body has not ended");
        assert!(body.next().await.is_none());
        let [method] = traffic.figures().methods[..] else { panic!("one method was used") };
        assert_eq!((method.received.count, method.received.total), (1, 1), "its bytes are counted once");
        let second = second.await.expect("its turn");
        let mut dropped = Box::pin(limits.enter(UNARY, None));
        assert!(poll!(&mut dropped).is_pending());
        drop(dropped);
        drop(second);
        assert_eq!(limits.in_flight.available_permits(), 1, "one that stopped waiting holds nothing");
    }
}
