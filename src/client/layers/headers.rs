//! Adds the headers that every request of a client carries: as whom it acts, and which program it is.
//!
//! Answers "which headers does a request get that its caller has not set?" Invariants:
//! 1. A header that the caller has set stays as it is, and nothing is added beside it.
//!
//! Read next: `../config/impersonation.rs`, which makes the headers of impersonation.

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::super::config::Config;
use super::super::error::Error;

const DEFAULT_USER_AGENT: &str = concat!("actix-informer/", env!("CARGO_PKG_VERSION"));

/// The headers, in the order of their names: those of one name stand together.
pub(super) struct Headers(Vec<(HeaderName, HeaderValue)>);

impl Headers {
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let mut headers = config.impersonation.headers()?;
        let user_agent = config.requests.user_agent.as_deref().unwrap_or(DEFAULT_USER_AGENT);
        let user_agent = HeaderValue::from_str(user_agent).map_err(|_| Error::Unusable {
            what: "the user agent",
            reason: "it has characters that an HTTP header cannot carry".to_owned(),
        })?;
        headers.push((USER_AGENT, user_agent));
        Ok(Self(headers))
    }

    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        for same_name in self.0.chunk_by(|(one, _), (next, _)| one == next) {
            if !headers.contains_key(&same_name[0].0) {
                for (name, value) in same_name {
                    headers.append(name, value.clone());
                }
            }
        }
    }
}
