//! Sends requests with hyper: HTTP/2 where the server offers it over TLS, else HTTP/1.1.
//!
//! 1. Watches and streams share connections, all other requests share others: a large list does not delay a watch.
//! 2. A new TLS configuration makes new connections. Open watches end and start again there. Streams continue on the old ones.
//! 3. What the server says that it has not processed (RFC 9113, section 8.7: a refused stream, or one above the last of a GOAWAY)
//!    is sent again, whatever its method; so is a GET whose reused connection broke. No request is sent more than three times;
//!    one that never left this process, because its connection had ended, does not count.
//! 4. An upgrade has its own connection of HTTP/1.1: `awc/upgrade.rs`.

use std::cell::RefCell;
use std::error::Error as StdError;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt, stream};
use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};

use super::answer::{accepted, decoded, of_stream};
use super::connecting::{not_connected, refused_at_last};
use super::{Body, SendCheck, TIMEOUTS_UNTIL_REPLACED, Transport};
use crate::connection_settings::ConnectionSettings;
use crate::error::TransportError;
use crate::identity::Identity;
use crate::request::RequestKind;
use crate::tls;
use crate::transport::awc::{MAYBE_TLS, upgrade};
use pool::{Lease, On, Pool, Sent};

mod pool;
mod wire;

const MOST_SENDINGS: u8 = 3;

#[derive(Clone)]
pub(crate) struct HyperTransport(Rc<Inner>);

struct Inner {
    settings: Arc<ConnectionSettings>,
    pools: RefCell<Option<Pools>>,
}

/// Dropping it closes idle connections; those in use stay open.
struct Pools {
    identity: Arc<Identity>,
    watches: Rc<Pool>,
    unary: Rc<Pool>,
}

struct Failed {
    error: TransportError,
    again: Again,
    /// False if the connection had ended since its last request.
    counts: bool,
}

impl Failed {
    fn at_last(error: TransportError) -> Self {
        Self { error, again: Again::Never, counts: true }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Never,
    /// The request may have been processed.
    IfSafe,
    /// It was not.
    Always,
}

impl HyperTransport {
    pub(crate) fn new(settings: Arc<ConnectionSettings>) -> Self {
        Self(Rc::new(Inner { settings, pools: RefCell::new(None) }))
    }
}

impl Transport for HyperTransport {
    fn send(
        &self,
        request: Request<Bytes>,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let inner = Rc::clone(&self.0);
        Box::pin(async move { inner.send(request, kind).await })
    }

    fn timed_out(&self, kind: RequestKind) {
        self.0.count_timeouts(kind, true);
    }

    fn distrust(&self) {
        self.0.replace(RequestKind::Unary);
    }
}

impl Inner {
    async fn send(
        &self,
        request: Request<Bytes>,
        kind: RequestKind,
    ) -> Result<Response<Body>, TransportError> {
        let identity = match request.extensions().get::<Arc<Identity>>() {
            Some(identity) => Arc::clone(identity),
            None => self.settings.identities.current().await?,
        };
        if kind == RequestKind::Upgrade {
            return upgrade::send(&self.settings, &identity, &request).await;
        }
        let answer = self.send_again(&request, kind, &identity).await;
        // A connection that could not be made in time says nothing about the others.
        if answer.is_ok() {
            self.count_timeouts(kind, false);
        }
        match kind.may_be_silent() {
            false => answer.map(decoded),
            true => of_stream(answer?, kind, &self.settings, &identity),
        }
    }

    async fn send_again(
        &self,
        request: &Request<Bytes>,
        kind: RequestKind,
        identity: &Arc<Identity>,
    ) -> Result<Response<Body>, TransportError> {
        // It may have arrived: no later error may say that nothing was sent.
        let mut broken = None;
        let mut sendings = 0;
        loop {
            let sent = async {
                let lease = self
                    .pool(kind, identity)
                    .lease(SendCheck::of(request).is_some())
                    .await
                    .map_err(Failed::at_last)?;
                self.send_once(request, kind, lease).await
            };
            let failed = match sent.await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let is_sent_again = match failed.again {
                Again::Never => false,
                Again::IfSafe => broken.is_none() && request.method() == Method::GET,
                Again::Always => true,
            };
            sendings += u8::from(failed.counts);
            if !is_sent_again || sendings == MOST_SENDINGS {
                let says_more =
                    matches!(failed.error, TransportError::Broken { .. } | TransportError::Malformed(_));
                return Err(broken.filter(|_| !says_more).unwrap_or(failed.error));
            }
            tracing::debug!(
                target: "actix_informer::client",
                endpoint = %self.settings.endpoint.name(),
                path = request.uri().path(),
                error = %failed.error,
                "the server did not take the request on its connection; sending it again"
            );
            if failed.again == Again::IfSafe {
                broken = Some(failed.error);
            }
        }
    }

    async fn send_once(
        &self,
        request: &Request<Bytes>,
        kind: RequestKind,
        mut lease: Lease,
    ) -> Result<Response<Body>, Failed> {
        let is_http2 = matches!(lease.on, On::Http2 { .. });
        let built = self.request_of(request, kind, is_http2).map_err(Failed::at_last)?;
        SendCheck::ask_of(request).map_err(Failed::at_last)?;
        let sent = match &mut lease.on {
            On::Http2 { sender, .. } => sender.try_send_request(built).await,
            On::Http1(sender, _) => {
                lease.end.ask_at_write(SendCheck::of(request));
                sender.try_send_request(built).await
            }
        };
        let answer = sent.map_err(|mut failed| {
            let is_unsent = failed.take_message().is_some();
            self.failed(&failed.into_error(), is_unsent, &lease)
        })?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let why = "101 (Switching Protocols), which no request asked for".to_owned();
            return Err(Failed::at_last(TransportError::Malformed(why)));
        }
        Ok(answer.map(|incoming| body_of(incoming, lease, is_http2)))
    }

    fn failed(&self, error: &hyper::Error, is_unsent: bool, lease: &Lease) -> Failed {
        let broken = |source| TransportError::Broken { during: "before the head of the answer", source };
        if let Some(refusal) = lease.end.take_refusal() {
            return Failed::at_last(refusal);
        }
        if error.is_parse() {
            let mut why = with_causes(error);
            // hyper tells only servers more about an error of its parser.
            if !self.settings.endpoint.tls && !why.contains("too large") {
                why = format!("{why}; {MAYBE_TLS}");
            }
            return Failed::at_last(TransportError::Malformed(why));
        }
        let protocol = cause::<h2::Error>(error);
        let is_refused = protocol.is_some_and(|error| {
            let is_away = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
            error.is_remote() && (is_away || error.reason() == Some(h2::Reason::REFUSED_STREAM))
        });
        let source = match lease.end.failure() {
            Some(source) if !lease.end.has_read() && tls::is_about_certificates(&source) => {
                return Failed::at_last(refused_at_last(&self.settings, broken(source)));
            }
            Some(source) => source,
            None if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {
                io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")
            }
            None => io::Error::other(with_causes(error)),
        };
        let again = match (is_unsent || is_refused, lease.is_reused) {
            (true, _) => Again::Always,
            (false, true) => Again::IfSafe,
            (false, false) => Again::Never,
        };
        let error = if is_unsent { not_connected(&self.settings, source) } else { broken(source) };
        Failed { error, again, counts: !(is_unsent && lease.is_reused) }
    }

    /// Uses the newest connections, also with an older identity.
    fn pool(&self, kind: RequestKind, identity: &Arc<Identity>) -> Rc<Pool> {
        let mut pools = self.pools.borrow_mut();
        if pools.as_ref().is_none_or(|pools| pools.identity.connections < identity.connections) {
            *pools = None;
        }
        let pools = pools.get_or_insert_with(|| {
            let pool = || Pool::new(&self.settings, identity);
            Pools { identity: Arc::clone(identity), watches: pool(), unary: pool() }
        });
        Rc::clone(pools.of(kind))
    }

    fn request_of(
        &self,
        request: &Request<Bytes>,
        kind: RequestKind,
        is_http2: bool,
    ) -> Result<Request<Sent>, TransportError> {
        let invalid = |error: &dyn std::fmt::Display| TransportError::Request(error.to_string());
        let endpoint = &self.settings.endpoint;
        let path = PathAndQuery::try_from(endpoint.path_of(request.uri()));
        let mut built = Request::new(Full::new(request.body().clone()));
        // A body is sent without waiting for 100 (RFC 9110, section 10.1.1).
        *built.headers_mut() = request.headers().clone();
        built.headers_mut().remove(header::EXPECT);
        built.headers_mut().entry(header::ACCEPT_ENCODING).or_insert_with(|| accepted(&self.settings, kind));
        let host = built.headers_mut().remove(header::HOST);
        let host = host.map_or_else(|| HeaderValue::from_str(&endpoint.authority), Ok);
        let host = host.map_err(|error| invalid(&error))?;
        let mut parts = Parts::default();
        if is_http2 {
            parts.scheme = Some(Scheme::HTTPS);
            parts.authority = Some(Authority::try_from(host.as_bytes()).map_err(|error| invalid(&error))?);
        } else {
            built.headers_mut().insert(header::HOST, host);
        }
        parts.path_and_query = Some(path.map_err(|error| invalid(&error))?);
        *built.uri_mut() = Uri::from_parts(parts).map_err(|error| invalid(&error))?;
        *built.method_mut() = request.method().clone();
        Ok(built)
    }

    /// Timeouts in a row of one kind of request replace its connections.
    fn count_timeouts(&self, kind: RequestKind, is_timeout: bool) {
        let timeouts = match &*self.pools.borrow() {
            // Of a thousand that time out together, the later ones say nothing about new connections.
            Some(pools) if pools.of(kind).is_in_use() => {
                let timeouts = &pools.of(kind).timeouts;
                timeouts.set(if is_timeout { timeouts.get() + 1 } else { 0 });
                timeouts.get()
            }
            _ => return,
        };
        if timeouts >= TIMEOUTS_UNTIL_REPLACED {
            tracing::debug!(
                target: "actix_informer::client",
                endpoint = %self.settings.endpoint.name(),
                timeouts,
                "several requests in a row timed out; the next one uses a new connection"
            );
            self.replace(kind);
        }
    }

    fn replace(&self, kind: RequestKind) {
        if let Some(pools) = self.pools.borrow_mut().as_mut() {
            let new = Pool::new(&self.settings, &pools.identity);
            match kind {
                RequestKind::Unary | RequestKind::Upgrade => pools.unary = new,
                RequestKind::Watch { .. } | RequestKind::Stream { .. } => pools.watches = new,
            }
        }
    }
}

impl Pools {
    fn of(&self, kind: RequestKind) -> &Rc<Pool> {
        if kind.may_be_silent() { &self.watches } else { &self.unary }
    }
}

/// Over HTTP/2 hyper ends a reset body without an error. It is whole only if the server has ended it.
fn body_of(incoming: Incoming, lease: Lease, is_http2: bool) -> Body {
    let body = stream::unfold(Some((incoming, lease)), move |reading| async move {
        let (mut incoming, lease) = reading?;
        loop {
            match incoming.frame().await {
                Some(Ok(frame)) => {
                    // Trailers say nothing here.
                    if let Ok(chunk) = frame.into_data() {
                        return Some((Ok(chunk), Some((incoming, lease))));
                    }
                }
                Some(Err(error)) => return Some((Err(in_body(&error, &lease)), None)),
                None if is_http2 && !incoming.is_end_stream() => {
                    return Some((Err(TransportError::Truncated), None));
                }
                None => {
                    lease.keep();
                    return None;
                }
            }
        }
    });
    body.boxed_local()
}

fn in_body(error: &hyper::Error, lease: &Lease) -> TransportError {
    match cause::<h2::Error>(error) {
        // The server's words about this stream, not about its connection.
        Some(protocol) if protocol.is_reset() => {
            TransportError::Broken { during: "in the body", source: io::Error::other(with_causes(error)) }
        }
        _ if error.is_parse() => TransportError::Malformed(with_causes(error)),
        _ => lease.end.in_body(),
    }
}

fn cause<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

fn with_causes(error: &hyper::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
