//! Leader election by a Lease.
//!
//! 1. A lease of another candidate is judged by when it was seen to change here, never by its times.
//! 2. A client made by [`LeaderElection::guard`] begins no request after the end of the term in which its
//!    caller began it, also if the process was stopped or the machine suspended before its first byte. The
//!    clock counts suspensions on Linux, Android and Apple's systems; elsewhere it may not.
//! 3. Labels and fields of the Lease that are not the election's stay.
//! 4. The election's requests have their own connections and do not wait for the client's limits. Over
//!    `Client::from_kube` they share its connections and layers: give the election a separate client there.
//!
//! Another process may lead between two terms of one process: work that goes on into the second would write
//! old decisions. An [`Operator`](crate::lifecycle::Operator) prevents that; without one,
//! [`Term::begin_work`] or a client of the term, [`ForTerm::for_term`], does.
//!
//! ```
//! use std::time::Duration;
//!
//! use actix_informer::leader_election::{LeaderElection, LeaseName};
//! use actix_informer::prelude::*;
//! use actix_informer::testing::ApiServer;
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::builder().start().await?; // or a cluster: Client::from_environment()
//! let client = Client::new(Config::new(server.url())?)?;
//! let runtime = Runtime::threads().start()?;
//! let lease = LeaseName { namespace: "default", name: "website-operator" };
//! let election = LeaderElection::builder(&client, &runtime, lease).start()?;
//!
//! let term = election.acquired().await?; // as long as another replica leads, this waits
//! let leading = election.guard(&client); // give this one to what only the leader may do
//! println!("leads, with the fencing number {}", term.fence());
//! let maps = leading.api::<ConfigMap>().namespaced("default");
//! assert!(maps.get_opt("prices").await?.is_none());
//!
//! // … work until `term.ended()`; then stop the work, and give the lease back:
//! election.shutdown(Duration::from_secs(5)).await?;
//! assert!(maps.get_opt("prices").await.is_err_and(|error| error.is_not_leading()));
//! # Ok(()) }
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::election::{self, MakeLock, unique_identity};
pub use crate::election::{
    ElectionFigures, ElectionOver, ElectionStatus, NotReleased, Settings, SettingsError, Term, TermWork,
    Unhealthy, Validity, WhyNot,
};
use informer_actors::runtime::Runtime;

use informer_client::inner::SendGuard;

use informer_client::{Client, Error as ClientError};
use lease::Names;
use lock::ServerLock;

mod candidate;
mod lease;
mod lock;

/// An election that was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderElectionError {
    /// The settings do not fit together, or the system has no thread.
    #[error(transparent)]
    Start(#[from] election::StartError),
    /// A name from which no path can be made.
    #[error(transparent)]
    Name(ClientError),
}

/// A candidate of an election, and the leader when it has the lease.
///
/// Cloning is cheap. When the last handle is dropped, a term ends at once and the lease is left to run out;
/// [`shutdown`](crate::election::Election::shutdown) gives it back. What it can do besides [`Self::guard`] is
/// described at [`crate::election::Election`], to which it derefs: `begin`, `is_leader`, `fence`, `acquired`,
/// `lost`, `health`, `status`, `shutdown`.
#[derive(Debug, Clone)]
pub struct LeaderElection(election::Election);

/// The Lease of an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an object of Kubernetes has these two")]
pub struct LeaseName<'a> {
    /// Its namespace, usually that of the program's pod.
    pub namespace: &'a str,
    /// Its name, usually that of the program.
    pub name: &'a str,
}

/// The settings of an election that is not started yet.
#[must_use = "a builder does nothing until `start`"]
pub struct LeaderElectionBuilder {
    client: Client,
    runtime: Runtime,
    names: Names,
    settings: Settings,
}

impl LeaderElection {
    /// The builder of a candidate for this Lease, with client-go's durations and an identity of its own: the variable `HOSTNAME`, which is the pod's name in a cluster, and random digits.
    pub fn builder(client: &Client, runtime: &Runtime, lease: LeaseName<'_>) -> LeaderElectionBuilder {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| format!("process-{}", std::process::id()));
        LeaderElectionBuilder {
            client: client.clone(),
            runtime: runtime.clone(),
            names: Names {
                namespace: lease.namespace.to_owned(),
                name: lease.name.to_owned(),
                labels: BTreeMap::new(),
                version: None,
            },
            settings: Settings::new(unique_identity(runtime, &host)),
        }
    }

    /// The same client for the work of the leader. A request is refused with
    /// [`TransportError::NotLeading`](informer_client::TransportError::NotLeading) if this process does not
    /// lead when the request is begun, or if that term has ended when its first byte would be written: also
    /// after a wait, a retry, a new connection that took long, or a stop of the process, and also if the next
    /// term has begun by then. A refused request has reached nobody. A request that was begun before goes on
    /// and may arrive, so write new state with `resourceVersion`s, as
    /// [`Api::replace`](informer_client::Api::replace) does.
    ///
    /// Over [`Client::from_kube`](informer_client::Client) the last check comes when hyper hands the request
    /// to its connection, whose task writes it then; a client whose answers do not come from hyper is checked
    /// before it gets the request. Which of the two it is, is known from its first answer, guarded or not. A
    /// guarded request whose term ends before that first answer is dropped, with the error of a broken
    /// connection: it may have been sent. hyper's own retry is described at `Client::from_kube`.
    ///
    /// Work that goes on from a lost term into the next one of the same process begins new requests, which
    /// are not refused: they are begun in the next term. The same holds for a call that makes several
    /// requests, as [`Api::modify`](informer_client::Api::modify). Nothing that an
    /// [`Operator`](crate::lifecycle::Operator) knows as leader's work does so; it does not know what a
    /// reconcile has spawned. Elsewhere see [`Term::begin_work`] and [`ForTerm::for_term`].
    ///
    /// It shares the connections and the thread of `client`. Informers that are made of it are refused
    /// requests, too.
    pub fn guard(&self, client: &Client) -> Client {
        client.guarded(OfLease(self.0.validity()))
    }
}

struct OfLease(Validity);

impl SendGuard for OfLease {
    fn lease(&self) -> &Arc<str> {
        self.0.lease()
    }

    fn bound(&self) -> Option<Arc<dyn SendGuard>> {
        self.0.bound().map(|bound| Arc::new(Self(bound)) as _)
    }

    fn may_begin(&self) -> bool {
        self.0.may_begin()
    }
}

/// A client for the work of a term. In the prelude.
pub trait ForTerm {
    /// The same client for work of this term: each request is refused when the term has ended, for good. In
    /// everything else it is as one of [`LeaderElection::guard`], which serves all terms.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use actix_informer::leader_election::{LeaderElection, LeaseName};
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = actix_informer::testing::ApiServer::builder().start().await?;
    /// # let client = Client::new(Config::new(server.url())?)?;
    /// # let runtime = Runtime::threads().start()?;
    /// # let lease = LeaseName { namespace: "default", name: "website-operator" };
    /// # let election = LeaderElection::builder(&client, &runtime, lease).start()?;
    /// let term = election.acquired().await?;
    /// let maps = client.for_term(&term).api::<ConfigMap>().namespaced("default");
    /// assert!(maps.get_opt("prices").await?.is_none());
    /// # election.shutdown(Duration::from_secs(5)).await?;
    /// # assert!(maps.get_opt("prices").await.is_err_and(|error| error.is_not_leading()));
    /// # Ok(()) }
    /// ```
    #[must_use = "the client that it is called on stays as it is"]
    fn for_term(&self, term: &Term) -> Self;
}

impl ForTerm for Client {
    fn for_term(&self, term: &Term) -> Self {
        self.guarded(OfLease(term.validity()))
    }
}

impl Deref for LeaderElection {
    type Target = election::Election;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl LeaderElectionBuilder {
    /// The name of this candidate. No other candidate of the lease may have it. In a coordinated election it
    /// is the name of an object: lower-case letters, digits, `-` and `.`.
    pub fn identity(mut self, identity: impl Into<Arc<str>>) -> Self {
        self.settings.identity = identity.into();
        self
    }

    /// How long others wait, after they have seen a renewal, before they take the lease. Written in whole
    /// seconds, rounded up. 15 s unless set.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.settings.lease_duration = duration;
        self
    }

    /// How long after the last renewal was sent the term ends. It must be shorter than the lease duration: a
    /// request that was sent shortly before the end has the difference to arrive. 10 s unless set.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.settings.renew_deadline = deadline;
        self
    }

    /// The time between two attempts of the leader; other candidates wait up to 2.2 times as long. 2 s unless
    /// set.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.settings.retry_period = period;
        self
    }

    /// A label of the Lease. Other labels stay.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.names.labels.insert(key.into(), value.into());
        self
    }

    /// Takes part in a coordinated election: this candidate registers with its version as a LeaseCandidate,
    /// and a controller of the server chooses the candidate with the oldest version. The server needs the
    /// feature gate `CoordinatedLeaderElection`, and serves `LeaseCandidate` in `v1beta1` or `v1alpha2`.
    ///
    /// A shutdown deletes the registration. After a crash it stays: the controller asks the candidate before
    /// it chooses it and passes over one that does not answer, and the server deletes a registration that
    /// nobody has renewed for half an hour.
    pub fn coordinated(mut self, version: impl Into<String>) -> Self {
        self.names.version = Some(version.into());
        self.settings.coordinated = true;
        self
    }

    /// Starts the candidate, on a thread of its own. It takes part at once.
    ///
    /// # Errors
    /// When durations do not fit together, a name cannot be one, or the system has no thread.
    pub fn start(self) -> Result<LeaderElection, LeaderElectionError> {
        let election = self.declare()?;
        election.begin();
        Ok(election)
    }

    /// As [`Self::start`], but the candidate takes part only from [`begin`](election::Election::begin) on: no
    /// request is sent before. As a part of an [`Operator`](crate::lifecycle::Operator) it begins when the
    /// caches are filled, so that no replica has the lease before it can work. Clients can be guarded before.
    ///
    /// ```
    /// # use actix_informer::{leader_election::{LeaderElection, LeaseName}, operator::{Operator, task, PartContext}, prelude::*};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use std::time::Duration;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = actix_informer::testing::ApiServer::builder().start().await?;
    /// # let client = Client::new(Config::new(server.url())?)?;
    /// # let runtime = Runtime::threads().start()?;
    /// # let work = task("work", |context: PartContext| async move { context.ready(); context.stopping().await; Ok(()) });
    /// let pods = client.resource::<Pod>().informer(&runtime)?.declare()?;
    /// let lease = LeaseName { namespace: "default", name: "website-operator" };
    /// let election = LeaderElection::builder(&client, &runtime, lease).declare()?;
    /// let operator = Operator::builder(&runtime).cache(pods).election(election.clone()).leader_work(work).start()?;
    /// election.acquired().await?; // the cache is filled
    /// assert!(operator.drain().await.is_clean());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn declare(self) -> Result<LeaderElection, LeaderElectionError> {
        let Self { client, runtime, names, settings } = self;
        names.check(&settings.identity).map_err(LeaderElectionError::Name)?;
        let (lease, names) = (format!("{}/{}", names.namespace, names.name), Arc::new(names));
        let (backend, identity) = (client.backend().without_limits(), Arc::clone(&settings.identity));
        runtime.observe(backend.traffic());
        let lock: MakeLock = Arc::new(move || {
            Box::new(ServerLock::new(backend.transport(), Arc::clone(&names), Arc::clone(&identity)))
        });
        Ok(LeaderElection(election::Election::declare(&runtime, lease, settings, lock)?))
    }
}

impl fmt::Debug for LeaderElectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Names { namespace, name, .. } = &self.names;
        f.debug_struct("LeaderElectionBuilder")
            .field("lease", &format!("{namespace}/{name}"))
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
