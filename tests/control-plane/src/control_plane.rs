//! A running control plane: what a client needs to reach it, and the ways to break it.
//!
//! Question: what can be done to a control plane once it runs? `builder.rs` starts it; `process.rs` says how processes
//! behave.
//! 1. Address, certificates, tokens and data stay the same over any stop and start.
//! 2. A call that starts something returns when that serves again; one that stops something, when it is gone.
//! 3. All methods take `&self`, so a test may share the value with a blocking thread; they run one by one.
//!
//! Effects: processes, loopback ports and one temporary directory, all gone when the value is dropped.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    Binaries, ClientCertificate, Error, EtcdBackup, ServingCertificate, StartError, etcd,
    http::{self, Request, Tls},
    identity::Identity,
    kubeconfig,
    ports::Ports,
    process::Process,
    wait::Limits,
};

const APISERVER: &str = "kube-apiserver";
const ETCD: &str = "etcd";

/// A kube-apiserver and its etcd, on loopback, for one test. Dropping it ends both and removes their data.
#[derive(Debug)]
pub struct ControlPlane {
    // Before the setup, whose directory must exist longer than the processes.
    processes: Mutex<Processes>,
    setup: Setup,
}

/// Everything that is decided before the first process runs, and stays the same over restarts.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) binaries: Binaries,
    pub(crate) limits: Limits,
    pub(crate) identity: Identity,
    pub(crate) tls: Tls,
    pub(crate) ports: Ports,
    pub(crate) etcd_arguments: Vec<String>,
    pub(crate) apiserver_arguments: Vec<String>,
    pub(crate) etcd_data: PathBuf,
    pub(crate) directory: TempDir,
}

/// kube-apiserver comes first: it is dropped first and does not see its storage disappear.
#[derive(Debug, Default)]
struct Processes {
    apiserver: Option<Process>,
    etcd: Option<Process>,
}

impl ControlPlane {
    /// The address of the API: `https://127.0.0.1:` and a port.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.setup.ports.apiserver)
    }

    /// The one certificate, in PEM, that a client must trust.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.setup.identity.ca_pem
    }

    /// The bearer token of a user who may do everything.
    #[must_use]
    pub fn admin_token(&self) -> &str {
        &self.setup.identity.admin_token
    }

    /// The bearer token of a user who is known and has no permissions: every list and watch is answered 403.
    #[must_use]
    pub fn powerless_token(&self) -> &str {
        &self.setup.identity.powerless_token
    }

    /// The certificate of a user who may do everything; `None` unless started with
    /// [`Builder::with_client_ca`](crate::Builder::with_client_ca).
    #[must_use]
    pub fn client_certificate(&self) -> Option<&ClientCertificate> {
        self.setup.identity.client.as_ref()
    }

    /// A certificate of another user, for the private key in this PEM; it ends after `life`, or never. The server
    /// accepts it if it was started with [`Builder::with_client_ca`](crate::Builder::with_client_ca).
    ///
    /// # Errors
    /// [`Error::Certificate`] when the key cannot be read.
    pub fn issue_certificate(
        &self,
        user: &str,
        group: &str,
        key_pem: &str,
        life: Option<Duration>,
    ) -> Result<String, Error> {
        self.setup.identity.issue((user, group), key_pem, life).map_err(Error::Certificate)
    }

    /// Makes the running server present this certificate from now on; it reads the files by itself within seconds.
    ///
    /// # Errors
    /// [`Error::Io`] when the files cannot be written.
    pub fn present(&self, certificate: &ServingCertificate) -> Result<(), Error> {
        let failed = |source| Error::Io { action: "write the server's certificate", source };
        let files = &self.setup.identity.files;
        fs::write(&files.key, &certificate.key_pem).map_err(failed)?;
        fs::write(&files.certificate, &certificate.certificate_pem).map_err(failed)
    }

    /// A kubeconfig as YAML, with everything inline: contexts `admin` (current), `powerless`, and
    /// `certificate` if any.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        kubeconfig::render(&self.url(), &self.setup.identity)
    }

    /// Writes [`Self::kubeconfig`] to `path`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>) -> io::Result<()> {
        fs::write(path, self.kubeconfig())
    }

    /// Runs kubectl as the admin and returns its output. Blocks, for a tenth of a second or its own timeout.
    ///
    /// # Errors [`Error::Kubectl`] with its error output when it fails.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String, Error> {
        self.kubectl_reading(arguments, "")
    }

    /// Creates or changes the objects in `manifest` (YAML or JSON), through `kubectl apply`. Blocks like
    /// [`Self::kubectl`].
    ///
    /// # Errors [`Error::Kubectl`] with its error output when an object is refused.
    pub fn apply(&self, manifest: &str) -> Result<String, Error> {
        self.kubectl_reading(&["apply", "--filename=-"], manifest)
    }

    /// The process id of kube-apiserver, while it runs.
    #[must_use]
    pub fn apiserver_id(&self) -> Option<u32> {
        self.processes().apiserver.as_ref().map(Process::id)
    }

    /// The process id of etcd, while it runs.
    #[must_use]
    pub fn etcd_id(&self) -> Option<u32> {
        self.processes().etcd.as_ref().map(Process::id)
    }
}

/// Provocations: what happens to real clusters, on request.
impl ControlPlane {
    /// Ends kube-apiserver in good order (SIGTERM): watches end cleanly, new connections are refused. Takes
    /// one to three seconds.
    ///
    /// # Errors
    /// [`Error::NotRunning`]; [`Error::Stop`] when it took longer than
    /// `KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT`.
    pub fn stop_apiserver(&self) -> Result<(), Error> {
        self.end_apiserver(&mut self.processes())
    }

    /// Ends kube-apiserver at once (SIGKILL): connections break.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn kill_apiserver(&self) -> Result<(), Error> {
        let process = self.processes().apiserver.take();
        process.map(drop).ok_or(Error::NotRunning { process: APISERVER })
    }

    /// Starts kube-apiserver again: same port, same certificates, same data. Its watch cache starts at the
    /// present version, so watches from before get 410.
    ///
    /// # Errors
    /// [`Error::AlreadyRunning`]; [`Error::Start`] when it does not become ready.
    pub fn start_apiserver(&self) -> Result<(), Error> {
        let mut processes = self.processes();
        if processes.apiserver.is_some() {
            return Err(Error::AlreadyRunning { process: APISERVER });
        }
        processes.apiserver = Some(self.setup.start_apiserver()?);
        Ok(())
    }

    /// [`Self::stop_apiserver`] and [`Self::start_apiserver`].
    ///
    /// # Errors
    /// Those of the two.
    pub fn restart_apiserver(&self) -> Result<(), Error> {
        self.stop_apiserver()?;
        self.start_apiserver()
    }

    /// Stops kube-apiserver where it is (SIGSTOP): connections stay open, the system accepts new ones,
    /// nothing answers. Returns when it has stopped.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn freeze_apiserver(&self) -> Result<(), Error> {
        running(&self.processes().apiserver, APISERVER)?.freeze()
    }

    /// Lets a frozen kube-apiserver go on (SIGCONT).
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn thaw_apiserver(&self) -> Result<(), Error> {
        running(&self.processes().apiserver, APISERVER)?.thaw()
    }

    /// Makes etcd compact every revision before `revision`. kube-apiserver hides that behind its watch cache,
    /// unless started with `--watch-cache=false`.
    ///
    /// # Errors
    /// [`Error::Etcd`] when `revision` lies in the future or was compacted already.
    pub fn compact_etcd(&self, revision: u64) -> Result<(), Error> {
        running(&self.processes().etcd, ETCD)?;
        etcd::compact(self.setup.ports.etcd, revision)
    }

    /// Copies etcd's data as it is now. etcd pauses for the milliseconds that this takes; it is not
    /// restarted.
    ///
    /// # Errors
    /// [`Error::NotRunning`]; [`Error::Io`] when copying fails.
    pub fn backup_etcd(&self) -> Result<EtcdBackup, Error> {
        let processes = self.processes();
        let etcd = running(&processes.etcd, ETCD)?;
        etcd.freeze()?;
        // The copy is what etcd would find after a crash at this moment; etcd is built to recover from that.
        let backup = EtcdBackup::take(&self.setup.etcd_data);
        etcd.thaw()?;
        backup.map_err(|source| Error::Io { action: "copy etcd's data", source })
    }

    /// Goes back in time: stops both, replaces etcd's data by `backup`, starts both. Resource versions then
    /// go backwards. Takes as long as a restart.
    ///
    /// # Errors
    /// Those of stopping and starting; [`Error::Io`] when copying fails. Both are stopped then.
    pub fn restore_etcd(&self, backup: &EtcdBackup) -> Result<(), Error> {
        let mut processes = self.processes();
        if processes.apiserver.is_some() {
            self.end_apiserver(&mut processes)?;
        }
        // Killed: what it would still write is about to be deleted.
        drop(processes.etcd.take());
        let put_back = backup.put_back(&self.setup.etcd_data);
        put_back.map_err(|source| Error::Io { action: "put back etcd's data", source })?;
        processes.etcd = Some(self.setup.start_etcd()?);
        processes.apiserver = Some(self.setup.start_apiserver()?);
        Ok(())
    }
}

impl ControlPlane {
    pub(crate) fn start(setup: Setup) -> Result<Self, StartError> {
        setup.write_kubectl_configuration().map_err(StartError::Directory)?;
        let etcd = setup.start_etcd()?;
        let apiserver = setup.start_apiserver()?;
        let processes = Processes { apiserver: Some(apiserver), etcd: Some(etcd) };
        Ok(Self { processes: Mutex::new(processes), setup })
    }

    fn end_apiserver(&self, processes: &mut Processes) -> Result<(), Error> {
        let process = processes.apiserver.take().ok_or(Error::NotRunning { process: APISERVER })?;
        process.stop(self.setup.limits.stop)
    }

    /// A test that panicked while it held the lock leaves processes that must still be stopped.
    fn processes(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kubectl_reading(&self, arguments: &[&str], input: &str) -> Result<String, Error> {
        let failed = |source| Error::Io { action: "run kubectl", source };
        let directory = self.setup.directory.path();
        let mut child = Command::new(&self.setup.binaries.kubectl)
            .env("KUBECONFIG", directory.join("kubeconfig"))
            .env("KUBECACHEDIR", directory.join("kubectl-cache"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        if let Some(mut pipe) = child.stdin.take() {
            // A kubectl that ends early reports the reason itself; a broken pipe here would hide it.
            let _ = io::Write::write_all(&mut pipe, input.as_bytes());
        }
        let output = child.wait_with_output().map_err(failed)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let complaint = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        Err(Error::Kubectl { arguments: arguments.join(" "), output: complaint })
    }
}

impl Setup {
    fn start_etcd(&self) -> Result<Process, StartError> {
        let log = self.directory.path().join("etcd.log");
        let mut process = Process::spawn(ETCD, &self.binaries.etcd, &self.etcd_arguments, log)?;
        process.await_ready(self.limits.start, || etcd::health(self.ports.etcd))?;
        Ok(process)
    }

    fn start_apiserver(&self) -> Result<Process, StartError> {
        let log = self.directory.path().join("kube-apiserver.log");
        let program = &self.binaries.kube_apiserver;
        let mut process = Process::spawn(APISERVER, program, &self.apiserver_arguments, log)?;
        process.await_ready(self.limits.start, || {
            self.answers("/readyz")?;
            self.answers("/api/v1/namespaces/default")
        })?;
        Ok(process)
    }

    /// `Ok` when the admin's GET of `path` is answered 200; else what came instead.
    fn answers(&self, path: &str) -> Result<(), String> {
        let request = Request { path, token: Some(&self.identity.admin_token), body: None };
        match http::secure(self.ports.apiserver, &self.tls, request) {
            Ok(answer) if answer.status == 200 => Ok(()),
            Ok(answer) => Err(format!("{} {}", answer.status, answer.body)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn write_kubectl_configuration(&self) -> io::Result<()> {
        let url = format!("https://127.0.0.1:{}", self.ports.apiserver);
        fs::write(self.directory.path().join("kubeconfig"), kubeconfig::render(&url, &self.identity))
    }
}

fn running<'a>(process: &'a Option<Process>, name: &'static str) -> Result<&'a Process, Error> {
    process.as_ref().ok_or(Error::NotRunning { process: name })
}
