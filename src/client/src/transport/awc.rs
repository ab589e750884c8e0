//! Sends requests with awc, as HTTP/1.1. Only this module and its children use awc, which needs a `LocalSet`.
//!
//! 1. Watches and streams share one awc client, all other requests another. Neither has a deadline: the layers set it. Neither
//!    limits the number of connections: in awc, `limit(0)` means no limit.
//! 2. A new TLS configuration makes new awc clients. Open watches end and start again there. Streams continue: their end would
//!    say that they are complete.
//! 3. URLs always have the scheme http: the connector makes TLS below HTTP, and with "https" awc would make it itself.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use actix_http::error::ParseError;
use actix_http::header::{HeaderMap, HeaderName, HeaderValue};
use awc::error::{ConnectError, PayloadError, SendRequestError};
use awc::http::uri::{Authority, Parts, PathAndQuery, Scheme, Uri};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{Stream, StreamExt, stream};
use http::{Method, Request, Response, StatusCode, header};

use super::answer::{accepted, of_stream};
use super::{Body, SendCheck, TIMEOUTS_UNTIL_REPLACED, Transport, connecting};
use crate::connection_settings::ConnectionSettings;
use crate::endpoint::Endpoint;
use crate::error::TransportError;
use crate::identity::Identity;
use crate::request::RequestKind;
use attempt::Attempt;
use read_ahead::Connect;

mod attempt;
mod heads;
mod read_ahead;
pub(super) mod upgrade;

/// For an answer that is not HTTP: a server that expects TLS sends an alert.
pub(super) const MAYBE_TLS: &str = "if the server speaks TLS on this port, its URL begins with https://";

/// Whether a failed attempt used an old connection.
struct Reused(bool);

#[derive(Clone)]
pub(crate) struct AwcTransport(Rc<Inner>);

struct Inner {
    settings: Arc<ConnectionSettings>,
    target: Result<Target, String>,
    clients: RefCell<Option<Clients>>,
    timeouts: Cell<u8>,
}

/// Dropping it closes idle connections; those in use stay open.
struct Clients {
    identity: Arc<Identity>,
    watches: awc::Client,
    unary: awc::Client,
}

impl Clients {
    fn new(settings: &Arc<ConnectionSettings>, identity: &Arc<Identity>) -> Self {
        let client = || client(settings, identity);
        Self { identity: Arc::clone(identity), watches: client(), unary: client() }
    }
}

impl AwcTransport {
    pub(crate) fn new(settings: Arc<ConnectionSettings>) -> Self {
        let target = Target::new(&settings.endpoint);
        Self(Rc::new(Inner { settings, target, clients: RefCell::new(None), timeouts: Cell::new(0) }))
    }
}

fn client(settings: &Arc<ConnectionSettings>, identity: &Arc<Identity>) -> awc::Client {
    let connector = awc::Connector::new()
        .connector(Connect::new(Arc::clone(settings), Arc::clone(identity)))
        .limit(0)
        .timeout(settings.limits.whole_connection());
    awc::Client::builder()
        .connector(connector)
        .disable_timeout()
        .disable_redirects()
        .no_default_headers()
        .finish()
}

impl Transport for AwcTransport {
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
        self.0.close_pooled();
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
        let answer = self.send_with_retry(&request, kind, &identity).await;
        self.count_timeouts(kind, matches!(answer, Err(TransportError::Timeout { .. })));
        match kind.may_be_silent() {
            false => answer,
            true => of_stream(answer?, kind, &self.settings, &identity),
        }
    }

    async fn send_with_retry(
        &self,
        request: &Request<Bytes>,
        kind: RequestKind,
        identity: &Arc<Identity>,
    ) -> Result<Response<Body>, TransportError> {
        match self.send_once(request, kind, identity).await {
            Err((broken @ TransportError::Broken { .. }, Reused(true)))
                if request.method() == Method::GET =>
            {
                tracing::debug!(
                    target: "actix_informer::client",
                    endpoint = %self.settings.endpoint.name(),
                    path = request.uri().path(),
                    "a pooled connection was closed by the server; sending the request again"
                );
                self.send_once(request, kind, identity).await.map_err(|(error, _)| match error {
                    // The first request may have arrived: the error must not say that nothing was sent.
                    TransportError::NotLeading { .. } => broken,
                    error => error,
                })
            }
            answer => answer.map_err(|(error, _)| error),
        }
    }

    async fn send_once(
        &self,
        request: &Request<Bytes>,
        kind: RequestKind,
        identity: &Arc<Identity>,
    ) -> Result<Response<Body>, (TransportError, Reused)> {
        let client = self.client(kind, identity);
        let built = self.build_request(&client, request, kind).map_err(|error| (error, Reused(false)))?;
        let has_no_body =
            request.body().is_empty() && matches!(*request.method(), Method::GET | Method::HEAD);
        let sending = match has_no_body {
            true => built.send_body(actix_http::body::None::new()),
            false => built.send_body(request.body().clone()),
        };
        let attempt = Attempt::new(SendCheck::of(request));
        match attempt.scope(sending).await {
            Ok(answer) => converted(answer).map_err(|error| (error, Reused(false))),
            Err(error) => Err(match attempt.take_refusal() {
                Some(refusal) => (refusal, Reused(false)),
                None => match (self.transport_error(error), attempt.has_made_connection()) {
                    (error, true) => (connecting::refused_at_last(&self.settings, error), Reused(false)),
                    (error, false) => (error, Reused(true)),
                },
            }),
        }
    }

    /// Uses the newest connections, also with an older identity.
    fn client(&self, kind: RequestKind, identity: &Arc<Identity>) -> awc::Client {
        let mut clients = self.clients.borrow_mut();
        if clients.as_ref().is_none_or(|clients| clients.identity.connections < identity.connections) {
            *clients = None;
        }
        let clients = clients.get_or_insert_with(|| Clients::new(&self.settings, identity));
        match kind {
            RequestKind::Unary | RequestKind::Upgrade => clients.unary.clone(),
            RequestKind::Watch { .. } | RequestKind::Stream { .. } => clients.watches.clone(),
        }
    }

    fn build_request(
        &self,
        client: &awc::Client,
        request: &Request<Bytes>,
        kind: RequestKind,
    ) -> Result<awc::ClientRequest, TransportError> {
        let invalid = |what: &dyn std::fmt::Display| TransportError::Request(what.to_string());
        let method = awc::http::Method::from_bytes(request.method().as_str().as_bytes())
            .map_err(|error| invalid(&error))?;
        let target = self.target.as_ref().map_err(|error| TransportError::Request(error.clone()))?;
        let mut built = client.request(method, target.uri(self.settings.endpoint.path_of(request.uri()))?);
        if kind.may_be_silent() {
            built = built.no_decompress();
        }
        if !request.headers().contains_key(header::HOST) {
            built = built.append_header((awc::http::header::HOST, target.host.clone()));
        }
        if !request.headers().contains_key(header::ACCEPT_ENCODING) {
            built =
                built.append_header(header_of((&header::ACCEPT_ENCODING, &accepted(&self.settings, kind)))?);
        }
        // awc would wait for a 100, which `awc/heads.rs` drops. A body is sent without it (RFC 9110, section 10.1.1).
        for header in request.headers().iter().filter(|(name, _)| *name != header::EXPECT) {
            built = built.append_header(header_of(header)?);
        }
        Ok(built)
    }

    /// Timeouts in a row of unary requests replace their client.
    fn count_timeouts(&self, kind: RequestKind, is_timeout: bool) {
        if kind != RequestKind::Unary {
            return;
        }
        let timeouts = if is_timeout { self.timeouts.get() + 1 } else { 0 };
        self.timeouts.set(timeouts % TIMEOUTS_UNTIL_REPLACED);
        if timeouts >= TIMEOUTS_UNTIL_REPLACED {
            tracing::debug!(
                target: "actix_informer::client",
                endpoint = %self.settings.endpoint.name(),
                timeouts,
                "several requests in a row timed out; the next one uses a new connection"
            );
            self.close_pooled();
        }
    }

    fn close_pooled(&self) {
        if let Some(clients) = self.clients.borrow_mut().as_mut() {
            clients.unary = client(&self.settings, &clients.identity);
        }
    }

    fn transport_error(&self, error: SendRequestError) -> TransportError {
        let connect = |source| connecting::not_connected(&self.settings, source);
        match error {
            SendRequestError::Connect(ConnectError::Disconnected) => {
                broken(io::ErrorKind::UnexpectedEof.into())
            }
            SendRequestError::Connect(ConnectError::Timeout) => {
                let after = self.settings.limits.whole_connection();
                TransportError::Timeout { what: "connecting", after }
            }
            SendRequestError::Connect(ConnectError::Io(source)) => {
                connecting::not_connected(&self.settings, source)
            }
            SendRequestError::Connect(error) => connect(io::Error::other(error.to_string())),
            SendRequestError::Send(source) | SendRequestError::Response(ParseError::Io(source)) => {
                broken(source)
            }
            SendRequestError::Response(error @ ParseError::TooLarge) => {
                TransportError::Malformed(error.to_string())
            }
            SendRequestError::Response(error) if self.settings.endpoint.tls => {
                TransportError::Malformed(error.to_string())
            }
            SendRequestError::Response(error) => TransportError::Malformed(format!("{error}; {MAYBE_TLS}")),
            SendRequestError::Url(error) => TransportError::Request(error.to_string()),
            SendRequestError::Http(error) => TransportError::Request(error.to_string()),
            error => broken(io::Error::other(error.to_string())),
        }
    }
}

fn header_of(
    (name, value): (&header::HeaderName, &header::HeaderValue),
) -> Result<(HeaderName, HeaderValue), TransportError> {
    let invalid = |what: &dyn std::fmt::Display| TransportError::Request(what.to_string());
    let name = HeaderName::from_bytes(name.as_str().as_bytes()).map_err(|error| invalid(&error))?;
    let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|error| invalid(&error))?;
    Ok((name, value))
}

fn broken(source: io::Error) -> TransportError {
    if let Some(why) = heads::not_an_answer(&source) {
        return TransportError::Malformed(why);
    }
    TransportError::Broken { during: "before the head of the answer", source }
}

fn converted<S>(answer: awc::ClientResponse<S>) -> Result<Response<Body>, TransportError>
where
    S: Stream<Item = Result<Bytes, PayloadError>> + Unpin + 'static,
{
    let head = answer_head(answer.status().as_u16(), answer.headers())?;
    Ok(head.map(|()| body_of(answer)))
}

fn answer_head(status: u16, headers: &HeaderMap) -> Result<Response<()>, TransportError> {
    let malformed = |what: &dyn std::fmt::Display| TransportError::Malformed(what.to_string());
    let mut head = Response::new(());
    *head.status_mut() = StatusCode::from_u16(status).map_err(|error| malformed(&error))?;
    for (name, value) in headers {
        let name =
            header::HeaderName::from_bytes(name.as_str().as_bytes()).map_err(|error| malformed(&error))?;
        let value = header::HeaderValue::from_bytes(value.as_bytes()).map_err(|error| malformed(&error))?;
        head.headers_mut().append(name, value);
    }
    Ok(head)
}

fn body_of(payload: impl Stream<Item = Result<Bytes, PayloadError>> + Unpin + 'static) -> Body {
    let body = stream::unfold(Some(payload), |payload| async move {
        let mut payload = payload?;
        match payload.next().await? {
            Ok(chunk) => Some((Ok(chunk), Some(payload))),
            Err(error) => Some((Err(end_of(error)), None)),
        }
    });
    body.boxed_local()
}

fn end_of(error: PayloadError) -> TransportError {
    let source = match error {
        PayloadError::Incomplete(None) => return TransportError::Truncated,
        PayloadError::Incomplete(Some(source)) | PayloadError::Io(source) => source,
        error => return TransportError::Malformed(error.to_string()),
    };
    // An orderly end has this kind, too.
    match source.kind() {
        io::ErrorKind::UnexpectedEof => TransportError::Truncated,
        _ => TransportError::Broken { during: "in the body", source },
    }
}

struct Target {
    authority: Authority,
    host: HeaderValue,
}

impl Target {
    /// The error is a text: each request repeats it.
    fn new(endpoint: &Endpoint) -> Result<Self, String> {
        let authority = endpoint.authority.parse::<Authority>().map_err(|error| error.to_string())?;
        let host = HeaderValue::from_str(&endpoint.authority).map_err(|error| error.to_string())?;
        Ok(Self { authority, host })
    }

    fn uri(&self, path: String) -> Result<Uri, TransportError> {
        let invalid = |error: &dyn std::fmt::Display| TransportError::Request(error.to_string());
        let mut parts = Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(PathAndQuery::try_from(path).map_err(|error| invalid(&error))?);
        Uri::from_parts(parts).map_err(|error| invalid(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_to_its_path_below_the_endpoint() {
        for (endpoint, host, asked, expected) in [
            ("http://a:1", "a:1", "/api?x=%20&y", "http://a:1/api?x=%20&y"),
            (
                "https://[::1]:6443/k8s/c-1/",
                "[::1]:6443",
                "/api/v1/pods",
                "http://[::1]:6443/k8s/c-1/api/v1/pods",
            ),
        ] {
            let endpoint = Endpoint::parse(endpoint).unwrap();
            let target = Target::new(&endpoint).unwrap();
            assert_eq!(target.uri(endpoint.path_of(&asked.parse().unwrap())).unwrap().to_string(), expected);
            assert_eq!(target.host.to_str().unwrap(), host);
        }
    }
}
