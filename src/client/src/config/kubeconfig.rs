//! Makes configurations of kubeconfig files, by the rules of kubectl (client-go's `tools/clientcmd`).
//!
//! 1. In several files, the first definition of a name wins. Missing files of a list are skipped; a single
//!    missing file is an error.
//! 2. Credentials and authorities are read again; the context stays. If the server, the way to it, the way to
//!    log in or the user to act as has changed, the old credentials stay and an error says so: new
//!    credentials never go to an old server or issuer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Config;
use super::impersonation::Impersonation;
use crate::credentials::sent;
use crate::error::Error;
use crate::identity::Provider;
use crate::identity::exec::PluginConfig;
use crate::identity::material::{Material, Trust};
use crate::proxy::ProxySetting;
use crate::way::Way;

mod file;
mod user;

use file::File;
use informer_core::words::quoted;

/// Files that are read again.
#[derive(Clone)]
pub(crate) struct Origin {
    paths: Arc<[PathBuf]>,
    context: Arc<str>,
    fixed: Arc<Fixed>,
    pub(super) gives_authorities: bool,
    pub(super) gives_certificate: bool,
    pub(super) gives_login: bool,
}

/// File values whose change requires a new client. Values that the program sets are not included.
struct Fixed {
    endpoint: String,
    name: Option<String>,
    is_unchecked: bool,
    proxy: Option<String>,
    plugin: Option<PluginConfig>,
    acts_as: Impersonation,
}

impl Fixed {
    fn of(config: &Config) -> Self {
        let proxy = match &config.proxy {
            ProxySetting::Named(proxy) => Some(proxy.name().to_owned()),
            ProxySetting::Environment | ProxySetting::Never => None,
        };
        let (endpoint, name) = (config.endpoint.clone(), config.tls_server_name.clone());
        let plugin = config.exec.as_deref().map(|(plugin, _)| plugin.clone());
        let (is_unchecked, acts_as) = (config.accepts_invalid_certificates, config.impersonation.clone());
        Self { endpoint, name, is_unchecked, proxy, plugin, acts_as }
    }

    fn difference(&self, now: &Self) -> Option<&'static str> {
        let differences = [
            (self.endpoint != now.endpoint, "the server"),
            (self.name != now.name, "the tls-server-name"),
            (self.is_unchecked != now.is_unchecked, "insecure-skip-tls-verify"),
            (self.proxy != now.proxy, "the proxy-url"),
            (self.acts_as != now.acts_as, "the user to act as"),
        ];
        differences.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }
}

impl Config {
    /// Reads one kubeconfig file; `context` overrides its current context. Blocking. The client reads the
    /// file again when it reads the files that it names: tokens and certificates may change while the client
    /// lives. A changed server, context, plugin or other setting takes effect only for new clients.
    ///
    /// # Errors
    /// When the file is missing, invalid or incomplete, or requires something that this client does not
    /// support.
    pub fn from_kubeconfig_file(path: impl AsRef<Path>, context: Option<&str>) -> Result<Self, Error> {
        let path = path.as_ref();
        convert(load(path)?, context, std::slice::from_ref(&path.to_owned()))
    }

    /// Reads a kubeconfig text; relative paths in it start at the working directory of this process.
    /// Blocking.
    ///
    /// # Errors
    /// As [`Self::from_kubeconfig_file`].
    pub fn from_kubeconfig_text(yaml: &str, context: Option<&str>) -> Result<Self, Error> {
        let file = File::parse(yaml.as_bytes()).map_err(|what| Error::Kubeconfig { path: None, what })?;
        convert(file, context, &[])
    }

    /// Reads and merges several kubeconfig files; missing ones are skipped. Blocking. The files are read
    /// again, as in [`Self::from_kubeconfig_file`].
    ///
    /// # Errors
    /// As [`Self::from_kubeconfig_file`]. Without any file, the error is that no context is set.
    pub fn from_kubeconfig_files(paths: &[PathBuf], context: Option<&str>) -> Result<Self, Error> {
        convert(merged(paths)?, context, paths)
    }

    /// Uses the files in the variable `KUBECONFIG`, or the pod's service account if these files are empty or
    /// missing. Blocking. The home directory is not searched: [`Self::from_home`] reads kubectl's default
    /// file.
    ///
    /// # Errors
    /// [`Error::NotConfigured`] when there is neither; otherwise as [`Self::from_kubeconfig_files`] and
    /// [`Self::in_cluster`].
    pub fn from_environment(context: Option<&str>) -> Result<Self, Error> {
        let variable = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
        let paths: Vec<PathBuf> = variable.iter().flat_map(std::env::split_paths).collect();
        Self::from_files_or_pod(&paths, context)
    }

    /// Reads `~/.kube/config`, the file that kubectl reads when `KUBECONFIG` is not set; `context` overrides
    /// its current context. Blocking. For programs on a person's machine; programs in a cluster use
    /// [`Self::from_environment`].
    ///
    /// # Errors
    /// As [`Self::from_kubeconfig_file`].
    pub fn from_home(context: Option<&str>) -> Result<Self, Error> {
        Self::from_kubeconfig_file(Self::home_kubeconfig()?, context)
    }

    /// The path of `~/.kube/config`.
    ///
    /// # Errors
    /// When the system does not say where the home directory is.
    pub fn home_kubeconfig() -> Result<PathBuf, Error> {
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        home.map(|home| home.join(".kube/config")).ok_or_else(|| Error::File {
            what: "kubeconfig",
            path: "~/.kube/config".into(),
            source: std::io::Error::new(std::io::ErrorKind::NotFound, "the home directory is not known"),
        })
    }

    /// The cluster of these files, or the pod's cluster if they define none.
    #[doc(hidden)]
    pub fn from_files_or_pod(paths: &[PathBuf], context: Option<&str>) -> Result<Self, Error> {
        if let Some(config) = from_nonempty_files(paths, context)? {
            return Ok(config);
        }
        if !Self::is_in_cluster() {
            return Err(Error::NotConfigured);
        }
        Self::in_cluster()
    }
}

impl Origin {
    fn new(paths: &[PathBuf], context: &str, config: &Config) -> Option<Self> {
        (!paths.is_empty()).then(|| Self {
            paths: paths.into(),
            context: context.into(),
            fixed: Arc::new(Fixed::of(config)),
            gives_authorities: true,
            gives_certificate: true,
            gives_login: true,
        })
    }

    /// Returns `material` with the current credentials. Fails if a change requires a new client. Blocking.
    pub(crate) fn read_again(&self, way: Way, mut material: Material) -> Result<Material, Error> {
        let now = convert(merged(&self.paths)?, Some(&self.context), &self.paths)?;
        let now = sent(now, way)?.config;
        let differs = |what: &str| Error::Kubeconfig {
            path: single(&self.paths),
            what: format!(
                "{what} of its context {} is another one now, which takes a new client",
                quoted(&self.context)
            ),
        };
        if let Some(what) = now.origin.as_ref().and_then(|now| self.fixed.difference(&now.fixed)) {
            return Err(differs(what));
        }
        if self.gives_login {
            let is_same_plugin = now.origin.as_ref().is_none_or(|now| self.fixed.plugin == now.fixed.plugin);
            if now.login.is_some() != material.login.is_some() || !is_same_plugin {
                return Err(differs("the way to log in"));
            }
            material.login = now.login;
        }
        if let (Some(Provider::Oidc { login: known, .. }), None) =
            (material.provider.as_deref(), &material.login)
            && !now.oidc.is_some_and(|login| known.adopt(&login))
        {
            return Err(differs("the way to log in"));
        }
        if let Some(tls) = material.tls.as_mut().filter(|_| self.gives_certificate) {
            if now.certificate.is_some() != tls.certificate.is_some() {
                return Err(differs("the way to log in"));
            }
            tls.certificate = now.certificate;
        }
        let of_server = material.tls.as_mut().map(|tls| &mut tls.trust);
        let of_proxy = material.proxy_tls.as_mut().map(|proxy| &mut proxy.trust);
        for trust in of_server.into_iter().chain(of_proxy).filter(|_| self.gives_authorities) {
            match (trust, &now.authorities) {
                (Trust::Only(known), Some(authorities)) => known.clone_from(authorities),
                (Trust::Only(_), None) | (Trust::System, Some(_)) => return Err(differs("whom to trust")),
                _ => {}
            }
        }
        Ok(material)
    }
}

fn from_nonempty_files(paths: &[PathBuf], context: Option<&str>) -> Result<Option<Config>, Error> {
    let file = merged(paths)?;
    let is_empty = file.contexts.is_empty() && file.clusters.is_empty() && context.is_none();
    if is_empty { Ok(None) } else { convert(file, context, paths).map(Some) }
}

fn merged(paths: &[PathBuf]) -> Result<File, Error> {
    let mut all = File::default();
    for path in paths.iter().filter(|path| !path.as_os_str().is_empty()) {
        let next = match load(path) {
            Err(Error::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => continue,
            next => next?,
        };
        add_new(&mut all.clusters, next.clusters);
        add_new(&mut all.contexts, next.contexts);
        add_new(&mut all.users, next.users);
        if all.current_context.is_empty() {
            all.current_context = next.current_context;
        }
    }
    Ok(all)
}

/// Existing entries win.
fn add_new<T>(all: &mut BTreeMap<String, T>, mut next: BTreeMap<String, T>) {
    next.append(all);
    *all = next;
}

fn load(path: &Path) -> Result<File, Error> {
    let failed = |source| Error::File { what: "kubeconfig", path: path.to_owned(), source };
    let bytes = std::fs::read(path).map_err(failed)?;
    let mut file =
        File::parse(&bytes).map_err(|what| Error::Kubeconfig { path: Some(path.to_owned()), what })?;
    let absolute = std::path::absolute(path).map_err(failed)?;
    file.resolve_paths(absolute.parent().unwrap_or_else(|| Path::new("/")));
    Ok(file)
}

fn convert(mut file: File, context: Option<&str>, paths: &[PathBuf]) -> Result<Config, Error> {
    if let Some(name) = context {
        file.current_context = name.to_owned();
    }
    let mut config = user::config_of(&file).map_err(|error| match error {
        Error::Kubeconfig { what, .. } => Error::Kubeconfig { path: single(paths), what },
        error => error,
    })?;
    config.origin = Origin::new(paths, &file.current_context, &config);
    Ok(config)
}

/// Only a single file can be named.
fn single(paths: &[PathBuf]) -> Option<PathBuf> {
    match paths {
        [path] => Some(path.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
