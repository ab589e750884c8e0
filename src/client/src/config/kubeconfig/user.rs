//! The configuration of a kubeconfig's current context, or why there is none. Refusals are kubectl's
//! (`clientcmd.ConfirmUsable`, `rest.TLSConfigFor`), except where noted.
//!
//! Values that contradict each other are refused. All credentials are taken over: which ones are sent depends
//! on the proxy (`../../credentials.rs`).

use std::path::Path;
use std::sync::Arc;

use informer_core::words::quoted;
use secrecy::ExposeSecret as _;

use super::file::{Cluster, Context, Data, File, User};
use crate::config::impersonation::Impersonation;
use crate::config::{Config, Written};
use crate::error::Error;
use crate::identity::exec::ClusterInfo;
use crate::identity::material::{Login, Pem};
use crate::identity::oidc::Oidc;

const PLUGIN_EXTENSION: &str = "client.authentication.k8s.io/exec";

impl File {
    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        let resolve = |path: &mut String| {
            if !path.is_empty() {
                *path = folder.join(&*path).to_string_lossy().into_owned();
            }
        };
        self.clusters.values_mut().for_each(|cluster| resolve(&mut cluster.certificate_authority));
        for user in self.users.values_mut() {
            [&mut user.client_certificate, &mut user.client_key, &mut user.token_file]
                .into_iter()
                .for_each(resolve);
            // A name without a folder is searched in `PATH`.
            if let Some(exec) = user.exec.as_mut().filter(|exec| exec.command.contains('/')) {
                resolve(&mut exec.command);
            }
        }
    }
}

pub(super) fn config_of(file: &File) -> Result<Config, Error> {
    let (context, cluster, user) = current(file)?;
    let mut config = Config::new(&*cluster.server)?;
    if !context.namespace.is_empty() {
        config.default_namespace.clone_from(&context.namespace);
    }
    config.accepts_invalid_certificates = cluster.insecure_skip_tls_verify;
    config.requests.accepts_compression = !cluster.disable_compression;
    config.tls_server_name = Some(cluster.tls_server_name.clone()).filter(|name| !name.is_empty());
    config.authorities =
        pem("certificate-authority", &cluster.certificate_authority, &cluster.certificate_authority_data)?;
    if config.authorities.is_some() && config.accepts_invalid_certificates {
        return Err(refused("a certificate authority and insecure-skip-tls-verify contradict each other"));
    }
    if !cluster.proxy_url.is_empty() {
        config = config.proxy(&cluster.proxy_url).map_err(|error| match error {
            Error::Proxy { proxy, reason } => {
                let of_cluster = format!("{reason} (proxy-url of the cluster {})", quoted(&context.cluster));
                Error::Proxy { proxy, reason: of_cluster }
            }
            error => error,
        })?;
    }
    check(user)?;
    config = with_user(config, user, cluster)?;
    let cluster = context.cluster.clone();
    let impersonation = config.impersonation.clone();
    config.written = Some(Written { cluster, login: true, certificate: true, impersonation });
    Ok(config)
}

fn current(file: &File) -> Result<(&Context, &Cluster, &User), Error> {
    let name = &file.current_context;
    if name.is_empty() {
        return Err(refused("no context is chosen: set its current-context, or name a context"));
    }
    let context =
        file.contexts.get(name).ok_or_else(|| refused(&format!("it has no context {}", quoted(name))))?;
    let in_context = |what: &str, name: &str| match name {
        "" => refused(&format!("its context {} names no {what}", quoted(&file.current_context))),
        name => {
            let (name, context) = (quoted(name), quoted(&file.current_context));
            refused(&format!("it has no {what} {name}, which its context {context} names"))
        }
    };
    let user = file.users.get(&context.user).filter(|_| !context.user.is_empty());
    let user = user.ok_or_else(|| in_context("user", &context.user))?;
    let cluster = file.clusters.get(&context.cluster).filter(|_| !context.cluster.is_empty());
    let cluster = cluster.ok_or_else(|| in_context("cluster", &context.cluster))?;
    if cluster.server.is_empty() {
        return Err(refused(&format!("its cluster {} has no server", quoted(&context.cluster))));
    }
    Ok((context, cluster, user))
}

fn check(user: &User) -> Result<(), Error> {
    if user.token.is_some() && (!user.username.is_empty() || user.password.is_some()) {
        return Err(refused("its user has a token and a password, of which only one can be sent"));
    }
    match (&user.auth_provider, &user.exec) {
        (Some(_), Some(_)) => {
            Err(refused("its user has an auth-provider and an exec, of which only one can be asked"))
        }
        (Some(provider), None) if provider.name != "oidc" => {
            Err(Error::Unsupported(format!("auth provider {}", quoted(&provider.name))))
        }
        _ => Ok(()),
    }
}

fn with_user(mut config: Config, user: &User, cluster: &Cluster) -> Result<Config, Error> {
    config = with_certificate(config, user)?;
    // The token file wins, because only a file is renewed. The token is used until the file can be read.
    if !user.token_file.is_empty() {
        config.login =
            Some(Login::TokenFile { path: (&user.token_file).into(), otherwise: user.token.clone() });
    } else if let Some(token) = &user.token {
        config = config.token(token.expose_secret());
    } else if !user.username.is_empty() {
        let password = user.password.as_ref().map(|password| password.expose_secret().to_owned());
        config = config.basic(&user.username, password.unwrap_or_default());
    }
    if let Some(exec) = &user.exec {
        let info = match exec.provide_cluster_info {
            true => cluster_info(cluster)?,
            false => ClusterInfo::default(),
        };
        config.exec = Some(Arc::new((exec.clone(), info)));
    }
    if let Some(provider) = &user.auth_provider {
        config.oidc =
            Some(Arc::new(Oidc::new(&provider.config, |path| read("issuer's authority", path.as_ref()))?));
    }
    config.impersonation = impersonation(user);
    config.impersonation.headers()?;
    Ok(config)
}

fn with_certificate(mut config: Config, user: &User) -> Result<Config, Error> {
    let certificate = pem("client-certificate", &user.client_certificate, &user.client_certificate_data)?;
    let Some(certificate) = certificate else {
        if !user.client_key.is_empty() || user.client_key_data.0.is_some() {
            config.warnings.push("the client key is not used: its user has no client certificate".to_owned());
        }
        return Ok(config);
    };
    let Some(key) = pem("client-key", &user.client_key, &user.client_key_data)? else {
        return Err(Error::Unusable {
            what: "the client key",
            reason: "it is missing: a client certificate needs both a certificate and a key".to_owned(),
        });
    };
    config.certificate = Some((certificate, key));
    Ok(config)
}

fn impersonation(user: &User) -> Impersonation {
    Impersonation {
        user: Some(user.r#as.clone()).filter(|user| !user.is_empty()),
        uid: Some(user.as_uid.clone()).filter(|uid| !uid.is_empty()),
        groups: user.as_groups.clone(),
        extra: user.as_user_extra.clone(),
    }
}

fn cluster_info(cluster: &Cluster) -> Result<ClusterInfo, Error> {
    let authority = match (&cluster.certificate_authority_data.0, &*cluster.certificate_authority) {
        (Some(data), _) => data.expose_secret().to_vec(),
        (None, "") => Vec::new(),
        (None, path) => read("certificate authority", path.as_ref())?,
    };
    let extension = cluster.extensions.iter().find(|extension| extension.name == PLUGIN_EXTENSION);
    Ok(ClusterInfo {
        server: cluster.server.clone(),
        tls_server_name: cluster.tls_server_name.clone(),
        proxy_url: cluster.proxy_url.clone(),
        insecure_skip_tls_verify: cluster.insecure_skip_tls_verify,
        certificate_authority_data: authority,
        config: extension.map(|extension| extension.extension.clone()).unwrap_or_default(),
    })
}

fn pem(field: &str, path: &str, data: &Data) -> Result<Option<Pem>, Error> {
    match (&data.0, path) {
        (Some(_), path) if !path.is_empty() => {
            Err(refused(&format!("{field} and {field}-data are both set, of which only one can be used")))
        }
        (Some(data), _) => Ok(Some(Pem::Inline(data.clone()))),
        (None, "") => Ok(None),
        (None, path) => Ok(Some(Pem::File(path.into()))),
    }
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::File { what, path: path.to_owned(), source })
}

/// The caller adds the path.
fn refused(what: &str) -> Error {
    Error::Kubeconfig { path: None, what: what.to_owned() }
}
