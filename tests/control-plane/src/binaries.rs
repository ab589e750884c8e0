//! Finds the three programs of a control plane on this machine.
//!
//! Question: which kube-apiserver, etcd and kubectl do the tests use, and what happens when there are none? It does
//! not run them, and does not check their versions: a variable that is set is used as it is.
//! 1. The order is the field's: `TEST_ASSET_*`, then `KUBEBUILDER_ASSETS`, then the cache of `build.sh`.
//! 2. A variable that is set is binding: a wrong path means skipping, not silently using another program.
//! 3. With `INFORMER_REQUIRE_CONTROL_PLANE=1` a skip is a failure, so CI cannot pass by testing nothing.
//!
//! Read next: `builder.rs`.

use std::{
    env,
    ffi::OsString,
    fmt,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Once,
};

/// The module file that `build.sh` builds from: its versions name the cache directory.
const GO_MOD: &str = include_str!("../go.mod");

const SKIPPED: &str = "skipped: no control plane binaries";

/// Where the three programs of a control plane are.
#[derive(Debug, Clone)]
pub struct Binaries {
    pub(crate) kube_apiserver: PathBuf,
    pub(crate) etcd: PathBuf,
    pub(crate) kubectl: PathBuf,
    pub(crate) go_clients: Option<PathBuf>,
}

/// No complete set of programs was found; displays as `skipped: no control plane binaries` and what is
/// missing.
#[derive(Debug, Clone)]
pub struct Skipped {
    missing: Vec<String>,
}

impl Binaries {
    /// Looks for the programs; reads the environment and the file system, starts nothing.
    ///
    /// # Errors [`Skipped`] when at least one of the three was not found.
    pub fn find() -> Result<Self, Skipped> {
        Self::find_in(&|variable| env::var_os(variable).filter(|value| !value.is_empty()))
    }

    /// What a test begins with: the programs, or `None` after a line on standard error, which the test runner
    /// shows for passing tests too. The places that were searched are printed once per process.
    ///
    /// # Panics
    /// When there are none and `INFORMER_REQUIRE_CONTROL_PLANE` is `1`.
    #[must_use]
    pub fn find_or_skip() -> Option<Self> {
        let skipped = match Self::find() {
            Ok(binaries) => return Some(binaries),
            Err(skipped) => skipped,
        };
        let required = env::var_os("INFORMER_REQUIRE_CONTROL_PLANE").is_some_and(|value| value == "1");
        assert!(!required, "INFORMER_REQUIRE_CONTROL_PLANE=1, but {skipped}");
        skipped.report();
        None
    }

    /// The program kubectl, to run it against another server.
    #[must_use]
    pub fn kubectl(&self) -> &Path {
        &self.kubectl
    }

    /// The program of `clients/`: Go's own clients. `None` where only the other three were brought.
    #[must_use]
    pub fn go_clients(&self) -> Option<&Path> {
        self.go_clients.as_deref()
    }

    fn find_in(environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, Skipped> {
        let mut missing = Vec::new();
        let mut find = |variable: &str, name: &str| {
            let candidate = candidate(environment, variable, name);
            let found = candidate.as_ref().filter(|path| path.is_file()).cloned();
            if found.is_none() {
                let place =
                    candidate.map_or_else(|| "no place to look".into(), |path| path.display().to_string());
                missing.push(format!("{name} ({place})"));
            }
            found
        };
        let kube_apiserver = find("TEST_ASSET_KUBE_APISERVER", "kube-apiserver");
        let etcd = find("TEST_ASSET_ETCD", "etcd");
        let kubectl = find("TEST_ASSET_KUBECTL", "kubectl");
        match (kube_apiserver, etcd, kubectl) {
            (Some(kube_apiserver), Some(etcd), Some(kubectl)) => {
                let go_clients = candidate(environment, "INFORMER_GO_CLIENTS", "go-clients");
                let go_clients = go_clients.filter(|path| path.is_file());
                Ok(Self { kube_apiserver, etcd, kubectl, go_clients })
            }
            _ => Err(Skipped { missing }),
        }
    }
}

impl Skipped {
    /// Not `eprintln!`: its output is captured, and a skipped test would look like one that ran.
    fn report(&self) {
        static FIRST: Once = Once::new();
        let mut text = format!("{SKIPPED}\n");
        FIRST.call_once(|| text = format!("{self}\n"));
        // Nothing can be reported if standard error is closed.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{SKIPPED}; missing: {}; set TEST_ASSET_KUBE_APISERVER, TEST_ASSET_ETCD and \
             TEST_ASSET_KUBECTL, or KUBEBUILDER_ASSETS, or run tests/control-plane/build.sh",
            self.missing.join(", ")
        )
    }
}

impl std::error::Error for Skipped {}

/// The one place where a program is expected, by the first rule that applies.
fn candidate(environment: &dyn Fn(&str) -> Option<OsString>, variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(path) = environment(variable) {
        return Some(path.into());
    }
    if let Some(directory) = environment("KUBEBUILDER_ASSETS") {
        return Some(PathBuf::from(directory).join(name));
    }
    let cache = environment("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| environment("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    Some(cache.join("actix-informer/control-plane").join(versions()).join(name))
}

/// The directory name that `build.sh` derives from the same file.
fn versions() -> String {
    let version_of = |module: &str| {
        GO_MOD.lines().filter_map(|line| line.trim().strip_prefix(module)).find_map(|rest| {
            let version = rest.strip_prefix(' ')?.split(' ').next()?;
            version.starts_with('v').then_some(version)
        })
    };
    let kubernetes = version_of("k8s.io/kubernetes").expect("go.mod requires k8s.io/kubernetes");
    let etcd = version_of("go.etcd.io/etcd/server/v3").expect("go.mod requires etcd");
    format!("kubernetes-{kubernetes}-etcd-{etcd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::HashMap, fs};

    fn find(variables: &[(&str, &Path)]) -> Result<Binaries, Skipped> {
        let variables: HashMap<_, _> =
            variables.iter().map(|(name, path)| (*name, path.as_os_str().to_owned())).collect();
        Binaries::find_in(&|variable| variables.get(variable).cloned())
    }

    fn assets() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in ["kube-apiserver", "etcd", "kubectl"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        directory
    }

    #[test]
    fn a_variable_of_its_own_goes_before_the_assets_directory() {
        let (assets, other) = (assets(), assets());
        let etcd = other.path().join("etcd");
        let found = find(&[("KUBEBUILDER_ASSETS", assets.path()), ("TEST_ASSET_ETCD", &etcd)]).unwrap();
        assert_eq!(found.etcd, etcd);
        assert_eq!(found.kubectl, assets.path().join("kubectl"));
    }

    #[test]
    fn a_wrong_path_in_a_variable_skips_and_is_named() {
        let assets = assets();
        let wrong = assets.path().join("nowhere");
        let skipped =
            find(&[("KUBEBUILDER_ASSETS", assets.path()), ("TEST_ASSET_ETCD", &wrong)]).unwrap_err();
        let text = skipped.to_string();
        assert!(text.starts_with("skipped: no control plane binaries"), "{text}");
        assert!(text.contains("etcd (") && text.contains("nowhere"), "{text}");
        assert!(!text.contains("kube-apiserver ("), "{text}");
    }

    #[test]
    fn an_empty_environment_skips() {
        assert!(find(&[]).is_err());
    }

    #[test]
    fn the_cache_is_found_under_the_versions_of_go_mod() {
        let cache = tempfile::tempdir().unwrap();
        let directory = cache.path().join("actix-informer/control-plane").join(versions());
        fs::create_dir_all(&directory).unwrap();
        for name in ["kube-apiserver", "etcd", "kubectl"] {
            fs::write(directory.join(name), "").unwrap();
        }
        assert_eq!(find(&[("XDG_CACHE_HOME", cache.path())]).unwrap().etcd, directory.join("etcd"));
    }
}
