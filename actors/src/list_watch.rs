//! The only hole through which the outside world comes in: a source that lists, watches and gets.
//!
//! Answers "what must something offer to be informed about?": Kubernetes through the client of `actix-informer`,
//! or anything else with keys and versions. The reflector decides what is asked for and when. Invariants:
//! 1. One call is one request. A source never retries, pages or reconnects by itself.
//! 2. A watch's first item arrives with the head of the answer, even if it is empty: it means "accepted".
//! 3. Dropping a stream ends its request.
//! 4. A list without [`ListPart::End`] is no list.
//!
//! Read next: `reflector.rs`, the only caller.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::LocalBoxStream;
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ClusterName, Object, ObjectKey};
use informer_core::namespaces::Names;
use informer_core::request::{ListRequest, WatchRequest};

use crate::pipeline::published::Published;
pub use crate::pipeline::source_spec::{Coverage, SelectorInput, SourceSpec};

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
    /// Asks for one page of a list. An object that `known` already holds in this very version need not be read
    /// again: the source may give back the known one.
    fn list(&self, request: ListRequest, known: KnownObjects<S>) -> ListStream<S>;

    /// Opens one watch. Yields an empty batch as soon as the request has been accepted, then what happens.
    fn watch(&self, request: WatchRequest, known: KnownObjects<S>) -> WatchStream<S>;

    /// Asks for one object; `None` if it is gone or outside the selectors of this source.
    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<S>>, ListWatchError>>;

    /// What may be the reason that there is nothing, such as a namespace that does not exist: asked once, after a first list
    /// that is empty, and shown in the source's status until something comes. `None` if nothing is known: the default.
    fn explain_nothing(&self) -> LocalBoxFuture<'static, Option<Arc<str>>> {
        std::future::ready(None).boxed_local()
    }
}

/// Makes a source on the arbiter of its reflector; called at the start and at every restart.
pub type Connect<S> = Arc<dyn Fn() -> Box<dyn ListWatch<S>> + Send + Sync>;

/// What is published already, for a source that wants to skip unchanged objects, and which namespaces are kept, for one
/// that wants to skip others. Holds no reference to the informer.
pub struct KnownObjects<S> {
    published: Option<Arc<Published<S>>>,
    namespaces: Option<Names>,
}

impl<S> KnownObjects<S> {
    /// Reads what `published` holds at the moment of each question; of a request that keeps only these namespaces.
    pub(crate) fn new(published: Option<Arc<Published<S>>>, namespaces: Option<Names>) -> Self {
        Self { published, namespaces }
    }

    /// Knows nothing: every object is read anew. After a rewind, equal versions prove nothing.
    pub fn nothing() -> Self {
        Self { published: None, namespaces: None }
    }

    /// Knows nothing of objects, and keeps the same namespaces.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self { published: None, namespaces: self.namespaces.clone() }
    }

    /// The published object of this key, if any. Reads the newest frame; wait-free.
    pub fn get(&self, key: &ObjectKey) -> Option<Object<S>> {
        self.published.as_ref()?.get(key)
    }

    /// Whether objects of this namespace are kept. A source may drop others unread: of a list it leaves them out, of a
    /// watch it makes them bookmarks of their version. What it does not drop is dropped later.
    pub fn follows(&self, namespace: Option<&str>) -> bool {
        let Some(names) = &self.namespaces else { return true };
        namespace.is_some_and(|namespace| names.contains(namespace))
    }

    /// The published object of this name, with the cluster and the namespace if it has them. The same as
    /// [`Self::get`] without a key: nothing is allocated.
    pub fn named(
        &self,
        cluster: Option<&ClusterName>,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Object<S>> {
        self.published.as_ref()?.named((cluster, namespace), name)
    }
}

informer_core::clone_of!([S] KnownObjects<S> { published, namespaces });

impl<S> fmt::Debug for KnownObjects<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.published.is_some() { "Known(published)" } else { "Known(nothing)" })
    }
}
