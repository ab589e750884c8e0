//! Chooses the API server to read, without a connection. Files of the home directory are read only on request. The in-memory
//! server never replaces a configured cluster.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use actix_informer::client::{Config, Error};

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
    /// The cluster of these files, merged, if they define one; else that of the pod that this process runs
    /// in.
    KubeconfigOrPod {
        /// The files; the first definition of a name wins.
        files: Vec<PathBuf>,
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
        "no cluster is configured: give --kubeconfig FILE (and --context NAME), set KUBECONFIG, give --home for \
         ~/.kube/config, run in a pod, or build with -p informerd --features embedded for an in-memory API server with a demo \
         workload"
    )]
    NotConfigured,
    /// A context is given without a kubeconfig that could define it.
    #[error("--context {0} needs --kubeconfig FILE, KUBECONFIG, or --home for ~/.kube/config")]
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
    /// The server to read: that of `--kubeconfig`, else of `KUBECONFIG`, else of the pod, else the in-memory
    /// one.
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
            if environment.in_pod && context.is_none() {
                return Ok(Self::KubeconfigOrPod { files });
            }
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

    /// The cluster of `~/.kube/config`, kubectl's default.
    ///
    /// # Errors
    /// When the system does not say where the home directory is.
    pub fn home(context: Option<&str>) -> Result<Self, Error> {
        let (file, context) = (Config::home_kubeconfig()?, context.map(str::to_owned));
        Ok(Self::Kubeconfig { files: vec![file], context })
    }

    /// `None`: the in-memory server, not started yet.
    pub(super) fn client_config(&self) -> Result<Option<Config>, Error> {
        match self {
            Self::Kubeconfig { files, context } => match files.as_slice() {
                [file] => Config::from_kubeconfig_file(file, context.as_deref()).map(Some),
                several => Config::from_kubeconfig_files(several, context.as_deref()).map(Some),
            },
            Self::KubeconfigOrPod { files } => Config::from_files_or_pod(files, None).map(Some),
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
        for option in ["--kubeconfig", "--context", "KUBECONFIG", "--home", "in a pod", "--features embedded"]
        {
            assert!(error.contains(option), "{option} is not in: {error}");
        }
    }

    #[test]
    fn rest_34_without_a_cluster_the_in_memory_server_is_read() {
        assert_eq!(Target::choose(None, None, &environment(None, false, true)), Ok(Target::Embedded));
    }

    #[test]
    fn a_configured_cluster_is_never_replaced_by_the_in_memory_server() {
        let missing = Target::choose(None, None, &environment(Some("/nowhere/at-all"), false, true));
        assert!(matches!(missing, Err(NoCluster::NoSuchFile(_))));
        let missing = Target::choose(None, Some("prod"), &environment(Some("/nowhere/at-all"), true, true));
        assert!(matches!(missing, Err(NoCluster::NoSuchFile(_))), "a pod has no contexts");
        let context = Target::choose(None, Some("prod"), &environment(None, true, true));
        assert_eq!(context, Err(NoCluster::ContextWithoutKubeconfig("prod".to_owned())));
        assert_eq!(Target::choose(None, None, &environment(None, true, true)), Ok(Target::InCluster));
    }

    #[test]
    fn client_informerd_an_empty_kubeconfig_in_a_pod_means_the_cluster_of_the_pod_as_it_does_for_the_library()
    {
        let missing = Target::choose(None, None, &environment(Some("/nowhere/at-all"), true, true));
        assert_eq!(missing, Ok(Target::KubeconfigOrPod { files: Vec::new() }));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("empty");
        std::fs::write(&file, "").unwrap();
        let empty = Target::choose(None, None, &environment(file.to_str(), true, true)).unwrap();
        assert_eq!(empty, Target::KubeconfigOrPod { files: vec![file] });
        let looked_for = empty.client_config();
        assert!(matches!(looked_for, Err(Error::NotConfigured)), "the test is no pod: {looked_for:?}");
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
