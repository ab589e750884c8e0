//! A small real proxy on loopback: CONNECT, over TLS too, or SOCKS5.
//!
//! Answers "does a request arrive through a proxy, and what did the proxy see?" The suites `identity` and `end_to_end` use
//! this file, too. Invariants:
//! 1. It has a thread of its own, so that any test can use it, async or not; it ends with its handle.
//! 2. It passes bytes on and reads none of them. One name, [`NAME`], it resolves itself, and nobody else does.
//! 3. It does not speak before it is asked, and refuses what is no proxy's request.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "each suite uses another part; a proxy that cannot be set up has failed"
)]

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::CertifiedKey;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A name that only a proxy resolves, and only if it was told to what.
pub(crate) const NAME: &str = "api.behind-the-proxy.test";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Http,
    Https,
    Socks5,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::Http, Kind::Https, Kind::Socks5];

/// How a proxy behaves.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    /// Whom it lets in; everybody if nothing is set.
    pub(crate) login: Option<(&'static str, &'static str)>,
    /// What stands behind [`NAME`].
    pub(crate) resolves: Option<SocketAddr>,
    /// The HTTP code, or the reply of SOCKS5, with which it refuses everybody.
    pub(crate) refuses: Option<u16>,
}

pub(crate) struct SmallProxy {
    kind: Kind,
    address: SocketAddr,
    certificate: Option<String>,
    state: Arc<State>,
}

struct State {
    settings: Settings,
    asked: Mutex<Vec<String>>,
    /// Tunnels with a lower number are broken.
    broken_below: watch::Sender<usize>,
}

impl SmallProxy {
    pub(crate) fn start(kind: Kind) -> Self {
        Self::start_with(kind, Settings::default())
    }

    pub(crate) fn start_with(kind: Kind, settings: Settings) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (acceptor, certificate) = (kind == Kind::Https).then(secure).unzip();
        let state =
            Arc::new(State { settings, asked: Mutex::default(), broken_below: watch::Sender::new(0) });
        let serving = Arc::downgrade(&state);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                loop {
                    // A handle that is dropped is found out soon, without a second channel for it.
                    let accepted = tokio::time::timeout(Duration::from_millis(200), listener.accept()).await;
                    let Some(state) = serving.upgrade() else { return };
                    if let Ok(Ok((stream, _))) = accepted {
                        tokio::spawn(serve(kind, stream, acceptor.clone(), state));
                    }
                }
            });
        });
        Self { kind, address, certificate, state }
    }

    /// Its URL, with this in the place of user and password.
    pub(crate) fn url_of(&self, userinfo: &str) -> String {
        let scheme = match self.kind {
            Kind::Http => "http",
            Kind::Https => "https",
            Kind::Socks5 => "socks5",
        };
        let at = if userinfo.is_empty() { "" } else { "@" };
        format!("{scheme}://{userinfo}{at}{}", self.address)
    }

    pub(crate) fn url(&self) -> String {
        self.url_of("")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has to be trusted for an https proxy, in PEM; empty for others.
    pub(crate) fn certificate(&self) -> &str {
        self.certificate.as_deref().unwrap_or_default()
    }

    /// The hosts and ports of the tunnels so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Breaks all open tunnels.
    pub(crate) fn break_tunnels(&self) {
        let count = self.state.asked.lock().unwrap().len();
        self.state.broken_below.send_replace(count);
    }
}

/// A certificate for loopback, and what has to be trusted for it.
fn secure() -> (TlsAcceptor, String) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), cert.pem())
}

async fn serve(kind: Kind, stream: TcpStream, acceptor: Option<TlsAcceptor>, state: Arc<State>) {
    match acceptor {
        None => {
            let _ = tunnel(kind, stream, &state).await;
        }
        Some(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                let _ = tunnel(kind, stream, &state).await;
            }
        }
    }
}

/// `None` where either side breaks off, or where the proxy refuses.
async fn tunnel<S: AsyncRead + AsyncWrite + Unpin>(kind: Kind, mut near: S, state: &State) -> Option<()> {
    let mut broken = state.broken_below.subscribe();
    let (number, mut far) = match kind {
        Kind::Http | Kind::Https => by_connect(&mut near, state).await?,
        Kind::Socks5 => by_socks5(&mut near, state).await?,
    };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = broken.wait_for(|below| number < *below) => {}
    }
    Some(())
}

impl State {
    /// Connects to a host and a port; gives the number of the tunnel.
    async fn connect(&self, target: &str) -> Option<(usize, TcpStream)> {
        let number = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(target.to_owned());
            asked.len() - 1
        };
        let (host, _) = target.rsplit_once(':')?;
        let far = match self.settings.resolves.filter(|_| host == NAME) {
            Some(address) => TcpStream::connect(address).await,
            None => TcpStream::connect(target).await,
        };
        Some((number, far.ok()?))
    }
}

async fn by_connect<S: AsyncRead + AsyncWrite + Unpin>(
    near: &mut S,
    state: &State,
) -> Option<(usize, TcpStream)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 8192 {
        head.push(near.read_u8().await.ok()?);
        if head[0] != b'C' {
            near.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.ok()?;
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let (line, headers) = head.split_once("\r\n")?;
    let headers: HashMap<_, _> = headers.lines().filter_map(|line| line.split_once(": ")).collect();
    let target = line.strip_prefix("CONNECT ")?.strip_suffix(" HTTP/1.1")?;
    let is_let_in = state.settings.login.is_none_or(|(user, password)| {
        let expected = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        headers.get("Proxy-Authorization") == Some(&&*expected)
    });
    let opened = match state.settings.refuses {
        Some(code) => Err(code),
        None if !is_let_in => Err(407),
        None if headers.get("Host") != Some(&target) => Err(400),
        None => state.connect(target).await.ok_or(502),
    };
    match opened {
        Ok(opened) => {
            near.write_all(b"HTTP/1.1 200 Connection established\r\nVia: small\r\n\r\n").await.ok()?;
            near.flush().await.ok()?;
            Some(opened)
        }
        Err(code) => {
            let page = "<html>no</html>";
            let answer = format!("HTTP/1.1 {code} No\r\nContent-Length: {}\r\n\r\n{page}", page.len());
            near.write_all(answer.as_bytes()).await.ok()?;
            near.shutdown().await.ok()?;
            None
        }
    }
}

async fn by_socks5<S: AsyncRead + AsyncWrite + Unpin>(
    near: &mut S,
    state: &State,
) -> Option<(usize, TcpStream)> {
    let mut head = [0; 2];
    near.read_exact(&mut head).await.ok()?;
    let mut methods = vec![0; head[1].into()];
    near.read_exact(&mut methods).await.ok()?;
    match state.settings.login {
        None => near.write_all(&[5, 0]).await.ok()?,
        Some(_) if !methods.contains(&2) => {
            near.write_all(&[5, 0xff]).await.ok()?;
            return None;
        }
        Some((user, password)) => {
            near.write_all(&[5, 2]).await.ok()?;
            near.read_u8().await.ok()?;
            let is_let_in = text(near).await? == user.as_bytes() && text(near).await? == password.as_bytes();
            near.write_all(&[1, u8::from(!is_let_in)]).await.ok()?;
            is_let_in.then_some(())?;
        }
    }
    let mut request = [0; 4];
    near.read_exact(&mut request).await.ok()?;
    let host = match request[3] {
        1 => Ipv4Addr::from(near.read_u32().await.ok()?).to_string(),
        4 => format!("[{}]", Ipv6Addr::from(near.read_u128().await.ok()?)),
        _ => String::from_utf8(text(near).await?).ok()?,
    };
    let target = format!("{host}:{}", near.read_u16().await.ok()?);
    let opened = match state.settings.refuses {
        Some(reply) => Err(u8::try_from(reply).unwrap()),
        None => state.connect(&target).await.ok_or(4),
    };
    // The address that a reply names may be a name, and means nothing to the client.
    let reply = |code: u8| [&[5, code, 0, 3, 5][..], b"small", &[0, 0]].concat();
    near.write_all(&reply(opened.as_ref().err().copied().unwrap_or(0))).await.ok()?;
    opened.ok()
}

/// A length of one byte, and so many bytes.
async fn text<S: AsyncRead + Unpin>(near: &mut S) -> Option<Vec<u8>> {
    let mut text = vec![0; near.read_u8().await.ok()?.into()];
    near.read_exact(&mut text).await.ok()?;
    Some(text)
}
