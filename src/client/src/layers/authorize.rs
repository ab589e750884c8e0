//! Adds the client's headers and credentials to each request, and renews refused credentials.
//!
//! 1. A header of the caller stays, and the client adds none of that name.
//! 2. After 401 for the client's own credentials, or a handshake that failed because of a certificate, the
//!    request was not handled: it is sent once again if the identity could be renewed.
//! 3. A refusal carries the sent Authorization header, so that errors can omit it. A 401 carries the kind of
//!    the credentials.
//! 4. If the caller names the user to act as, no group, uid or extra value of the client is added, as in
//!    client-go (`transport/round_trippers.go`, `impersonatingRoundTripper`).

use std::sync::Arc;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};

use super::super::error::{ProxyError, TransportError};
use super::super::identity::{Identities, Identity};
use super::super::request::{SentAuthorization, SentCredentials};
use super::super::tls;
use super::super::transport::Body;
use crate::config::Config;
use crate::error::Error;

type Answer = Result<Response<Body>, TransportError>;

pub(super) async fn send(
    identities: &Identities,
    request: Request<Bytes>,
    attempt: impl AsyncFn(Request<Bytes>) -> Answer,
) -> Answer {
    let identity = identities.current().await?;
    // A second attempt needs credentials that can change.
    let copy = identities.can_change().then(|| request.clone());
    let has_own = request.headers().contains_key(header::AUTHORIZATION);
    let credentials = || match has_own {
        true => "the Authorization header of this request".to_owned(),
        false => identities.credentials(),
    };
    let uri = request.uri().clone();
    let answer = send_as(&attempt, &identity, request).await;
    let is_refused = match &answer {
        Ok(answer) => answer.status() == StatusCode::UNAUTHORIZED && !has_own,
        Err(error) => is_about_certificates(error),
    };
    let Some(request) = copy.filter(|_| is_refused) else { return naming(answer, credentials) };
    let Some(renewed) = identities.after_refusal_of(identity.version).await else {
        return naming(answer, credentials);
    };
    let path = uri.path();
    tracing::debug!(target: "actix_informer::client", path, "the server refused the credentials; sending the request again with renewed ones");
    naming(send_as(&attempt, &renewed, request).await, credentials)
}

fn naming(mut answer: Answer, credentials: impl Fn() -> String) -> Answer {
    if let Ok(answer) = &mut answer
        && answer.status() == StatusCode::UNAUTHORIZED
    {
        answer.extensions_mut().insert(SentCredentials(credentials().into()));
    }
    answer
}

async fn send_as(
    attempt: &impl AsyncFn(Request<Bytes>) -> Answer,
    identity: &Arc<Identity>,
    mut request: Request<Bytes>,
) -> Answer {
    if let Some(own) = &identity.authorization {
        request.headers_mut().entry(header::AUTHORIZATION).or_insert_with(|| own.clone());
    }
    request.extensions_mut().insert(Arc::clone(identity));
    let sent = request.headers().get(header::AUTHORIZATION).cloned();
    let mut answer = attempt(request).await?;
    if let Some(mut sent) = sent.filter(|_| !answer.status().is_success()) {
        sent.set_sensitive(true);
        answer.extensions_mut().insert(SentAuthorization(sent));
    }
    Ok(answer)
}

/// Of a handshake only: what breaks later may have been handled.
fn is_about_certificates(error: &TransportError) -> bool {
    let (TransportError::Connect { source, .. }
    | TransportError::Proxy { source: ProxyError::Tls(source), .. }) = error
    else {
        return false;
    };
    tls::is_about_certificates(source)
}

const DEFAULT_USER_AGENT: &str = concat!("actix-informer/", env!("CARGO_PKG_VERSION"));

/// The user to act as.
const USER: &str = "impersonate-user";
const IMPERSONATION: &str = "impersonate-";

/// Values of the same name stand together.
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
    use std::io;

    use rustls::{AlertDescription, Error};

    use super::*;

    #[test]
    fn only_a_handshake_that_fails_because_of_a_certificate_is_tried_again() {
        let connect = |source| TransportError::Connect { endpoint: "a".to_owned(), source };
        let broken = |source| TransportError::Broken { during: "before the head of the answer", source };
        for (alert, expected) in [
            (AlertDescription::UnknownCA, true),
            (AlertDescription::CertificateRequired, true),
            (AlertDescription::HandshakeFailure, true),
            (AlertDescription::InternalError, false),
            (AlertDescription::BadRecordMac, false),
        ] {
            let failed = || io::Error::other(Error::AlertReceived(alert));
            assert_eq!(is_about_certificates(&connect(tls::of_handshake(failed()))), expected, "{alert:?}");
            // What breaks later may have been handled.
            assert!(!is_about_certificates(&broken(failed())), "{alert:?}");
        }
    }

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
