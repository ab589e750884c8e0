//! The transport over awc: HTTP/1.1 with our own connections and our own deadlines.
//!
//! Answers "how is a request sent?" Nothing outside this module and its children knows awc. Invariants:
//! 1. One awc client for watches, one for everything else; neither bounds the number of connections, follows
//!    redirects or has a deadline of its own.
//! 2. A GET is sent a second time, at once, only when it failed on a connection that had served before.
//! 3. Two timeouts in a row of single requests throw their client away, and its pooled connections with it.
//! 4. The token stands in the headers of each request, so a renewed one is used by the next.
//!
//! awc needs a `LocalSet`, and no actix `System`. Read next: `awc/connector.rs`.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_http::error::ParseError;
use awc::error::{ConnectError, SendRequestError};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{HeaderValue, Method, Request, Response, header};
use tokio::time::{Instant, timeout};

use super::{Body, HEAD_DEADLINE, Lane, READ_DEADLINE, Transport, TransportError};
use crate::client::endpoint::Prepared;
use answer::{Answer, Deadlines};
use connector::{Connect, FRESH};

mod answer;
mod connector;
mod socket;

/// Timeouts in a row after which the pooled connections are given up.
const TIMEOUTS_UNTIL_REBUILD: u8 = 2;
/// Longest connect: twice the connector's own deadlines of 5 s, which give the better messages.
const CONNECT_BACKSTOP: Duration = Duration::from_secs(15);

const USER_AGENT: &str = concat!("actix-informer/", env!("CARGO_PKG_VERSION"));

/// Whether a failed attempt went over a connection that had served before.
struct Reused(bool);

/// Carries requests over awc.
#[derive(Clone)]
pub(crate) struct AwcTransport(Rc<Inner>);

struct Inner {
    prepared: Arc<Prepared>,
    watches: awc::Client,
    unary: RefCell<awc::Client>,
    timeouts: Cell<u8>,
}

impl AwcTransport {
    pub(crate) fn new(prepared: Arc<Prepared>) -> Self {
        let watches = client(&prepared);
        let unary = RefCell::new(client(&prepared));
        Self(Rc::new(Inner { prepared, watches, unary, timeouts: Cell::new(0) }))
    }
}

fn client(prepared: &Arc<Prepared>) -> awc::Client {
    let connector = awc::Connector::new()
        .connector(Connect::new(Arc::clone(prepared)))
        .limit(0)
        .timeout(CONNECT_BACKSTOP);
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
        lane: Lane,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let inner = Rc::clone(&self.0);
        Box::pin(async move { inner.send(request, lane).await })
    }
}

impl Inner {
    async fn send(&self, request: Request<Bytes>, lane: Lane) -> Result<Response<Body>, TransportError> {
        let ends = match lane {
            Lane::Unary => None,
            // A time that no `Instant` can hold never comes.
            Lane::Watch { total } => Instant::now().checked_add(total).map(|at| (at, total)),
        };
        let late = TransportError::Timeout { what: "the head of the answer", after: HEAD_DEADLINE };
        let answer = timeout(HEAD_DEADLINE, self.attempts(&request, lane)).await.unwrap_or(Err(late));
        self.count(lane, &answer);
        let mut answer = answer?;
        if matches!(lane, Lane::Watch { .. }) && answer.is_encoded() {
            if answer.is_success() {
                let why = "a watch was encoded although that was not accepted";
                return Err(TransportError::Malformed(why.to_owned()));
            }
            answer = answer.decoded();
        }
        let idle = matches!(lane, Lane::Unary).then_some(READ_DEADLINE);
        Ok(answer.within(Deadlines { idle, ends }))
    }

    async fn attempts(&self, request: &Request<Bytes>, lane: Lane) -> Result<Answer, TransportError> {
        let token = self.prepared.credentials.header().await?;
        match self.attempt(request, lane, token.as_ref()).await {
            Err((TransportError::Broken { .. }, Reused(true))) if request.method() == Method::GET => {
                tracing::debug!(path = request.uri().path(), "a pooled connection was dead, asking again");
                self.attempt(request, lane, token.as_ref()).await.map_err(|(error, _)| error)
            }
            answer => answer.map_err(|(error, _)| error),
        }
    }

    async fn attempt(
        &self,
        request: &Request<Bytes>,
        lane: Lane,
        token: Option<&HeaderValue>,
    ) -> Result<Answer, (TransportError, Reused)> {
        let client = match lane {
            Lane::Unary => self.unary.borrow().clone(),
            Lane::Watch { .. } => self.watches.clone(),
        };
        let prepared = self.prepare(&client, request, lane, token).map_err(|error| (error, Reused(false)))?;
        let has_no_body =
            request.body().is_empty() && matches!(*request.method(), Method::GET | Method::HEAD);
        let sending = match has_no_body {
            true => prepared.send_body(actix_http::body::None::new()),
            false => prepared.send_body(request.body().clone()),
        };
        let fresh = Rc::new(Cell::new(false));
        match FRESH.scope(Rc::clone(&fresh), sending).await {
            Ok(answer) => {
                let authorization = request.headers().get(header::AUTHORIZATION).or(token);
                Answer::new(answer, authorization).map_err(|error| (error, Reused(false)))
            }
            Err(error) => Err((self.failed(error), Reused(!fresh.get()))),
        }
    }

    fn prepare(
        &self,
        client: &awc::Client,
        request: &Request<Bytes>,
        lane: Lane,
        token: Option<&HeaderValue>,
    ) -> Result<awc::ClientRequest, TransportError> {
        let invalid = |what: &dyn std::fmt::Display| TransportError::Request(what.to_string());
        let endpoint = &self.prepared.endpoint;
        let method = awc::http::Method::from_bytes(request.method().as_str().as_bytes())
            .map_err(|error| invalid(&error))?;
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        // TLS is made by our own connector, below HTTP; awc's own kind of TLS would begin at "https".
        let uri = format!("http://{}{}{target}", endpoint.authority, endpoint.prefix);
        let mut sent = client.request(method, uri);
        let encoding = HeaderValue::from_static(match lane {
            Lane::Unary => "gzip",
            Lane::Watch { .. } => {
                sent = sent.no_decompress();
                "identity"
            }
        });
        let host = HeaderValue::from_str(&endpoint.authority).map_err(|error| invalid(&error))?;
        let user_agent = HeaderValue::from_static(USER_AGENT);
        // Where the caller has one of these, theirs is sent and not ours.
        let own = [
            (header::HOST, Some(&host)),
            (header::ACCEPT_ENCODING, Some(&encoding)),
            (header::USER_AGENT, Some(&user_agent)),
            (header::AUTHORIZATION, token),
        ];
        let own = own.iter().filter_map(|(name, value)| Some((name, (*value)?)));
        for (name, value) in
            own.filter(|(name, _)| !request.headers().contains_key(*name)).chain(request.headers())
        {
            let name = awc::http::header::HeaderName::from_bytes(name.as_str().as_bytes())
                .map_err(|error| invalid(&error))?;
            let value = awc::http::header::HeaderValue::from_bytes(value.as_bytes())
                .map_err(|error| invalid(&error))?;
            sent = sent.append_header((name, value));
        }
        Ok(sent)
    }

    /// Counts timeouts in a row of single requests; a client whose connections went silent is replaced.
    fn count(&self, lane: Lane, answer: &Result<Answer, TransportError>) {
        if lane != Lane::Unary {
            return;
        }
        let timeouts = match answer {
            Err(TransportError::Timeout { .. }) => self.timeouts.get() + 1,
            _ => 0,
        };
        self.timeouts.set(timeouts % TIMEOUTS_UNTIL_REBUILD);
        if timeouts >= TIMEOUTS_UNTIL_REBUILD {
            tracing::debug!(endpoint = %self.prepared.endpoint.authority, "connections are silent, making new ones");
            *self.unary.borrow_mut() = client(&self.prepared);
        }
    }

    fn failed(&self, error: SendRequestError) -> TransportError {
        let connect =
            |source| TransportError::Connect { endpoint: self.prepared.endpoint.authority.clone(), source };
        match error {
            SendRequestError::Connect(ConnectError::Disconnected) => {
                broken(io::ErrorKind::UnexpectedEof.into())
            }
            SendRequestError::Connect(ConnectError::Timeout) => {
                TransportError::Timeout { what: "connecting", after: CONNECT_BACKSTOP }
            }
            SendRequestError::Connect(ConnectError::Io(source)) => match connector::deadline_of(&source) {
                Some((what, after)) => TransportError::Timeout { what, after },
                None => connect(source),
            },
            SendRequestError::Connect(error) => connect(io::Error::other(error.to_string())),
            SendRequestError::Send(source) => broken(source),
            SendRequestError::Response(ParseError::Io(source)) => broken(source),
            SendRequestError::Response(error) => TransportError::Malformed(error.to_string()),
            SendRequestError::Url(error) => TransportError::Request(error.to_string()),
            SendRequestError::Http(error) => TransportError::Request(error.to_string()),
            error => broken(io::Error::other(error.to_string())),
        }
    }
}

fn broken(source: io::Error) -> TransportError {
    TransportError::Broken { during: "before the head of the answer", source }
}
