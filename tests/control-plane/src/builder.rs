//! Decides how a control plane is started: options, ports, flags, and the order of things.
//!
//! Question: which command lines make a small, quick and complete control plane? Once it runs,
//! `control_plane.rs` has it.
//! 1. etcd answers before kube-apiserver starts; `start` returns when `/readyz` does and the namespace
//!    `default` exists.
//! 2. Flags of the caller come last, and the last of equal flags wins: each default can be overridden.
//! 3. If another process took a port in the meantime, it starts again on other ports and does not fail.
//!
//! Read next: `control_plane.rs`.

use std::path::Path;

use crate::{
    Binaries, ControlPlane, StartError, control_plane::Setup, etcd::create_private, http, identity::Identity,
    ports::Ports, wait::Limits,
};

const ATTEMPTS: usize = 3;

/// Options of a control plane that is not started yet; see [`ControlPlane::builder`].
#[derive(Debug, Clone)]
#[must_use = "a control plane starts only with `start`"]
pub struct Builder {
    binaries: Binaries,
    apiserver_flags: Vec<String>,
    client_ca: bool,
}

impl ControlPlane {
    /// Begins to describe a control plane that runs these programs.
    pub fn builder(binaries: Binaries) -> Builder {
        Builder::new(binaries)
    }
}

impl Builder {
    pub(crate) fn new(binaries: Binaries) -> Self {
        Self { binaries, apiserver_flags: Vec::new(), client_ca: false }
    }

    /// Adds one flag for kube-apiserver, in the form `--name=value`; it overrides ours.
    ///
    /// `--watch-cache=false`, `--min-request-timeout=5` and `--feature-gates=WatchList=false` are useful.
    pub fn apiserver_flag(mut self, flag: impl Into<String>) -> Self {
        self.apiserver_flags.push(flag.into());
        self
    }

    /// Accepts client certificates too, and makes one: see [`ControlPlane::client_certificate`].
    ///
    /// Off by default, because the server then asks every client for a certificate.
    pub fn with_client_ca(mut self) -> Self {
        self.client_ca = true;
        self
    }

    /// Starts etcd and kube-apiserver and waits until they serve. Blocks for seconds: about three when idle.
    ///
    /// # Errors
    /// [`StartError`] when a process ended, or was not ready within `KUBEBUILDER_CONTROLPLANE_START_TIMEOUT`
    /// (two minutes each); it carries the end of that process's log. Nothing is left running then.
    pub fn start(&self) -> Result<ControlPlane, StartError> {
        let mut attempt = 1;
        loop {
            match ControlPlane::start(self.prepare()?) {
                Err(StartError::Exited { log, .. }) if attempt < ATTEMPTS && port_was_taken(&log) => {
                    attempt += 1
                }
                result => return result,
            }
        }
    }

    fn prepare(&self) -> Result<Setup, StartError> {
        let limits = Limits::from_environment()?;
        let directory =
            tempfile::Builder::new().prefix("control-plane-").tempdir().map_err(StartError::Directory)?;
        let identity = Identity::create(directory.path(), self.client_ca)?;
        let tls = http::trusting(identity.ca.clone()).map_err(StartError::Tls)?;
        let ports = Ports::free().map_err(StartError::Ports)?;
        let etcd_data = directory.path().join("etcd");
        create_private(&etcd_data).map_err(StartError::Directory)?;
        let mut apiserver_arguments = apiserver_arguments(ports, &identity, directory.path());
        apiserver_arguments.extend(self.apiserver_flags.iter().cloned());
        Ok(Setup {
            etcd_arguments: etcd_arguments(ports, &etcd_data),
            apiserver_arguments,
            binaries: self.binaries.clone(),
            limits,
            identity,
            tls,
            ports,
            etcd_data,
            directory,
        })
    }
}

fn port_was_taken(log: &str) -> bool {
    log.contains("address already in use")
}

fn etcd_arguments(ports: Ports, data: &Path) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    vec![
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // A test ends before a power cut could matter.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ]
}

fn apiserver_arguments(ports: Ports, identity: &Identity, directory: &Path) -> Vec<String> {
    let files = &identity.files;
    let port = ports.apiserver;
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", directory.join("generated").display()),
        format!("--tls-cert-file={}", files.certificate.display()),
        format!("--tls-private-key-file={}", files.key.display()),
        format!("--token-auth-file={}", files.tokens.display()),
        format!("--service-account-issuer=https://127.0.0.1:{port}/"),
        format!("--service-account-key-file={}", files.service_account_public.display()),
        format!("--service-account-signing-key-file={}", files.service_account_key.display()),
        "--authorization-mode=RBAC".into(),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        // No controller creates service accounts here, and without them this plugin refuses every pod.
        "--disable-admission-plugins=ServiceAccount".into(),
        "--allow-privileged".into(),
        // There is no network in which a client could reach the service `kubernetes`.
        "--endpoint-reconciler-type=none".into(),
        "--advertise-address=192.0.2.1".into(),
        // Without this flag a stop waits a minute for open watches.
        "--shutdown-watch-termination-grace-period=1s".into(),
    ];
    if identity.client.is_some() {
        arguments.push(format!("--client-ca-file={}", files.ca.display()));
    }
    arguments
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn setup(builder: impl FnOnce(Builder) -> Builder) -> Setup {
        let nowhere = PathBuf::from("nowhere");
        let (kube_apiserver, etcd) = (nowhere.clone(), nowhere.clone());
        let binaries = Binaries { kube_apiserver, etcd, kubectl: nowhere, go_clients: None };
        builder(Builder::new(binaries)).prepare().unwrap()
    }

    #[test]
    fn flags_of_the_caller_come_last() {
        let setup = setup(|builder| builder.apiserver_flag("--authorization-mode=AlwaysAllow"));
        assert_eq!(setup.apiserver_arguments.last().unwrap(), "--authorization-mode=AlwaysAllow");
    }

    #[test]
    fn client_certificates_are_asked_for_only_on_request() {
        let asks = |setup: &Setup| {
            setup.apiserver_arguments.iter().any(|flag| flag.starts_with("--client-ca-file="))
        };
        let (without, with) = (setup(|builder| builder), setup(Builder::with_client_ca));
        assert!(!asks(&without) && without.identity.client.is_none());
        assert!(asks(&with) && with.identity.client.is_some());
    }

    #[test]
    fn a_program_that_cannot_run_is_an_error_that_names_it() {
        let nowhere = PathBuf::from("nowhere");
        let (kube_apiserver, etcd) = (nowhere.clone(), nowhere.clone());
        let binaries = Binaries { kube_apiserver, etcd, kubectl: nowhere, go_clients: None };
        let error = Builder::new(binaries).start().unwrap_err();
        assert!(matches!(error, StartError::Spawn { process: "etcd", .. }), "{error}");
    }
}
