//! Configurations from kubeconfig files and from inside a pod.
//!
//! Answers "what does this kubeconfig say?" in the terms of [`Config`]. Parsing, merging and relative paths are
//! kube-client's; what is refused is decided here. Invariants:
//! 1. Of several files the first definition of a name wins; missing ones are skipped in a list, not when named alone.
//! 2. An empty kubeconfig inside a pod means the pod's service account.
//!
//! Read next: `config.rs`.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_client::config::{AuthInfo, Cluster, Config as Loaded, Context, Kubeconfig};
use secrecy::ExposeSecret as _;

use super::Config;
use crate::client::error::Error;

impl Config {
    /// Reads one kubeconfig file; `context` overrides its current context. Blocking.
    ///
    /// # Errors
    /// When it is missing, broken, incomplete, or asks for what this client does not do.
    pub fn from_kubeconfig_file(path: impl AsRef<Path>, context: Option<&str>) -> Result<Self, Error> {
        convert(Kubeconfig::read_from(path)?, context)
    }

    /// Reads a kubeconfig text; relative paths in it are those of this process. Blocking.
    ///
    /// # Errors
    /// As [`Self::from_kubeconfig_file`].
    pub fn from_kubeconfig_text(yaml: &str, context: Option<&str>) -> Result<Self, Error> {
        convert(Kubeconfig::from_yaml(yaml)?, context)
    }

    /// Reads and merges several kubeconfig files, skipping those that do not exist. Blocking.
    ///
    /// # Errors
    /// As [`Self::from_kubeconfig_file`]; with no file at all, that no context is set.
    pub fn from_kubeconfig_files(paths: &[PathBuf], context: Option<&str>) -> Result<Self, Error> {
        convert(merged(paths)?, context)
    }

    /// Uses the service account of the pod that this process runs in. Blocking.
    ///
    /// # Errors
    /// When this is no pod, or its service account is not mounted.
    pub fn in_cluster() -> Result<Self, Error> {
        let loaded = Loaded::incluster()?;
        let mut config =
            Self::new(loaded.cluster_url.to_string())?.default_namespace(loaded.default_namespace);
        if let Some(path) = loaded.root_cert_file {
            config = config.certificate_authority(read("certificate authority", &path)?);
        }
        if let Some(path) = loaded.auth_info.token_file {
            config = config.token_file(path);
        }
        Ok(config)
    }

    /// The files of the variable `KUBECONFIG` if they say anything, else the pod's service account. Blocking; the
    /// home directory is not looked into.
    ///
    /// # Errors
    /// [`Error::NotConfigured`] when there is neither; otherwise as the two.
    pub fn from_environment(context: Option<&str>) -> Result<Self, Error> {
        let variable = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
        let paths: Vec<PathBuf> = variable.iter().flat_map(std::env::split_paths).collect();
        if let Some(config) = from_files_that_say_something(&paths, context)? {
            return Ok(config);
        }
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
            return Err(Error::NotConfigured);
        }
        Self::in_cluster()
    }
}

/// `None` when there is nothing in the files, and no context was named that should be.
fn from_files_that_say_something(paths: &[PathBuf], context: Option<&str>) -> Result<Option<Config>, Error> {
    let kubeconfig = merged(paths)?;
    let empty = kubeconfig.contexts.is_empty() && kubeconfig.clusters.is_empty() && context.is_none();
    if empty { Ok(None) } else { convert(kubeconfig, context).map(Some) }
}

fn merged(paths: &[PathBuf]) -> Result<Kubeconfig, Error> {
    let mut all = Kubeconfig::default();
    for path in paths.iter().filter(|path| !path.as_os_str().is_empty() && path.exists()) {
        all = all.merge(Kubeconfig::read_from(path)?)?;
    }
    Ok(all)
}

fn convert(mut kubeconfig: Kubeconfig, context: Option<&str>) -> Result<Config, Error> {
    if let Some(name) = context {
        kubeconfig.current_context = Some(name.to_owned());
    }
    let cluster = cluster_of(&kubeconfig);
    // Checks that the context and its cluster exist, and parses the server's URL.
    let loaded = Loaded::try_from(kubeconfig)?;
    let mut config = Config::new(loaded.cluster_url.to_string())?.default_namespace(loaded.default_namespace);
    config.accepts_invalid_certificates = loaded.accept_invalid_certs;
    config.tls_server_name = loaded.tls_server_name.filter(|name| !name.is_empty());
    let authority = material(
        "certificate authority",
        cluster.certificate_authority_data.as_deref(),
        cluster.certificate_authority.as_deref(),
    )?;
    config.certificate_authorities = authority;
    if cluster.proxy_url.is_some_and(|url| !url.is_empty()) {
        return Err(Error::Unsupported("proxy-url".to_owned()));
    }
    with_user(config, &loaded.auth_info)
}

/// The cluster of the current context; empty if there is none, which kube-client then reports in its words.
fn cluster_of(kubeconfig: &Kubeconfig) -> Cluster {
    let current = |context: &&Context| -> Option<Cluster> {
        let named = kubeconfig.clusters.iter().find(|named| named.name == context.cluster)?;
        named.cluster.clone()
    };
    let named =
        kubeconfig.contexts.iter().find(|named| Some(&named.name) == kubeconfig.current_context.as_ref());
    named.and_then(|named| named.context.as_ref()).as_ref().and_then(current).unwrap_or_default()
}

fn with_user(mut config: Config, user: &AuthInfo) -> Result<Config, Error> {
    if let Some(what) = unsupported(user) {
        return Err(Error::Unsupported(what));
    }
    let certificate = material(
        "client certificate",
        user.client_certificate_data.as_deref(),
        user.client_certificate.as_deref(),
    )?;
    let inline_key = user.client_key_data.as_ref().map(|secret| secret.expose_secret());
    let key = material("client key", inline_key, user.client_key.as_deref())?;
    match (certificate, key) {
        (Some(certificate), Some(key)) => config = config.client_certificate(certificate, key),
        (None, None) => {}
        (certificate, _) => {
            let what = if certificate.is_some() { "the client key" } else { "the client certificate" };
            return Err(Error::Unusable {
                what,
                reason: "it is missing, and the other half is there".to_owned(),
            });
        }
    }
    // A file is preferred to a token written down beside it: only the file is renewed.
    if let Some(path) = user.token_file.as_deref().filter(|path| !path.is_empty()) {
        config = config.token_file(path);
    } else if let Some(token) = user.token.as_ref().filter(|token| !token.expose_secret().is_empty()) {
        config = config.token(token.expose_secret());
    }
    Ok(config)
}

/// What this user asks for that the client does not do.
fn unsupported(user: &AuthInfo) -> Option<String> {
    if let Some(plugin) = &user.exec {
        let command = plugin.command.as_deref().unwrap_or("without a command");
        return Some(format!("credential plugin (exec) {command:?}"));
    }
    if let Some(provider) = &user.auth_provider {
        return Some(format!("auth provider {:?}", provider.name));
    }
    let impersonates = user.impersonate.is_some()
        || user.impersonate_uid.is_some()
        || user.impersonate_groups.is_some()
        || user.impersonate_user_extra.is_some();
    if impersonates {
        return Some("impersonation".to_owned());
    }
    (user.username.is_some() || user.password.is_some()).then(|| "basic authentication".to_owned())
}

/// Inline data, else the file; `None` if neither is given.
fn material(what: &'static str, data: Option<&str>, path: Option<&str>) -> Result<Option<Vec<u8>>, Error> {
    match (data.filter(|data| !data.is_empty()), path.filter(|path| !path.is_empty())) {
        (Some(data), _) => STANDARD
            .decode(data.trim())
            .map(Some)
            .map_err(|_| Error::Unusable { what, reason: "its data is not base64".to_owned() }),
        (None, Some(path)) => read(what, path.as_ref()).map(Some),
        (None, None) => Ok(None),
    }
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::File { what, path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
