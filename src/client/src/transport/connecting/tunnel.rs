//! Opens a tunnel through a proxy: TCP, TLS for an https proxy, then CONNECT or SOCKS5. The proxy's TLS and its answer share one
//! limit: the proxy must reach the API server in that time.

use std::io;
use std::sync::Arc;

use secrecy::ExposeSecret as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::socket::Socket;
use super::tcp::{connect_tcp, passed_deadline};
use crate::connection_settings::ConnectionSettings;
use crate::endpoint::Endpoint;
use crate::error::ProxyError;
use crate::identity::material::Tls;
use crate::proxy::socks5::{Socks5, SocksStep};
use crate::proxy::{Proxy, ProxyProtocol, connect};
use crate::tls;

const PIECE: usize = 512;

/// Carries a [`ProxyError`] through awc.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Carried(ProxyError);

pub(super) async fn open(
    settings: &ConnectionSettings,
    proxy: &Proxy,
    tls: Option<&Tls>,
) -> io::Result<Socket> {
    opened(settings, proxy, tls).await.map_err(|error| io::Error::other(Carried(error)))
}

/// Returns the error itself if it is not about a proxy.
pub(super) fn failure(error: io::Error) -> Result<ProxyError, io::Error> {
    match error.downcast::<Carried>() {
        Ok(Carried(error)) => Ok(error),
        Err(error) => Err(error),
    }
}

async fn opened(
    settings: &ConnectionSettings,
    proxy: &Proxy,
    tls: Option<&Tls>,
) -> Result<Socket, ProxyError> {
    let (endpoint, limits) = (&settings.endpoint, &settings.limits);
    let stream =
        connect_tcp(&proxy.host, proxy.port, limits).await.map_err(|error| {
            match passed_deadline(&error) {
                Some((_, after)) => ProxyError::TimedOut { what: "connecting to the proxy", after },
                None => ProxyError::Unreachable(error),
            }
        })?;
    let opening = async {
        let mut socket = match tls {
            None => Socket::Plain(stream),
            Some(tls) => {
                let connector = TlsConnector::from(Arc::clone(&tls.config));
                let stream = connector.connect(tls.server_name.clone(), stream).await;
                let stream = stream.map_err(|error| ProxyError::Tls(tls::of_handshake(error)))?;
                Socket::Tls(Box::new(stream))
            }
        };
        match proxy.protocol {
            ProxyProtocol::Http | ProxyProtocol::Https => by_connect(&mut socket, proxy, endpoint).await?,
            ProxyProtocol::Socks5 => by_socks5(&mut socket, proxy, endpoint).await?,
        }
        Ok(socket)
    };
    let late = ProxyError::TimedOut { what: "the answer of the proxy", after: limits.proxy };
    timeout(limits.proxy, opening).await.unwrap_or(Err(late))
}

async fn by_connect(socket: &mut Socket, proxy: &Proxy, endpoint: &Endpoint) -> Result<(), ProxyError> {
    let (target, login) = (endpoint.target(), proxy.login.as_ref());
    send(socket, connect::request(&target, login).expose_secret()).await?;
    let (mut received, mut piece) = (Vec::new(), [0; PIECE]);
    loop {
        let count = socket.read(&mut piece).await.map_err(ProxyError::Broken)?;
        received.extend_from_slice(&piece[..count]);
        if connect::answered(&received, &target, login)?.is_some() {
            return Ok(());
        }
    }
}

async fn by_socks5(socket: &mut Socket, proxy: &Proxy, endpoint: &Endpoint) -> Result<(), ProxyError> {
    let mut machine = Socks5::new(&endpoint.host, endpoint.port, proxy.login.as_ref())?;
    loop {
        match machine.poll_step() {
            SocksStep::Send(bytes) => send(socket, bytes.expose_secret()).await?,
            SocksStep::Read(count) => {
                let mut bytes = vec![0; count];
                socket.read_exact(&mut bytes).await.map_err(ProxyError::Broken)?;
                machine.handle_bytes(&bytes)?;
            }
            SocksStep::Open => return Ok(()),
        }
    }
}

async fn send(socket: &mut Socket, bytes: &[u8]) -> Result<(), ProxyError> {
    socket.write_all(bytes).await.map_err(ProxyError::Broken)?;
    socket.flush().await.map_err(ProxyError::Broken)
}
