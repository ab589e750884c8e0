//! Who can read what is sent on the way to a server, and which credentials may be sent there. Only [`fate`] decides.
//!
//! 1. Over TLS with the server everything is sent: a proxy cannot read it.
//! 2. In plain text, what a kubeconfig holds goes only to this machine, and not through a proxy; client-go sends a token to any
//!    server. What the program set for this endpoint is sent.
//! 3. A client certificate is part of TLS. Without TLS, a kubeconfig's is left out and the program's is refused.
//! 4. The secrets of an OpenID Connect login go to its issuer by the rules for a kubeconfig.

use super::endpoint::Endpoint;
use super::proxy::Proxy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Tls,
    /// Programs of this machine.
    ThisMachine,
    /// Anybody on the network, or a proxy.
    PlainText,
}

impl Way {
    /// For a proxy, a loopback address or `x.localhost` is its own machine.
    pub(crate) fn to(endpoint: &Endpoint, proxy: Option<&Proxy>) -> Self {
        match (endpoint.tls, proxy) {
            (true, _) => Self::Tls,
            (false, None) if endpoint.is_loopback() => Self::ThisMachine,
            (false, _) => Self::PlainText,
        }
    }

    pub(crate) fn carries_secrets_of_logins(self) -> bool {
        fate(self, Credential::Provider, true) == Fate::Sent
    }
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Sent,
    /// Not sent, and named.
    LeftOut,
    /// The client cannot be made.
    Refused,
}

pub(super) fn fate(way: Way, credential: Credential, is_of_kubeconfig: bool) -> Fate {
    match (way, credential, is_of_kubeconfig) {
        (Way::Tls, ..) => Fate::Sent,
        (_, Credential::Certificate, true) => Fate::LeftOut,
        (_, Credential::Certificate, false) => Fate::Refused,
        (Way::ThisMachine, ..) | (Way::PlainText, _, false) => Fate::Sent,
        (Way::PlainText, _, true) => Fate::LeftOut,
    }
}
