//! Where the API server is and what is needed to speak with it, checked once and shared by all transports.
//!
//! Answers "can this configuration be used at all?" when a client is made, so that no later request fails for it.
//! Invariants:
//! 1. An endpoint is `http://` or `https://` with a host; what stands behind the host is a prefix of every path.
//! 2. Nothing here changes after it was made, except the token.
//!
//! Read next: `tls.rs` and `credentials.rs`.

use std::fmt;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::config::Config;
use super::credentials::Credentials;
use super::error::Error;
use super::tls;

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
            endpoint: text.to_owned(),
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
    fn what_is_no_endpoint_is_refused() {
        for text in ["", "localhost:80", "ftp://a", "https://", "https://a?b=c", "https://user:secret@a"] {
            assert!(matches!(Endpoint::parse(text), Err(Error::Endpoint { .. })), "{text}");
        }
    }
}
