//! Sends requests with a kube-rs client of the program.
//!
//! 1. Requests and bodies are polled on the named tokio runtime. hyper's connection tasks live on the runtime that first polls a
//!    request: on our thread they would end with it, and break the program's own requests.
//! 2. Bodies and upgraded connections cross threads through bounded channels and pipes. Dropping them here ends the request
//!    there.
//! 3. No error quotes the output of a credential plugin or of a login: it may hold a token.

use std::error::Error as StdError;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt, TryStreamExt};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::rt::TokioIo;
use kube_client::client::AuthError;
use kube_client::client::Body as KubeBody;
use tokio::io::{AsyncWriteExt, copy, duplex, split};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::super::body::{BodyReceiver, body_channel};
use super::super::error::{Error, TransportError};
use super::super::request::{RequestKind, SentAuthorization};
use super::{Body, SendCheck, Switched, Transport};

/// The kube client does not show the server's address.
pub(crate) const SERVER: &str = "the kube client's server";

/// For each direction of an upgraded connection, in bytes.
const PIPE: usize = 16 << 10;

type Answer = Result<Response<BodyReceiver>, TransportError>;

#[derive(Clone)]
pub(crate) struct KubeTransport {
    client: kube_client::Client,
    runtime: Handle,
    shown: Arc<Shown>,
}

#[derive(Default)]
struct Shown {
    /// The client reports when a request has its connection.
    tells: AtomicBool,
    /// The client answered without such a report: a service of the program's own may do so.
    is_silent: AtomicBool,
}

impl KubeTransport {
    pub(crate) fn new(client: kube_client::Client, runtime: Handle) -> Self {
        Self { client, runtime, shown: Arc::default() }
    }
}

impl Transport for KubeTransport {
    fn send(
        &self,
        mut request: Request<Bytes>,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let this = self.clone();
        Box::pin(async move {
            if kind.may_be_silent() {
                // The client's own layers would request gzip, which delays events.
                let identity = HeaderValue::from_static("identity");
                request.headers_mut().entry(header::ACCEPT_ENCODING).or_insert(identity);
            }
            let sent = request.headers().get(header::AUTHORIZATION).cloned();
            let (answer, answered) = oneshot::channel();
            let (runtime, drive) = (this.runtime.clone(), this.drive(request, answer));
            runtime.spawn(drive);
            let mut answer = answered.await.unwrap_or_else(|_| Err(runtime_has_ended()))?;
            if let Some(mut sent) = sent.filter(|_| !answer.status().is_success()) {
                sent.set_sensitive(true);
                answer.extensions_mut().insert(SentAuthorization(sent));
            }
            Ok(answer.map(StreamExt::boxed_local))
        })
    }
}

impl KubeTransport {
    /// Runs on the program's runtime.
    async fn drive(self, request: Request<Bytes>, mut answer: oneshot::Sender<Answer>) {
        let sent = tokio::select! {
            biased;
            () = answer.closed() => return,
            sent = self.begin(request) => sent,
        };
        let (head, body) = match sent.and_then(decoded) {
            Ok(switched) if switched.status() == StatusCode::SWITCHING_PROTOCOLS => {
                return switch(switched, answer).await;
            }
            Ok(answer) => answer.into_parts(),
            Err(error) => return drop(answer.send(Err(error))),
        };
        let (sender, receiver) = body_channel();
        if answer.send(Ok(Response::from_parts(head, receiver))).is_ok() {
            sender.forward(body.into_data_stream().map_err(in_body)).await;
        }
    }

    /// The check is asked until hyper reports the connection: the poll that finds it hands the request over.
    ///
    /// If a connection closed before it took a byte, hyper sends the request again without the check. The program can switch that
    /// off (see `Client::from_kube`); then the layers of this crate send it again, and ask.
    async fn begin(&self, request: Request<Bytes>) -> Result<Response<KubeBody>, TransportError> {
        let (check, mut request) = (SendCheck::of(&request), request.map(KubeBody::from));
        if check.is_none() && self.shown.tells() {
            return self.client.send(request).await.map_err(before_head);
        }
        check.as_ref().map_or(Ok(()), SendCheck::ask)?;
        let connection = capture_connection(&mut request);
        let mut sending = pin!(self.client.send(request));
        let sent = poll_fn(|context| {
            if let Some(check) = &check
                && !is_there(&connection)
                && let Err(refused) = check.ask()
                && let Some(error) = self.shown.what_follows(refused)
            {
                return Poll::Ready(Err(error));
            }
            sending.as_mut().poll(context).map_err(before_head)
        })
        .await;
        self.shown.note(is_there(&connection), sent.is_ok());
        sent
    }
}

impl Shown {
    fn tells(&self) -> bool {
        self.tells.load(Ordering::Relaxed)
    }

    fn note(&self, was_told: bool, is_answered: bool) {
        if was_told {
            self.tells.store(true, Ordering::Relaxed);
        } else if is_answered {
            self.is_silent.store(true, Ordering::Relaxed);
        }
    }

    /// For a check that refuses before the connection was reported. Before the client's first answer, the request may have been
    /// sent, and the error does not deny that. `None` (a client that reports nothing): continue, it may have been sent long ago.
    fn what_follows(&self, refused: TransportError) -> Option<TransportError> {
        if self.tells() {
            return Some(refused);
        }
        let why =
            "its leader's term has ended, and the kube client has not shown yet when it sends a request";
        let may_be_sent = || TransportError::Broken {
            during: "before the head of the answer",
            source: io::Error::other(why),
        };
        (!self.is_silent.load(Ordering::Relaxed)).then(may_be_sent)
    }
}

fn is_there(connection: &CaptureConnection) -> bool {
    connection.connection_metadata().is_some()
}

async fn switch(mut switched: Response<KubeBody>, answer: oneshot::Sender<Answer>) {
    let upgrade = hyper::upgrade::on(&mut switched);
    let (_, body) = body_channel();
    let mut given = Response::new(body);
    (*given.status_mut(), *given.headers_mut()) = (switched.status(), std::mem::take(switched.headers_mut()));
    drop(switched);
    let (near, far) = duplex(PIPE);
    Switched::attach(&mut given, Box::new(near));
    if answer.send(Ok(given)).is_err() {
        return;
    }
    let Ok(upgraded) = upgrade.await else { return };
    let (mut from_caller, mut to_caller) = split(far);
    let (mut from_server, mut to_server) = split(TokioIo::new(upgraded));
    // An error closes the pipe, as the end does: the reader knows whether it may end there.
    tokio::select! {
        () = sent(copy(&mut from_caller, &mut to_server)) => drop(to_server.shutdown().await),
        _ = copy(&mut from_server, &mut to_caller) => {}
    }
}

/// A server that takes no more may still send: then the other direction decides.
async fn sent(copying: impl Future<Output = io::Result<u64>>) {
    if copying.await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn decoded(answer: Response<KubeBody>) -> Result<Response<KubeBody>, TransportError> {
    let encoding = answer.headers().get(header::CONTENT_ENCODING);
    if encoding.is_none_or(|value| value.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(answer);
    }
    let why = "the body is encoded, and the kube client does not decode it (its feature gzip does)";
    Err(TransportError::Malformed(why.to_owned()))
}

fn runtime_has_ended() -> TransportError {
    let why = "the tokio runtime that was named for the kube client's requests has ended";
    TransportError::Connect { endpoint: SERVER.to_owned(), source: io::Error::other(why) }
}

fn before_head(error: kube_client::Error) -> TransportError {
    use io::ErrorKind as Kind;
    if let kube_client::Error::Auth(error) = &error {
        return TransportError::Credentials(Arc::new(credentials(error)));
    }
    let source = io_error(error);
    let never_connected = matches!(
        source.kind(),
        Kind::ConnectionRefused
            | Kind::AddrNotAvailable
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NotFound
    );
    if never_connected {
        return TransportError::Connect { endpoint: SERVER.to_owned(), source };
    }
    TransportError::Broken { during: "before the head of the answer", source }
}

fn in_body(error: kube_client::Error) -> TransportError {
    let source = io_error(error);
    match source.kind() {
        io::ErrorKind::UnexpectedEof => TransportError::Truncated,
        _ => TransportError::Broken { during: "in the body", source },
    }
}

/// Has all causes, and the kind of the innermost `io::Error`.
fn io_error(error: kube_client::Error) -> io::Error {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(&error);
    let mut kind = io::ErrorKind::Other;
    while let Some(error) = cause {
        kind = error.downcast_ref::<io::Error>().map_or(kind, io::Error::kind);
        cause = error.source();
    }
    io::Error::new(kind, error)
}

fn credentials(error: &AuthError) -> Error {
    let reason = match error {
        AuthError::AuthExecStart(error) => format!("their plugin cannot be started: {}", error.kind()),
        AuthError::AuthExecRun { cmd, out } => {
            let program = cmd.split_whitespace().next().unwrap_or_default();
            format!("their plugin {program:?} has failed: {}", out.status)
        }
        AuthError::ReadTokenFile(error, path) => {
            format!("the token file {} cannot be read: {}", path.display(), error.kind())
        }
        _ => "the kube client could not log in; its own log says why".to_owned(),
    };
    Error::Unusable { what: "the kube client's credentials", reason }
}
