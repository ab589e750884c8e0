//! The open connections, so that they can be reset: by a fault switch, or when the server stops.
//!
//! Answers: how is a connection ended with a reset? It neither reads nor writes.
//! 1. A reset connection ends with RST, not FIN: the client sees an error, never a clean end.
//! 2. A second handle to the socket is kept only while the connection lives.
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::access::certificate::PeerCertificate;
use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use socket2::{SockRef, Socket};

/// One open connection.
#[derive(Debug)]
pub(crate) struct Connection(Mutex<Option<Socket>>);

impl Connection {
    /// From now on, closing this connection resets it.
    pub(crate) fn reset(&self) {
        let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(socket) = socket {
            // Both calls can only fail on a socket that is already closed, and then nothing is left to do.
            let _gone = socket.set_linger(Some(Duration::ZERO));
        }
    }
}

/// All open connections of one server.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<Vec<Weak<Connection>>>);

impl Connections {
    /// Records a new connection; called by the framework's hook.
    pub(crate) fn note(&self, io: &dyn Any, data: &mut Extensions) {
        let secure = io.downcast_ref::<TlsStream<TcpStream>>();
        if let Some(shown) =
            secure.and_then(|tls| PeerCertificate::shown(tls.get_ref().1.peer_certificates()))
        {
            data.insert(Arc::new(shown));
        }
        let plain = io.downcast_ref::<TcpStream>();
        let tcp = plain.or_else(|| secure.map(|tls| tls.get_ref().0));
        let Some(tcp) = tcp else { return };
        let _slower = tcp.set_nodelay(true);
        let Ok(socket) = SockRef::from(tcp).try_clone() else { return };
        let connection = Arc::new(Connection(Mutex::new(Some(socket))));
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|connection| connection.strong_count() > 0);
        open.push(Arc::downgrade(&connection));
        data.insert(connection);
    }

    /// Makes every open connection end with a reset when it is closed.
    pub(crate) fn reset_all(&self) {
        let open = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in open.iter().filter_map(Weak::upgrade) {
            connection.reset();
        }
    }
}
