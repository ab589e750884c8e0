//! What is counted of a client's requests, on all threads and by all clones of it. Watch events do not pass
//! here.
//!
//! 1. Each attempt counts, as in client-go (`rest/request.go`). A request that its transport sends again
//!    after a dead connection counts once.
//! 2. A program chooses the paths, so the rows are bounded: what does not fit counts under the resource
//!    `other`.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::{Method, Request, Response};
use informer_core::timing::Timing;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::super::error::TransportError;
use super::super::identity::{CredentialFigures, Identities};
use super::super::request::{RequestKind, RequestTarget};
use super::super::transport::Body;

/// Global: a client may be used with several runtimes.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// Kinds, verbs and codes of a program are some hundreds.
const MOST_ROWS: usize = 1_000;

/// The upper bounds of the buckets of [`Sizes`]: those of client-go, in bytes.
pub const SIZE_BOUNDS: [u64; 11] =
    [64, 256, 512, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];

/// What a client has sent, and what came back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientFigures {
    /// Its number: no other client of this process has it.
    pub number: u64,
    /// The API server: host and port, or what stands for them.
    pub server: Arc<str>,
    /// The requests, each sending on its own.
    pub requests: Vec<RequestFigures>,
    /// What was measured, by method.
    pub methods: Vec<MethodFigures>,
    /// Its credentials.
    pub credentials: CredentialFigures,
}

impl ClientFigures {
    /// Adds what a client that has ended had counted.
    pub fn add(&mut self, ended: Self) {
        for mut row in ended.requests {
            let key = |row: &RequestFigures| (row.method, row.verb, Arc::clone(&row.resource), row.code);
            let mut place = self.requests.binary_search_by_key(&key(&row), key);
            if place.is_err() && self.requests.len() >= MOST_ROWS {
                row.resource = "other".into();
                place = self.requests.binary_search_by_key(&key(&row), key);
            }
            match place {
                Ok(at) => {
                    self.requests[at].count += row.count;
                    self.requests[at].retries += row.retries;
                }
                Err(at) => self.requests.insert(at, row),
            }
        }
        for more in ended.methods {
            match self.methods.iter_mut().find(|method| method.method == more.method) {
                Some(method) => method.add(&more),
                None => self.methods.push(more),
            }
        }
        self.credentials.add(&ended.credentials);
    }
}

impl MethodFigures {
    fn add(&mut self, other: &Self) {
        self.head.add(&other.head);
        self.waits.add(&other.waits);
        self.sent.add(&other.sent);
        self.received.add(&other.received);
    }
}

/// How often one kind of request was answered in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestFigures {
    /// The method, such as `GET`.
    pub method: &'static str,
    /// The verb as Kubernetes names it, such as `list`.
    pub verb: &'static str,
    /// `pods`, `deployments.apps`, `pods/log`; empty without a resource; `other` beyond 1,000 rows.
    pub resource: Arc<str>,
    /// The status of the answer; `None` if no head of an answer came.
    pub code: Option<u16>,
    /// How often.
    pub count: u64,
    /// How often the request was sent again because of it.
    pub retries: u64,
}

/// What was measured of the requests of one method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodFigures {
    /// The method, such as `GET`.
    pub method: &'static str,
    /// How long it took until the head of the answer came, or the request failed.
    pub head: Timing,
    /// How long the requests waited for their turn under the client's own limits.
    pub waits: Timing,
    /// The bodies of the requests.
    pub sent: Sizes,
    /// The bodies of the answers that were read, those of watches and streams left out.
    pub received: Sizes,
}

/// How large something was, over all times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// How often.
    pub count: u64,
    /// All together, in bytes.
    pub total: u64,
    buckets: [u64; SIZE_BOUNDS.len() + 1],
}

impl Sizes {
    fn record(&mut self, bytes: u64) {
        self.buckets[SIZE_BOUNDS.partition_point(|bound| *bound < bytes)] += 1;
        self.count += 1;
        self.total += bytes;
    }

    /// Adds what others have counted.
    pub fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(all, more)| *all += more);
        self.count += other.count;
        self.total += other.total;
    }

    /// How many were at most as large as each bound of [`SIZE_BOUNDS`]; `None` has all of them.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let bounds = SIZE_BOUNDS.into_iter().map(Some).chain([None]);
        bounds.zip(self.buckets).scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((bound, *sum))
        })
    }
}

/// Lives as long as a clone of its client, or a connection of it.
pub struct Traffic {
    number: u64,
    server: Arc<str>,
    identities: Weak<Identities>,
    rows: Mutex<Rows>,
}

#[derive(Default)]
struct Rows {
    requests: BTreeMap<Row, (u64, u64)>,
    methods: BTreeMap<&'static str, MethodFigures>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    method: &'static str,
    verb: &'static str,
    resource: Arc<str>,
    code: Option<u16>,
}

pub(super) struct Asked {
    method: &'static str,
    verb: &'static str,
    resource: Arc<str>,
}

impl Asked {
    pub(super) fn of(request: &Request<Bytes>, kind: RequestKind) -> Self {
        let named = RequestTarget::of(request.uri().path());
        let verb = named.verb(request.method(), kind);
        Self { method: name(request.method()), verb, resource: named.resource().into() }
    }
}

/// Counts the request when it is answered, or when its caller gives it up; not if it was refused before its
/// first byte.
pub(super) struct Sending<'a> {
    traffic: &'a Traffic,
    asked: &'a Asked,
    bytes: usize,
    began: Instant,
    code: Option<u16>,
    is_refused_here: bool,
}

impl<'a> Sending<'a> {
    pub(super) fn new(traffic: &'a Traffic, asked: &'a Asked, bytes: usize) -> Self {
        Self { traffic, asked, bytes, began: Instant::now(), code: None, is_refused_here: false }
    }

    pub(super) fn ended(mut self, answer: &Result<Response<Body>, TransportError>) {
        self.code = code_of(answer);
        self.is_refused_here = matches!(answer, Err(TransportError::NotLeading { .. }));
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if !self.is_refused_here {
            self.traffic.answered(self.asked, self.bytes, self.code, self.began.elapsed());
        }
    }
}

fn name(method: &Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or("OTHER")
}

pub(super) fn code_of(answer: &Result<Response<Body>, TransportError>) -> Option<u16> {
    answer.as_ref().ok().map(|answer| answer.status().as_u16())
}

impl Traffic {
    pub(crate) fn new(server: &str, identities: Weak<Identities>) -> Self {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { number, server: server.into(), identities, rows: Mutex::default() }
    }

    /// What was counted until now.
    pub fn figures(&self) -> ClientFigures {
        let credentials = self.identities.upgrade().map(|identities| identities.figures());
        let rows = self.rows();
        let requests = rows.requests.iter().map(|(row, (count, retries))| {
            let Row { method, verb, resource, code } = row.clone();
            RequestFigures { method, verb, resource, code, count: *count, retries: *retries }
        });
        ClientFigures {
            number: self.number,
            server: Arc::clone(&self.server),
            requests: requests.collect(),
            methods: rows.methods.values().copied().collect(),
            credentials: credentials.unwrap_or_default(),
        }
    }

    pub(super) fn waited(&self, asked: &Asked, waited: Duration) {
        self.rows().method(asked.method).waits.record(waited);
    }

    /// `sent`: bytes of the body.
    fn answered(&self, asked: &Asked, sent: usize, code: Option<u16>, head: Duration) {
        let mut rows = self.rows();
        let figures = rows.method(asked.method);
        figures.head.record(head);
        figures.sent.record(sent as u64);
        rows.row(asked, code).0 += 1;
    }

    pub(super) fn sent_again(&self, asked: &Asked, code: Option<u16>) {
        self.rows().row(asked, code).1 += 1;
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        // A panic under it leaves at most one number too low.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

informer_core::debug_as!(Traffic, self, server = self.server);

impl Rows {
    fn method(&mut self, method: &'static str) -> &mut MethodFigures {
        self.methods.entry(method).or_insert_with(|| MethodFigures {
            method,
            head: Timing::default(),
            waits: Timing::default(),
            sent: Sizes::default(),
            received: Sizes::default(),
        })
    }

    fn row(&mut self, asked: &Asked, code: Option<u16>) -> &mut (u64, u64) {
        let Asked { method, verb, resource } = asked;
        let mut row = Row { method, verb, resource: Arc::clone(resource), code };
        if self.requests.len() >= MOST_ROWS && !self.requests.contains_key(&row) {
            row = Row { method: "OTHER", verb: "other", resource: "other".into(), code: None };
        }
        self.requests.entry(row).or_default()
    }
}

/// Keeps the place among the requests under way, and counts the bytes, until the body has ended or is
/// dropped.
pub(super) struct Counted {
    body: Body,
    bytes: u64,
    place: Option<OwnedSemaphorePermit>,
    traffic: Arc<Traffic>,
    method: &'static str,
}

impl Counted {
    pub(super) fn wrap(
        answer: Response<Body>,
        place: OwnedSemaphorePermit,
        (traffic, asked): (&Arc<Traffic>, &Asked),
    ) -> Response<Body> {
        let (traffic, method) = (Arc::clone(traffic), asked.method);
        answer.map(|body| Self { body, bytes: 0, place: Some(place), traffic, method }.boxed_local())
    }

    fn end(&mut self) {
        if self.place.take().is_some() {
            self.traffic.rows().method(self.method).received.record(self.bytes);
        }
    }
}

impl Stream for Counted {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let read = std::task::ready!(self.body.poll_next_unpin(cx));
        match &read {
            Some(Ok(chunk)) => self.bytes += chunk.len() as u64,
            None => self.end(),
            Some(Err(_)) => {}
        }
        Poll::Ready(read)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
