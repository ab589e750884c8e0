//! Reading one's own writes before the watch brings them: the handle.
//!
//! Answers "what does the cache look like with what my writes returned?" for the program that writes. Decisions are in
//! `informer_core::overlay`. Invariants:
//! 1. It is the writer's own value. No actor knows it; subscribers, listers and snapshots do not see what it shows.
//! 2. Under its lock only the core runs: no code of the caller, no index function and no drop of an object.
//! 3. Caches are looked at in the order in which they were published, by whatever threads.
//! 4. An answer about a key that the informer does not follow is refused.
//!
//! Read next: `informer_core::overlay`; `lister.rs`, which makes it.

use std::sync::{Arc, Mutex};

use informer_core::meta::{Meta, Object, ObjectKey, SourceId};
use informer_core::overlay::{
    Laid, Overlaid, Overlay as Entries, OverlayCounters, OverlayFull, OverlayLimits, Shown,
};
use informer_core::snapshot::Snapshot;

use crate::lister::Lister;
use crate::pipeline::messages::Body;
use crate::runtime::locked::locked;

/// The answers to a program's own writes, laid over the cache of one informer until the watch has them.
///
/// Cheap to clone; clones share it. Each method blocks for no longer than a look at each answer that is shown: one look-up
/// in the cache. It keeps the informer running.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// # #[cfg(feature = "testing")] {
/// use actix_informer::informer::Informer;
/// use actix_informer::runtime::Runtime;
/// # use actix_informer::object::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
/// # use actix_informer::testing::Server;
/// # use std::time::Duration;
/// # Runtime::simulated(1).run(|runtime| async move {
/// # let server = Server::<String>::new();
/// # let connected = server.clone();
/// let texts = Informer::builder(&runtime, "texts").source(move || connected.clone()).start()?;
/// # texts.synced().await?;
/// let mine = texts.lister().overlay();
/// # let key = ObjectKey::namespaced("shop", "web");
/// # let version = server.apply("shop/web", "red".to_owned());
/// # let returned = Object::new(Meta::new(key.clone(), version.clone(), SourceId::default()), "red".to_owned());
/// mine.written(returned)?; // what a write has returned
/// assert!(mine.get(&key).is_some_and(|text| text.is_written()));
/// assert!(mine.snapshot().is_written(&key)); // a snapshot that says what the cache does not have yet
/// assert!(texts.snapshot().is_empty());      // nobody else sees it
///
/// texts.lister().wait_for(&version, Duration::from_secs(30)).await?;
/// assert!(mine.get(&key).is_some_and(|text| !text.is_written())); // the watch has brought it
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap(); }
/// ```
pub struct Overlay<S: Body>(Arc<Shared<S>>);

struct Shared<S: Body> {
    lister: Lister<S>,
    entries: Mutex<Entries<S>>,
}

/// Why an answer is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverlayError {
    /// As many answers are shown as are allowed. Readers see the cache alone; [`Lister::wait_for_write`] waits until it
    /// has the write.
    #[error("informer {informer:?}: {full}")]
    Full {
        /// The informer's name.
        informer: Arc<str>,
        /// The key and the limit.
        full: OverlayFull,
    },
    /// No source of the informer covers this key, so its watch will never bring it.
    #[error("informer {informer:?} has no source that follows {key}")]
    NotFollowed {
        /// The informer's name.
        informer: Arc<str>,
        /// The key.
        key: ObjectKey,
    },
}

impl<S: Body> Lister<S> {
    /// A place for the answers to one's own writes, with the default limits.
    pub fn overlay(&self) -> Overlay<S> {
        self.overlay_with(OverlayLimits::default())
    }

    /// As [`Self::overlay`], with other limits. Time is that of the runtime's clock; a fake has none.
    pub fn overlay_with(&self, limits: OverlayLimits) -> Overlay<S> {
        let entries = Mutex::new(Entries::new(limits));
        Overlay(Arc::new(Shared { lister: self.clone(), entries }))
    }
}

impl<S: Body> Overlay<S> {
    /// A write has returned this object. Readers of this overlay see it until the watch has it, or something newer.
    ///
    /// An object that the informer's selectors leave out is laid by [`Self::left`]: this crate does not know them.
    ///
    /// # Errors
    /// [`OverlayError`]. Nothing has changed then.
    pub fn written(&self, object: Object<S>) -> Result<Laid, OverlayError> {
        let sources = self.sources(object.key())?;
        self.lay(|entries, cache, now| entries.handle_written(cache, object, &sources, now))
    }

    /// A write has returned an object that the informer does not select, perhaps not any more. Readers of this overlay do
    /// not see it.
    ///
    /// # Errors
    /// As [`Self::written`].
    pub fn left(&self, object: &Meta) -> Result<Laid, OverlayError> {
        let sources = self.sources(&object.key)?;
        self.lay(|entries, cache, now| entries.handle_left(cache, object, &sources, now))
    }

    /// The server has answered to a deletion that this object is gone. Readers of this overlay do not see this life of
    /// its key; another uid is another life. The version is the newest one that is known of it.
    ///
    /// An object that has only begun to end, because it has finalizers or a grace period, is laid by [`Self::written`].
    ///
    /// # Errors
    /// As [`Self::written`].
    pub fn deleted(&self, last: &Meta) -> Result<Laid, OverlayError> {
        let sources = self.sources(&last.key)?;
        self.lay(|entries, cache, now| entries.handle_deleted(cache, last, &sources, now))
    }

    /// The source that follows this key, to be named by its object; the first one where several may. `None` if none does.
    pub fn source_of(&self, key: &ObjectKey) -> Option<SourceId> {
        self.0.lister.sources_of(key).into_iter().next()
    }

    /// The newest state of one key: what a write of ours has returned, or what the cache has.
    pub fn get(&self, key: &ObjectKey) -> Option<Shown<S>> {
        self.with(|entries, cache, now| entries.get(cache, key, now))
    }

    /// The newest snapshot with the answers laid over it. It reads like a [`Snapshot`], by index and selector too, and says
    /// what was laid over. The index functions of the informer are called here for each answer that is shown.
    pub fn snapshot(&self) -> Overlaid<S> {
        let (laid, cache) = self.with(|entries, cache, now| {
            entries.end_entries(cache, now);
            (entries.copied(), cache.clone())
        });
        laid.over(&cache, &self.0.lister.indices())
    }

    /// What became of all answers so far.
    pub fn counters(&self) -> OverlayCounters {
        self.with(|entries, cache, now| {
            entries.end_entries(cache, now);
            entries.counters()
        })
    }

    /// How many answers are shown.
    pub fn len(&self) -> usize {
        self.with(|entries, cache, now| {
            entries.end_entries(cache, now);
            entries.len()
        })
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The read handle without the answers.
    pub fn lister(&self) -> &Lister<S> {
        &self.0.lister
    }

    fn lay(
        &self,
        handle: impl FnOnce(&mut Entries<S>, &Snapshot<S>, std::time::Duration) -> Result<Laid, OverlayFull>,
    ) -> Result<Laid, OverlayError> {
        let informer = || self.0.lister.informer_name();
        self.with(handle).map_err(|full| OverlayError::Full { informer: informer(), full })
    }

    /// Runs the core under the lock with the newest cache. What it gives up is dropped after the lock.
    fn with<T>(&self, run: impl FnOnce(&mut Entries<S>, &Snapshot<S>, std::time::Duration) -> T) -> T {
        let now = self.0.lister.now();
        let mut entries = locked(&self.0.entries);
        let cache = self.0.lister.snapshot();
        let given = run(&mut entries, &cache, now);
        let ended = entries.take_ended();
        drop(entries);
        drop((cache, ended));
        given
    }

    fn sources(&self, key: &ObjectKey) -> Result<Vec<SourceId>, OverlayError> {
        let sources = self.0.lister.sources_of(key);
        if sources.is_empty() {
            let informer = self.0.lister.informer_name();
            return Err(OverlayError::NotFollowed { informer, key: key.clone() });
        }
        Ok(sources)
    }
}

informer_core::clone_of!([S: Body] Overlay<S>);

informer_core::debug_as!([S: Body] Overlay<S>, self, informer = self.0.lister.informer_name());
