//! The configuration of a client: the API server's address and the credentials. `Client::new` checks the
//! values and reads the named files (blocking).
//!
//! 1. What a kubeconfig requires and this client does not support is an error: auth providers other than
//!    oidc, and other kinds of proxies. Only credentials for plain http are left out, with a warning, as
//!    client-go does.
//! 2. In a pod the variables and files are those of client-go (`rest.InClusterConfig`). Token and authority
//!    are named as files, because the kubelet renews them.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{SecretSlice, SecretString};

use super::endpoint::Endpoint;
use super::error::Error;
use super::identity::exec::{self, ClusterInfo, PluginConfig, PluginPolicy};
use super::identity::material::{Login, Pem};
use super::identity::oidc::Oidc;
use super::proxy::{Proxy, ProxySetting};
use impersonation::Impersonation;
use kubeconfig::Origin;
use limits::Limits;
use requests::RequestSettings;

mod impersonation;
mod kubeconfig;
pub(crate) mod limits;
mod requests;

/// The address of one API server and the credentials for it.
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
    pub(crate) authorities: Option<Pem>,
    /// Certificate chain and key.
    pub(crate) certificate: Option<(Pem, Pem)>,
    pub(crate) login: Option<Login>,
    pub(crate) exec: Option<Arc<(PluginConfig, ClusterInfo)>>,
    pub(crate) plugin_policy: PluginPolicy,
    pub(crate) plugin_limit: Duration,
    pub(crate) oidc: Option<Arc<Oidc>>,
    pub(crate) impersonation: Impersonation,
    pub(crate) accepts_invalid_certificates: bool,
    pub(crate) tls_server_name: Option<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) written: Option<Written>,
    pub(crate) origin: Option<Origin>,
    pub(crate) proxy: ProxySetting,
    pub(crate) limits: Limits,
    pub(crate) requests: RequestSettings,
    #[cfg(feature = "http2")]
    pub(crate) http2: bool,
}

/// Which credentials come from a kubeconfig. A plugin and an OpenID Connect login always do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written {
    pub(crate) cluster: String,
    pub(crate) login: bool,
    pub(crate) certificate: bool,
    pub(crate) impersonation: Impersonation,
}

impl Config {
    /// The server at this `http://` or `https://` URL, without credentials.
    ///
    /// # Errors
    /// [`Error::Endpoint`] when it is not such a URL, or has a user, a password or a query; the error does
    /// not show these.
    pub fn new(endpoint: impl Into<String>) -> Result<Self, Error> {
        let endpoint = endpoint.into();
        Endpoint::parse(&endpoint)?;
        Ok(Self {
            endpoint,
            default_namespace: "default".to_owned(),
            authorities: None,
            certificate: None,
            login: None,
            exec: None,
            plugin_policy: PluginPolicy::default(),
            plugin_limit: exec::LIMIT,
            oidc: None,
            impersonation: Impersonation::default(),
            accepts_invalid_certificates: false,
            tls_server_name: None,
            warnings: Vec::new(),
            written: None,
            origin: None,
            proxy: ProxySetting::default(),
            limits: Limits::default(),
            requests: RequestSettings::default(),
            #[cfg(feature = "http2")]
            http2: tested_by_default(),
        })
    }

    /// The URL of the API server.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The namespace to use when none is named; `default` unless configured.
    pub fn namespace(&self) -> &str {
        &self.default_namespace
    }

    /// Sets the namespace to use when none is named.
    pub fn default_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.default_namespace = namespace.into();
        self
    }

    /// Trusts exactly the certificates in this PEM text; with an empty text, no server is trusted.
    pub fn certificate_authority(self, pem: impl Into<Vec<u8>>) -> Self {
        self.with_authorities(Pem::Inline(SecretSlice::from(pem.into())))
    }

    /// Trusts exactly the certificates in this PEM file, which is read again after at most a minute and at
    /// once when a server presents a certificate of another authority (client-go's `--certificate-authority`
    /// reloading). Without an authority, those of the operating system are trusted.
    pub fn certificate_authority_file(self, path: impl AsRef<Path>) -> Self {
        self.with_authorities(Pem::File(path.as_ref().to_owned()))
    }

    /// Presents this certificate (with its chain, if any) and proves it with this key; both are PEM. It can
    /// only be sent over https: `Client::new` refuses it for an http endpoint.
    pub fn client_certificate(self, certificates: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        let inline = |pem: Vec<u8>| Pem::Inline(SecretSlice::from(pem));
        self.with_certificate(inline(certificates.into()), inline(key.into()))
    }

    /// Presents the certificate of this file and proves it with the key of that one; both PEM, and both are
    /// read again after at most a minute: new connections present the new certificate, and open watches move
    /// to one within 30 s.
    pub fn client_certificate_files(self, certificates: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        let file = |path: &Path| Pem::File(path.to_owned());
        self.with_certificate(file(certificates.as_ref()), file(key.as_ref()))
    }

    /// Sends this bearer token with every request, also over plain http if the endpoint uses it, and also
    /// through a proxy. The token of a kubeconfig is not sent that way; this one is, because the caller chose
    /// it for this endpoint.
    pub fn token(self, token: impl Into<String>) -> Self {
        self.with_login(Login::Token(SecretString::from(token.into())))
    }

    /// Sends this user and password with every request (HTTP basic authentication, RFC 7617).
    pub fn basic(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.with_login(Login::Basic { user: user.into(), password: SecretString::from(password.into()) })
    }

    /// Acts as this user: the server checks whether the client's own user may do so.
    pub fn impersonate(mut self, user: impl Into<String>) -> Self {
        self.impersonation.user = Some(user.into());
        self.written.iter_mut().for_each(|written| written.impersonation.user = None);
        self
    }

    /// Acts as a member of this group too; only together with [`Self::impersonate`].
    pub fn impersonate_group(mut self, group: impl Into<String>) -> Self {
        self.impersonation.groups.push(group.into());
        self
    }

    /// Which credential plugins of a kubeconfig may be started; all unless set. `Client::new` refuses the
    /// others.
    pub fn plugin_policy(mut self, policy: PluginPolicy) -> Self {
        self.plugin_policy = policy;
        self
    }

    /// How long a credential plugin may run until it is killed with the processes that it has started.
    /// Default: one minute, because a person may have to answer it. A process that the plugin leaves running
    /// when it ends is not killed, unless it keeps the plugin's standard output open for another second. The
    /// issuer of an OpenID Connect login has the same time.
    pub fn plugin_limit(mut self, limit: Duration) -> Self {
        self.plugin_limit = limit;
        self
    }

    /// Sends the bearer token of this file with every request; the file is read again after at most a minute.
    pub fn token_file(self, path: impl AsRef<Path>) -> Self {
        self.with_login(Login::TokenFile { path: path.as_ref().to_owned(), otherwise: None })
    }

    /// Accepts any certificate of the server: anybody on the network path can read and change everything.
    pub fn accept_invalid_certificates(mut self) -> Self {
        self.accepts_invalid_certificates = true;
        self
    }

    /// Reaches the API server through this proxy: `http://`, `https://` or `socks5://`, a host, and before it
    /// `user:password@`, percent-encoded, if the proxy requires them. The proxy is always used: also for this
    /// machine, and whatever `NO_PROXY` says. If no proxy is named here or by `proxy-url` of a kubeconfig,
    /// `Client::new` reads the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`, by the
    /// rules of kubectl).
    ///
    /// Every request passes a tunnel (CONNECT, also for an http endpoint), so the proxy reads nothing of
    /// https and sees no credentials of the cluster. The certificate of an https proxy is checked against the
    /// authorities of the operating system and the configured ones; the client certificate is not presented
    /// to it. A SOCKS5 proxy resolves the name of the server.
    ///
    /// ```
    /// use actix_informer::client::Config;
    ///
    /// let config = Config::new("https://10.0.0.1:6443")?.proxy("http://me:s3cret@proxy.example:3128")?;
    /// assert!(format!("{config:?}").contains("http://proxy.example:3128") && !format!("{config:?}").contains("s3cret"));
    /// # Ok::<(), actix_informer::client::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Proxy`] when it is not such a URL; the error does not show user and password.
    pub fn proxy(mut self, url: impl AsRef<str>) -> Result<Self, Error> {
        self.proxy = ProxySetting::Named(Arc::new(Proxy::parse(url.as_ref())?));
        Ok(self)
    }

    /// Reaches the API server without a proxy, whatever the kubeconfig and the environment say.
    pub fn without_proxy(mut self) -> Self {
        self.proxy = ProxySetting::Never;
        self
    }

    /// Sends requests with hyper instead of awc: over HTTP/2 if the server offers it over TLS, else over
    /// HTTP/1.1. Up to a hundred watches share a connection (fewer if the server says so); the next ones make
    /// another. A watch whose events nobody reads delays no other: each may have 1 MiB on its way. A server
    /// that is silent for 10 s on a connection in use is asked for a sign of life: without one, new requests
    /// go elsewhere after 15 s, and those there break after 40 s.
    ///
    /// Identities, proxies, limits, retries and leases are the same. What the server says that it has not
    /// processed (a refused stream, or one behind a GOAWAY) is sent again, whatever its method. Upgrades, such
    /// as `exec`, keep connections of their own with HTTP/1.1.
    ///
    /// ```
    /// use actix_informer::client::Config;
    ///
    /// let config = Config::new("https://10.0.0.1:6443")?.http2();
    /// # Ok::<(), actix_informer::client::Error>(())
    /// ```
    #[cfg(feature = "http2")]
    pub fn http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    /// Expects this name in the server's certificate instead of the host of the URL.
    pub fn tls_server_name(mut self, name: impl Into<String>) -> Self {
        self.tls_server_name = Some(name.into());
        self
    }
}

/// What is set here also stays when the kubeconfig is read again.
impl Config {
    fn with_authorities(mut self, authorities: Pem) -> Self {
        self.authorities = Some(authorities);
        self.origin.iter_mut().for_each(|origin| origin.gives_authorities = false);
        self
    }

    fn with_certificate(mut self, chain: Pem, key: Pem) -> Self {
        self.certificate = Some((chain, key));
        self.written.iter_mut().for_each(|written| written.certificate = false);
        self.origin.iter_mut().for_each(|origin| origin.gives_certificate = false);
        self
    }

    fn with_login(mut self, login: Login) -> Self {
        self.login = Some(login);
        self.written.iter_mut().for_each(|written| written.login = false);
        self.origin.iter_mut().for_each(|origin| origin.gives_login = false);
        self
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = self.login.as_ref().map(|login| match login {
            Login::Token(_) => "token".to_owned(),
            Login::TokenFile { path, .. } => path.display().to_string(),
            Login::Basic { .. } => "user and password".to_owned(),
        });
        f.debug_struct("Config")
            .field("endpoint", &self.endpoint)
            .field("default_namespace", &self.default_namespace)
            .field("certificate_authority", &self.authorities.is_some())
            .field("client_certificate", &self.certificate.is_some())
            .field("login", &login)
            .field("plugin", &self.exec.as_ref().map(|exec| &exec.0.command))
            .field("oidc", &self.oidc.is_some())
            .field("impersonates", &!self.impersonation.is_empty())
            .field("accepts_invalid_certificates", &self.accepts_invalid_certificates)
            .field("tls_server_name", &self.tls_server_name)
            .field("proxy", &self.proxy)
            .finish()
    }
}

/// Our own suites run on either transport.
#[cfg(feature = "http2")]
fn tested_by_default() -> bool {
    cfg!(feature = "unstable") && std::env::var_os("INFORMER_TEST_HTTP2").is_some()
}

const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";
const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

impl Config {
    /// Uses the service account of the pod that this process runs in. Blocking.
    ///
    /// # Errors
    /// When this process does not run in a pod, or the service account is not mounted.
    pub fn in_cluster() -> Result<Self, Error> {
        let (host, port) = (variable(HOST)?, variable(PORT)?);
        let port: u16 = port
            .parse()
            .map_err(|_| Error::InCluster(format!("the variable {PORT} is not a port, but {port:?}")))?;
        let file = format!("{FOLDER}/namespace");
        let namespace = std::fs::read_to_string(&file)
            .map_err(|error| Error::InCluster(format!("the namespace {file:?} cannot be read: {error}")))?;
        Ok(Self::new(url(&host, port))?
            .default_namespace(namespace.trim())
            .certificate_authority_file(format!("{FOLDER}/ca.crt"))
            .token_file(format!("{FOLDER}/token")))
    }

    fn is_in_cluster() -> bool {
        std::env::var_os(HOST).is_some()
    }
}

fn variable(name: &str) -> Result<String, Error> {
    std::env::var(name).map_err(|_| Error::InCluster(format!("the variable {name} is not set")))
}

fn url(host: &str, port: u16) -> String {
    match host.parse() {
        Ok(IpAddr::V6(address)) => format!("https://[{address}]:{port}"),
        _ => format!("https://{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_host_stands_in_brackets() {
        assert_eq!(url("10.0.0.1", 443), "https://10.0.0.1:443");
        assert_eq!(url("fd00::1", 6443), "https://[fd00::1]:6443");
        assert_eq!(url("kubernetes.default", 443), "https://kubernetes.default:443");
    }
}
