//! What the server serves, and the resource that a name means.
//!
//! 1. The clones of a client share the results. Results that are too old are requested again.
//! 2. A name that is not found makes the client ask once more, because its kind may be new. The number of
//!    such requests is bounded.
//! 3. A group that cannot be discovered is named beside what was found.
//!
//! ```
//! use actix_informer::prelude::*;
//! use actix_informer::testing::ApiServer;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::builder().start().await?; // or a cluster: Client::from_environment()
//! let client = Client::new(Config::new(server.url())?)?;
//!
//! let found = client.discovery().resources().await?;
//! found.complete()?; // names the groups that could not be discovered
//! println!("{} groups, {} resources", found.groups.len(), found.preferred().len());
//!
//! for name in ["po", "Pod", "pods", "pods.v1.", "deployments.apps", "deployments.v1.apps", "storageclass.storage"] {
//!     println!("{name} is {}", client.resource_named(name).await?.full_name());
//! }
//! let error = client.resource_named("deploymnets").await.err().expect("a typing error");
//! assert_eq!(
//!     error.to_string(),
//!     r#"the server has no resource named "deploymnets" (did you mean deployments.apps?)"#
//! );
//! for resource in client.resources_named("all").await? {
//!     println!("{}", resource.name());
//! }
//! # Ok(()) }
//! ```

#[cfg(feature = "disk-cache")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::client::Client;
#[cfg(feature = "disk-cache")]
use super::error::Error;

pub(crate) mod by_name;
#[cfg(feature = "disk-cache")]
mod disk;
pub(crate) mod documents;
mod error;
mod fetch;
pub(crate) mod mapper;
pub(crate) mod memory;
pub(crate) mod model;

pub use by_name::NamedResource;
pub use error::{DiscoveryError, UnknownName};
pub use memory::DiscoveryStatus;
pub use model::{
    DiscoveredGroup, DiscoveredResource, DiscoveredVersion, FailedGroupVersion, IncompleteDiscovery,
    ServerResources,
};

#[cfg(feature = "disk-cache")]
use disk::Disk;
use mapper::Found;
use memory::{Begun, Known, Next, Question};

/// What the server serves. Made by [`Client::discovery`]; cheap to clone.
#[derive(Debug, Clone)]
#[must_use = "it asks nothing until one of its methods is called"]
pub struct Discovery {
    client: Client,
    /// Default: [`memory::TTL`]; with a cache on disk `disk::TTL`.
    ttl: Option<Duration>,
    #[cfg(feature = "disk-cache")]
    disk: Option<Disk>,
}

impl Client {
    /// What the server serves, kept in memory for all clones of this client. Sends nothing.
    pub fn discovery(&self) -> Discovery {
        Discovery {
            client: self.clone(),
            ttl: None,
            #[cfg(feature = "disk-cache")]
            disk: None,
        }
    }

    /// The resource of this name: plural, singular, short name or kind, alone, with its group
    /// (`deployments.apps`) or with version and group (`deployments.v1.apps`), as kubectl takes it.
    ///
    /// The server is asked when nothing is known yet, when what is known is older than ten minutes, or when
    /// the name is not in it. Works in any async runtime.
    ///
    /// # Errors
    /// [`DiscoveryError::Unknown`] when the server has no such resource; it names those that were perhaps
    /// meant. [`DiscoveryError::Category`] when the name means several. [`DiscoveryError::Request`] when the
    /// server does not answer.
    pub async fn resource_named(&self, name: &str) -> Result<NamedResource, DiscoveryError> {
        self.discovery().resource_named(name).await
    }

    /// The resources of this name: those of a category, such as `all`, each in its preferred version;
    /// otherwise the one of this name. Several names may be joined by commas, as for kubectl; a resource that
    /// several of them mean is returned once.
    ///
    /// # Errors
    /// As [`Self::resource_named`].
    pub async fn resources_named(&self, names: &str) -> Result<Vec<NamedResource>, DiscoveryError> {
        self.discovery().resources_named(names).await
    }
}

impl Discovery {
    /// How old a kept answer may be. Default: ten minutes; with a cache on disk six hours, as for kubectl. An
    /// incomplete answer is requested again after at most 30 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Also keeps what is discovered on disk (feature `disk-cache`), in kubectl's layout, and begins with
    /// what is there. `directory` is what kubectl calls `--cache-dir` (`~/.kube/cache` there). Programs may
    /// share it with kubectl and with each other.
    ///
    /// Files that are too old, cut or broken are not used. Files are written so that only their owner can
    /// read them. A file that cannot be written is logged and counted ([`DiscoveryStatus::disk_failures`]);
    /// nothing fails because of it.
    ///
    /// ```no_run
    /// # async fn demo(client: actix_informer::client::Client) -> Result<(), actix_informer::Error> {
    /// let discovery = client.discovery().cached_on_disk("/var/cache/my-operator")?;
    /// let deployments = discovery.resource_named("deploy").await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a client that does not know its server's URL: one over a client of kube-rs,
    /// over a unix socket, or in process. The URL names the directory.
    #[cfg(feature = "disk-cache")]
    pub fn cached_on_disk(mut self, directory: impl AsRef<Path>) -> Result<Self, Error> {
        let url = self.client.url().ok_or_else(|| {
            Error::Unsupported(
                "a cache of discovery on disk for a client without the URL of its server".to_owned(),
            )
        })?;
        self.disk = Some(Disk::new(directory.as_ref(), &url));
        Ok(self)
    }

    /// All that the server serves. What could not be discovered is in [`ServerResources::failed`].
    ///
    /// # Errors
    /// [`DiscoveryError::Request`] when the server does not answer; [`DiscoveryError::Document`] when its
    /// answer is not a discovery document.
    pub async fn resources(&self) -> Result<Arc<ServerResources>, DiscoveryError> {
        let question = self.question(self.client.known.question(), false);
        match self.obtain(question).await? {
            Obtained::Known(known) | Obtained::HeldBack(_, known) => Ok(known.resources),
        }
    }

    /// Each resource in one version: the one that the server prefers, or else the first that has it.
    ///
    /// # Errors
    /// As [`Self::resources`].
    pub async fn preferred(&self) -> Result<Vec<Arc<DiscoveredResource>>, DiscoveryError> {
        self.resources().await.map(|resources| resources.preferred())
    }

    /// The resource of this name, see [`Client::resource_named`].
    ///
    /// # Errors
    /// As [`Client::resource_named`].
    pub async fn resource_named(&self, name: &str) -> Result<NamedResource, DiscoveryError> {
        let found = self.found(name, |server| mapper::resolve_one(server, name), false).await??;
        Ok(self.named(name, found))
    }

    /// As [`Self::resource_named`], but asks the server first, because the known resource is gone. After too
    /// many unknown names, what is known is used.
    pub(crate) async fn resource_named_anew(&self, name: &str) -> Result<NamedResource, DiscoveryError> {
        let found = self.found(name, |server| mapper::resolve_one(server, name), true).await??;
        Ok(self.named(name, found))
    }

    /// The resources of this name, see [`Client::resources_named`].
    ///
    /// # Errors
    /// As [`Client::resource_named`].
    pub async fn resources_named(&self, names: &str) -> Result<Vec<NamedResource>, DiscoveryError> {
        let mut all: Vec<NamedResource> = Vec::new();
        for name in names.split(',') {
            for found in self.found(name, |server| mapper::resolve_all(server, name), false).await? {
                if !all.iter().any(|known| known.api_resource() == &found.resource.api) {
                    all.push(self.named(name, found));
                }
            }
        }
        Ok(all)
    }

    /// The server is asked again before the next answer, still with the ETags of its last answers.
    pub fn invalidate(&self) {
        self.client.known.invalidate();
    }

    /// How often the server was asked, and with which results.
    pub fn status(&self) -> DiscoveryStatus {
        self.client.known.status()
    }

    fn named(&self, name: &str, found: Found) -> NamedResource {
        let is_new = |also: &&String| self.client.known.told.is_new(&format!("{name} {also}"));
        for also in found.also.iter().filter(|also| is_new(also)) {
            tracing::warn!(target: "actix_informer::client", name, chosen = found.resource.name(), %also,
                "the short name could also mean a resource of lower priority");
        }
        NamedResource::new(self.client.clone(), found)
    }

    fn question(&self, order: u64, newer: bool) -> Question {
        #[cfg(feature = "disk-cache")]
        let usual = if self.disk.is_some() { disk::TTL } else { memory::TTL };
        #[cfg(not(feature = "disk-cache"))]
        let usual = memory::TTL;
        Question { order, newer, ttl: self.ttl.unwrap_or(usual) }
    }

    /// If `look` finds nothing, the server is asked once more. `anew`: also before the first look.
    async fn found<T>(
        &self,
        name: &str,
        look: impl Fn(&ServerResources) -> Option<T>,
        anew: bool,
    ) -> Result<T, DiscoveryError> {
        let order = self.client.known.question();
        if !anew {
            let known = self.obtain(self.question(order, false)).await?.known();
            if let Some(found) = look(&known.resources) {
                return Ok(found);
            }
        }
        let (known, asks_again_in) = match self.obtain(self.question(order, true)).await? {
            Obtained::Known(known) => (known, None),
            Obtained::HeldBack(wait, known) => (known, Some(wait)),
        };
        look(&known.resources).ok_or_else(|| mapper::unknown(&known.resources, name, asks_again_in))
    }

    async fn obtain(&self, question: Question) -> Result<Obtained, DiscoveryError> {
        let ask = |begun| self.clone().ask(begun, question.ttl);
        loop {
            match self.client.known.next(question, ask) {
                Next::Use(known) => return Ok(Obtained::Known(known)),
                Next::HoldBack(wait, known) => return Ok(Obtained::HeldBack(wait, known)),
                Next::Ask(asking) => return asking.await.map(Obtained::Known),
                // The next turn looks at its answer.
                Next::Wait(asking) => match asking.await {
                    // The asking client was guarded and lost its lease.
                    Err(DiscoveryError::Request(error)) if error.is_not_leading() => {}
                    answer => drop(answer?),
                },
            }
        }
    }

    #[cfg_attr(
        not(feature = "disk-cache"),
        expect(unused_mut, unused_variables, reason = "only the cache on disk is asked for less")
    )]
    async fn ask(self, mut begun: Begun, ttl: Duration) -> Result<Known, DiscoveryError> {
        let memory = &self.client.known;
        #[cfg(feature = "disk-cache")]
        if let Some(disk) = &self.disk
            && let Some(known) = self.look_on_disk(disk, &mut begun, ttl).await?
        {
            return Ok(known);
        }
        memory.count(|status| status.refreshes += 1);
        let mut fetched = fetch::fetch(&self.client, memory, &begun).await?;
        if let Err(incomplete) = fetched.resources.complete()
            && memory.told.is_new(&incomplete.to_string())
        {
            tracing::warn!(target: "actix_informer::client", %incomplete, "discovery found only a part; it is asked again in 30 s");
        }
        memory.count(|status| status.is_aggregated = fetched.is_aggregated);
        let bodies = std::mem::take(&mut fetched.bodies);
        let known = memory.accept(fetched.resources, fetched.roots, &begun);
        #[cfg(feature = "disk-cache")]
        if let Some(disk) = self.disk.clone() {
            let resources = Arc::clone(&known.resources);
            let stored = self.client.blocking(move || disk.store(&resources, &bodies)).await;
            if let Err(error) = stored.map_err(stopped)? {
                memory.count(|status| status.disk_failures += 1);
                if memory.told.is_new(&error.to_string()) {
                    tracing::warn!(target: "actix_informer::client", %error, "what was discovered cannot be kept on disk");
                }
            }
        }
        Ok(known)
    }

    /// `None` if the cache may not answer; `begun` then gets its ETags.
    #[cfg(feature = "disk-cache")]
    async fn look_on_disk(
        &self,
        disk: &Disk,
        begun: &mut Begun,
        ttl: Duration,
    ) -> Result<Option<Known>, DiscoveryError> {
        let (disk, may_answer) = (disk.clone(), begun.may_read_disk);
        let missing = [begun.roots[0].is_none(), begun.roots[1].is_none()];
        let look = move || match may_answer.then(|| disk.load(ttl)).flatten() {
            Some(stored) => (Some(stored), [None, None]),
            None => (None, [0, 1].map(|at| disk.load_answer(at).filter(|_| missing[at]))),
        };
        let (stored, tagged) = self.client.blocking(look).await.map_err(stopped)?;
        for (root, tagged) in begun.roots.iter_mut().zip(tagged) {
            *root = root.take().or(tagged);
        }
        let Some(stored) = stored else { return Ok(None) };
        let resources = ServerResources { groups: stored.groups, failed: Vec::new() };
        Ok(Some(self.client.known.accept_from_disk(resources, stored.age)))
    }
}

#[cfg(feature = "disk-cache")]
fn stopped(error: Error) -> DiscoveryError {
    DiscoveryError::Request(Arc::new(error))
}

enum Obtained {
    Known(Known),
    HeldBack(Duration, Known),
}

impl Obtained {
    fn known(self) -> Known {
        match self {
            Self::Known(known) | Self::HeldBack(_, known) => known,
        }
    }
}
