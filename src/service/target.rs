//! Which API server is read: the one that was named, or the one of our own, never one that was merely found.
//!
//! Answers "what were we told of a cluster?" as a pure function of the command line and three facts of the
//! environment. It connects to nothing. Invariants:
//! 1. Nothing is looked up in the home directory.
//! 2. Whoever names a cluster gets that one or an error, never the in-memory server.
//! 3. Only the in-memory server is ever written to.

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
        /// Instead of the current context.
        context: Option<String>,
    },
    /// The cluster in whose pod we run.
    InCluster,
    /// An in-memory server, started by us, with the demo workload.
    Embedded,
}

/// What the environment says of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Environment {
    /// The variable `KUBECONFIG`.
    pub kubeconfig: Option<OsString>,
    /// Whether we run in a pod: `KUBERNETES_SERVICE_HOST` is set.
    pub in_pod: bool,
    /// Whether an in-memory server is built in.
    pub embedded: bool,
}

/// Why no cluster is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCluster {
    /// Nothing named one.
    #[error(
        "told of no cluster: give --kubeconfig FILE (and --context NAME), set KUBECONFIG, run in a pod, \
         or build with --features embedded for an in-memory API server with a demo workload \
         (the home directory is not looked into)"
    )]
    Untold,
    /// A context without a file that could define it.
    #[error("--context {0} needs --kubeconfig FILE or KUBECONFIG (the home directory is not looked into)")]
    ContextAlone(String),
    /// `KUBECONFIG` names files of which none exists.
    #[error("KUBECONFIG names no file that exists: {0}")]
    NoSuchFile(String),
}

impl Environment {
    /// What this process's environment says.
    pub fn of_this_process() -> Self {
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()),
            in_pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty()),
            embedded: cfg!(feature = "embedded"),
        }
    }
}

impl Target {
    /// The server to be read: `--kubeconfig`, else `KUBECONFIG`, else the pod's, else our own.
    ///
    /// # Errors
    /// When none is named and none is built in, or a name leads nowhere.
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
            Some(context) => Err(NoCluster::ContextAlone(context)),
            None if environment.in_pod => Ok(Self::InCluster),
            None if environment.embedded => Ok(Self::Embedded),
            None => Err(NoCluster::Untold),
        }
    }

    /// How the server is reached; `None` for our own, which is not yet started.
    pub(super) fn client_config(&self) -> Result<Option<Config>, Error> {
        match self {
            Self::Kubeconfig { files, context } => match files.as_slice() {
                [only] => Config::from_kubeconfig_file(only, context.as_deref()).map(Some),
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

    fn here(kubeconfig: Option<&str>, in_pod: bool, embedded: bool) -> Environment {
        Environment { kubeconfig: kubeconfig.map(OsString::from), in_pod, embedded }
    }

    #[test]
    fn rest_34_without_a_cluster_and_without_a_server_of_our_own_the_options_are_listed() {
        let error = Target::choose(None, None, &here(None, false, false)).unwrap_err().to_string();
        for option in ["--kubeconfig", "--context", "KUBECONFIG", "in a pod", "--features embedded"] {
            assert!(error.contains(option), "{option} is not in: {error}");
        }
    }

    #[test]
    fn rest_34_without_a_cluster_our_own_server_is_read() {
        assert_eq!(Target::choose(None, None, &here(None, false, true)), Ok(Target::Embedded));
    }

    #[test]
    fn whoever_names_a_cluster_never_gets_our_own_server() {
        let missing = Target::choose(None, None, &here(Some("/nowhere/at-all"), true, true));
        assert!(matches!(missing, Err(NoCluster::NoSuchFile(_))));
        let context = Target::choose(None, Some("prod"), &here(None, true, true));
        assert_eq!(context, Err(NoCluster::ContextAlone("prod".to_owned())));
        assert_eq!(Target::choose(None, None, &here(None, true, true)), Ok(Target::InCluster));
    }

    #[test]
    fn the_command_line_goes_before_the_variable() {
        let chosen = Target::choose(Some(Path::new("a")), Some("c"), &here(Some("b"), true, true));
        assert_eq!(
            chosen,
            Ok(Target::Kubeconfig { files: vec![PathBuf::from("a")], context: Some("c".to_owned()) })
        );
    }
}
