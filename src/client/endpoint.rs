//! Where the API server is and what is needed to speak with it, checked once and shared by all transports.
//!
//! Answers "can this configuration be used at all?" when a client is made, so that no later request fails for it.
//! Invariants:
//! 1. An endpoint is `http://` or `https://` with a host; what stands behind the host is a prefix of every path.
//! 2. Nothing here changes after it was made, except the token.
//! 3. What is refused is told without its user, password, query and fragment.
//!
//! Read next: `tls.rs` and `credentials.rs`.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::config::Config;
use super::credentials::Credentials;
use super::error::Error;
use super::tls;
use crate::text::shortened;

/// At most this much of an endpoint that is refused is told.
const TOLD: usize = 200;

/// The parts of the endpoint's URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) tls: bool,
    /// Host and, if given, port, as they stand in the Host header.
    pub(crate) authority: String,
    /// The host without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// What every path begins with; empty, or `/...` without a slash at its end.
    pub(crate) prefix: String,
}

/// A checked configuration.
pub(crate) struct Prepared {
    pub(crate) endpoint: Endpoint,
    pub(crate) tls: Option<Tls>,
    pub(crate) credentials: Credentials,
}

/// What a TLS handshake needs.
pub(crate) struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) server_name: ServerName<'static>,
}

impl Prepared {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let endpoint = Endpoint::parse(&config.endpoint)?;
        if !endpoint.tls && config.identity.is_some() {
            let reason =
                format!("it can only be shown over https, and {} is reached over http", endpoint.authority);
            return Err(Error::Unusable { what: "the client certificate", reason });
        }
        let tls = match endpoint.tls {
            true => Some(Tls {
                config: tls::client_config(config)?,
                server_name: server_name(config, &endpoint)?,
            }),
            false => None,
        };
        Ok(Self { endpoint, tls, credentials: Credentials::new(config)? })
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

fn server_name(config: &Config, endpoint: &Endpoint) -> Result<ServerName<'static>, Error> {
    let name = config.tls_server_name.as_deref().unwrap_or(&endpoint.host);
    ServerName::try_from(name.to_owned())
        .map_err(|error| Error::Unusable { what: "the server's name", reason: format!("{name:?}: {error}") })
}

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |reason: &dyn fmt::Display| Error::Endpoint {
            endpoint: without_secrets(text),
            reason: reason.to_string(),
        };
        let uri: http::Uri = text.trim().parse().map_err(|error| wrong(&error))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong(&"it must begin with http:// or https://")),
        };
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| wrong(&"there is no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong(&"user and password in a URL are not supported"));
        }
        if uri.path().contains('@') {
            // A password with a slash ends what a parser takes for the host.
            return Err(wrong(&"there is an @ in its path; user and password in a URL are not supported"));
        }
        if authority.port_u16().is_none() && authority.as_str().trim_start_matches(authority.host()).len() > 1
        {
            return Err(wrong(&"its port is no number from 0 to 65535"));
        }
        if uri.query().is_some() {
            return Err(wrong(&"it must not have a query"));
        }
        Ok(Self {
            tls,
            authority: authority.as_str().to_owned(),
            host: authority.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl Endpoint {
    /// Whether what is sent there stays on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let named = self.host == "localhost" || self.host.ends_with(".localhost");
        named || self.host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
    }
}

/// What of a text that should be a URL may be told: not what stands in front of the last `@`, nor the query, nor the
/// fragment. The text may be anything, so that its parts are guessed on the safe side.
fn without_secrets(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let place = place.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    // What stands where a port would, and is none, may be a password whose `@` is missing.
    let is_port = |text: &str| text.ends_with(']') || text.bytes().all(|byte| byte.is_ascii_digit());
    let authority = match authority.rsplit_once(':') {
        Some((host, port)) if !is_port(port) => host,
        _ => authority,
    };
    let separator = if scheme.is_empty() { "" } else { "://" };
    // A scheme is a word; anything longer is not one.
    shortened(&format!("{}{separator}{authority}{path}", shortened(scheme, 20)), TOLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_taken_apart() {
        for (text, tls, host, port, prefix) in [
            ("https://10.0.0.1:6443", true, "10.0.0.1", 6443, ""),
            ("https://[::1]:6443/", true, "::1", 6443, ""),
            ("https://rancher.example/k8s/clusters/c-1/", true, "rancher.example", 443, "/k8s/clusters/c-1"),
            ("http://localhost", false, "localhost", 80, ""),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            let found = (endpoint.tls, endpoint.host.as_str(), endpoint.port, endpoint.prefix.as_str());
            assert_eq!(found, (tls, host, port, prefix), "{text}");
        }
        assert_eq!(Endpoint::parse("https://[::1]:6443").unwrap().authority, "[::1]:6443");
    }

    #[test]
    fn loopback_is_known_by_address_and_by_name() {
        for (host, is) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("localhost", true),
            ("api.localhost", true),
            ("0.0.0.0", false),
            ("10.0.0.1", false),
            ("[fe80::1]", false),
            ("localhost.example", false),
            ("127.0.0.1.example", false),
        ] {
            assert_eq!(Endpoint::parse(&format!("http://{host}:1")).unwrap().is_loopback(), is, "{host}");
        }
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        for text in [
            "",
            "localhost:80",
            "ftp://a",
            "https://",
            "https://a?b=c",
            "https://user:secret@a",
            "https://u:se/cret@a",
            "https://u:1/2@a",
            "https://a:b",
            "https://a:70000",
        ] {
            assert!(matches!(Endpoint::parse(text), Err(Error::Endpoint { .. })), "{text}");
        }
    }
}
