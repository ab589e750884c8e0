//! Which API server, and who we are to it.
//!
//! Answers "how is the cluster reached?" from a kubeconfig, from inside a pod, or by hand. It connects to nothing;
//! `Client::new` checks what is given. Invariants:
//! 1. What a kubeconfig asks for and this client does not do is an error that names it, never silently left out:
//!    credential plugins, impersonation, basic authentication, proxies. Its credentials for a plain http endpoint are
//!    left out with a warning ([`Config::warnings`]), as client-go leaves them out.
//! 2. Nothing is looked up in the home directory.
//! 3. No Debug and no error shows a secret.
//!
//! Files are read when a configuration is made (blocking), a token file later too. Read next: `config/kubeconfig.rs`.

use std::fmt;
use std::path::{Path, PathBuf};

use secrecy::{SecretSlice, SecretString};

use super::endpoint::Endpoint;
use super::error::Error;

mod kubeconfig;

/// How to reach one API server.
///
/// ```
/// use actix_informer::client::Config;
///
/// let config = Config::new("http://127.0.0.1:8080")?.token("s3cret").default_namespace("web");
/// assert!(!format!("{config:?}").contains("s3cret"));
/// # Ok::<(), actix_informer::client::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Config {
    pub(crate) endpoint: String,
    pub(crate) default_namespace: String,
    pub(crate) certificate_authorities: Option<Vec<u8>>,
    pub(crate) identity: Option<Identity>,
    pub(crate) token: Option<Token>,
    pub(crate) accepts_invalid_certificates: bool,
    pub(crate) tls_server_name: Option<String>,
    pub(crate) warnings: Vec<String>,
}

/// A client certificate chain and its key, both PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) certificates: Vec<u8>,
    pub(crate) key: SecretSlice<u8>,
}

#[derive(Clone)]
pub(crate) enum Token {
    Fixed(SecretString),
    File(PathBuf),
}

impl Config {
    /// The server at this `http://` or `https://` URL, without credentials.
    ///
    /// # Errors
    /// [`Error::Endpoint`] when it is no such URL, or has a user, a password or a query; these are not told.
    pub fn new(endpoint: impl Into<String>) -> Result<Self, Error> {
        let endpoint = endpoint.into();
        Endpoint::parse(&endpoint)?;
        Ok(Self {
            endpoint,
            default_namespace: "default".to_owned(),
            certificate_authorities: None,
            identity: None,
            token: None,
            accepts_invalid_certificates: false,
            tls_server_name: None,
            warnings: Vec::new(),
        })
    }

    /// The URL of the API server.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The namespace that is meant when none is named; `default` unless configured.
    pub fn namespace(&self) -> &str {
        &self.default_namespace
    }

    /// What was left out of what was asked for, a sentence each, for the person who starts the program. Empty unless a
    /// kubeconfig has credentials for a plain http endpoint: they are sent only over TLS or, a token, to this machine.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Sets the namespace that is meant when none is named.
    pub fn default_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.default_namespace = namespace.into();
        self
    }

    /// Trusts exactly the certificates in this PEM text; an empty one trusts nobody.
    pub fn certificate_authority(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificate_authorities = Some(pem.into());
        self
    }

    /// Presents this certificate (with its chain, if any), proven by this key; both PEM. Only https can show one:
    /// `Client::new` refuses it for an http endpoint.
    pub fn client_certificate(mut self, certificates: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        let key: Vec<u8> = key.into();
        self.identity = Some(Identity { certificates: certificates.into(), key: key.into() });
        self
    }

    /// Sends this bearer token with every request, over plain http too if the endpoint is one: what is given by hand is
    /// taken at its word, unlike what a kubeconfig brings.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Token::Fixed(SecretString::from(token.into())));
        self
    }

    /// Sends the bearer token of this file with every request; it is read again after at most a minute.
    pub fn token_file(mut self, path: impl AsRef<Path>) -> Self {
        self.token = Some(Token::File(path.as_ref().to_owned()));
        self
    }

    /// Accepts whatever certificate the server shows: anyone on the way can read and change everything.
    pub fn accept_invalid_certificates(mut self) -> Self {
        self.accepts_invalid_certificates = true;
        self
    }

    /// Expects this name in the server's certificate instead of the host of the URL.
    pub fn tls_server_name(mut self, name: impl Into<String>) -> Self {
        self.tls_server_name = Some(name.into());
        self
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|token| match token {
            Token::Fixed(_) => "hidden".to_owned(),
            Token::File(path) => path.display().to_string(),
        });
        f.debug_struct("Config")
            .field("endpoint", &self.endpoint)
            .field("default_namespace", &self.default_namespace)
            .field("certificate_authority", &self.certificate_authorities.is_some())
            .field("client_certificate", &self.identity.is_some())
            .field("token", &token)
            .field("accepts_invalid_certificates", &self.accepts_invalid_certificates)
            .field("tls_server_name", &self.tls_server_name)
            .finish()
    }
}
