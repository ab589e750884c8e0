//! One error for a whole program: what any step of a setup can fail with.
//!
//! The error of each step has more details and converts into this one, so `?` works across steps. Text and causes are those of
//! the wrapped error.

use informer_actors::informer::WaitForError;
use informer_actors::informer::{
    AddIndexError, AddSourceError, HandOverError, NamespacesError, NotAllReached, NotAllSynced, NotNewer,
    RemoveSourceError, ReviveError, StartError, UntilError, WaitError,
};
use informer_actors::runtime::{RuntimeError, StillRunning};
use informer_actors::subscription::{ShutdownError, SubscribeError};
use informer_core::index::UnknownIndex;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ParseClusterError, ParseKeyError, ParseVersionError};
use informer_operator::controller::StartControllerError;
use informer_operator::lifecycle::{NotReady, StartOperatorError};
use informer_operator::queue::NotDrained;

/// A failure of any step.
///
/// ```no_run
/// use actix_informer::client::Config;
/// use actix_informer::prelude::*;
/// use k8s_openapi::api::core::v1::Pod;
/// use std::time::Duration;
///
/// async fn pods_on(node: &str) -> Result<usize, actix_informer::Error> {
///     let client = Client::new(Config::from_environment(None)?)?;
///     let runtime = Runtime::threads().start()?;
///     let pods = client
///         .resource::<Pod>()
///         .informer(&runtime)?
///         .index("node", |pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()))
///         .start()?;
///     pods.synced_within(Duration::from_secs(30)).await?;
///     Ok(pods.lister().by_index("node", node)?.len())
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The client's configuration, a description or a single request.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Client(#[from] crate::client::Error),
    /// A name that means no resource, or a server whose resources cannot be discovered.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Discovery(#[from] crate::client::DiscoveryError),
    /// A factory returns no informer.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Factory(#[from] crate::factory::FactoryError),
    /// A body that could not be made of an object.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Decode(#[from] crate::representation::DecodeError),
    /// A path of a field that cannot be read, or that leads to what is not kept.
    #[cfg(feature = "client")]
    #[error(transparent)]
    FieldPath(#[from] informer_client::FieldPathError),
    /// A body that has no name or no version.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Body(#[from] crate::object::BodyError),
    /// An object did not meet a condition, by [`Api::until`](crate::client::Api::until).
    #[cfg(feature = "client")]
    #[error(transparent)]
    ApiUntil(#[from] crate::client::api::UntilError),
    /// A changed object was not written.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Commit(#[from] crate::client::api::CommitError),
    /// An event recorder did not start.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Recorder(#[from] crate::events::RecorderError),
    /// Not all events were sent.
    #[cfg(feature = "client")]
    #[error(transparent)]
    NotFlushed(#[from] crate::events::NotFlushed),
    /// A leader election did not start.
    #[cfg(feature = "client")]
    #[error(transparent)]
    LeaderElection(#[from] crate::leader_election::LeaderElectionError),
    /// A leader election has ended.
    #[cfg(feature = "client")]
    #[error(transparent)]
    ElectionOver(#[from] crate::leader_election::ElectionOver),
    /// A lease was not given back.
    #[cfg(feature = "client")]
    #[error(transparent)]
    NotReleased(#[from] crate::leader_election::NotReleased),
    /// The runtime did not start.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The runtime did not end in time.
    #[error(transparent)]
    StillRunning(#[from] StillRunning),
    /// An informer did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An informer or a subscription is not synced.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// Informers of a runtime are not synced.
    #[error(transparent)]
    WaitForAll(#[from] NotAllSynced),
    /// A version has not been published.
    #[error(transparent)]
    WaitFor(#[from] WaitForError),
    /// Versions of several informers have not been published.
    #[error(transparent)]
    WaitForVersions(#[from] NotAllReached),
    /// The answer to a write was not laid over a cache.
    #[cfg(feature = "client")]
    #[error(transparent)]
    WriteOverlay(#[from] crate::overlay::WriteOverlayError),
    /// A text that is not a selector.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Selector(#[from] crate::object::SelectorError),
    /// A cached object did not meet a condition.
    #[error(transparent)]
    Until(#[from] UntilError),
    /// No subscription was made.
    #[error(transparent)]
    Subscribe(#[from] SubscribeError),
    /// A subscription did not end in time.
    #[error(transparent)]
    Unsubscribe(#[from] ShutdownError),
    /// A controller did not start.
    #[error(transparent)]
    StartController(#[from] StartControllerError),
    /// There is no such index.
    #[error(transparent)]
    UnknownIndex(#[from] UnknownIndex),
    /// An index was not added.
    #[error(transparent)]
    AddIndex(#[from] AddIndexError),
    /// A source was not added.
    #[error(transparent)]
    AddSource(#[from] AddSourceError),
    /// A source was not removed.
    #[error(transparent)]
    RemoveSource(#[from] RemoveSourceError),
    /// The namespaces were not changed.
    #[error(transparent)]
    Namespaces(#[from] NamespacesError),
    /// Sources did not take over from others.
    #[error(transparent)]
    HandOver(#[from] HandOverError),
    /// A source that was given up was not started again.
    #[error(transparent)]
    Revive(#[from] ReviveError),
    /// A list or a watch failed.
    #[error(transparent)]
    ListWatch(#[from] ListWatchError),
    /// A fake cache has a newer state.
    #[error(transparent)]
    NotNewer(#[from] NotNewer),
    /// An operator did not start.
    #[error(transparent)]
    StartOperator(#[from] StartOperatorError),
    /// An operator is not ready.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// The probes cannot be served.
    #[cfg(feature = "probes")]
    #[error(transparent)]
    Probes(#[from] crate::probes::ProbesError),
    /// A work queue was not drained in time.
    #[error(transparent)]
    NotDrained(#[from] NotDrained),
    /// A text that is not an object's key.
    #[error(transparent)]
    Key(#[from] ParseKeyError),
    /// A text that is not a resource version.
    #[error(transparent)]
    Version(#[from] ParseVersionError),
    /// A text that is not a cluster's name.
    #[error(transparent)]
    Cluster(#[from] ParseClusterError),
}
