//! Reads in larger pieces than awc, and passes heads of answers through `heads.rs`. awc reads 8 KiB at a time: an object of 9 KiB
//! takes two reads, and the check of the pooled connection a third.
//!
//! 1. After a complete answer nothing is read ahead: awc's check must see what a server sends unasked.
//! 2. Over TLS no body is read ahead: rustls does that.
//! 3. If a server answers before it has taken the whole request, the rest is not written, and the connection closes after the
//!    answer. awc reads only after it has written everything (`awc/src/client/h1proto.rs`, `send_body`).

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use actix_rt::net::{ActixStream, Ready};
use actix_service::Service;
use actix_tls::connect::{ConnectError, ConnectInfo, Connection};
use awc::http::Uri;
use futures_util::future::LocalBoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::connecting::socket::{Socket, is_orderly_end};
use super::super::connecting::{Offered, connect};
use super::attempt::Attempt;
use super::heads::{Heads, not_an_answer};
use crate::connection_settings::ConnectionSettings;
use crate::identity::Identity;

const AHEAD: usize = 32 << 10;
/// awc reads less only to check whether a connection is open.
const LOOK: usize = 256;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::default();
}

#[derive(Debug)]
pub(super) struct ReadAhead {
    socket: Socket,
    /// Did not fit in awc's buffer. Usually empty.
    unread: Vec<u8>,
    given: usize,
    heads: Heads,
    /// The rest of the request is not written: the server has answered or takes no more.
    is_cut_short: bool,
    /// The first of two errors is reported.
    write_error: Option<io::Error>,
}

impl ReadAhead {
    pub(super) fn new(socket: Socket) -> Self {
        Self::of(socket, Heads::new())
    }

    pub(super) fn for_upgrade(socket: Socket) -> Self {
        Self::of(socket, Heads::of_upgrade())
    }

    fn of(socket: Socket, heads: Heads) -> Self {
        Self { socket, unread: Vec::new(), given: 0, heads, is_cut_short: false, write_error: None }
    }

    /// Returns a head only whole.
    fn poll_piece(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.is_empty() {
                *buffer = vec![0; AHEAD].into_boxed_slice();
            }
            loop {
                let mut piece = ReadBuf::new(buffer);
                ready!(Pin::new(&mut self.socket).poll_read(cx, &mut piece))?;
                let mut bytes = Cow::Borrowed(piece.filled());
                if self.heads.awaits_head() {
                    let Some(seen) = self.heads.handle_read(piece.filled())? else { continue };
                    bytes = seen;
                }
                let (fits, rest) = bytes.split_at(buf.remaining().min(bytes.len()));
                buf.put_slice(fits);
                (self.unread, self.given) = (rest.to_vec(), 0);
                return Poll::Ready(Ok(()));
            }
        })
    }

    /// True if the server answers before the request is written whole.
    fn has_answered(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if !self.unread.is_empty() || !self.heads.awaits_head() {
            return Ok(false);
        }
        // The next write also finds an end.
        match self.poll_piece(cx, &mut ReadBuf::new(&mut [])) {
            Poll::Ready(Ok(())) => Ok(true),
            Poll::Ready(Err(error)) if not_an_answer(&error).is_some() => Err(error),
            _ => Ok(false),
        }
    }

    /// What the server does not take counts as written.
    fn poll_unless_cut_short<T>(
        &mut self,
        cx: &mut Context<'_>,
        taken: T,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match written {
            Poll::Ready(Err(error)) if is_gone(&error) && self.heads.awaits_head() => {
                self.write_error = Some(error);
            }
            Poll::Pending => {
                self.heads.close_after_answer(true);
                let has_answered = self.has_answered(cx)?;
                self.heads.close_after_answer(has_answered);
                if !has_answered {
                    return Poll::Pending;
                }
            }
            written => return written,
        }
        self.heads.close_after_answer(true);
        self.is_cut_short = true;
        Poll::Ready(Ok(taken))
    }
}

/// The peer takes no more. It may have answered before.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
}

impl AsyncRead for ReadAhead {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let wanted = buf.remaining();
        if this.unread.is_empty() {
            let is_tls = matches!(this.socket, Socket::Tls(_) | Socket::TlsInTls(_));
            let is_head = this.heads.awaits_head();
            let read = match is_head || (!is_tls && (LOOK..AHEAD).contains(&wanted)) {
                true => ready!(this.poll_piece(cx, buf)),
                false => ready!(Pin::new(&mut this.socket).poll_read(cx, buf)),
            };
            return Poll::Ready(match read {
                Err(error) if this.heads.ends_with_connection() && is_orderly_end(&error) => Ok(()),
                Err(error) => Err(this.write_error.take().unwrap_or(error)),
                read => read,
            });
        }
        let rest = &this.unread[this.given..];
        let given = rest.len().min(wanted);
        buf.put_slice(&rest[..given]);
        this.given += given;
        if this.given == this.unread.len() {
            this.unread = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ReadAhead {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Attempt::before_write()?;
        let this = self.get_mut();
        if this.is_cut_short {
            return Poll::Ready(Ok(bytes.len()));
        }
        this.heads.handle_write(bytes);
        let written = Pin::new(&mut this.socket).poll_write(cx, bytes);
        this.poll_unless_cut_short(cx, bytes.len(), written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_cut_short {
            return Poll::Ready(Ok(()));
        }
        let flushed = Pin::new(&mut this.socket).poll_flush(cx);
        this.poll_unless_cut_short(cx, (), flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

impl ActixStream for ReadAhead {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.socket.poll_read_ready(cx)
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.socket.poll_write_ready(cx)
    }
}

#[derive(Clone)]
pub(super) struct Connect {
    settings: Arc<ConnectionSettings>,
    identity: Arc<Identity>,
}

impl Connect {
    pub(super) fn new(settings: Arc<ConnectionSettings>, identity: Arc<Identity>) -> Self {
        Self { settings, identity }
    }
}

impl Service<ConnectInfo<Uri>> for Connect {
    type Response = Connection<Uri, ReadAhead>;
    type Error = ConnectError;
    type Future = LocalBoxFuture<'static, Result<Self::Response, ConnectError>>;

    actix_service::always_ready!();

    fn call(&self, info: ConnectInfo<Uri>) -> Self::Future {
        let (settings, identity) = (Arc::clone(&self.settings), Arc::clone(&self.identity));
        Box::pin(async move {
            Attempt::makes_connection();
            let socket = connect(&settings, &identity, Offered::Http1).await.map_err(ConnectError::Io)?;
            Ok(Connection::new(info.request().clone(), ReadAhead::new(socket)))
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::transport::connecting::socket::is_orderly_end;

    #[tokio::test]
    async fn the_bytes_of_a_connection_come_in_order_in_pieces_of_any_size_and_its_end_behind_them() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut theirs, _) = listener.accept().await.unwrap();
        let sent: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let writing = sent.clone();
        let writer = tokio::spawn(async move {
            theirs.write_all(&writing).await.unwrap();
        });
        let mut ahead = ReadAhead::new(Socket::Plain(ours));
        let (mut found, mut sizes) = (Vec::new(), [2, 300, 8 << 10, 1, 64 << 10, 500].into_iter().cycle());
        while found.len() < sent.len() {
            let mut piece = vec![0; sizes.next().unwrap()];
            let read = ahead.read(&mut piece).await.unwrap();
            assert!(read > 0);
            found.extend_from_slice(&piece[..read]);
        }
        writer.await.unwrap();
        assert_eq!(found, sent);
        assert!(ahead.unread.is_empty());
        let end = ahead.read(&mut [0; 1024]).await.unwrap_err();
        assert!(is_orderly_end(&end), "{end}");
    }

    #[tokio::test]
    async fn what_is_no_answer_ends_the_request_that_is_still_being_written() {
        let switch = "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned();
        for (sent, expected) in
            [(switch, "101"), ("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(65), "64 interim")]
        {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            // It takes nothing of the request.
            let (mut theirs, _) = listener.accept().await.unwrap();
            theirs.write_all(sent.as_bytes()).await.unwrap();
            let mut ahead = ReadAhead::new(Socket::Plain(ours));
            let mut request = b"POST /a HTTP/1.1\r\n\r\n".to_vec();
            request.resize(64 << 20, b'x');
            let error = ahead.write_all(&request).await.expect_err("no answer");
            assert!(not_an_answer(&error).is_some_and(|why| why.contains(expected)), "{error}");
        }
    }

    #[tokio::test]
    async fn what_is_read_ahead_of_one_connection_is_not_given_to_another_one_of_the_thread() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut pairs = Vec::new();
        for byte in [1, 2] {
            let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut theirs, _) = listener.accept().await.unwrap();
            theirs.write_all(&[byte; 4_000]).await.unwrap();
            pairs.push((byte, ReadAhead::new(Socket::Plain(ours)), theirs));
        }
        for _ in 0..10 {
            for (byte, ahead, _) in &mut pairs {
                let mut piece = [0; 400];
                ahead.read_exact(&mut piece).await.unwrap();
                assert_eq!(piece, [*byte; 400]);
            }
        }
    }
}
