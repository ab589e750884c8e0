//! Servers that speak HTTP/2: one that a script answers stream by stream, and one that writes frames by hand.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_informer::client::{Client, Config};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{Request, Response};

use crate::raw_server::*;
use crate::tls::Authority;

pub(crate) struct Http2Server {
    raw: RawServer,
    authority: Authority,
    most_streams: Arc<AtomicUsize>,
}

/// One request.
pub(crate) struct Asked {
    pub(crate) request: Request<RecvStream>,
    pub(crate) answer: SendResponse<Bytes>,
}

impl Asked {
    pub(crate) fn path(&self) -> &str {
        self.request.uri().path()
    }

    /// Begins an answer 200.
    pub(crate) fn begin(&mut self) -> SendStream<Bytes> {
        self.answer.send_response(Response::new(()), false).unwrap()
    }
}

/// The server answers it, and goes away.
pub(crate) const GO_AWAY: &str = "/go-away";

impl Http2Server {
    /// Allows so many streams of one connection at once.
    pub(crate) async fn start<F>(
        allowed: Option<u32>,
        script: impl Fn(Asked) -> F + Clone + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let authority = Authority::new();
        let most_streams = Arc::new(AtomicUsize::new(0));
        let most = Arc::clone(&most_streams);
        let raw = RawServer::start_tls(authority.acceptor_of_http2("127.0.0.1"), move |connection| {
            let (script, most) = (script.clone(), Arc::clone(&most));
            async move {
                let streams = Arc::new(AtomicUsize::new(0));
                let mut builder = h2::server::Builder::new();
                if let Some(allowed) = allowed {
                    builder.max_concurrent_streams(allowed);
                }
                let Ok(mut served) = builder.handshake(connection.into_io()).await else { return };
                while let Some(Ok((request, answer))) = served.accept().await {
                    most.fetch_max(streams.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    if request.uri().path() == GO_AWAY {
                        served.graceful_shutdown();
                    }
                    let (asked, streams) = (Asked { request, answer }, Arc::clone(&streams));
                    let answering = script(asked);
                    tokio::spawn(async move {
                        answering.await;
                        streams.fetch_sub(1, Ordering::SeqCst);
                    });
                }
            }
        })
        .await;
        Self { raw, authority, most_streams }
    }

    pub(crate) fn config(&self) -> Config {
        self.authority.config(&self.raw.url()).http2()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.config()).unwrap()
    }

    pub(crate) fn connections(&self) -> usize {
        self.raw.accepted()
    }

    /// Of one connection at once.
    pub(crate) fn most_streams(&self) -> usize {
        self.most_streams.load(Ordering::SeqCst)
    }
}

/// A frame of HTTP/2 (RFC 9113, section 4.1).
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(crate) const SETTINGS: u8 = 4;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const GOAWAY: u8 = 7;

/// What happens behind the frames.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    Silence,
    End,
}

/// By frames: what is written when the headers of a request have come, with the number of its connection.
pub(crate) async fn by_frames(
    then: Then,

    answers: impl Fn(usize) -> Vec<u8> + Clone + Send + 'static,
) -> (RawServer, Authority) {
    let authority = Authority::new();
    let server = RawServer::start_tls(authority.acceptor_of_http2("127.0.0.1"), move |mut connection| {
        let answers = answers.clone();
        async move {
            connection.body("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len()).await;
            connection.write(frame(SETTINGS, 0, 0, &[])).await;
            const HEADERS: u8 = 1;
            while connection.frame().await != Some(HEADERS) {}
            let number = connection.number;
            connection.write(answers(number)).await;
            match then {
                Then::Silence => connection.gone().await,
                Then::End => connection.close().await,
            }
        }
    })
    .await;
    (server, authority)
}
