//! The user of a request: by certificate, token, or anonymous; and the mode in which the server decides what users may
//! do.
//!
//! Answers: which user is this request from? `cluster/rbac` decides what the user may do.
//! 1. A client certificate is checked first, then a bearer token; a client with neither is the anonymous user.
//! 2. An invalid credential is 401 even where the anonymous user would be admitted.
//! 3. Groups end as on a real server: `system:authenticated`, or `system:unauthenticated` for the anonymous user.
//!
//! Next: `user.rs`, `certificate.rs`, `service_account.rs`; `http/auth.rs` uses it.
pub(crate) mod certificate;
pub(crate) mod service_account;
pub(crate) mod user;

use std::sync::Arc;

use rustls::server::danger::ClientCertVerifier;

use self::certificate::PeerCertificate;
use self::service_account::{Claims, Signer};
use self::user::{User, nobody};

/// Who decides what a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authorization {
    /// Every known user may do everything; the anonymous one too, where no credentials exist.
    Open,
    /// Roles and bindings in the store.
    Rbac,
}

/// A bearer token with its user.
#[derive(Debug, Clone)]
pub(crate) struct StaticToken {
    pub(crate) token: String,
    pub(crate) user: User,
}

/// How one server identifies its users.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) tokens: Vec<StaticToken>,
    pub(crate) anonymous: bool,
    pub(crate) authorization: Authorization,
    pub(crate) signer: Signer,
    /// Checks client certificates; none without TLS.
    pub(crate) authority: Option<Arc<dyn ClientCertVerifier>>,
}

/// The settings for users before a server runs.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) tokens: Vec<StaticToken>,
    pub(crate) anonymous: bool,
    pub(crate) rbac: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self { tokens: Vec::new(), anonymous: true, rbac: false }
    }
}

impl Plan {
    /// Adds the token of a user who may do everything, before all others: the kubeconfig holds it.
    pub(crate) fn admin(&mut self, token: String) {
        let user = User::new("admin").uid("1").group("system:masters");
        self.tokens.insert(0, StaticToken { token, user });
    }

    /// Creates the keys. Authorization by roles needs a user who may change
    /// them, so it creates a token for the administrator if none was given.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(crate) fn build(mut self, authority: Option<Arc<dyn ClientCertVerifier>>) -> Result<Access, Failure> {
        let signer = Signer::new()?;
        let masters = |known: &StaticToken| known.user.groups.iter().any(|group| group == "system:masters");
        if self.rbac && !self.tokens.first().is_some_and(masters) {
            self.admin(signer.random_token()?);
        }
        let authorization = if self.rbac { Authorization::Rbac } else { Authorization::Open };
        Ok(Access { tokens: self.tokens, anonymous: self.anonymous, authorization, signer, authority })
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// An invalid credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unauthenticated;

impl Access {
    /// The user behind a request.
    ///
    /// # Errors If only invalid credentials were presented, or none was presented and the anonymous user is
    /// not admitted.
    pub(crate) fn authenticate(
        &self,
        certificate: Option<&PeerCertificate>,
        authorization: Option<&str>,
        lives: &dyn Fn(&Claims) -> bool,
        now: i64,
    ) -> Result<User, Unauthenticated> {
        let shown = match (certificate, &self.authority) {
            (Some(certificate), Some(authority)) => Some(certificate.user(&**authority, now)),
            _ => None,
        };
        if let Some(Some(user)) = shown {
            return Ok(user.authenticated());
        }
        let token = authorization.and_then(bearer);
        match token {
            Some(token) => self.token_user(token, lives, now).ok_or(Unauthenticated),
            None if shown.is_none() && self.anonymous => Ok(nobody()),
            None => Err(Unauthenticated),
        }
    }

    /// The user of a bearer token, if it is valid. `lives` checks whether the account of a signed token is in
    /// the store.
    pub(crate) fn token_user(&self, token: &str, lives: &dyn Fn(&Claims) -> bool, now: i64) -> Option<User> {
        if let Some(known) = self.tokens.iter().find(|known| known.token == token) {
            return Some(known.user.clone().authenticated());
        }
        let claims = self.signer.check(token, now)?;
        let meant = claims.aud.iter().any(|audience| audience == service_account::ISSUER);
        (meant && lives(&claims)).then(|| claims.user().authenticated())
    }

    /// Whether no client needs a credential: an open server without tokens.
    pub(crate) fn is_open_to_nobody(&self) -> bool {
        self.authorization == Authorization::Open && self.tokens.is_empty() && self.anonymous
    }
}

/// The token of an `Authorization` header; none for other schemes, which count as no credential.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
