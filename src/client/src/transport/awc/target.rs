//! The part of each request's URL that is the same for all requests of a client.
//!
//! Answers "which URL and which Host header does a request get?" Invariants:
//! 1. The authority is parsed once, not for each request. Only path and query of a request differ.
//! 2. The scheme is always http: the connector makes TLS, below HTTP. With "https" here, awc would try to make TLS
//!    itself.

use awc::http::header::HeaderValue;
use awc::http::uri::{Authority, Parts, PathAndQuery, Scheme, Uri};

use super::TransportError;
use crate::endpoint::Endpoint;

/// Where the requests of a client go.
pub(super) struct Target {
    authority: Authority,
    prefix: String,
    /// The Host header.
    pub(super) host: HeaderValue,
}

impl Target {
    /// Why no request can be sent there, if so, is a text: each request repeats it.
    pub(super) fn new(endpoint: &Endpoint) -> Result<Self, String> {
        let authority = endpoint.authority.parse::<Authority>().map_err(|error| error.to_string())?;
        let host = HeaderValue::from_str(&endpoint.authority).map_err(|error| error.to_string())?;
        Ok(Self { authority, prefix: endpoint.prefix.clone(), host })
    }

    /// The URL of a request to this path and query below the endpoint.
    pub(super) fn uri(&self, asked: &http::Uri) -> Result<Uri, TransportError> {
        let invalid = |error: &dyn std::fmt::Display| TransportError::Request(error.to_string());
        let below = asked.path_and_query().map_or("/", |below| below.as_str());
        let below = match self.prefix.is_empty() {
            true => PathAndQuery::try_from(below),
            false => PathAndQuery::try_from(format!("{}{below}", self.prefix)),
        };
        let mut parts = Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(below.map_err(|error| invalid(&error))?);
        Uri::from_parts(parts).map_err(|error| invalid(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_to_its_path_below_the_endpoint() {
        for (endpoint, host, asked, expected) in [
            ("http://a:1", "a:1", "/api?x=%20&y", "http://a:1/api?x=%20&y"),
            (
                "https://[::1]:6443/k8s/c-1/",
                "[::1]:6443",
                "/api/v1/pods",
                "http://[::1]:6443/k8s/c-1/api/v1/pods",
            ),
        ] {
            let target = Target::new(&Endpoint::parse(endpoint).unwrap()).unwrap();
            assert_eq!(target.uri(&asked.parse().unwrap()).unwrap().to_string(), expected);
            assert_eq!(target.host.to_str().unwrap(), host);
        }
    }
}
