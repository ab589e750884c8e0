//! The interface to the outside world: a source that lists, watches and gets objects.
//!
//! One call is one request: a source never retries, pages or reconnects. The drop of a stream ends its request. A
//! list without [`ListPart::End`] is no list.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::LocalBoxStream;
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ClusterName, Object, ObjectKey, ResourceVersion};
use informer_core::namespaces::Names;
use informer_core::path::PastBody;
use informer_core::request::{ListRequest, WatchRequest};
use informer_core::snapshot::Snapshot;

use crate::pipeline::published::Published;
pub use crate::pipeline::source_spec::{Coverage, SelectorInput, SourceSpec};
use crate::runtime::Arrival;
pub use crate::runtime::saved::SavedNote;
pub use crate::runtime::sizes::ObjectSample;

/// The answer to one list request: parts as they arrive.
pub type ListStream<S> = LocalBoxStream<'static, Result<ListPart<S>, ListWatchError>>;
/// The answer to one watch request: batches of parts as they arrive.
pub type WatchStream<S> = LocalBoxStream<'static, Result<Vec<WatchPart<S>>, ListWatchError>>;

/// A source of objects. It lives on its reflector's arbiter and need not be `Send`.
///
/// Every part must carry the [`informer_core::meta::SourceId`] that the source was made for. The example
/// `custom_source` implements it for something that is not Kubernetes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a source of `{S}` objects",
    label = "it does not implement `ListWatch<{S}>`",
    note = "a source lists, watches and gets objects whose body is `{S}`; the example `custom_source` has one"
)]
pub trait ListWatch<S> {
    /// Requests one page of a list. An object that `known` already holds in this very version need not be
    /// read again: the source may return the known one.
    fn list(&self, request: ListRequest, known: KnownObjects<S>) -> ListStream<S>;

    /// Opens one watch. The first item is an empty batch, as soon as the head of the answer has arrived: it
    /// means "accepted". Then the events follow.
    fn watch(&self, request: WatchRequest, known: KnownObjects<S>) -> WatchStream<S>;

    /// Requests one object; `None` if it is gone or outside the selectors of this source.
    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<S>>, ListWatchError>>;

    /// A possible reason why there is nothing, such as a namespace that does not exist. Called once, after a
    /// first list that is empty. The source's status shows the reason until something comes. `None` if
    /// nothing is known, which is the default.
    fn explain_nothing(&self) -> LocalBoxFuture<'static, Option<Arc<str>>> {
        std::future::ready(None).boxed_local()
    }
}

/// Makes a source on its reflector's arbiter. Called at the start and at every restart.
pub type Connect<S> = Arc<dyn Fn() -> Box<dyn ListWatch<S>> + Send + Sync>;

/// What is already published, for a source that skips unchanged objects, and which namespaces are kept, for
/// one that skips others. Holds no reference to the informer.
pub struct KnownObjects<S> {
    published: Option<Arc<Published<S>>>,
    /// Equal versions prove nothing: every object is read again.
    is_anew: bool,
    namespaces: Option<Names>,
    arrival: Option<Arc<Arrival>>,
}

impl<S> KnownObjects<S> {
    /// Reads `published` at each call.
    pub(crate) fn new(
        (published, is_anew): (&Arc<Published<S>>, bool),
        namespaces: Option<Names>,
        arrival: &Arc<Arrival>,
    ) -> Self {
        let (published, arrival) = (Some(Arc::clone(published)), Some(Arc::clone(arrival)));
        Self { published, is_anew, namespaces, arrival }
    }

    /// The time since the runtime's start, if somebody asks for the [`Paths`](crate::runtime::Paths) of
    /// objects. Costs a load if nobody does.
    pub fn now(&self) -> Option<Duration> {
        self.arrival.as_ref()?.now()
    }

    /// A source says when the bytes of the next batch of a watch were read, and when they were cut into
    /// events, if [`Self::now`] said the time then. It calls this before it returns the batch.
    pub fn note_arrival(&self, times: Option<(Duration, Duration)>) {
        if let Some(arrival) = &self.arrival {
            arrival.note(times);
        }
    }

    /// Whether the states of this object are kept, to be shown: [`Paths::follow`](crate::runtime::Paths::follow).
    /// Costs a load while no key is followed.
    pub fn keeps_states_of(&self, key: &ObjectKey) -> bool {
        self.arrival.as_ref().is_some_and(|arrival| arrival.keeps_states_of(key))
    }

    /// A source has read this state of an object whose states are kept. It leaves out of a text what nobody may
    /// see.
    pub fn note_state(&self, key: &ObjectKey, version: &ResourceVersion, body: PastBody) {
        if let Some(arrival) = &self.arrival {
            arrival.note_state(key, version, body);
        }
    }

    /// Whether the object that is decoded now is a sample of its informer's; the source then says what it weighs.
    /// A source asks once for each object that it decodes.
    pub fn is_sampled(&self) -> bool {
        self.arrival.as_ref().is_some_and(|arrival| arrival.sizes().is_sampled())
    }

    /// What a sample weighs.
    pub fn note_sample(&self, sample: ObjectSample) {
        if let Some(arrival) = &self.arrival {
            arrival.sizes().note(sample);
        }
    }

    /// Knows nothing, so every object is read again. After a rewind, equal versions prove nothing.
    pub fn nothing() -> Self {
        Self { published: None, is_anew: true, namespaces: None, arrival: None }
    }

    /// Knows no objects, and keeps the same namespaces.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self { is_anew: true, ..self.clone() }
    }

    /// The published object of this key, if any. Reads the newest snapshot; wait-free.
    pub fn get(&self, key: &ObjectKey) -> Option<Object<S>> {
        self.compared()?.get(key)
    }

    fn compared(&self) -> Option<&Arc<Published<S>>> {
        self.published.as_ref().filter(|_| !self.is_anew)
    }

    /// The newest snapshot, with the objects of other sources of the informer; also where [`Self::get`] knows
    /// nothing. `None` without an informer. Wait-free.
    pub fn snapshot(&self) -> Option<Snapshot<S>> {
        Some(self.published.as_ref()?.snapshot())
    }

    /// A source says something of the file to which it saves its objects, for the informer's status and the log.
    pub fn note_saved(&self, note: SavedNote) {
        if let Some(arrival) = &self.arrival {
            arrival.note_saved(note);
        }
    }

    /// The time of day, in simulation the simulated one.
    pub fn wall_time(&self) -> SystemTime {
        self.arrival.as_ref().map_or(SystemTime::UNIX_EPOCH, |arrival| arrival.wall_time())
    }

    /// The bodies of the objects have another size than their samples had: so many bytes in the mean.
    pub fn note_kept(&self, mean: u64) {
        if let Some(arrival) = &self.arrival {
            arrival.sizes().note_kept(mean);
        }
    }

    /// Whether objects of this namespace are kept. A source may drop others unread: it leaves them out of a
    /// list, and turns them into bookmarks of their version in a watch. What it does not drop is dropped
    /// later.
    pub fn follows(&self, namespace: Option<&str>) -> bool {
        let Some(names) = &self.namespaces else { return true };
        namespace.is_some_and(|namespace| names.contains(namespace))
    }

    /// The published object of this name, with the cluster and the namespace if it has them. Like
    /// [`Self::get`], but needs no key and allocates nothing.
    pub fn named(
        &self,
        cluster: Option<&ClusterName>,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Object<S>> {
        self.compared()?.named((cluster, namespace), name)
    }
}

informer_core::clone_of!([S] KnownObjects<S> { published, is_anew, namespaces, arrival });

impl<S> fmt::Debug for KnownObjects<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.compared().is_some() { "Known(published)" } else { "Known(nothing)" })
    }
}
