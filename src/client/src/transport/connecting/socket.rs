//! The stream below HTTP.
//!
//! A read never returns zero bytes: an orderly end is an error that [`is_orderly_end`] recognizes. awc takes the end of a
//! connection for the end of a body: a list that was cut off would seem complete.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_rt::net::{ActixStream, Ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::client::TlsStream;

#[derive(Debug)]
pub(in crate::transport) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// The API server's inside the proxy's.
    TlsInTls(Box<TlsStream<TlsStream<TcpStream>>>),
    #[cfg(unix)]
    Unix(UnixStream),
}

#[derive(Debug, thiserror::Error)]
#[error("the connection was closed")]
struct OrderlyEnd;

pub(in crate::transport) fn is_orderly_end(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<OrderlyEnd>())
}

/// RFC 9113, section 3.2.
#[cfg(feature = "http2")]
pub(super) const HTTP2: &[u8] = b"h2";

impl Socket {
    #[cfg(feature = "http2")]
    pub(in crate::transport) fn speaks_http2(&self) -> bool {
        let chosen = match self {
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol(),
            Self::TlsInTls(stream) => stream.get_ref().1.alpn_protocol(),
            _ => None,
        };
        chosen == Some(HTTP2)
    }

    fn raw(&self) -> &dyn ActixStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
            Self::TlsInTls(stream) => stream.get_ref().0.get_ref().0,
            #[cfg(unix)]
            Self::Unix(stream) => stream,
        }
    }

    fn writer(self: Pin<&mut Self>) -> Pin<&mut (dyn AsyncWrite + Unpin)> {
        Pin::new(match self.get_mut() {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.as_mut(),
            Self::TlsInTls(stream) => stream.as_mut(),
            #[cfg(unix)]
            Self::Unix(stream) => stream,
        })
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
            Self::TlsInTls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
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

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.writer().poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::TlsInTls(stream) => stream.is_write_vectored(),
            #[cfg(unix)]
            Self::Unix(stream) => stream.is_write_vectored(),
        }
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
        self.raw().poll_read_ready(cx)
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.raw().poll_write_ready(cx)
    }
}
