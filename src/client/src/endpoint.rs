//! The URL of a server in its parts: `http://` or `https://` with a prefix of every request's path, or
//! `unix://` and the absolute path of a socket that speaks plain HTTP, as `kubectl proxy --unix-socket` does.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use informer_core::words::shortened;

use super::error::Error;

const MAX_ENDPOINT_CHARS: usize = 200;
const MAX_SCHEME_CHARS: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) tls: bool,
    /// As in the Host header.
    pub(crate) authority: String,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Empty, or `/...` without a slash at its end.
    pub(crate) prefix: String,
    /// Replaces host and port.
    pub(crate) socket: Option<PathBuf>,
}

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let refused = |reason: &dyn fmt::Display| Error::Endpoint {
            endpoint: without_secrets(text),
            reason: reason.to_string(),
        };
        if let Some(path) = text.trim().strip_prefix("unix://") {
            return Self::of_socket(path).map_err(|reason| refused(&reason));
        }
        let uri: http::Uri = text.trim().parse().map_err(|error| refused(&error))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(refused(&"it must begin with http://, https:// or unix://")),
        };
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| refused(&"there is no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused(&"user and password in a URL are not supported"));
        }
        if uri.path().contains('@') {
            // A parser takes a slash in a password for the end of the host.
            return Err(refused(&"there is an @ in its path; user and password in a URL are not supported"));
        }
        if authority.port_u16().is_none() && authority.as_str().trim_start_matches(authority.host()).len() > 1
        {
            return Err(refused(&"its port is not a number from 0 to 65535"));
        }
        if uri.query().is_some() {
            return Err(refused(&"it must not have a query"));
        }
        Ok(Self {
            tls,
            authority: authority.as_str().to_owned(),
            host: authority.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            socket: None,
        })
    }

    fn of_socket(path: &str) -> Result<Self, &'static str> {
        if !cfg!(unix) {
            return Err("this system has no unix sockets");
        }
        if !path.starts_with('/') || path.len() < 2 || path.contains('\0') {
            return Err("unix:// must be followed by the absolute path of a socket");
        }
        Ok(Self {
            tls: false,
            authority: "localhost".to_owned(),
            host: "localhost".to_owned(),
            port: 80,
            prefix: String::new(),
            socket: Some(path.into()),
        })
    }

    /// Without a slash at its end; `None` for a socket.
    #[cfg(feature = "disk-cache")]
    pub(crate) fn url(&self) -> Option<String> {
        let scheme = if self.tls { "https" } else { "http" };
        self.socket.is_none().then(|| format!("{scheme}://{}{}", self.authority, self.prefix))
    }

    pub(crate) fn path_of(&self, asked: &http::Uri) -> String {
        let below = asked.path_and_query().map_or("/", |below| below.as_str());
        format!("{}{below}", self.prefix)
    }

    pub(crate) fn name(&self) -> String {
        match &self.socket {
            Some(path) => format!("unix://{}", path.display()),
            None => self.authority.clone(),
        }
    }

    pub(crate) fn target(&self) -> String {
        host_and_port(&self.host, self.port)
    }

    /// Without TLS, `localhost` names are connected only at loopback addresses.
    pub(crate) fn is_loopback(&self) -> bool {
        if self.socket.is_some() {
            return true;
        }
        let is_localhost = self.host == "localhost" || self.host.ends_with(".localhost");
        is_localhost || self.host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
    }
}

/// `host` has no brackets.
pub(crate) fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Keeps the scheme and what follows the last `@`, without query and fragment: the rest may be a secret.
pub(super) fn without_secrets(text: &str) -> String {
    let is_scheme =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        // What stands there may be a password.
        Some((_, rest)) => ("", rest),
        None => ("", text),
    };
    let after_user = rest.rsplit_once('@').map_or(rest, |(_, after_user)| after_user);
    let shown = after_user.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = shown.split_at(shown.find('/').unwrap_or(shown.len()));
    // A port that is not a number may be a password whose `@` is missing.
    let is_port = |text: &str| text.ends_with(']') || text.bytes().all(|byte| byte.is_ascii_digit());
    let authority = match authority.rsplit_once(':') {
        Some((host, port)) if !is_port(port) => host,
        _ => authority,
    };
    let separator = if scheme.is_empty() { "" } else { "://" };
    let scheme = shortened(scheme, MAX_SCHEME_CHARS);
    shortened(&format!("{scheme}{separator}{authority}{path}"), MAX_ENDPOINT_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_split_into_its_parts() {
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
    fn a_unix_socket_is_an_endpoint_by_its_absolute_path() {
        let endpoint = Endpoint::parse("unix:///run/kube/api.sock").unwrap();
        assert_eq!(endpoint.socket.as_deref(), Some(std::path::Path::new("/run/kube/api.sock")));
        assert_eq!((endpoint.name().as_str(), endpoint.tls), ("unix:///run/kube/api.sock", false));
        assert!(endpoint.is_loopback(), "requests do not leave this machine");
        for text in ["unix://", "unix:///", "unix://run/api.sock", "unix:/run/api.sock"] {
            assert!(matches!(Endpoint::parse(text), Err(Error::Endpoint { .. })), "{text}");
        }
    }

    #[test]
    fn a_loopback_endpoint_is_recognized_by_its_address_or_its_name() {
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
    fn a_text_that_is_not_an_endpoint_is_refused() {
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
