//! One sending of a request by awc: which connection it has, and whether its first byte may still be written.
//!
//! Answers "was this connection made for the request, and may the request begin on it?". awc finds or makes the connection
//! and writes to it in one future, which runs in a scope with its attempt; the connector and the connection find it there.
//! Invariants:
//! 1. The first write of an attempt asks the request's [`SendCheck`]; if that refuses, nothing is written and the
//!    connection is closed.
//! 2. What the connection itself needs (a proxy's tunnel, a TLS handshake) is written before and is not asked about.
//! 3. Outside of a scope there is no attempt, and everything is written.
//!
//! Read next: `read_ahead.rs`, the connection; `../../transport.rs`.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use crate::error::TransportError;
use crate::transport::SendCheck;

tokio::task_local! {
    static ATTEMPT: Rc<Attempt>;
}

/// What is known of one sending.
pub(super) struct Attempt {
    check: Option<SendCheck>,
    made_connection: Cell<bool>,
    has_begun: Cell<bool>,
    refused: RefCell<Option<TransportError>>,
}

impl Attempt {
    /// A sending of a request that carries this check.
    pub(super) fn new(check: Option<SendCheck>) -> Rc<Self> {
        let (made_connection, has_begun) = (Cell::new(false), Cell::new(false));
        Rc::new(Self { check, made_connection, has_begun, refused: RefCell::new(None) })
    }

    /// Runs the sending.
    pub(super) async fn scope<R>(self: &Rc<Self>, sending: impl Future<Output = R>) -> R {
        ATTEMPT.scope(Rc::clone(self), sending).await
    }

    /// A connection is made for the attempt of this scope.
    pub(super) fn makes_connection() {
        let _ = ATTEMPT.try_with(|attempt| attempt.made_connection.set(true));
    }

    /// Something of the request is about to be written on a connection that is ready.
    ///
    /// # Errors
    /// When the request may not begin.
    pub(super) fn before_write() -> io::Result<()> {
        ATTEMPT.try_with(|attempt| attempt.may_write()).unwrap_or(Ok(()))
    }

    fn may_write(&self) -> io::Result<()> {
        let (Some(check), false) = (&self.check, self.has_begun.get()) else { return Ok(()) };
        if let Err(error) = check.ask() {
            let text = error.to_string();
            self.refused.replace(Some(error));
            return Err(io::Error::other(text));
        }
        self.has_begun.set(true);
        Ok(())
    }

    /// Whether the connection had to be made for it.
    pub(super) fn has_made_connection(&self) -> bool {
        self.made_connection.get()
    }

    /// Why the request was not begun, if its check has refused it.
    pub(super) fn take_refusal(&self) -> Option<TransportError> {
        self.refused.take()
    }
}
