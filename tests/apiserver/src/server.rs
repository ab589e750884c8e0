//! The handle of a running server: address, kubeconfig, fault switches, and the store without HTTP.
//!
//! Answers: where is the server, what has it seen, and how do I change what it serves? Dropping it stops it.
//! 1. The direct calls go through the same core as HTTP requests and reach the same watches.
//! 2. `stop` resets all connections; until `start_again` a connection is refused. The store stays.
//!
//! Next: `builder.rs` starts one, `faults.rs` breaks one.
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::access::user::User;
use crate::agent::Agent;
use crate::chaos::Chaos;
use crate::clock::Clock;
use crate::cluster::call::{Call, PatchKind};
use crate::cluster::delete::DeleteOptions;
use crate::cluster::kind::Kind;
use crate::cluster::metadata::member;
use crate::cluster::object::Object;
use crate::cluster::options::ListOptions;
use crate::cluster::status::ApiError;
use crate::cluster::store::{Cluster, Frozen};
use crate::cluster::{ResourceId, field_validation};
use crate::door::Door;
use crate::faults::{FaultError, Faults};
use crate::kubeconfig::{self, Credential};
use crate::requests::Request;
use crate::serve::{Setup, StartError};
use crate::world::World;

/// A running API server. Dropping it stops it and joins its thread.
#[derive(Debug)]
pub struct ApiServer {
    world: Arc<World>,
    door: Arc<Door>,
}

/// The stored state at one moment; cheap to keep, as it shares its objects with the store.
#[derive(Debug, Clone)]
pub struct Backup(Frozen);

impl ApiServer {
    pub(crate) fn serve(world: Arc<World>, setup: Setup) -> Result<Self, StartError> {
        let door = Arc::new(Door::new(&world, setup)?);
        Ok(Self { world, door })
    }

    /// The address the server listens on (always loopback); in process, with port 0.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.door.addr
    }

    /// What its service needs of it.
    pub(crate) fn shared(&self) -> (Arc<World>, Arc<Door>) {
        (Arc::clone(&self.world), Arc::clone(&self.door))
    }

    /// The base URL, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> String {
        self.door.url()
    }

    /// The certificate of the server's own authority, as PEM; none without TLS.
    #[must_use]
    pub fn ca_pem(&self) -> Option<&str> {
        self.door.setup.tls.as_ref().map(|tls| tls.ca_pem.as_str())
    }

    /// A kubeconfig for this server, as YAML text.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        self.door.kubeconfig()
    }

    /// A kubeconfig that shows this credential.
    ///
    /// ```
    /// use informer_apiserver::{ApiServer, User};
    ///
    /// let server = ApiServer::builder().tls().rbac().start_blocking()?;
    /// let jane = server.issue_certificate(&User::new("jane").group("dev"))?;
    /// assert!(server.kubeconfig_for(&jane).contains("client-certificate-data"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn kubeconfig_for(&self, credential: &Credential) -> String {
        self.door.kubeconfig_for(credential)
    }

    /// A client certificate of the server's own authority: the user's name is its common name, each group an
    /// organization. Costs a key pair.
    ///
    /// # Errors
    /// If the server has no TLS, or the certificate cannot be made.
    pub fn issue_certificate(&self, user: &User) -> Result<Credential, StartError> {
        let tls = self.door.setup.tls.as_ref().ok_or_else(|| "the server was built without TLS".into());
        let issued = tls.and_then(|tls| tls.issue(user)).map_err(StartError::Certificates)?;
        Ok(Credential::Certificate { certificate_pem: issued.0, key_pem: issued.1 })
    }

    /// Writes the kubeconfig to a file that only its owner may read: it holds a token.
    ///
    /// # Errors
    /// Those of writing the file. Blocks on the disk.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        kubeconfig::write(path.as_ref(), &self.kubeconfig())
    }

    /// The fault switches.
    #[must_use]
    pub fn faults(&self) -> Faults {
        Faults::new(Arc::clone(&self.world), Arc::clone(&self.door))
    }

    /// What runs in the containers of pods: logs, commands, ports.
    #[must_use]
    pub fn agent(&self) -> Agent {
        self.world.agent.clone()
    }

    /// A seeded source of faults for these resources: see `Chaos`.
    ///
    /// # Panics
    /// If the server has none of one of these names; `Faults::expect_resource` announces what a definition adds later.
    #[must_use]
    #[track_caller]
    pub fn chaos(&self, seed: u64, resources: &[&str]) -> Chaos {
        Chaos::new(self.faults(), seed, resources)
    }

    /// The clock of this server: real, until a test sets or moves it.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.world.clock.clone()
    }

    /// The requests seen so far, oldest first (the last 10,000 of them).
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.world.with(|inner| inner.log.all())
    }

    /// Clears the log of requests.
    pub fn clear_requests(&self) {
        self.world.with(|inner| inner.log.clear());
    }

    /// The version of the last write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.world.with(|inner| inner.cluster.revision())
    }

    /// How many watches are open on a resource (`pods`, `deployments.apps`).
    ///
    /// # Panics
    /// If the server has no such resource, and never had one.
    #[must_use]
    #[track_caller]
    pub fn watches(&self, resource: &str) -> usize {
        let counted = self.world.with(|inner| {
            let gone = || Some(ResourceId::parse(resource)).filter(|id| inner.cluster.knows(id));
            let resource = inner.resource(resource).or_else(|error| gone().ok_or(error))?;
            Ok::<_, FaultError>(inner.cluster.watch_count(Some(&resource)))
        });
        counted.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Creates an object; `apiVersion` and `kind` say what it is, a missing namespace means `default`.
    ///
    /// As through HTTP, a status in the body is dropped where the kind has a status subresource: see `update_status`.
    ///
    /// # Errors The refusal of the API.
    pub fn create(&self, object: Value) -> Result<Value, ApiError> {
        self.write(object, false, |cluster, call, object| cluster.create(call, object))
    }

    /// Replaces an object, as PUT does.
    ///
    /// # Errors The refusal of the API.
    pub fn update(&self, object: Value) -> Result<Value, ApiError> {
        self.write(object, false, |cluster, call, object| Ok(cluster.update(call, object)?.object))
    }

    /// Replaces the status of an object, as PUT on its status subresource does.
    ///
    /// # Errors The refusal of the API.
    pub fn update_status(&self, object: Value) -> Result<Value, ApiError> {
        self.write(object, true, |cluster, call, object| Ok(cluster.update(call, object)?.object))
    }

    /// Applies a JSON merge patch. `resource` may name the status: `pods/status`.
    ///
    /// # Errors The refusal of the API.
    pub fn merge_patch(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, ApiError> {
        let bytes = patch.to_string();
        self.on(resource, namespace, name, |cluster, call| {
            let written = cluster.patch(call, PatchKind::Merge, bytes.as_bytes())?;
            Ok(written.object.decode_as(call.kind))
        })
    }

    /// Deletes an object without grace (finalizers still hold it). Gives its last state.
    ///
    /// A pod is marked first and sent as MODIFIED, then as DELETED, as a real server does for every pod.
    ///
    /// # Errors The refusal of the API.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<Value, ApiError> {
        let options = DeleteOptions { grace: Some(0), ..DeleteOptions::default() };
        self.on(resource, namespace, name, |cluster, call| {
            Ok(cluster.delete(call, &options)?.object.decode_as(call.kind))
        })
    }

    /// One object.
    ///
    /// # Errors
    /// 404 if it is not there.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Result<Value, ApiError> {
        self.on(resource, namespace, name, |cluster, call| {
            Ok(cluster.get(call.kind, call.namespace, call.name)?.decode_as(call.kind))
        })
    }

    /// All objects of a resource in all namespaces, in the order of lists. Decodes each one.
    ///
    /// # Errors
    /// 404 if the resource is not served.
    pub fn list(&self, resource: &str) -> Result<Vec<Value>, ApiError> {
        let (kind, listing) = self.world.with(|inner| {
            let kind = served(&inner.cluster, resource)?;
            let listing = inner.cluster.list(&kind, None, &ListOptions::parse(&[], &kind)?)?;
            Ok::<_, ApiError>((kind, listing))
        })?;
        Ok(listing.page().objects.iter().map(|object| object.decode_as(&kind)).collect())
    }

    /// Takes a copy of the whole store. Costs almost nothing.
    #[must_use]
    pub fn backup(&self) -> Backup {
        Backup(self.world.with(|inner| inner.cluster.freeze()))
    }

    /// Restores an earlier state: versions go back too, and will be issued a second time.
    ///
    /// Open watches end, as at the restart a restore needs; a new watch from a version of the lost future is
    /// accepted and stays silent until the store has reached that version again.
    pub fn restore(&self, backup: &Backup) {
        self.world.with(|inner| inner.cluster.restore(&backup.0));
    }

    /// Resets all connections and stops listening; the store stays. Blocks until the server's thread has ended.
    pub fn stop(&mut self) {
        self.door.close();
    }

    /// Listens again on the same port.
    ///
    /// # Errors
    /// If the port cannot be bound any more. Does nothing on a server that runs.
    pub fn start_again(&mut self) -> Result<(), StartError> {
        self.door.open()
    }

    fn write(
        &self,
        object: Value,
        status: bool,
        act: impl FnOnce(&mut Cluster, &Call<'_>, Value) -> Result<Arc<Object>, ApiError>,
    ) -> Result<Value, ApiError> {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = self
            .world
            .with(|inner| inner.cluster.registry.by_type(text("apiVersion"), text("kind")).cloned());
        let kind = kind.ok_or_else(ApiError::no_such_resource)?;
        let name = member(&object, "name").to_owned();
        let namespace = namespace_for(&kind, member(&object, "namespace")).to_owned();
        let subresource = if status { "status" } else { "" };
        let call = Call { status, subresource, ..Call::plain(&kind, &namespace, &name, self.world.now()) };
        let (object, _) = field_validation::take_value(&kind, object, call.validation)?;
        let stored = self.world.with(|inner| act(&mut inner.cluster, &call, object))?;
        self.world.settle();
        Ok(stored.decode_as(&kind))
    }

    fn on<R>(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        act: impl FnOnce(&mut Cluster, &Call<'_>) -> Result<R, ApiError>,
    ) -> Result<R, ApiError> {
        let (resource, status) = match resource.strip_suffix("/status") {
            Some(resource) => (resource, true),
            None => (resource, false),
        };
        let now = self.world.now();
        let done = self.world.with(|inner| {
            let kind = served(&inner.cluster, resource)?;
            let namespace = namespace_for(&kind, namespace);
            let subresource = if status { "status" } else { "" };
            let call = Call { status, subresource, ..Call::plain(&kind, namespace, name, now) };
            act(&mut inner.cluster, &call)
        });
        self.world.settle();
        done
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.door.shut();
    }
}

pub(crate) fn served(cluster: &Cluster, resource: &str) -> Result<Arc<Kind>, ApiError> {
    let registry = &cluster.registry;
    let found = registry.named(resource).and_then(|named| registry.preferred(named));
    found.cloned().ok_or_else(|| ApiError::no_resource(resource, registry.nearest(resource)))
}

pub(crate) fn namespace_for<'a>(kind: &Kind, given: &'a str) -> &'a str {
    match (kind.namespaced, given) {
        (false, _) => "",
        (true, "") => "default",
        (true, given) => given,
    }
}
