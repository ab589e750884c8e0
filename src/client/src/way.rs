//! Who can read what is sent on the way to a server, and which credentials may be sent there.
//!
//! Answers "may this be sent?" in one place ([`fate`]), where endpoint, proxy and the kind of the credential are known.
//! Invariants:
//! 1. Over TLS with the server everything is sent: a proxy on the way passes on what it cannot read.
//! 2. In plain text, what a kubeconfig holds goes only to this machine, and not through a proxy. client-go sends a token in
//!    plain text to any server; we do not.
//! 3. In plain text, what the program itself has set for this endpoint (a token, a password) is sent: it has chosen so.
//! 4. A client certificate is part of TLS: a kubeconfig's is left out without it, the program's is refused.
//! 5. The secrets of an OpenID Connect login go to its issuer over TLS, or to this machine and not through a proxy.
//!
//! Read next: `credentials.rs`, which asks it of a configuration; `identity/oidc.rs`, of an issuer.

use super::endpoint::Endpoint;
use super::proxy::Proxy;

/// Who can read what is sent, on the way to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The server only.
    Tls,
    /// Programs of this machine.
    ThisMachine,
    /// Anybody on the network, or a proxy.
    PlainText,
}

impl Way {
    /// The way to this endpoint through this proxy. What a proxy takes for a loopback address or for `x.localhost` is on
    /// its own machine, so no way through one stays here.
    pub(crate) fn to(endpoint: &Endpoint, proxy: Option<&Proxy>) -> Self {
        match (endpoint.tls, proxy) {
            (true, _) => Self::Tls,
            (false, None) if endpoint.is_loopback() => Self::ThisMachine,
            (false, _) => Self::PlainText,
        }
    }

    /// Whether the secrets of a login may be sent to the issuer that this way leads to.
    pub(crate) fn carries_secrets_of_logins(self) -> bool {
        fate(self, Credential::Provider, true) == Fate::Sent
    }
}

/// The kinds of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Credential {
    Token,
    TokenFile,
    Password,
    Certificate,
    /// A plugin or an OpenID Connect login.
    Provider,
    Impersonation,
}

impl Credential {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Token => "the token",
            Self::TokenFile => "the token file",
            Self::Password => "the password",
            Self::Certificate => "the client certificate",
            Self::Provider => "the credential plugin",
            Self::Impersonation => "the impersonation",
        }
    }
}

/// What becomes of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Sent,
    /// Not sent, and named.
    LeftOut,
    /// The client cannot be made.
    Refused,
}

/// The one decision.
pub(super) fn fate(way: Way, credential: Credential, is_of_kubeconfig: bool) -> Fate {
    match (way, credential, is_of_kubeconfig) {
        (Way::Tls, ..) => Fate::Sent,
        (_, Credential::Certificate, true) => Fate::LeftOut,
        (_, Credential::Certificate, false) => Fate::Refused,
        (Way::ThisMachine, ..) | (Way::PlainText, _, false) => Fate::Sent,
        (Way::PlainText, _, true) => Fate::LeftOut,
    }
}
