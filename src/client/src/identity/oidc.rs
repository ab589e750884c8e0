//! The OpenID Connect login of a kubeconfig (`auth-provider: oidc`), by client-go's rules
//! (`plugin/pkg/client/auth/oidc`).
//!
//! 1. New tokens stay in memory: the kubeconfig is never written. Tokens that another program writes there
//!    replace the known ones.
//! 2. Only the `error` code of a refusal is read.
//! 3. Issuer and token host are asked only over TLS or on this machine (`../credentials.rs`).
//! 4. The client's secret is sent in the header (`client_secret_basic`); if refused, in the form
//!    (`client_secret_post`, RFC 6749 section 2.3.1). The next time begins with the way that worked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, header};
use informer_core::words::quoted;
use jiff::{SignedDuration, Timestamp};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::exec::ProvidedCredentials;
use crate::endpoint::Endpoint;
use crate::error::{Error, OidcError};
use crate::proxy::ProxySetting;
use crate::way::Way;

/// Clocks differ: a token with less time left counts as expired.
const MARGIN: SignedDuration = SignedDuration::from_secs(10);

/// Unescaped besides letters and digits (RFC 6749, appendix B).
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    InHeader,
    InForm,
}

pub(crate) type AskIssuer =
    Box<dyn Fn(Request<Vec<u8>>) -> BoxFuture<'static, Result<Response<Bytes>, Error>> + Send + Sync>;

/// Makes a client without credentials. Passed in, because clients depend on identities.
pub(crate) type Issuers = fn(&str, Option<&[u8]>) -> Result<AskIssuer, Error>;

pub(crate) struct Oidc {
    issuer: String,
    client_id: String,
    client_secret: Option<SecretString>,
    authority: Option<Vec<u8>>,
    takes_form: AtomicBool,
    tokens: Mutex<Tokens>,
    /// As last read from the kubeconfig.
    written: Mutex<Tokens>,
}

#[derive(Clone)]
struct Tokens {
    id: Option<SecretString>,
    refresh: Option<SecretString>,
    /// Not sent yet, so no refusal can mean them.
    are_new: bool,
}

impl Tokens {
    fn equals(&self, other: &Self) -> bool {
        let texts = |tokens: &Self| {
            [&tokens.id, &tokens.refresh]
                .map(|token| token.as_ref().map(|token| token.expose_secret().to_owned()))
        };
        texts(self) == texts(other)
    }
}

#[derive(Deserialize)]
struct Discovery {
    token_endpoint: String,
}

#[derive(Deserialize)]
struct Answer {
    id_token: Option<String>,
    refresh_token: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

#[derive(Deserialize)]
struct Claims {
    exp: Option<f64>,
}

impl Oidc {
    pub(crate) fn new(
        config: &HashMap<String, String>,
        read: impl FnOnce(&str) -> Result<Vec<u8>, Error>,
    ) -> Result<Self, OidcError> {
        let given = |key: &str| config.get(key).filter(|value| !value.is_empty()).cloned();
        let needed = |key: &str| given(key).ok_or_else(|| OidcError::Invalid(format!("{key} is missing")));
        let authority = match (given("idp-certificate-authority-data"), given("idp-certificate-authority")) {
            (Some(data), _) => Some(STANDARD.decode(data.trim()).map_err(|_| {
                OidcError::Invalid("idp-certificate-authority-data is not base64".to_owned())
            })?),
            (None, Some(path)) => Some(read(&path).map_err(|error| OidcError::Invalid(error.to_string()))?),
            (None, None) => None,
        };
        let tokens = Tokens {
            id: given("id-token").map(SecretString::from),
            refresh: given("refresh-token").map(SecretString::from),
            are_new: true,
        };
        Ok(Self {
            issuer: needed("idp-issuer-url")?.trim_end_matches('/').to_owned(),
            client_id: needed("client-id")?,
            client_secret: given("client-secret").map(SecretString::from),
            authority,
            takes_form: AtomicBool::new(false),
            written: Mutex::new(tokens.clone()),
            tokens: Mutex::new(tokens),
        })
    }

    /// Takes over changed tokens of the kubeconfig, now read as `now`. Returns `false` if that is another
    /// login.
    pub(crate) fn adopt(&self, now: &Self) -> bool {
        if !self.is_same_login(now) {
            return false;
        }
        let now = now.written.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if !written.equals(&now) {
            *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) = now.clone();
            *written = now;
        }
        true
    }

    fn is_same_login(&self, other: &Self) -> bool {
        let secret =
            |login: &Self| login.client_secret.as_ref().map(|secret| secret.expose_secret().to_owned());
        self.issuer == other.issuer
            && self.client_id == other.client_id
            && self.authority == other.authority
            && secret(self) == secret(other)
    }

    /// `force`: the server has refused the known id token.
    pub(crate) async fn credentials(
        &self,
        now: Timestamp,
        force: bool,
        issuers: Issuers,
    ) -> Result<ProvidedCredentials, OidcError> {
        let known = self.tokens.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let lasting = |token: &SecretString| {
            let expires = expires(token.expose_secret())?;
            (now + MARGIN < expires).then_some(expires)
        };
        if let Some((token, expires)) =
            known.id.as_ref().filter(|_| !force || known.are_new).and_then(|id| Some((id, lasting(id)?)))
        {
            self.tokens.lock().unwrap_or_else(PoisonError::into_inner).are_new = false;
            return Ok(credentials(token.clone(), Some(expires)));
        }
        let refresh = known.refresh.ok_or(OidcError::Expired)?;
        let renewed = self.refresh(&refresh, issuers).await?;
        let id =
            renewed.id_token.map(SecretString::from).ok_or_else(|| self.malformed("it has no id_token"))?;
        let refresh = renewed.refresh_token.map(SecretString::from).unwrap_or(refresh);
        let expires = expires(id.expose_secret());
        *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) =
            Tokens { id: Some(id.clone()), refresh: Some(refresh), are_new: false };
        Ok(credentials(id, expires))
    }

    async fn refresh(&self, refresh: &SecretString, issuers: Issuers) -> Result<Answer, OidcError> {
        let configuration = format!("{}/.well-known/openid-configuration", self.issuer);
        let (issuer, path) = self.at(&configuration, issuers)?;
        let request = Request::get(path).header(header::ACCEPT, "application/json").body(Vec::new());
        let discovery: Discovery = self.ask(&issuer, request).await?;
        let (issuer, path) = self.at(&discovery.token_endpoint, issuers)?;
        let shown = match (&self.client_secret, self.takes_form.load(Ordering::Relaxed)) {
            (None, _) => &[Shown::InForm][..],
            (Some(_), false) => &[Shown::InHeader, Shown::InForm],
            (Some(_), true) => &[Shown::InForm, Shown::InHeader],
        };
        let mut refused = None;
        for shown in shown {
            match issuer(self.renewing(&path, refresh, *shown)?).await {
                Ok(answer) => {
                    self.takes_form.store(*shown == Shown::InForm, Ordering::Relaxed);
                    return self.read(answer.body());
                }
                Err(Error::Refused(status)) if matches!(status.code, 400 | 401) => {
                    let is_of_token = is_of_token(&status.message);
                    refused = Some(self.malformed("it refuses the refresh-token; log in again"));
                    if is_of_token {
                        break;
                    }
                }
                Err(error) => return Err(self.refused(error)),
            }
        }
        Err(refused.unwrap_or_else(|| self.malformed("it is not a success")))
    }

    fn renewing(
        &self,
        path: &str,
        refresh: &SecretString,
        shown: Shown,
    ) -> Result<Request<Vec<u8>>, OidcError> {
        let mut form = format!("grant_type=refresh_token&refresh_token={}", encoded(refresh.expose_secret()));
        let mut request = Request::post(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let (id, secret) = (encoded(&self.client_id), self.client_secret.as_ref());
        let secret = secret.map(|secret| encoded(secret.expose_secret()));
        match (shown, secret) {
            (Shown::InHeader, secret) => {
                let pair = format!("{id}:{}", secret.unwrap_or_default());
                request = request.header(header::AUTHORIZATION, format!("Basic {}", STANDARD.encode(pair)));
            }
            (Shown::InForm, secret) => {
                form.push_str(&format!("&client_id={id}"));
                secret.iter().for_each(|secret| form.push_str(&format!("&client_secret={secret}")));
            }
        }
        let request = request.body(form.into_bytes());
        request.map_err(|_| self.malformed("a header cannot be made of the client-id"))
    }

    /// For the URL's host (the token host may not be the issuer), with its path and query.
    fn at(&self, url: &str, issuers: Issuers) -> Result<(AskIssuer, String), OidcError> {
        let uri: http::Uri = url.parse().map_err(|_| self.malformed("a URL in it cannot be read"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(self.malformed("a URL in it has no host"));
        };
        let failed = |source| self.failed(source);
        let base = format!("{scheme}://{authority}");
        let endpoint = Endpoint::parse(&base).map_err(failed)?;
        let proxy = ProxySetting::default().of(&endpoint).map_err(failed)?;
        if !Way::to(&endpoint, proxy.as_deref()).carries_secrets_of_logins() {
            let host = quoted(&endpoint.authority);
            return Err(OidcError::Insecure { issuer: self.issuer.clone(), host });
        }
        let issuer = issuers(&base, self.authority.as_deref()).map_err(failed)?;
        Ok((issuer, uri.path_and_query().map_or("/", |path| path.as_str()).to_owned()))
    }

    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        issuer: &AskIssuer,
        request: Result<Request<Vec<u8>>, http::Error>,
    ) -> Result<T, OidcError> {
        let request = request.map_err(|_| self.malformed("its URL cannot be asked for"))?;
        let answer = issuer(request).await.map_err(|error| self.refused(error))?;
        self.read(answer.body())
    }

    fn read<T: serde::de::DeserializeOwned>(&self, body: &[u8]) -> Result<T, OidcError> {
        serde_json::from_slice(body).map_err(|_| self.malformed("it is not the JSON of OpenID Connect"))
    }

    fn refused(&self, error: Error) -> OidcError {
        match error {
            Error::Refused(_) => self.malformed("it is not a success"),
            error => self.failed(error),
        }
    }

    pub(crate) fn late(&self, after: Duration) -> OidcError {
        OidcError::TimedOut { issuer: self.issuer.clone(), after }
    }

    fn malformed(&self, reason: &'static str) -> OidcError {
        OidcError::Malformed { issuer: self.issuer.clone(), reason }
    }

    fn failed(&self, source: Error) -> OidcError {
        OidcError::Issuer { issuer: self.issuer.clone(), source: Box::new(source) }
    }
}

fn credentials(token: SecretString, expires: Option<Timestamp>) -> ProvidedCredentials {
    ProvidedCredentials { token: Some(token), certificate: None, expires }
}

/// The `exp` of a JSON Web Token. The API server checks the signature.
fn expires(token: &str) -> Option<Timestamp> {
    let payload = token.split('.').nth(1)?;
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, and a timestamp refuses what is beyond it"
    )]
    claims.exp.and_then(|exp| Timestamp::from_second(exp as i64).ok())
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, FORM).to_string()
}

/// Whether the refresh token itself is refused: a second way would fail, too.
fn is_of_token(message: &str) -> bool {
    serde_json::from_str::<Refusal>(message).is_ok_and(|refusal| refusal.error == "invalid_grant")
}

informer_core::debug_as!(Oidc, self, issuer = self.issuer);

#[cfg(test)]
mod tests;
