//! For unit tests of code that reads a cache or handles events. The store is that of informers, with its rules of
//! versions, uids and indices.

use std::sync::Arc;

use informer_core::delta::{Cause, Changes, WatchPart};
use informer_core::index::AnyIndex;
use informer_core::indexer::{IndexExists, Progress, Store};
use informer_core::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::off_arbiter::{PendingFree, Release};
use informer_core::snapshot::Snapshot;

use crate::lister::{FakeOrigin, Lister};
use crate::pipeline::messages::{Body, IndexCall, Notify};
use crate::pipeline::published::Published;
use crate::pipeline::shared::IndexRegistry;
use crate::supervision::group::Epoch;

/// A cache without a source: a test sets its content.
///
/// It has no status, no subscriptions and no threads. Its listers do not wait: [`Lister::wait_for`] answers at once.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// use actix_informer::fake::FakeInformer;
/// use actix_informer::informer::{Index, Lister};
/// use actix_informer::object::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
///
/// fn longest(texts: &Lister<String>) -> usize {
///     texts.snapshot().iter().map(|text| text.len()).max().unwrap_or(0)
/// }
///
/// let object = |name: &str, version, body: &str| {
///     let version = ResourceVersion::from_number(version).expect("not zero");
///     Object::new(Meta::new(ObjectKey::namespaced("shop", name), version, SourceId::default()), body.to_owned())
/// };
/// let by_length = Index::<String, usize>::new("length", |text| [text.len()]);
/// let mut texts = FakeInformer::new([object("one", 1, "red"), object("two", 2, "blue")]);
/// texts.add_index(&by_length)?;
/// assert_eq!(longest(&texts.lister()), 4);
///
/// let events = texts.apply(object("one", 3, "yellow"))?; // what a subscriber would receive
/// assert_eq!((events.len(), longest(&texts.lister())), (1, 6));
/// assert_eq!(by_length.count(&texts.snapshot(), &6)?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FakeInformer<S: Body> {
    store: Store<S>,
    published: Arc<Published<S>>,
    origin: Arc<FakeOrigin<S>>,
}

/// A state that is not newer than the one in the cache. An informer ignores such a state too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("version {given} of {key} is not newer than version {stored}, which the cache has")]
#[non_exhaustive]
pub struct NotNewer {
    /// The object.
    pub key: ObjectKey,
    /// The version in the cache.
    pub stored: ResourceVersion,
    /// The version that was given.
    pub given: ResourceVersion,
}

const NAME: &str = "fake";

impl<S: Body> FakeInformer<S> {
    /// A cache of these objects. If a key has several states, the newest one counts.
    #[must_use]
    pub fn new(objects: impl IntoIterator<Item = Object<S>>) -> Self {
        let published = Arc::new(Published::new([], Arc::new(FreesAtOnce)));
        let mut store = Store::new(published.snapshot(), Vec::new());
        let start = WatchPart::Bookmark { version: first_version(), initial_events_end: true };
        let objects = objects.into_iter().map(|object| (object.source().clone(), WatchPart::Applied(object)));
        let mut parts: Vec<_> = objects.collect();
        if parts.is_empty() {
            parts.push((SourceId::default(), start));
        }
        let snapshot = store.apply_parts(parts).snapshot;
        let origin = FakeOrigin { name: NAME.into(), indices: IndexRegistry::new(&[]) };
        let fake = Self { store, published, origin: Arc::new(origin) };
        fake.publish(snapshot);
        fake
    }

    /// Adds an index: the next snapshot has it, with all objects.
    ///
    /// # Errors
    /// [`IndexExists`] if its name is taken.
    pub fn add_index(&mut self, index: impl Into<AnyIndex<S>>) -> Result<(), IndexExists> {
        let index = index.into();
        self.store.begin_index(index.clone())?;
        self.origin.indices.add(index, IndexCall::new());
        while let Progress::More = self.store.advance(usize::MAX) {}
        self.publish(self.store.snapshot());
        Ok(())
    }

    /// Creates or changes an object, and returns what a subscriber would receive: an addition, an update, or,
    /// for another uid, a deletion and an addition.
    ///
    /// # Errors
    /// [`NotNewer`] if the cache has this version of the key, or a newer one. Nothing changes then.
    pub fn apply(&mut self, object: Object<S>) -> Result<Vec<Notify<S>>, NotNewer> {
        if let Some(stored) = self.store.snapshot().get(object.key()).map(Object::version)
            && stored >= object.version()
        {
            let (key, given) = (object.key().clone(), object.version().clone());
            return Err(NotNewer { key, stored: stored.clone(), given });
        }
        Ok(self.handle(object.source().clone(), WatchPart::Applied(object)))
    }

    /// Deletes an object, and returns what a subscriber would receive; `None` if there is none of this key.
    pub fn delete(&mut self, key: &ObjectKey) -> Option<Notify<S>> {
        let last = self.store.snapshot().get(key)?.clone();
        self.handle(last.source().clone(), WatchPart::Deleted(last)).pop()
    }

    /// A read handle, as `Informer::lister` returns. It also shows what is applied later.
    pub fn lister(&self) -> Lister<S> {
        Lister::fake(Arc::clone(&self.published), Arc::clone(&self.origin))
    }

    /// The state at this moment.
    pub fn snapshot(&self) -> Snapshot<S> {
        self.published.snapshot()
    }

    fn handle(&mut self, source: SourceId, part: WatchPart<S>) -> Vec<Notify<S>> {
        let applied = self.store.apply_parts([(source, part)]);
        self.publish(applied.snapshot);
        match applied.changes {
            Some(Changes::Parts(changes)) => changes.iter().cloned().map(Notify::from).collect(),
            _ => Vec::new(),
        }
    }

    fn publish(&self, snapshot: Snapshot<S>) {
        // The first epoch is the only one.
        let _published = self.published.publish(Epoch(0), snapshot);
        self.published.free_given_back(0);
    }
}

fn first_version() -> ResourceVersion {
    ResourceVersion::from_number(1).expect("one is not zero")
}

informer_core::debug_as!([S: Body] FakeInformer<S>, self, objects = self.snapshot().len());

/// There is no other thread.
struct FreesAtOnce;

impl Release for FreesAtOnce {
    fn release(&self, pending: PendingFree) {
        drop(pending);
    }
}

/// Events for tests of subscribers.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// use actix_informer::object::Object;
/// use actix_informer::subscription::{Cause, Notify};
///
/// fn events(old: Object<String>, new: Object<String>) -> [Notify<String>; 4] {
///     [
///         Notify::added(old.clone(), Cause::InitialList),
///         Notify::updated(old, new.clone(), Cause::Watch),
///         Notify::deleted(new.clone(), Cause::Watch), // exact: the state at the deletion
///         Notify::missed(new, Cause::Relist),         // a list found it missing
///     ]
/// }
/// ```
impl<S> Notify<S> {
    /// An object is new to the subscriber.
    pub const fn added(object: Object<S>, cause: Cause) -> Self {
        Self::Added { object, cause }
    }

    /// An object that the subscriber knows has a new state.
    pub const fn updated(old: Object<S>, object: Object<S>, cause: Cause) -> Self {
        Self::Updated { old, object, cause }
    }

    /// An object was deleted; `last` is its state at the deletion.
    pub const fn deleted(last: Object<S>, cause: Cause) -> Self {
        Self::Deleted { last, exact: true, cause }
    }

    /// An object is gone; `last` is the last state seen: its deletion was missed.
    pub const fn missed(last: Object<S>, cause: Cause) -> Self {
        Self::Deleted { last, exact: false, cause }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use informer_core::meta::{Meta, Uid};

    use super::*;
    use crate::lister::WaitForError;

    fn object(uid: &str, version: u64, body: &str) -> Object<String> {
        let version = ResourceVersion::from_number(version).expect("not zero");
        let meta = Meta::new(ObjectKey::namespaced("shop", "web"), version, SourceId::default());
        Object::new(meta.uid(Uid::new(uid)), body.to_owned())
    }

    fn lines(events: &[Notify<String>]) -> Vec<String> {
        let line = |event: &Notify<String>| match event {
            Notify::Added { object, .. } => format!("added {}", object.body()),
            Notify::Updated { old, object, .. } => format!("updated {} to {}", old.body(), object.body()),
            Notify::Deleted { last, exact, .. } => format!("deleted {} {exact}", last.body()),
        };
        events.iter().map(line).collect()
    }

    #[test]
    fn a_fake_gives_the_events_that_a_subscriber_would_receive_and_its_listers_show_each_change_at_once() {
        let mut fake = FakeInformer::new([]);
        let (lister, key) = (fake.lister(), ObjectKey::namespaced("shop", "web"));
        assert!(lister.get(&key).is_none());
        assert_eq!(lines(&fake.apply(object("u", 5, "a")).expect("newer")), ["added a"]);
        assert_eq!(lines(&fake.apply(object("u", 6, "b")).expect("newer")), ["updated a to b"]);
        assert_eq!(lister.get(&key).expect("it is there").body(), "b");
        let another = fake.apply(object("v", 7, "c")).expect("newer");
        assert_eq!(lines(&another), ["deleted b false", "added c"]);
        assert_eq!(lines(&fake.delete(&key).into_iter().collect::<Vec<_>>()), ["deleted c true"]);
        assert!(fake.delete(&key).is_none() && lister.get(&key).is_none());
    }

    #[test]
    fn a_state_that_is_not_newer_is_refused_with_both_versions() {
        let mut fake = FakeInformer::new([object("u", 5, "a")]);
        let refused = fake.apply(object("u", 5, "b")).expect_err("the same version");
        assert_eq!(
            refused.to_string(),
            "version 5 of shop/web is not newer than version 5, which the cache has"
        );
        assert_eq!(fake.lister().list()[0].body(), "a");
    }

    #[test]
    fn a_wait_on_a_fake_needs_no_executor_and_answers_at_once() {
        let fake = FakeInformer::new([object("u", 5, "a")]);
        let wait = |number| {
            let version = ResourceVersion::from_number(number).expect("not zero");
            let lister = fake.lister();
            async move { lister.wait_for(&version, Duration::from_secs(60)).await }.now_or_never()
        };
        assert_eq!(wait(5), Some(Ok(())));
        assert!(matches!(wait(6), Some(Err(WaitForError::Deadline(_)))));
    }
}
