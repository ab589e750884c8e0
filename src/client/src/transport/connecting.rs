//! Makes connections: TCP or a unix socket, a proxy's tunnel, TLS. Each step has its own limit.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::connection_settings::ConnectionSettings;
use crate::endpoint::Endpoint;
use crate::error::TransportError;
use crate::identity::Identity;
use crate::identity::material::Tls;
use crate::tls;
use socket::Socket;
use tcp::{configure, connected, look_up, passed_deadline, within};

pub(super) mod socket;
pub(super) mod tcp;
mod tunnel;

pub(super) fn not_connected(settings: &ConnectionSettings, source: io::Error) -> TransportError {
    if let Some((what, after)) = passed_deadline(&source) {
        return TransportError::Timeout { what, after };
    }
    match (tunnel::failure(source), &settings.proxy) {
        (Ok(source), Some(proxy)) => {
            let endpoint = settings.endpoint.name();
            TransportError::Proxy { endpoint, proxy: proxy.name().to_owned(), source }
        }
        (Ok(source), None) => {
            TransportError::Connect { endpoint: settings.name(), source: io::Error::other(source) }
        }
        (Err(source), _) => TransportError::Connect { endpoint: settings.name(), source },
    }
}

/// With TLS 1.3, the server judges the client's certificate after the handshake has ended here. If it refuses, it read nothing of
/// the request: that counts as a failed connection.
pub(super) fn refused_at_last(settings: &ConnectionSettings, error: TransportError) -> TransportError {
    match error {
        TransportError::Broken { source, .. } if tls::is_about_certificates(&source) => {
            not_connected(settings, tls::of_handshake(source))
        }
        error => error,
    }
}

/// What is offered over TLS; the server chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offered {
    Http1,
    #[cfg(feature = "http2")]
    Http2OrHttp1,
}

pub(super) async fn connect(
    settings: &ConnectionSettings,
    identity: &Identity,
    offered: Offered,
) -> io::Result<Socket> {
    let socket = match &settings.proxy {
        None => connect_directly(settings).await?,
        Some(proxy) => tunnel::open(settings, proxy, identity.proxy_tls.as_ref()).await?,
    };
    let limit = settings.limits.handshake;
    let Some(tls) = &identity.tls else { return Ok(socket) };
    let connector = connector(tls, offered);
    Ok(match socket {
        Socket::Plain(stream) => Socket::Tls(Box::new(handshake(tls, &connector, stream, limit).await?)),
        Socket::Tls(stream) => Socket::TlsInTls(Box::new(handshake(tls, &connector, *stream, limit).await?)),
        socket => socket,
    })
}

async fn connect_directly(settings: &ConnectionSettings) -> io::Result<Socket> {
    let endpoint = &settings.endpoint;
    #[cfg(unix)]
    if let Some(path) = &endpoint.socket {
        let connecting = UnixStream::connect(path);
        return within(settings.limits.connect, "connecting", connecting).await.map(Socket::Unix);
    }
    let limits = &settings.limits;
    let looking = async { allowed(endpoint, look_up(&endpoint.host, endpoint.port).await?) };
    configure(connected(limits, looking, TcpStream::connect).await?).map(Socket::Plain)
}

/// Without TLS, a name of this machine means loopback addresses only, whatever the lookup returns: credentials are sent in plain
/// text.
fn allowed(endpoint: &Endpoint, mut found: Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
    if endpoint.tls || !endpoint.is_loopback() {
        return Ok(found);
    }
    found.retain(|address| address.ip().to_canonical().is_loopback());
    if found.is_empty() {
        let why =
            format!("nothing is sent: {:?} is no address of this machine, by its lookup", endpoint.host);
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(found)
}

/// The configuration itself offers HTTP/1.1.
fn connector(tls: &Tls, offered: Offered) -> TlsConnector {
    match offered {
        Offered::Http1 => TlsConnector::from(Arc::clone(&tls.config)),
        #[cfg(feature = "http2")]
        Offered::Http2OrHttp1 => {
            let mut config = (*tls.config).clone();
            config.alpn_protocols.insert(0, socket::HTTP2.to_vec());
            TlsConnector::from(Arc::new(config))
        }
    }
}

async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    tls: &Tls,
    connector: &TlsConnector,
    stream: S,
    limit: Duration,
) -> io::Result<TlsStream<S>> {
    let handshake = connector.connect(tls.server_name.clone(), stream);
    within(limit, "the TLS handshake", handshake).await.map_err(tls::of_handshake)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, Config};

    #[test]
    fn a_new_connection_is_refused_at_last_by_an_alert_about_a_certificate_and_by_no_other() {
        let config = Config::new("https://api.example").expect("an endpoint").certificate_authority("");
        let (settings, _) = ConnectionSettings::new(&config, Client::to_issuer).expect("settings");
        for (alert, is_refusal) in [
            (rustls::AlertDescription::CertificateExpired, true),
            (rustls::AlertDescription::HandshakeFailure, false),
            (rustls::AlertDescription::InternalError, false),
        ] {
            let source = io::Error::other(rustls::Error::AlertReceived(alert));
            let broken = TransportError::Broken { during: "before the head of the answer", source };
            let error = refused_at_last(&settings, broken);
            assert_eq!(matches!(error, TransportError::Connect { .. }), is_refusal, "{error}");
        }
    }

    #[test]
    fn without_tls_a_name_of_this_machine_is_connected_to_on_loopback_addresses_only() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().expect("an address")).collect()
        };
        let (near, far) =
            (addresses(&["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.2]:1"]), addresses(&["10.0.0.1:1"]));
        for (url, found, expected) in [
            ("http://x.localhost:1", [&near[..], &far].concat(), Some(&near)),
            ("http://localhost:1", near.clone(), Some(&near)),
            ("http://x.localhost:1", far.clone(), None),
            ("https://x.localhost:1", far.clone(), Some(&far)),
            ("http://api.example:1", far.clone(), Some(&far)),
        ] {
            let allowed = allowed(&Endpoint::parse(url).expect("an endpoint"), found);
            assert_eq!(allowed.as_ref().ok(), expected, "{url}");
            let said = allowed.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(said.contains("nothing is sent"), expected.is_none(), "{said}");
        }
    }
}
