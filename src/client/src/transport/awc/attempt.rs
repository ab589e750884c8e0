//! One attempt of awc to send a request. awc finds or makes the connection and writes to it in one future, which runs in a scope:
//! there the connector and the connection find the attempt.
//!
//! The attempt learns that its connection is new: only a failure on an old one is retried. The first write asks the request's
//! [`SendCheck`]; if it refuses, nothing is written and the connection closes. A proxy's tunnel and a TLS handshake are not
//! checked. Outside of a scope, everything is written.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use crate::error::TransportError;
use crate::transport::SendCheck;

tokio::task_local! {
    static ATTEMPT: Rc<Attempt>;
}

pub(super) struct Attempt {
    check: Option<SendCheck>,
    made_connection: Cell<bool>,
    has_begun: Cell<bool>,
    refused: RefCell<Option<TransportError>>,
}

impl Attempt {
    pub(super) fn new(check: Option<SendCheck>) -> Rc<Self> {
        let (made_connection, has_begun) = (Cell::new(false), Cell::new(false));
        Rc::new(Self { check, made_connection, has_begun, refused: RefCell::new(None) })
    }

    pub(super) async fn scope<R>(self: &Rc<Self>, sending: impl Future<Output = R>) -> R {
        ATTEMPT.scope(Rc::clone(self), sending).await
    }

    pub(super) fn makes_connection() {
        let _ = ATTEMPT.try_with(|attempt| attempt.made_connection.set(true));
    }

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

    pub(super) fn has_made_connection(&self) -> bool {
        self.made_connection.get()
    }

    pub(super) fn take_refusal(&self) -> Option<TransportError> {
        self.refused.take()
    }
}
