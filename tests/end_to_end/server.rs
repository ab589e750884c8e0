//! The two servers behind one type: a kube-apiserver with its etcd, or our in-memory one.
//!
//! Answers "how does a scenario disturb a server without knowing which one it is?" What is asked over HTTP is in
//! `api.rs`. Invariants:
//! 1. Every disturbance has the same consequences for a client on both servers; how it is brought about differs.
//! 2. What blocks runs on a blocking thread, so that informer and subscribers go on meanwhile.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix_informer::client::{Client, Config};
use informer_apiserver::{ApiServer, Backup as MemoryBackup};
use informer_control_plane::{Binaries, ControlPlane, EtcdBackup};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use crate::api::Api;
use crate::relay::Relay;

/// The context of a user who has no permissions yet.
pub(crate) const POWERLESS: &str = "powerless";

/// A server that scenarios run against.
pub(crate) enum Server {
    Memory(Box<Mutex<ApiServer>>),
    Real(Box<ControlPlane>),
}

/// The whole state of a server at one moment.
pub(crate) enum Backup {
    Memory(MemoryBackup),
    Real(EtcdBackup),
}

impl Server {
    /// An in-memory server of its own.
    pub(crate) fn memory() -> Self {
        // The suite runs over HTTP/2, which needs TLS.
        if std::env::var_os("INFORMER_TEST_HTTP2").is_some() {
            return Self::secure_memory();
        }
        Self::holding(ApiServer::builder())
    }

    /// An in-memory server behind HTTPS that asks for a token.
    pub(crate) fn secure_memory() -> Self {
        Self::holding(ApiServer::builder().tls().token("s3cret"))
    }

    /// An in-memory server behind HTTPS on which roles decide who may do what, as on a real one.
    pub(crate) fn memory_with_rbac() -> Self {
        Self::holding(ApiServer::builder().tls().token("s3cret").rbac())
    }

    /// A real control plane, or `None` after a printed line that says why not.
    pub(crate) fn real() -> Option<Self> {
        let binaries = Binaries::find_or_skip()?;
        let plane = ControlPlane::builder(binaries).with_client_ca().start();
        Some(Self::Real(Box::new(plane.expect("the control plane starts"))))
    }

    /// A real control plane whose kube-apiserver asks etcd for everything, so that what etcd has compacted is
    /// gone for clients too.
    pub(crate) fn real_without_watch_cache() -> Option<Self> {
        let binaries = Binaries::find_or_skip()?;
        let plane = ControlPlane::builder(binaries).apiserver_flag("--watch-cache=false").start();
        Some(Self::Real(Box::new(plane.expect("the control plane starts"))))
    }

    /// A real control plane whose kube-apiserver answers one request at a time, and the others with 429,
    /// except watches and administrators.
    pub(crate) fn real_of_one_request() -> Option<Self> {
        let binaries = Binaries::find_or_skip()?;
        let plane = ControlPlane::builder(binaries)
            .apiserver_flag("--enable-priority-and-fairness=false")
            .apiserver_flag("--max-requests-inflight=1")
            .start();
        Some(Self::Real(Box::new(plane.expect("the control plane starts"))))
    }

    /// A real control plane in which a controller chooses the leaders of coordinated elections.
    pub(crate) fn real_that_chooses_leaders() -> Option<Self> {
        let binaries = Binaries::find_or_skip()?;
        let plane = ControlPlane::builder(binaries)
            .apiserver_flag("--feature-gates=CoordinatedLeaderElection=true")
            .apiserver_flag("--runtime-config=coordination.k8s.io/v1beta1=true")
            .start();
        Some(Self::Real(Box::new(plane.expect("the control plane starts"))))
    }

    /// A client that may do everything.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.config(None)).expect("the server's own kubeconfig is valid")
    }

    /// A client of kube-rs that may do everything.
    pub(crate) async fn kube_client(&self) -> kube_client::Client {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig()).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = kube_client::Config::from_custom_kubeconfig(kubeconfig, &options);
        kube_client::Client::try_from(config.await.expect("the server's own kubeconfig is valid"))
            .expect("a client")
    }

    /// The configuration of the client that may do everything, or of another context of the kubeconfig.
    pub(crate) fn config(&self, context: Option<&str>) -> Config {
        configured(&self.kubeconfig(), context)
    }

    /// A client of that context through a relay; it also works when the relay answers itself.
    pub(crate) fn client_through(&self, relay: &Relay, context: Option<&str>) -> Client {
        let text = self.kubeconfig().replace(&self.address().to_string(), &relay.address().to_string());
        let mut config = configured(&text, context);
        if let (Some(own), Some(relays)) = (self.ca_pem(), relay.certificate()) {
            config = config.certificate_authority(format!("{own}\n{relays}"));
        }
        Client::new(config).expect("the server's own kubeconfig is valid")
    }

    /// A client that may do everything, through a proxy with this URL, which presents this certificate if it has one.
    pub(crate) fn client_through_proxy(&self, url: &str, certificate: &str) -> Client {
        let config = self.config(None).proxy(url).expect("a proxy");
        let config = match self.ca_pem() {
            Some(own) => config.certificate_authority(format!("{own}\n{certificate}")),
            None => config.certificate_authority(certificate),
        };
        Client::new(config).expect("the server's own kubeconfig is valid")
    }

    /// The in-memory server, for scenarios that no real one can run.
    pub(crate) fn in_memory(&self) -> MutexGuard<'_, ApiServer> {
        match self {
            Self::Memory(server) => server.lock().unwrap_or_else(PoisonError::into_inner),
            Self::Real(_) => panic!("this scenario is for the in-memory server"),
        }
    }

    /// A client of a user who may not read pods until [`Self::empower`].
    pub(crate) fn powerless_client(&self) -> Client {
        match self {
            Self::Memory(_) => {
                let faults = self.in_memory().faults();
                faults.deny("list", "pods");
                faults.deny("watch", "pods");
                self.client()
            }
            Self::Real(_) => Client::new(self.config(Some(POWERLESS))).expect("a valid context"),
        }
    }

    /// Gives the user without permissions the right to read pods.
    pub(crate) async fn empower(&self, api: &Api) {
        if let Self::Memory(_) = self {
            let faults = self.in_memory().faults();
            faults.allow("list", "pods");
            faults.allow("watch", "pods");
            return;
        }
        let kind = "rbac.authorization.k8s.io";
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]);
        let role = json!({
            "apiVersion": format!("{kind}/v1"), "kind": "ClusterRole",
            "metadata": {"name": "reads-pods"}, "rules": rules,
        });
        let binding = json!({
            "apiVersion": format!("{kind}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": "powerless-reads-pods"},
            "roleRef": {"apiGroup": kind, "kind": "ClusterRole", "name": "reads-pods"},
            "subjects": [{"apiGroup": kind, "kind": "User", "name": "powerless"}],
        });
        api.post(&format!("/apis/{kind}/v1/clusterroles"), &role).await;
        api.post(&format!("/apis/{kind}/v1/clusterrolebindings"), &binding).await;
    }

    /// Ends the server at once: connections break, new ones are refused.
    pub(crate) async fn kill(self: &Arc<Self>) {
        self.blocking(|server| match server {
            Self::Memory(_) => server.in_memory().stop(),
            Self::Real(plane) => plane.kill_apiserver().expect("it runs"),
        })
        .await;
    }

    /// Starts it again: same address, same data.
    pub(crate) async fn start(self: &Arc<Self>) {
        self.blocking(|server| match server {
            Self::Memory(_) => server.in_memory().start_again().expect("the port is still free"),
            Self::Real(plane) => plane.start_apiserver().expect("it starts again"),
        })
        .await;
    }

    /// Ends all watches and compacts all versions: a watch from before gets 410.
    pub(crate) async fn expire_watches(self: &Arc<Self>, api: &Api) {
        // There must be old versions that the watches do not know.
        api.create_some("default").await;
        self.blocking(|server| match server {
            Self::Memory(_) => {
                let faults = server.in_memory().faults();
                faults.compact();
                faults.end_watches();
            }
            Self::Real(plane) => plane.restart_apiserver().expect("it starts again"),
        })
        .await;
    }

    /// Compacts the server's old versions, and leaves its open watches as they are.
    ///
    /// A kube-apiserver with a watch cache hides from its clients what etcd has compacted.
    pub(crate) async fn compact(self: &Arc<Self>, api: &Api) {
        // The present version must not be the oldest one that is kept already.
        api.create_some("default").await;
        let version = api.version().await.to_string();
        self.blocking(move |server| match server {
            Self::Memory(_) => {
                let faults = server.in_memory().faults();
                faults.compact();
                faults.expire_continue_tokens();
            }
            Self::Real(plane) => plane.compact_etcd(version.parse().expect("a revision")).expect("etcd runs"),
        })
        .await;
    }

    /// Ends the server in good order and starts it again.
    pub(crate) async fn restart(self: &Arc<Self>) {
        self.blocking(|server| match server {
            Self::Memory(_) => {
                let mut server = server.in_memory();
                server.faults().end_watches();
                server.stop();
                server.start_again().expect("the port is still free");
            }
            Self::Real(plane) => plane.restart_apiserver().expect("it starts again"),
        })
        .await;
    }

    /// Copies the whole state.
    pub(crate) async fn backup(self: &Arc<Self>) -> Backup {
        self.blocking(|server| match server {
            Self::Memory(_) => Backup::Memory(server.in_memory().backup()),
            Self::Real(plane) => Backup::Real(plane.backup_etcd().expect("etcd runs")),
        })
        .await
    }

    /// Restores it: versions go backwards.
    pub(crate) async fn restore(self: &Arc<Self>, backup: Backup) {
        self.blocking(move |server| match (server, &backup) {
            (Self::Memory(_), Backup::Memory(backup)) => server.in_memory().restore(backup),
            (Self::Real(plane), Backup::Real(backup)) => {
                plane.restore_etcd(backup).expect("both start again");
            }
            _ => unreachable!("the backup is of this server"),
        })
        .await;
    }

    /// The contexts of its kubeconfig that may do everything, each with credentials of another kind.
    pub(crate) fn contexts(&self) -> &'static [&'static str] {
        match self {
            Self::Memory(_) => &["informer"],
            Self::Real(_) => &["admin", "certificate"],
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        let url = self.url();
        let address = url.rsplit("//").next().and_then(|address| address.parse().ok());
        address.expect("its URL is a loopback address")
    }

    /// The name of the server, for a line of output.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Real(_) => "real",
        }
    }

    /// Whether it speaks HTTPS.
    pub(crate) fn is_secure(&self) -> bool {
        self.url().starts_with("https://")
    }

    fn holding(builder: informer_apiserver::Builder) -> Self {
        let server = builder.start_blocking().expect("loopback has a free port");
        Self::Memory(Box::new(Mutex::new(server)))
    }

    fn url(&self) -> String {
        match self {
            Self::Memory(_) => self.in_memory().url(),
            Self::Real(plane) => plane.url(),
        }
    }

    fn ca_pem(&self) -> Option<String> {
        match self {
            Self::Memory(_) => self.in_memory().ca_pem().map(str::to_owned),
            Self::Real(plane) => Some(plane.ca_pem().to_owned()),
        }
    }

    pub(crate) fn kubeconfig(&self) -> String {
        match self {
            Self::Memory(_) => self.in_memory().kubeconfig(),
            Self::Real(plane) => plane.kubeconfig(),
        }
    }

    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> T {
        let server = Arc::clone(self);
        tokio::task::spawn_blocking(move || act(&server)).await.expect("the server did what was asked")
    }
}

fn configured(kubeconfig: &str, context: Option<&str>) -> Config {
    Config::from_kubeconfig_text(kubeconfig, context).expect("the server's own kubeconfig is valid")
}
