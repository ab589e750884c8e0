//! Checks a configuration when its client is made, so that no later request fails because of it. Afterwards
//! only the identity changes: it renews itself.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::ServerName;

use super::config::Config;
use super::config::limits::Limits;
use super::credentials::{self, Sent};
use super::endpoint::Endpoint;
use super::error::Error;
use super::identity::Identities;
use super::identity::Provider;
use super::identity::exec::Plugin;
use super::identity::material::{Material, ProxyTlsMaterial, ReadAgain, TlsMaterial, Trust};
use super::identity::oidc::Issuers;
use super::proxy::{Proxy, ProxyProtocol};
use super::way::Way;

pub(crate) struct ConnectionSettings {
    pub(crate) endpoint: Endpoint,
    pub(crate) identities: Arc<Identities>,
    pub(crate) proxy: Option<Arc<Proxy>>,
    pub(crate) limits: Limits,
    pub(crate) accepts_compression: bool,
    #[cfg(feature = "http2")]
    pub(crate) http2: bool,
}

impl ConnectionSettings {
    /// Also returns the configuration without the credentials that are not sent.
    pub(crate) fn new(config: &Config, issuers: Issuers) -> Result<(Self, Config), Error> {
        let endpoint = Endpoint::parse(&config.endpoint)?;
        let proxy = config.proxy.of(&endpoint)?;
        let way = Way::to(&endpoint, proxy.as_deref());
        let Sent { config, left_out } = credentials::sent(config.clone(), way)?;
        if !left_out.is_empty() {
            tracing::warn!(target: "actix_informer::client", endpoint = %endpoint.name(), left_out = left_out.join(", "),
                "credentials of a kubeconfig are not sent over plain http");
        }
        Ok((Self::of(&config, (endpoint, proxy), issuers)?, config))
    }

    fn of(
        config: &Config,
        (endpoint, proxy): (Endpoint, Option<Arc<Proxy>>),
        issuers: Issuers,
    ) -> Result<Self, Error> {
        let way = Way::to(&endpoint, proxy.as_deref());
        let tls = match endpoint.tls {
            true => Some(TlsMaterial {
                server_name: server_name(config, &endpoint)?,
                trust: trust(config),
                certificate: config.certificate.clone(),
            }),
            false => None,
        };
        let again = config.origin.clone().map(|origin| {
            let again: ReadAgain = Arc::new(move |material| origin.read_again(way, material));
            again
        });
        if let Some(proxy) = &proxy {
            tracing::debug!(target: "actix_informer::client", endpoint = %endpoint.name(), proxy = proxy.name(), "the endpoint is reached through a proxy");
        }
        let of_proxy = proxy.as_ref().filter(|proxy| proxy.protocol == ProxyProtocol::Https);
        let proxy_tls = match of_proxy {
            Some(proxy) => Some(ProxyTlsMaterial {
                server_name: name_of(&proxy.host, "the proxy's name")?,
                trust: trust(config),
            }),
            None => None,
        };
        if config.accepts_invalid_certificates && (tls.is_some() || proxy_tls.is_some()) {
            tracing::warn!(target: "actix_informer::client", endpoint = %endpoint.authority,
                "the server's certificate is not checked (insecure-skip-tls-verify): anybody on the network path can \
                 read and change everything");
        }
        let login = config.login.clone();
        let identities = Arc::new(Identities::new(Material {
            tls,
            proxy_tls,
            login,
            provider: provider(config, issuers)?,
            again,
            has_read_token: Arc::default(),
        })?);
        let accepts_compression = config.requests.accepts_compression;
        Ok(Self {
            endpoint,
            identities,
            proxy,
            limits: config.limits,
            accepts_compression,
            #[cfg(feature = "http2")]
            http2: config.http2,
        })
    }

    /// For errors, with the proxy.
    pub(crate) fn name(&self) -> String {
        match &self.proxy {
            Some(proxy) => format!("{} (through the proxy {})", self.endpoint.name(), proxy.name()),
            None => self.endpoint.name(),
        }
    }
}

fn trust(config: &Config) -> Trust {
    match config.accepts_invalid_certificates {
        true => Trust::Anybody,
        false => config.authorities.clone().map_or(Trust::System, Trust::Only),
    }
}

fn provider(config: &Config, issuers: Issuers) -> Result<Option<Arc<Provider>>, Error> {
    if let Some(oidc) = &config.oidc {
        let (login, limit) = (Arc::clone(oidc), config.plugin_limit);
        return Ok(Some(Arc::new(Provider::Oidc { login, limit, issuers })));
    }
    let Some((exec, cluster)) = config.exec.as_deref() else { return Ok(None) };
    let plugin = Plugin::new(exec, cluster, &config.plugin_policy, config.plugin_limit)
        .map_err(|source| Error::Plugin { command: exec.command.clone(), source })?;
    Ok(Some(Arc::new(Provider::Plugin(plugin))))
}

impl fmt::Debug for ConnectionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSettings").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

fn server_name(config: &Config, endpoint: &Endpoint) -> Result<ServerName<'static>, Error> {
    name_of(config.tls_server_name.as_deref().unwrap_or(&endpoint.host), "the server's name")
}

fn name_of(name: &str, what: &'static str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(name.to_owned())
        .map_err(|error| Error::Unusable { what, reason: format!("{name:?}: {error}") })
}
