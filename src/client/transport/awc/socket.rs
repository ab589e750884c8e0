//! The stream below HTTP: TCP, or TLS over TCP.
//!
//! Answers "what does awc read and write?" It exists to give TLS to our own hands and to make the end of a
//! connection an error: awc takes it for the end of a body and would hand out a cut-off list as a whole one.
//! Invariants:
//! 1. A read never gives zero bytes: an orderly end is an error that [`is_orderly_end`] knows.
//! 2. HTTP/1.1 keeps no request waiting for an end of the connection, so nothing else is changed by that.
//!
//! Read next: `connector.rs`, which makes them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_rt::net::{ActixStream, Ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to the API server.
#[derive(Debug)]
pub(super) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

#[derive(Debug, thiserror::Error)]
#[error("the connection was closed")]
struct OrderlyEnd;

/// Whether this error is the orderly end of a connection.
pub(super) fn is_orderly_end(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<OrderlyEnd>())
}

impl Socket {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }

    fn writer(self: Pin<&mut Self>) -> Pin<&mut (dyn AsyncWrite + Unpin)> {
        Pin::new(match self.get_mut() {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.as_mut(),
        })
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
        })?;
        if buf.filled().len() == before && buf.remaining() > 0 {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, OrderlyEnd)));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writer().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer().poll_shutdown(cx)
    }
}

impl ActixStream for Socket {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        ActixStream::poll_read_ready(self.tcp(), cx)
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        ActixStream::poll_write_ready(self.tcp(), cx)
    }
}
