//! Gives requests to a function of this process, such as an in-memory server, without a socket.
//!
//! Answers "how does a simulation include its server?" The function is called and polled where the request is sent, so
//! that its waits follow the clock there. Invariants:
//! 1. One request is one call. Dropping the answer or its body drops what the function gave.
//! 2. Its failures are those of a connection: refused before the answer, broken in its middle.
//!
//! No crate of servers is named here, nor does one know this crate: both only know the function's type. Read next:
//! `../backend.rs`.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::LocalBoxStream;
use futures_util::{FutureExt, Stream, StreamExt};
use http::{Request, Response};

use super::super::error::TransportError;
use super::{Body, RequestKind, Transport};

/// How the server is called in errors.
pub(crate) const SERVER: &str = "the server of this process";

type Served = Response<LocalBoxStream<'static, io::Result<Bytes>>>;

/// A server as a function.
pub(crate) type Service =
    Arc<dyn Fn(Request<Bytes>) -> LocalBoxFuture<'static, io::Result<Served>> + Send + Sync>;

/// The function, whatever future and body it gives.
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

/// Sends requests to a function of this process.
pub(crate) struct InProcessTransport(Service);

impl InProcessTransport {
    pub(crate) fn new(service: Service) -> Self {
        Self(service)
    }
}

impl Transport for InProcessTransport {
    fn send(
        &self,
        request: Request<Bytes>,
        _kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Response<Body>, TransportError>> {
        let service = Arc::clone(&self.0);
        Box::pin(async move {
            let answer = service(request).await.map_err(refused)?;
            let broken = |source| TransportError::Broken { during: "in the body", source };
            Ok(answer.map(|body| body.map(move |read| read.map_err(broken)).boxed_local()))
        })
    }
}

fn refused(source: io::Error) -> TransportError {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => TransportError::Connect { endpoint: SERVER.to_owned(), source },
        io::ErrorKind::InvalidInput => TransportError::Request(source.to_string()),
        _ => TransportError::Broken { during: "before the head of the answer", source },
    }
}
