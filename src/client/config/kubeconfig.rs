//! Configurations from kubeconfig files and from inside a pod.
//!
//! Answers "what does this kubeconfig say?" in the terms of [`Config`]. Parsing, merging and relative paths are
//! kube-client's; what is refused is decided here. Invariants:
//! 1. Of several files the first definition of a name wins; missing ones are skipped in a list, not when named alone.
//! 2. An empty kubeconfig inside a pod means the pod's service account.
//! 3. Credentials of a kubeconfig are sent over TLS, or to this machine; elsewhere they are left out with a warning, as
//!    client-go leaves them out. A certificate is shown over TLS only.
//! 4. No error quotes the file: what is wrong is told by line and column.
//!
//! Read next: `config.rs`; `kubeconfig/refusal.rs`, how kube-client's errors are told.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_client::config::{AuthInfo, Cluster, Config as Loaded, Context, Kubeconfig};
use secrecy::ExposeSecret as _;

use super::Config;
use crate::client::endpoint::Endpoint;
use crate::client::error::Error;

mod refusal;

impl Config {
    /// Reads one kubeconfig file; `context` overrides its current context. Blocking.
    ///
    /// # Errors
    /// When it is missing, broken, incomplete, or asks for what this client does not do.
    pub fn from_kubeconfig_file(path: impl AsRef<Path>, context: Option<&str>) -> Result<Self, Error> {
        let path = path.as_ref();
        let told = |error| refusal::of(error, Some(path));
        convert(Kubeconfig::read_from(path).map_err(told)?, context, Some(path))
    }

    /// Reads a kubeconfig text; relative paths in it are those of this process. Blocking.
    ///
    /// # Errors
    /// As [`Self::from_kubeconfig_file`].
    pub fn from_kubeconfig_text(yaml: &str, context: Option<&str>) -> Result<Self, Error> {
        convert(Kubeconfig::from_yaml(yaml).map_err(|error| refusal::of(error, None))?, context, None)
    }

    /// Reads and merges several kubeconfig files, skipping those that do not exist. Blocking.
    ///
    /// # Errors
    /// As [`Self::from_kubeconfig_file`]; with no file at all, that no context is set.
    pub fn from_kubeconfig_files(paths: &[PathBuf], context: Option<&str>) -> Result<Self, Error> {
        convert(merged(paths)?, context, only(paths))
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
    if empty { Ok(None) } else { convert(kubeconfig, context, only(paths)).map(Some) }
}

fn merged(paths: &[PathBuf]) -> Result<Kubeconfig, Error> {
    let mut all = Kubeconfig::default();
    for path in paths.iter().filter(|path| !path.as_os_str().is_empty() && path.exists()) {
        let told = |error| refusal::of(error, Some(path));
        all = all.merge(Kubeconfig::read_from(path).map_err(told)?).map_err(told)?;
    }
    Ok(all)
}

fn only(paths: &[PathBuf]) -> Option<&Path> {
    match paths {
        [path] => Some(path),
        _ => None,
    }
}

fn convert(mut kubeconfig: Kubeconfig, context: Option<&str>, path: Option<&Path>) -> Result<Config, Error> {
    if let Some(name) = context {
        kubeconfig.current_context = Some(name.to_owned());
    }
    let (name, cluster) = cluster_of(&kubeconfig);
    // Checks that the context and its cluster exist, and parses the server's URL.
    let loaded = Loaded::try_from(kubeconfig).map_err(|error| refusal::of(error, path))?;
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
    match Endpoint::parse(&config.endpoint)? {
        endpoint if endpoint.tls => with_user(config, &loaded.auth_info),
        endpoint => with_user_over_http(config, &loaded.auth_info, (&name, &endpoint)),
    }
}

/// Leaves out what must not be sent in the open, and says so.
fn with_user_over_http(
    config: Config,
    user: &AuthInfo,
    (cluster, endpoint): (&str, &Endpoint),
) -> Result<Config, Error> {
    let mut sent = user.clone();
    if endpoint.is_loopback() {
        (sent.client_certificate, sent.client_certificate_data) = (None, None);
        (sent.client_key, sent.client_key_data) = (None, None);
    } else {
        sent = AuthInfo::default();
    }
    let kept = credentials_of(&sent);
    let left_out: Vec<_> = credentials_of(user).into_iter().filter(|what| !kept.contains(what)).collect();
    let mut config = with_user(config, &sent)?;
    if !left_out.is_empty() {
        let warning = format!(
            "cluster {cluster:?} is reached over plain http at {}: {} of its user {} not sent there, since anybody on \
             the way could read or change it; an https server gets it",
            endpoint.authority,
            left_out.join(" and "),
            if left_out.len() == 1 { "is" } else { "are" },
        );
        tracing::warn!(cluster, endpoint = %endpoint.authority, left_out = left_out.join(", "),
            "credentials of a kubeconfig are not sent over plain http");
        config.warnings.push(warning);
    }
    Ok(config)
}

/// What a user has to show, by name.
fn credentials_of(user: &AuthInfo) -> Vec<&'static str> {
    let given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    let certificate = given(&user.client_certificate) || given(&user.client_certificate_data);
    let credentials = [
        ("the token", user.token.is_some()),
        ("the token file", given(&user.token_file)),
        ("the client certificate", certificate || given(&user.client_key) || user.client_key_data.is_some()),
        ("the credential plugin", user.exec.is_some() || user.auth_provider.is_some()),
        ("the password", user.username.is_some() || user.password.is_some()),
        ("the impersonation", impersonates(user)),
    ];
    credentials.into_iter().filter(|(_, is_given)| *is_given).map(|(what, _)| what).collect()
}

/// The cluster of the current context and its name; empty if there is none, which kube-client then refuses.
fn cluster_of(kubeconfig: &Kubeconfig) -> (String, Cluster) {
    let current = |context: &&Context| -> Option<(String, Cluster)> {
        let named = kubeconfig.clusters.iter().find(|named| named.name == context.cluster)?;
        Some((named.name.clone(), named.cluster.clone()?))
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
    if impersonates(user) {
        return Some("impersonation".to_owned());
    }
    (user.username.is_some() || user.password.is_some()).then(|| "basic authentication".to_owned())
}

fn impersonates(user: &AuthInfo) -> bool {
    user.impersonate.is_some()
        || user.impersonate_uid.is_some()
        || user.impersonate_groups.is_some()
        || user.impersonate_user_extra.is_some()
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
