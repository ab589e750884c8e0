//! What an identity is made of: files, inline text, a plugin or a login; and its TLS configurations.
//!
//! 1. A certificate or token in the kubeconfig wins over its plugin, as in client-go. The token of an OpenID
//!    Connect login is also sent beside a certificate: one may be for a front, the other for the server.
//! 2. Certificate and key are read together. If they do not fit, the old pair stays.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use tokio::time::Instant;

use super::FILES;
use super::Provider;
use super::exec::ProvidedCredentials;
use crate::error::Error;
use crate::tls;

/// Credentials are renewed this long before their end; at most a tenth of their life.
const AHEAD: Duration = Duration::from_secs(60);
/// For a certificate and a key that do not fit.
const TRIES: u32 = 3;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(crate) enum Pem {
    Inline(SecretSlice<u8>),
    File(PathBuf),
}

#[derive(Clone)]
pub(crate) enum Trust {
    Anybody,
    System,
    Only(Pem),
}

#[derive(Clone)]
pub(crate) enum Login {
    Token(SecretString),
    /// `otherwise`, as old as the kubeconfig, is used until the file was read once.
    TokenFile {
        path: PathBuf,
        otherwise: Option<SecretString>,
    },
    Basic {
        user: String,
        password: SecretString,
    },
}

#[derive(Clone)]
pub(crate) struct Material {
    /// For https.
    pub(crate) tls: Option<TlsMaterial>,
    /// For an https proxy.
    pub(crate) proxy_tls: Option<ProxyTlsMaterial>,
    pub(crate) login: Option<Login>,
    pub(crate) provider: Option<Arc<Provider>>,
    pub(crate) again: Option<ReadAgain>,
    /// A token file was read: the inline token is outdated.
    pub(crate) has_read_token: Arc<AtomicBool>,
}

/// With the current credentials of the kubeconfig. Blocking.
pub(crate) type ReadAgain = Arc<dyn Fn(Material) -> Result<Material, Error> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct TlsMaterial {
    pub(crate) server_name: ServerName<'static>,
    pub(crate) trust: Trust,
    pub(crate) certificate: Option<(Pem, Pem)>,
}

/// The client certificate is for the API server only.
#[derive(Clone)]
pub(crate) struct ProxyTlsMaterial {
    pub(crate) server_name: ServerName<'static>,
    pub(crate) trust: Trust,
}

#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) server_name: ServerName<'static>,
}

#[derive(Clone, Default)]
pub(crate) struct Read {
    authorities: Option<SecretSlice<u8>>,
    certificate: Option<(SecretSlice<u8>, SecretSlice<u8>)>,
    login: Option<SecretString>,
    plugin: Option<ProvidedRead>,
}

#[derive(Clone)]
struct ProvidedRead {
    credentials: ProvidedCredentials,
    renewed_from: Option<Instant>,
    ends: Option<Instant>,
}

impl Material {
    pub(crate) fn can_change(&self) -> bool {
        self.provider.is_some() || self.has_files()
    }

    pub(crate) fn has_files(&self) -> bool {
        let is_file = |pem: &Pem| matches!(pem, Pem::File(_));
        let authorities = matches!(self.trust(), Some(Trust::Only(pem)) if is_file(pem));
        let certificate = self.tls.as_ref().and_then(|tls| tls.certificate.as_ref());
        let tls = authorities || certificate.is_some_and(|(chain, key)| is_file(chain) || is_file(key));
        tls || matches!(self.login, Some(Login::TokenFile { .. })) || self.again.is_some()
    }

    /// API server and proxy have the same value.
    fn trust(&self) -> Option<&Trust> {
        let of_proxy = || self.proxy_tls.as_ref().map(|proxy| &proxy.trust);
        self.tls.as_ref().map(|tls| &tls.trust).or_else(of_proxy)
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some() || self.proxy_tls.is_some()
    }

    /// With names of files and programs; no content.
    pub(crate) fn credentials(&self) -> String {
        let certificate =
            self.tls.as_ref().and_then(|tls| tls.certificate.as_ref()).map(|(chain, _)| match chain {
                Pem::Inline(_) => "the client certificate of the configuration".to_owned(),
                Pem::File(path) => format!("the client certificate of the file {path:?}"),
            });
        let login = self.login.as_ref().map(|login| match login {
            Login::Token(_) => "the token of the configuration".to_owned(),
            Login::TokenFile { path, .. } => format!("the token of the file {path:?}"),
            Login::Basic { .. } => "user name and password".to_owned(),
        });
        let provider =
            self.provider.as_ref().filter(|_| self.needs_provider()).map(|provider| match &**provider {
                Provider::Plugin(plugin) => format!("what the credential plugin {:?} gave", plugin.command()),
                Provider::Oidc { .. } => "the token of the OpenID Connect login".to_owned(),
            });
        let kinds: Vec<_> = [certificate, login, provider].into_iter().flatten().collect();
        if kinds.is_empty() { "no credentials".to_owned() } else { kinds.join(" and ") }
    }

    /// Reads all but token files and providers, which wait for the first request. Returns what was read if
    /// that is all. Blocking.
    pub(crate) fn check(&self) -> Result<Option<Read>, Error> {
        let has_token_file = matches!(self.login, Some(Login::TokenFile { .. }));
        let login = self.login.clone().filter(|_| !has_token_file);
        let known = Self { login, again: None, ..self.clone() };
        let read = known.read_files()?;
        self.tls(&read)?;
        self.tls_with_proxy(&read)?;
        read.authorization()?;
        let waits = has_token_file || (self.provider.is_some() && self.needs_provider());
        Ok((!waits).then_some(read))
    }

    fn needs_provider(&self) -> bool {
        let is_login = matches!(self.provider.as_deref(), Some(Provider::Oidc { .. }));
        let has_certificate = self.tls.as_ref().is_some_and(|tls| tls.certificate.is_some());
        self.login.is_none() && (is_login || !has_certificate)
    }

    pub(crate) fn asks_provider(&self, kept: Option<&Read>) -> bool {
        let has = kept.is_some_and(|kept| kept.plugin.is_some());
        self.provider.is_some() && self.needs_provider() && !has
    }

    /// Asks the provider unless `kept` has its credentials.
    pub(crate) async fn read_elsewhere(&self, kept: Option<&Read>, is_refused: bool) -> Result<Read, Error> {
        let mut read = self.read_settled(kept).await?;
        let Some(provider) = self.provider.as_ref().filter(|_| self.needs_provider()) else {
            return Ok(read);
        };
        read.plugin = Some(match kept.and_then(|kept| kept.plugin.clone()) {
            Some(kept) => kept,
            None => ProvidedRead::new(provider.obtain(is_refused).await?),
        });
        Ok(read)
    }

    /// Reads again after a moment if certificate and key do not fit, as during a rotation. A pair as in
    /// `kept` fits.
    async fn read_settled(&self, kept: Option<&Read>) -> Result<Read, Error> {
        let mut tries = 0;
        loop {
            let (material, kept) = (self.clone(), kept.cloned());
            let reading = tokio::task::spawn_blocking(move || {
                let read = material.read_files()?;
                let is_known = kept.is_some_and(|kept| kept.has_same_tls(&read));
                let fits = read.certificate.is_none() || is_known || material.tls(&read).is_ok();
                Ok((read, fits))
            });
            let late = || Error::Unusable {
                what: "the files of the credentials",
                reason: format!("they cannot be read within {FILES:?}"),
            };
            let reading = tokio::time::timeout(FILES, reading).await.map_err(|_| late())?;
            let (read, fits) = reading.unwrap_or(Err(Error::Stopped))?;
            tries += 1;
            if fits || tries == TRIES {
                return Ok(read);
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
    }

    fn read_files(&self) -> Result<Read, Error> {
        match &self.again {
            None => self.read_named_files(),
            Some(again) => again(self.clone())?.read_named_files(),
        }
    }

    fn read_named_files(&self) -> Result<Read, Error> {
        let mut read = Read::default();
        if let Some(Trust::Only(pem)) = self.trust() {
            read.authorities = Some(pem.read("certificate authority")?);
        }
        if let Some((chain, key)) = self.tls.as_ref().and_then(|tls| tls.certificate.as_ref()) {
            read.certificate = Some((chain.read("client certificate")?, key.read("client key")?));
        }
        read.login = match &self.login {
            None => None,
            Some(Login::Token(token)) => Some(bearer(token.expose_secret())),
            Some(Login::TokenFile { path, otherwise }) => Some(match (token_of(path), otherwise) {
                (Ok(token), _) => {
                    self.has_read_token.store(true, Ordering::Relaxed);
                    bearer(&token)
                }
                (Err(error), None) => return Err(error),
                (Err(error), _) if self.has_read_token.load(Ordering::Relaxed) => return Err(error),
                (Err(error), Some(token)) => {
                    tracing::debug!(target: "actix_informer::client", %error, "the token beside the token file is used");
                    bearer(token.expose_secret())
                }
            }),
            Some(Login::Basic { user, password }) => Some(basic(user, password)),
        };
        Ok(read)
    }

    pub(crate) fn tls(&self, read: &Read) -> Result<Option<Tls>, Error> {
        let Some(material) = &self.tls else { return Ok(None) };
        let roots = match &material.trust {
            Trust::Anybody => tls::Roots::Anybody,
            Trust::System => tls::Roots::System,
            Trust::Only(_) => tls::Roots::Only(read.authorities()),
        };
        let certificate = read.presented().map(|(chain, key)| (chain, key.expose_secret()));
        let config = tls::client_config(roots, certificate)?;
        Ok(Some(Tls { config, server_name: material.server_name.clone() }))
    }

    /// Also trusts the system's authorities: a proxy stands outside the cluster.
    pub(crate) fn tls_with_proxy(&self, read: &Read) -> Result<Option<Tls>, Error> {
        let Some(material) = &self.proxy_tls else { return Ok(None) };
        let roots = match &material.trust {
            Trust::Anybody => tls::Roots::Anybody,
            Trust::System => tls::Roots::System,
            Trust::Only(_) => tls::Roots::SystemAnd(read.authorities()),
        };
        let config = tls::client_config(roots, None)?;
        Ok(Some(Tls { config, server_name: material.server_name.clone() }))
    }
}

impl Pem {
    fn read(&self, what: &'static str) -> Result<SecretSlice<u8>, Error> {
        match self {
            Self::Inline(pem) => Ok(pem.clone()),
            Self::File(path) => std::fs::read(path).map(SecretSlice::from).map_err(|source| Error::File {
                what,
                path: path.clone(),
                source,
            }),
        }
    }
}

impl Read {
    pub(crate) fn renewed_from(&self) -> Option<Instant> {
        self.plugin.as_ref()?.renewed_from
    }

    pub(crate) fn ends(&self) -> Option<Instant> {
        self.plugin.as_ref()?.ends
    }

    pub(crate) fn has_same_tls(&self, other: &Self) -> bool {
        let authorities = |read: &Self| read.authorities.as_ref().map(|pem| pem.expose_secret().to_vec());
        let presented =
            |read: &Self| read.presented().map(|(chain, key)| (chain.to_vec(), key.expose_secret().to_vec()));
        authorities(self) == authorities(other) && presented(self) == presented(other)
    }

    pub(crate) fn has_same_login(&self, other: &Self) -> bool {
        let login = |read: &Self| read.header_text().map(|text| text.expose_secret().to_owned());
        login(self) == login(other)
    }

    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>, Error> {
        let Some(text) = self.header_text() else { return Ok(None) };
        let mut header = HeaderValue::from_str(text.expose_secret()).map_err(|_| Error::Unusable {
            what: "the token or password",
            reason: "it has characters that an HTTP header cannot carry".to_owned(),
        })?;
        header.set_sensitive(true);
        Ok(Some(header))
    }

    fn header_text(&self) -> Option<SecretString> {
        let of_plugin =
            || self.plugin.as_ref()?.credentials.token.as_ref().map(|token| bearer(token.expose_secret()));
        self.login.clone().or_else(of_plugin)
    }

    fn authorities(&self) -> &[u8] {
        self.authorities.as_ref().map_or(&[], |pem| pem.expose_secret())
    }

    fn presented(&self) -> Option<(&[u8], &SecretSlice<u8>)> {
        let own = self.certificate.as_ref().map(|(chain, key)| (chain.expose_secret(), key));
        let of_plugin =
            || self.plugin.as_ref()?.credentials.certificate.as_ref().map(|(chain, key)| (&**chain, key));
        own.or_else(of_plugin)
    }
}

impl ProvidedRead {
    fn new(credentials: ProvidedCredentials) -> Self {
        let now = Instant::now();
        let life = credentials.expires.map(super::left);
        let after = |life: Duration| now.checked_add(life);
        let renewed_from = life.and_then(|life| after(life.saturating_sub(AHEAD.min(life / 10))));
        Self { credentials, renewed_from, ends: life.and_then(after) }
    }
}

fn token_of(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::File { what: "token file", path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    match text.trim() {
        "" => Err(failed(io::Error::new(io::ErrorKind::InvalidData, "it holds no token"))),
        token => Ok(token.to_owned()),
    }
}

fn bearer(token: &str) -> SecretString {
    format!("Bearer {}", token.trim()).into()
}

fn basic(user: &str, password: &SecretString) -> SecretString {
    format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose_secret()))).into()
}
