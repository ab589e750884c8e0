//! Adds the headers that every request of a client carries: as whom it acts, and which program it is.
//!
//! Answers "which headers does a request get that its caller has not set?" Invariants:
//! 1. A header that the caller has set stays as it is, and nothing is added beside it.
//! 2. A caller that names the user to act as has named all: no group, uid or extra value of the client is added, as in
//!    client-go (`transport/round_trippers.go`, `impersonatingRoundTripper`).
//!
//! Read next: `../config/impersonation.rs`, which makes the headers of impersonation.

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::super::config::Config;
use super::super::error::Error;

const DEFAULT_USER_AGENT: &str = concat!("actix-informer/", env!("CARGO_PKG_VERSION"));

/// The header that names the user to act as, and how the others begin that say more of this user.
const USER: &str = "impersonate-user";
const IMPERSONATION: &str = "impersonate-";

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
        let acts_as_another = headers.contains_key(USER);
        for same_name in self.0.chunk_by(|(one, _), (next, _)| one == next) {
            let name = &same_name[0].0;
            let is_of_another = acts_as_another && name.as_str().starts_with(IMPERSONATION);
            if !is_of_another && !headers.contains_key(name) {
                for (name, value) in same_name {
                    headers.append(name, value.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_p4_a_request_that_names_its_user_gets_nothing_of_the_users_of_the_client() {
        let config = Config::new("https://api.example").expect("a URL");
        let config = config.impersonate("admin").impersonate_group("system:masters");
        let ours = Headers::new(&config).expect("headers");
        let with = |own: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in own {
                headers.append(*name, HeaderValue::from_static(value));
            }
            ours.add_to(&mut headers);
            headers.remove(USER_AGENT).expect("the program is named");
            let text = |value: &HeaderValue| value.to_str().expect("text").to_owned();
            headers.iter().map(|(name, value)| format!("{name}={}", text(value))).collect::<Vec<_>>()
        };
        assert_eq!(with(&[]), ["impersonate-user=admin", "impersonate-group=system:masters"]);
        assert_eq!(with(&[("impersonate-user", "guest")]), ["impersonate-user=guest"]);
        assert_eq!(
            with(&[("impersonate-user", "guest"), ("impersonate-group", "guests")]),
            ["impersonate-user=guest", "impersonate-group=guests"]
        );
    }
}
