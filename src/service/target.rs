//! Chooses the API server to read: the configured one, or the in-memory server.
//!
//! Answers "which cluster is configured?" as a pure function of the command line and the environment. It makes no
//! connection. Invariants:
//! 1. No file of the home directory is read.
//! 2. If a cluster is configured, that one is read or an error is returned; the in-memory server is never used instead.
//! 3. Only the in-memory server is written to.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::client::{Config, Error};

/// Where objects come from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// The cluster of these kubeconfig files, merged.
    Kubeconfig {
        /// The files; the first definition of a name wins.
        files: Vec<PathBuf>,
        /// The context to use instead of the current one.
        context: Option<String>,
    },
    /// The cluster of the pod that this process runs in.
    InCluster,
    /// An in-memory server with the demo workload, which the service starts.
    Embedded,
}

/// The parts of the environment that choose a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Environment {
    /// The variable `KUBECONFIG`.
    pub kubeconfig: Option<OsString>,
    /// Whether this process runs in a pod: `KUBERNETES_SERVICE_HOST` is set.
    pub in_pod: bool,
    /// Whether an in-memory server is built in.
    pub embedded: bool,
}

/// Why no cluster can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCluster {
    /// No cluster is configured.
    #[error(
        "no cluster is configured: give --kubeconfig FILE (and --context NAME), set KUBECONFIG, run in a pod, \
         or build with --features embedded for an in-memory API server with a demo workload \
         (the home directory is not searched)"
    )]
    NotConfigured,
    /// A context is given without a kubeconfig that could define it.
    #[error("--context {0} needs --kubeconfig FILE or KUBECONFIG (the home directory is not searched)")]
    ContextWithoutKubeconfig(String),
    /// None of the files in `KUBECONFIG` exists.
    #[error("none of the files in KUBECONFIG exists: {0}")]
    NoSuchFile(String),
}

impl Environment {
    /// The environment of this process.
    pub fn of_this_process() -> Self {
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()),
            in_pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty()),
            embedded: cfg!(feature = "embedded"),
        }
    }
}

impl Target {
    /// The server to read: that of `--kubeconfig`, else of `KUBECONFIG`, else of the pod, else the in-memory one.
    ///
    /// # Errors
    /// When no cluster is configured and no in-memory server is built in, or the kubeconfig does not exist.
    pub fn choose(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        environment: &Environment,
    ) -> Result<Self, NoCluster> {
        let context = context.map(str::to_owned);
        if let Some(file) = kubeconfig {
            return Ok(Self::Kubeconfig { files: vec![file.to_owned()], context });
        }
        if let Some(variable) = &environment.kubeconfig {
            let files: Vec<PathBuf> = std::env::split_paths(variable).filter(|path| path.exists()).collect();
            if files.is_empty() {
                return Err(NoCluster::NoSuchFile(variable.to_string_lossy().into_owned()));
            }
            return Ok(Self::Kubeconfig { files, context });
        }
        match context {
            Some(context) => Err(NoCluster::ContextWithoutKubeconfig(context)),
            None if environment.in_pod => Ok(Self::InCluster),
            None if environment.embedded => Ok(Self::Embedded),
            None => Err(NoCluster::NotConfigured),
        }
    }

    /// The configuration of a client for this server; `None` for the in-memory one, which is not started yet.
    pub(super) fn client_config(&self) -> Result<Option<Config>, Error> {
        match self {
            Self::Kubeconfig { files, context } => match files.as_slice() {
                [file] => Config::from_kubeconfig_file(file, context.as_deref()).map(Some),
                several => Config::from_kubeconfig_files(several, context.as_deref()).map(Some),
            },
            Self::InCluster => Config::in_cluster().map(Some),
            Self::Embedded => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(kubeconfig: Option<&str>, in_pod: bool, embedded: bool) -> Environment {
        Environment { kubeconfig: kubeconfig.map(OsString::from), in_pod, embedded }
    }

    #[test]
    fn rest_34_without_a_cluster_and_without_an_in_memory_server_the_error_lists_the_options() {
        let error = Target::choose(None, None, &environment(None, false, false)).unwrap_err().to_string();
        for option in ["--kubeconfig", "--context", "KUBECONFIG", "in a pod", "--features embedded"] {
            assert!(error.contains(option), "{option} is not in: {error}");
        }
    }

    #[test]
    fn rest_34_without_a_cluster_the_in_memory_server_is_read() {
        assert_eq!(Target::choose(None, None, &environment(None, false, true)), Ok(Target::Embedded));
    }

    #[test]
    fn a_configured_cluster_is_never_replaced_by_the_in_memory_server() {
        let missing = Target::choose(None, None, &environment(Some("/nowhere/at-all"), true, true));
        assert!(matches!(missing, Err(NoCluster::NoSuchFile(_))));
        let context = Target::choose(None, Some("prod"), &environment(None, true, true));
        assert_eq!(context, Err(NoCluster::ContextWithoutKubeconfig("prod".to_owned())));
        assert_eq!(Target::choose(None, None, &environment(None, true, true)), Ok(Target::InCluster));
    }

    #[test]
    fn the_command_line_takes_precedence_over_the_variable() {
        let chosen = Target::choose(Some(Path::new("a")), Some("c"), &environment(Some("b"), true, true));
        assert_eq!(
            chosen,
            Ok(Target::Kubeconfig { files: vec![PathBuf::from("a")], context: Some("c".to_owned()) })
        );
    }
}
