//! One attempt of awc to send a request. awc finds or makes the connection and writes to it in one future,
//! which runs in a scope: there the connector and the connection find the attempt.
//!
//! The attempt learns that its connection is new: only a failure on an old one is retried.
//!
//! The first write asks the request's [`SendCheck`]. If it refuses, nothing is written and the connection
//! closes. A proxy's tunnel and a TLS handshake are not checked. Outside of a scope, everything is written.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use actix_service::Service;
use actix_tls::connect::{ConnectError, ConnectInfo, Connection};
use awc::http::Uri;
use futures_util::future::LocalBoxFuture;

use super::super::connecting::{Offered, connect};
use super::read_ahead::ReadAhead;
use crate::connection_settings::ConnectionSettings;
use crate::error::TransportError;
use crate::identity::Identity;
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

    /// Fails if the request may not begin.
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

/// Makes the connections of awc.
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
