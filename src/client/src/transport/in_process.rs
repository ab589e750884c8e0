//! Passes requests to a function of this process, such as an in-memory server. It is called and polled where the request is sent:
//! its waits follow the clock there.
//!
//! 1. An upgrade request carries one end of a pipe in its extensions, as `Arc<Mutex<Option<DuplexStream>>>`: the server reads
//!    there what the client sends after the head. The body of the answer 101 is what the server sends.
//! 2. The call counts as the first byte: the `SendCheck` is asked before it.

use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::LocalBoxStream;
use futures_util::{FutureExt, Stream, StreamExt};
use http::{Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::super::error::TransportError;
use super::super::request::RequestKind;
use super::{Body, SendCheck, Switched, Transport};

/// Bytes that wait in each direction.
const PIPE: usize = 16 << 10;

pub(crate) const SERVER: &str = "the server of this process";

type Served = Response<LocalBoxStream<'static, io::Result<Bytes>>>;

pub(crate) type Service =
    Arc<dyn Fn(Request<Bytes>) -> LocalBoxFuture<'static, io::Result<Served>> + Send + Sync>;

pub(crate) fn service<F, B>(serve: impl Fn(Request<Bytes>) -> F + Send + Sync + 'static) -> Service
where
    F: Future<Output = io::Result<Response<B>>> + 'static,
    B: Stream<Item = io::Result<Bytes>> + 'static,
{
    Arc::new(move |request| {
        let answering = serve(request);
        async move { Ok(answering.await?.map(StreamExt::boxed_local)) }.boxed_local()
    })
}

pub(crate) struct InProcessTransport(Service);

impl InProcessTransport {
    pub(crate) fn new(service: Service) -> Self {
        Self(service)
    }
}

impl Transport for InProcessTransport {
    fn send(
        &self,
        mut request: Request<Bytes>,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let service = Arc::clone(&self.0);
        Box::pin(async move {
            let sent = (kind == RequestKind::Upgrade).then(|| {
                let (client, server) = duplex(PIPE);
                request.extensions_mut().insert(Arc::new(Mutex::new(Some(server))));
                client
            });
            SendCheck::ask_of(&request)?;
            let answer = service(request).await.map_err(refused)?;
            if let Some(sent) = sent.filter(|_| answer.status() == StatusCode::SWITCHING_PROTOCOLS) {
                return Ok(switched(answer, sent));
            }
            let broken = |source| TransportError::Broken { during: "in the body", source };
            Ok(answer.map(|body| body.map(move |read| read.map_err(broken)).boxed_local()))
        })
    }
}

fn switched(
    answer: Response<LocalBoxStream<'static, io::Result<Bytes>>>,
    sent: DuplexStream,
) -> Response<Body> {
    let (head, mut body) = answer.into_parts();
    let (received, mut receiving) = duplex(PIPE);
    // Ends with the body, or when the caller drops its end. Dropping the body ends the server's work.
    tokio::task::spawn_local(async move {
        let mut nothing = [0];
        loop {
            let chunk = tokio::select! {
                biased;
                chunk = body.next() => chunk,
                // Nobody writes here: a read ends only when the other end is dropped.
                _ = receiving.read(&mut nothing) => return,
            };
            let Some(Ok(chunk)) = chunk else { return };
            if receiving.write_all(&chunk).await.is_err() {
                return;
            }
        }
    });
    let mut answer = Response::from_parts(head, futures_util::stream::empty().boxed_local());
    Switched::attach(&mut answer, Box::new(tokio::io::join(received, sent)));
    answer
}

fn refused(source: io::Error) -> TransportError {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => TransportError::Connect { endpoint: SERVER.to_owned(), source },
        io::ErrorKind::InvalidInput => TransportError::Request(source.to_string()),
        _ => TransportError::Broken { during: "before the head of the answer", source },
    }
}
