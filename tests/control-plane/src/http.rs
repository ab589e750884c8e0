//! A small blocking HTTP client, just enough to ask whether etcd and kube-apiserver are ready.
//!
//! Question: what status and body does one request return? It does not support redirects, keep-alive or proxies.
//! 1. It speaks HTTP/1.0, so the body ends with the connection and is never chunked.
//! 2. Every read and write has a limit: a frozen server gives an error, not a hang.
//! 3. TLS trusts exactly one CA, with ring as the only cryptography.
//!
//! Read next: `control_plane.rs`.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, pki_types::CertificateDer};

const LIMIT: Duration = Duration::from_secs(30);

/// The TLS settings for talking to one control plane.
pub(crate) type Tls = Arc<ClientConfig>;

/// One answer; the headers are dropped.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// One request; `body` makes it a POST.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) path: &'a str,
    pub(crate) token: Option<&'a str>,
    pub(crate) body: Option<&'a str>,
}

/// TLS that trusts `ca` and presents no certificate.
pub(crate) fn trusting(ca: CertificateDer<'static>) -> Result<Tls, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(ca)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Sends `request` to a port on loopback, without TLS.
pub(crate) fn plain(port: u16, request: Request<'_>) -> io::Result<Response> {
    exchange(connect(port)?, request)
}

/// Sends `request` to a port on loopback, over TLS.
pub(crate) fn secure(port: u16, tls: &Tls, request: Request<'_>) -> io::Result<Response> {
    let name = Ipv4Addr::LOCALHOST.into();
    let connection = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
    exchange(StreamOwned::new(connection, connect(port)?), request)
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    Ok(stream)
}

fn exchange(mut stream: impl Read + Write, request: Request<'_>) -> io::Result<Response> {
    stream.write_all(render(request).as_bytes())?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        // A server that closes without a close_notify has still answered; parsing shows whether it did.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
        Err(error) => return Err(error),
    }
    parse(&String::from_utf8_lossy(&answer))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not an HTTP answer"))
}

fn render(request: Request<'_>) -> String {
    let method = if request.body.is_some() { "POST" } else { "GET" };
    let mut text = format!("{method} {} HTTP/1.0\r\nHost: 127.0.0.1\r\n", request.path);
    if let Some(token) = request.token {
        text.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    let body = request.body.unwrap_or_default();
    text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    text
}

fn parse(answer: &str) -> Option<Response> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some(Response { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_a_body_is_a_get_that_closes_its_connection() {
        let text = render(Request { path: "/readyz", token: Some("t"), body: None });
        assert!(text.starts_with("GET /readyz HTTP/1.0\r\n") && text.contains("Authorization: Bearer t\r\n"));
    }

    #[test]
    fn an_answer_gives_its_status_and_body() {
        let response = parse("HTTP/1.0 403 Forbidden\r\nA: b\r\n\r\nno\r\n\r\nmore").unwrap();
        assert_eq!((response.status, response.body.as_str()), (403, "no\r\n\r\nmore"));
        assert!(parse("").is_none() && parse("SSH-2.0\r\n\r\n").is_none());
    }
}
