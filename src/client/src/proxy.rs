//! A proxy between this client and the API server, as its URL names it.
//!
//! A proxy that is named by hand or by `proxy-url` of a kubeconfig is always used, also for this machine and
//! whatever `NO_PROXY` says, as in client-go. The environment counts only if none is named.

use std::fmt;
use std::sync::Arc;

use http::uri::Authority;
use percent_encoding::percent_decode_str;
use secrecy::SecretSlice;

use super::endpoint::{Endpoint, without_secrets};
use super::error::Error;
use environment::Environment;

pub(crate) mod connect;
pub(crate) mod environment;
pub(crate) mod socks5;

/// Of the user and of the password, in bytes (RFC 1929).
const LONGEST_SOCKS_LOGIN: usize = 255;

#[derive(Debug, Clone, Default)]
pub(crate) enum ProxySetting {
    #[default]
    Environment,
    Never,
    Named(Arc<Proxy>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyProtocol {
    /// CONNECT over TCP.
    Http,
    /// CONNECT over TLS.
    Https,
    /// The proxy resolves names, also for `socks5`, as in client-go.
    Socks5,
}

#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) protocol: ProxyProtocol,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) login: Option<ProxyLogin>,
    name: String,
}

/// Percent-decoded, so any bytes.
#[derive(Clone)]
pub(crate) struct ProxyLogin {
    pub(crate) user: SecretSlice<u8>,
    pub(crate) password: SecretSlice<u8>,
}

impl ProxySetting {
    pub(crate) fn of(&self, endpoint: &Endpoint) -> Result<Option<Arc<Proxy>>, Error> {
        match self {
            Self::Never => Ok(None),
            Self::Named(proxy) if endpoint.socket.is_some() => {
                let reason = "the endpoint is a unix socket, which no proxy reaches".to_owned();
                Err(Error::Proxy { proxy: proxy.name.clone(), reason })
            }
            Self::Named(proxy) => Ok(Some(Arc::clone(proxy))),
            Self::Environment => Ok(Environment::of_process().proxy_for(endpoint)?.map(Arc::new)),
        }
    }
}

impl Proxy {
    /// Ignores path and query.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        Self::read(text)
            .map_err(|reason| Error::Proxy { proxy: without_secrets(text), reason: reason.to_owned() })
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        const SCHEMES: &str = "it must begin with http://, https://, socks5:// or socks5h://";
        let (scheme, rest) = text.split_once("://").ok_or(SCHEMES)?;
        let scheme = scheme.to_ascii_lowercase();
        let (protocol, default_port) = match &*scheme {
            "http" => (ProxyProtocol::Http, 80),
            "https" => (ProxyProtocol::Https, 443),
            "socks5" | "socks5h" => (ProxyProtocol::Socks5, 1080),
            _ => return Err(SCHEMES),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if rest[authority.len()..].contains('@') {
            return Err("there is an @ behind its host; percent-encode what is special in user and password");
        }
        let (login, address) = match authority.rsplit_once('@') {
            Some((userinfo, address)) => (Some(ProxyLogin::read(userinfo, protocol)?), address),
            None => (None, authority),
        };
        let address: Authority = address.parse().map_err(|_| "its host cannot be read")?;
        let host = address.host();
        if host.trim_matches(['[', ']']).is_empty() {
            return Err("there is no host");
        }
        let port = match address.port_u16() {
            Some(port) => port,
            None if address.as_str().len() <= host.len() + 1 => default_port,
            None => return Err("its port is not a number from 0 to 65535"),
        };
        let name = format!("{scheme}://{host}:{port}");
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { protocol, host, port, login, name })
    }

    /// Without user and password.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl ProxyLogin {
    fn read(userinfo: &str, protocol: ProxyProtocol) -> Result<Self, &'static str> {
        let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
        let (user, password) = (decoded(user)?, decoded(password)?);
        let fits = |text: &[u8]| text.len() <= LONGEST_SOCKS_LOGIN;
        if protocol == ProxyProtocol::Socks5 && (user.is_empty() || !fits(&user) || !fits(&password)) {
            return Err("SOCKS5 takes a user of 1 to 255 bytes and a password of at most 255");
        }
        Ok(Self { user: user.into(), password: password.into() })
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, &'static str> {
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    match text.split('%').skip(1).all(is_escape) {
        true => Ok(percent_decode_str(text).collect()),
        false => Err("a % in its user or password is not followed by two hexadecimal digits: write % as %25"),
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_proxy_is_read_from_its_url() {
        for (url, protocol, host, port, name) in [
            ("http://proxy.example", ProxyProtocol::Http, "proxy.example", 80, "http://proxy.example:80"),
            ("HTTP://proxy:3128/", ProxyProtocol::Http, "proxy", 3128, "http://proxy:3128"),
            ("http://proxy:/path?query#end", ProxyProtocol::Http, "proxy", 80, "http://proxy:80"),
            ("https://u:p@proxy", ProxyProtocol::Https, "proxy", 443, "https://proxy:443"),
            ("socks5://10.0.0.1", ProxyProtocol::Socks5, "10.0.0.1", 1080, "socks5://10.0.0.1:1080"),
            ("socks5h://u@[::1]:9", ProxyProtocol::Socks5, "::1", 9, "socks5h://[::1]:9"),
        ] {
            let proxy = Proxy::parse(url).expect(url);
            assert_eq!((proxy.protocol, &*proxy.host, proxy.port), (protocol, host, port), "{url}");
            assert_eq!((proxy.name(), &*format!("{proxy:?}")), (name, name), "{url}");
        }
    }

    #[test]
    fn user_and_password_are_percent_decoded() {
        for (url, user, password) in [
            ("http://u:p@proxy", &b"u"[..], &b"p"[..]),
            ("http://u@proxy", b"u", b""),
            ("http://:p@proxy", b"", b"p"),
            ("http://u%40x:p%3a%2F%25%ff@proxy", b"u@x", b"p:/%\xff"),
            ("http://u:p:q@proxy", b"u", b"p:q"),
            ("http://u@x:p@proxy", b"u@x", b"p"),
        ] {
            let login = Proxy::parse(url).expect(url).login.expect(url);
            assert_eq!(
                (login.user.expose_secret(), login.password.expose_secret()),
                (user, password),
                "{url}"
            );
        }
        assert!(Proxy::parse("http://proxy").expect("a proxy").login.is_none());
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_user_and_password() {
        let long = format!("socks5://u:{}@proxy", "s3cret".repeat(50));
        for (url, reason) in [
            ("", "begin with"),
            ("proxy:3128", "begin with"),
            ("u:s3cret@proxy:3128", "begin with"),
            ("u:s3cret@http://proxy:80", "begin with"),
            ("u:s3cret://x@proxy", "begin with"),
            ("ftp://u:s3cret@proxy", "begin with"),
            ("http://", "host"),
            ("http://u:s3cret@", "host"),
            ("http://u:s3cret@:80", "host"),
            ("http://u:s3cret@[::1", "host"),
            ("http://u:s3cret@pro xy", "host"),
            ("http://u:s3cret@proxy:x", "port"),
            ("http://u:s3cret@proxy:70000", "port"),
            ("http://u:s3/cret@proxy:80", "behind its host"),
            ("http://u:s3cret%4@proxy:80", "%25"),
            ("http://u:s3cret%xx@proxy:80", "%25"),
            ("socks5://:s3cret@proxy", "SOCKS5"),
            (&long, "SOCKS5"),
        ] {
            let error = Proxy::parse(url).expect_err(url);
            let text = format!("{error} {error:?}");
            assert!(matches!(error, Error::Proxy { .. }) && text.contains(reason), "{url}: {text}");
            assert!(!text.contains("s3") && !text.contains("cret"), "{text}");
        }
    }

    #[test]
    fn a_named_proxy_is_used_for_this_machine_too_and_not_for_a_unix_socket() {
        let named = ProxySetting::Named(Arc::new(Proxy::parse("http://proxy:1").expect("a proxy")));
        let endpoint = |url| Endpoint::parse(url).expect(url);
        let used = |setting: &ProxySetting, url| setting.of(&endpoint(url)).expect(url).is_some();
        assert!(used(&named, "http://127.0.0.1:1") && used(&named, "https://api.example"));
        assert!(!used(&ProxySetting::Never, "https://api.example"));
        assert!(matches!(named.of(&endpoint("unix:///run/api.sock")), Err(Error::Proxy { .. })));
    }
}
