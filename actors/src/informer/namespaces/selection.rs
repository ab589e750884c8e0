//! Namespaces that are selected, as they come and go.
//!
//! For the informer that follows the namespaces, what selects them is a source without objects. Each batch of a watch
//! is one change. The source has listed only when every namespace of its list has its own source, so the informer is
//! not synced before all of them have listed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, SourceId};
use informer_core::reflector::ReflectorConfig;
use informer_core::request::{ListRequest, WatchRequest};

use super::of_informer::OfInformer;
use crate::informer::Informer;
use crate::list_watch::{Connect, KnownObjects, ListStream, ListWatch, SourceSpec, WatchStream};
use crate::pipeline::messages::Body;
use crate::pipeline::namespace_set::NamespaceSet;

/// The origin of the namespaces that are followed.
pub struct Selection<S: Body>(Box<dyn FnOnce(Arc<NamespaceSet<S>>) -> SourceSpec<S> + Send>);

impl<S: Body> Selection<S> {
    /// The namespaces are the names of the objects that this source brings.
    pub fn watching<M: Body>(source: SourceSpec<M>) -> Self {
        Self(Box::new(move |set| {
            let SourceSpec { id, connect, config, cluster, .. } = source;
            let connect: Connect<S> = Arc::new(move || {
                let (namespaces, set) = (connect(), Arc::clone(&set));
                Box::new(Selected { namespaces, set, listed: Rc::default() })
            });
            let spec = SourceSpec::new(id, connect, config);
            cluster.into_iter().fold(spec, SourceSpec::in_cluster)
        }))
    }

    /// The namespaces are the names of those objects of an informer for which `selects` returns true. The
    /// source is named `id` and holds a handle of that informer. A panic of `selects` restarts the source.
    pub fn of<M: Body>(
        id: SourceId,
        namespaces: &Informer<M>,
        selects: impl Fn(&Object<M>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::watching(Self::names(id, namespaces, selects))
    }

    /// The same names as a source of names only, for [`Self::watching`].
    pub fn names<M: Body>(
        id: SourceId,
        namespaces: &Informer<M>,
        selects: impl Fn(&Object<M>) -> bool + Send + Sync + 'static,
    ) -> SourceSpec<()> {
        let of_informer = OfInformer::connect(id.clone(), namespaces.clone(), Arc::new(selects));
        // The other informer itself detects dead connections.
        let config = ReflectorConfig {
            watch_list: false,
            list_deadline: Duration::MAX,
            renew_after: Duration::MAX,
            list_permit: false,
            ..ReflectorConfig::new("namespaces")
        };
        SourceSpec::new(id, of_informer, config)
    }

    pub(crate) fn source(self, set: Arc<NamespaceSet<S>>) -> SourceSpec<S> {
        (self.0)(set)
    }
}

informer_core::debug_as!([S: Body] Selection<S>, self);

/// A source of namespaces, shown as a source without objects.
struct Selected<S: Body, M: Body> {
    namespaces: Box<dyn ListWatch<M>>,
    set: Arc<NamespaceSet<S>>,
    listed: Rc<RefCell<BTreeSet<Arc<str>>>>,
}

impl<S: Body, M: Body> ListWatch<S> for Selected<S, M> {
    fn list(&self, request: ListRequest, _known: KnownObjects<S>) -> ListStream<S> {
        let is_question = request.name.is_some();
        let (listed, set) = (Rc::clone(&self.listed), Arc::clone(&self.set));
        if request.token.is_none() && !is_question {
            listed.borrow_mut().clear();
        }
        let answer = self.namespaces.list(request, KnownObjects::nothing());
        let parts = answer.then(move |part| {
            let (listed, set) = (Rc::clone(&listed), Arc::clone(&set));
            async move {
                let part = part?;
                let is_whole = matches!(&part, ListPart::End { token, .. } if token.as_ref().is_none_or(String::is_empty));
                listed.borrow_mut().extend(names_of(&part));
                if is_whole && !is_question {
                    let names = Arc::new(listed.take());
                    set.joined(set.change(|_| names)).await;
                }
                Ok(without_objects(part))
            }
        });
        parts.boxed_local()
    }

    fn watch(&self, request: WatchRequest, _known: KnownObjects<S>) -> WatchStream<S> {
        let initial = request.initial_events.then(BTreeSet::new);
        let change = Rc::new(RefCell::new(initial));
        let set = Arc::clone(&self.set);
        let answer = self.namespaces.watch(request, KnownObjects::nothing());
        let batches = answer.then(move |parts| {
            let (initial, set) = (Rc::clone(&change), Arc::clone(&set));
            async move {
                let parts = parts?;
                let seen = see(&parts, &mut initial.borrow_mut(), &set);
                if let Some(change) = seen {
                    set.joined(change).await;
                }
                Ok(marks(&parts))
            }
        });
        batches.boxed_local()
    }

    fn get(&self, _key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<S>>, ListWatchError>> {
        async { Ok(None) }.boxed_local()
    }
}

fn names_of<M>(part: &ListPart<M>) -> Vec<Arc<str>> {
    match part {
        ListPart::Objects(objects) => {
            objects.iter().map(|object| Arc::clone(object.key().shared_name())).collect()
        }
        ListPart::Undecodable(undecodable) => vec![Arc::clone(undecodable.key.shared_name())],
        _ => Vec::new(),
    }
}

fn without_objects<M, S>(part: ListPart<M>) -> ListPart<S> {
    match part {
        ListPart::Unreadable(why) => ListPart::Unreadable(why),
        ListPart::End { version, token } => ListPart::End { version, token },
        _ => ListPart::Objects(Vec::new()),
    }
}

/// Takes the names of a batch. Returns the change, if it ends the initial events.
fn see<S, M>(
    parts: &[WatchPart<M>],
    initial: &mut Option<BTreeSet<Arc<str>>>,
    set: &NamespaceSet<S>,
) -> Option<u64> {
    let end =
        parts.iter().position(|part| matches!(part, WatchPart::Bookmark { initial_events_end: true, .. }));
    let (first, live) = match (&initial, end) {
        (Some(_), Some(end)) => parts.split_at(end),
        (Some(_), None) => (parts, &parts[..0]),
        (None, _) => (&parts[..0], parts),
    };
    if let Some(names) = initial {
        first.iter().for_each(|part| apply(names, part));
    }
    let whole = end.and_then(|_| initial.take());
    if initial.is_some() || (whole.is_none() && live.is_empty()) {
        return None;
    }
    let is_first = whole.is_some();
    let change = set.change(|before| {
        let mut names = whole.unwrap_or_else(|| before.map(|names| (**names).clone()).unwrap_or_default());
        live.iter().for_each(|part| apply(&mut names, part));
        Arc::new(names)
    });
    is_first.then_some(change)
}

fn apply<M>(names: &mut BTreeSet<Arc<str>>, part: &WatchPart<M>) {
    let Some(key) = part.key() else { return };
    if matches!(part, WatchPart::Deleted(_) | WatchPart::DeletedUndecodable(_)) {
        names.remove(key.name());
    } else {
        names.insert(Arc::clone(key.shared_name()));
    }
}

/// Bookmarks with the versions of these parts.
fn marks<M, S>(parts: &[WatchPart<M>]) -> Vec<WatchPart<S>> {
    let mark = |part: &WatchPart<M>| match part {
        WatchPart::Bookmark { version, initial_events_end } => {
            WatchPart::Bookmark { version: version.clone(), initial_events_end: *initial_events_end }
        }
        part => WatchPart::Bookmark { version: part.version().clone(), initial_events_end: false },
    };
    parts.iter().map(mark).collect()
}
