//! The bytes below HTTP, and why they ended: hyper and h2 keep only the text of an error, if at all.
//!
//! A server may answer a request before it has read all of it, and close. So what it no longer takes is dropped here, and its
//! answer is read; without one, the error of the write is why.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::super::connecting::socket::{Socket, is_orderly_end};
use crate::error::TransportError;
use crate::transport::SendCheck;

/// After so long without a taken byte, a connection gets no new requests.
const STUCK: Duration = Duration::from_secs(1);

#[derive(Clone, Default)]
pub(super) struct WireEnd(Rc<RefCell<Seen>>);

#[derive(Default)]
struct Seen {
    last_read: Option<Instant>,
    waits_since: Option<Instant>,
    /// Asked before the next byte is written.
    check: Option<SendCheck>,
    refused: Option<TransportError>,
    waits: Option<Waker>,
    failure: Option<Failure>,
}

struct Failure {
    /// For the first request that asks.
    source: Option<io::Error>,
    kind: io::ErrorKind,
    text: String,
}

impl WireEnd {
    /// An orderly end is no failure.
    pub(super) fn failure(&self) -> Option<io::Error> {
        let mut seen = self.0.borrow_mut();
        let failure = seen.failure.as_mut()?;
        let copy = || io::Error::new(failure.kind, failure.text.clone());
        Some(failure.source.take().unwrap_or_else(copy))
    }

    /// Then the server accepts the client's certificate.
    pub(super) fn has_read(&self) -> bool {
        self.last_read().is_some()
    }

    pub(super) fn last_read(&self) -> Option<Instant> {
        self.0.borrow().last_read
    }

    /// It takes no writes. A short delay by a busy thread or a full buffer does not count.
    pub(super) fn is_stuck(&self) -> bool {
        let seen = self.0.borrow();
        let is_stuck = seen.waits_since.is_some_and(|since| since.elapsed() >= STUCK);
        is_stuck || seen.failure.is_some()
    }

    /// Whether it may be given a request; of one with a `SendCheck` no byte may wait for those of others.
    pub(super) fn takes(&self, is_checked: bool) -> bool {
        !(self.is_stuck() || is_checked && self.is_writing())
    }

    /// The last write is not done, or has failed.
    pub(super) fn is_writing(&self) -> bool {
        let seen = self.0.borrow();
        seen.waits_since.is_some() || seen.failure.is_some()
    }

    pub(super) fn ask_at_write(&self, check: Option<SendCheck>) {
        self.0.borrow_mut().check = check;
    }

    pub(super) fn take_refusal(&self) -> Option<TransportError> {
        self.0.borrow_mut().refused.take()
    }

    pub(super) fn wake_at_read(&self, context: &Context<'_>) {
        self.0.borrow_mut().waits = Some(context.waker().clone());
    }

    pub(super) fn in_body(&self) -> TransportError {
        match self.failure() {
            Some(source) if source.kind() != io::ErrorKind::UnexpectedEof => {
                TransportError::Broken { during: "in the body", source }
            }
            _ => TransportError::Truncated,
        }
    }

    fn note(&self, source: io::Error) -> io::Error {
        let (kind, text) = (source.kind(), source.to_string());
        let shown = io::Error::new(kind, text.clone());
        self.0.borrow_mut().failure.get_or_insert(Failure { source: Some(source), kind, text });
        shown
    }
}

pub(super) struct Wire {
    socket: Socket,
    end: WireEnd,
    takes_no_more: bool,
}

impl Wire {
    pub(super) fn new(socket: Socket) -> (Self, WireEnd) {
        let end = WireEnd::default();
        (Self { socket, end: end.clone(), takes_no_more: false }, end)
    }
}

impl Wire {
    fn may_write(&self) -> io::Result<()> {
        let check = self.end.0.borrow_mut().check.take();
        let Some(Err(refused)) = check.map(|check| check.ask()) else { return Ok(()) };
        let text = refused.to_string();
        self.end.0.borrow_mut().refused = Some(refused);
        Err(io::Error::other(text))
    }

    fn written(&mut self, written: Poll<io::Result<usize>>, all: usize) -> Poll<io::Result<usize>> {
        {
            let mut seen = self.end.0.borrow_mut();
            let since = seen.waits_since.unwrap_or_else(Instant::now);
            seen.waits_since = written.is_pending().then_some(since);
        }
        Poll::Ready(Ok(match ready!(written) {
            Ok(written) => written,
            Err(error) => {
                self.fail_to_write(error);
                all
            }
        }))
    }

    fn fail_to_write(&mut self, error: io::Error) {
        self.takes_no_more = true;
        self.end.note(error);
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        Poll::Ready(match ready!(Pin::new(&mut self.socket).poll_read(context, buffer)) {
            Err(error) if is_orderly_end(&error) => Ok(()),
            Err(error) => Err(self.end.note(error)),
            Ok(()) => {
                let mut seen = self.end.0.borrow_mut();
                if buffer.filled().len() > before {
                    seen.last_read = Some(Instant::now());
                }
                seen.waits.take().into_iter().for_each(Waker::wake);
                Ok(())
            }
        })
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.may_write()?;
        if self.takes_no_more {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.written(written, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.may_write()?;
        let all = pieces.iter().map(|piece| piece.len()).sum();
        if self.takes_no_more {
            return Poll::Ready(Ok(all));
        }
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, pieces);
        self.written(written, all)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.takes_no_more
            && let Err(error) = ready!(Pin::new(&mut self.socket).poll_flush(context))
        {
            self.fail_to_write(error);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::coop;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_has_taken_no_byte_for_a_second_is_stuck_and_a_busy_thread_does_not_make_it_so()
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (_theirs, _) = listener.accept().await.unwrap();
        let (mut wire, end) = Wire::new(Socket::Plain(ours));
        let bytes = vec![0; 1 << 20];
        let mut write =
            |context: &mut Context<'_>| Pin::new(&mut wire).poll_write(context, &bytes).is_ready();
        poll_fn(|context| {
            while coop::has_budget_remaining() {
                let _ = pin!(coop::consume_budget()).poll(context);
            }
            assert!(!write(context), "the thread has done enough at once");
            Poll::Ready(())
        })
        .await;
        assert!(end.takes(false) && !end.takes(true), "a check is not asked before a wait");
        tokio::time::advance(STUCK - Duration::from_millis(1)).await;
        assert!(end.takes(false));
        tokio::task::yield_now().await;
        poll_fn(|context| {
            assert!(write(context) && end.takes(true), "it is empty");
            while write(context) {}
            assert!(coop::has_budget_remaining(), "it is full");
            Poll::Ready(())
        })
        .await;
        assert!(end.takes(false) && !end.takes(true));
        tokio::time::advance(STUCK).await;
        assert!(!end.takes(false));
    }
}
