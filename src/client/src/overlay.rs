//! The answers to a program's writes, laid over the cache of an informer until the watch has them.
//!
//! 1. An answer passes the same prune, transform and representation as an event of the watch.
//! 2. An answer that the informer does not select, by its labels or its name, hides the object. One about a
//!    key that the informer does not follow is refused.
//! 3. Under its lock only the machine runs: no code of the caller, no index function and no drop of an
//!    object. The cache is read under the lock, so that caches are seen in the order of their publication.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_actors::informer::Lister;
use informer_actors::inner::{Below, locked};
use informer_core::meta::{ClusterName, Meta, Object, ObjectKey, SourceId, Uid};
use informer_core::snapshot::Snapshot;
use informer_core::words::panic_text;
use kube_core::Resource;
use serde::Serialize;

use crate::ResourceSource;
use crate::api::Deleted;
use crate::object::{BodyError, meta_of};
use crate::representation::{DecodeError, Encoded, Prune, Representation};
use crate::selector::{FieldTerms, LabelSelector};

use machine::Overlay;

pub use machine::{Laid, Overlaid, OverlayCounters, OverlayFull, OverlayLimits, Shown};

mod machine;

/// What a program's writes to one kind have returned, over the cache of an informer of that kind.
///
/// Made by [`ResourceSource::overlay`]; cheap to clone, and clones share it. Only its readers see what it
/// shows: subscribers get what the watch brings. Each answer ends when the watch has it or something newer,
/// at the latest after the time of its [`OverlayLimits`]. Each method blocks for at most one look-up in the
/// cache for each answer that is shown. It keeps the informer running.
///
/// ```no_run
/// use actix_informer::prelude::*;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
///
/// async fn demo(client: Client, runtime: Runtime) -> Result<(), actix_informer::Error> {
///     let shop = client.resource::<ConfigMap>().namespace("shop");
///     let maps = shop.clone().informer(&runtime)?.start()?;
///     let mine = shop.overlay(&maps)?;
///
///     let api = client.api::<ConfigMap>().namespaced("shop");
///     let apple = Patch::Merge(json!({"data": {"apple": "12"}}));
///     mine.written(&api.patch("prices", &PatchParams::default(), &apple).await?)?;
///     let prices = mine.get(&"shop/prices".parse()?).expect("it was written");
///     assert_eq!(prices.data.as_ref().map(|data| data["apple"].as_str()), Some("12")); // before the watch has it
///
///     let old = "shop/old".parse()?;
///     mine.deleted(&old, &api.delete("old", &DeleteParams::default()).await?)?;
///     for map in mine.snapshot().iter() {
///         println!("{} is ours: {}", map.key(), mine.snapshot().is_written(map.key()));
///     }
///     Ok(())
/// }
/// ```
pub struct WriteOverlay<K, R: Representation>(Arc<Shared<K, R>>);

struct Shared<K, R: Representation> {
    lister: Lister<R::Body>,
    answers: Mutex<Overlay<R::Body>>,
    representation: Arc<R>,
    prune: Prune,
    labels: LabelSelector,
    fields: FieldTerms,
    cluster: Option<ClusterName>,
    kind: PhantomData<fn(K)>,
}

/// Why the answer to a write is not shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteOverlayError {
    /// It has no name or no version.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The informer would not keep it: it does not decode, or the transform failed.
    #[error("{key}: {source}")]
    Keep {
        /// Its key.
        key: ObjectKey,
        /// Why.
        source: DecodeError,
    },
    /// As many answers are shown as are allowed. Readers see the cache alone; [`Lister::wait_for_write`]
    /// waits until it has the write.
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

impl<K, R: Representation> ResourceSource<K, R> {
    /// An overlay for what is written to this kind, over the cache of an informer that was made of this
    /// description, or what a [`Lister`] of a fake reads.
    ///
    /// # Errors
    /// [`Error::Selector`](crate::Error::Selector) when a selector cannot be parsed, as by
    /// [`Self::informer`].
    pub fn overlay(&self, cache: impl Into<Lister<R::Body>>) -> Result<WriteOverlay<K, R>, crate::Error> {
        self.overlay_with(cache, OverlayLimits::default())
    }

    /// As [`Self::overlay`], with other limits than the default ones. Time is that of the runtime's clock; a
    /// fake has none.
    ///
    /// # Errors
    /// As there.
    pub fn overlay_with(
        &self,
        cache: impl Into<Lister<R::Body>>,
        limits: OverlayLimits,
    ) -> Result<WriteOverlay<K, R>, crate::Error> {
        let (representation, prune, scope, cluster) = self.kept();
        scope.check()?;
        let labels = scope.labels.as_deref().unwrap_or_default().parse();
        let fields = FieldTerms::parse(scope.fields.as_deref().unwrap_or_default());
        Ok(WriteOverlay(Arc::new(Shared {
            lister: cache.into(),
            answers: Mutex::new(Overlay::new(limits)),
            representation,
            prune,
            labels: labels.expect("the label selector was just checked"),
            fields: fields.expect("the field selector was just checked"),
            cluster: cluster.cloned(),
            kind: PhantomData,
        })))
    }
}

impl<K: Resource + Serialize, R: Representation> WriteOverlay<K, R> {
    /// A create, a replace, a patch or an apply has returned this object. Costs about as much as decoding it.
    ///
    /// Of the informer's field selector only `metadata.name` and `metadata.namespace` are known here: an
    /// object that other fields exclude is shown until the watch has passed its version. A typed answer lacks
    /// the fields that its type does not know: write by a dynamic `Api` if the informer is dynamic.
    ///
    /// # Errors
    /// [`WriteOverlayError`]; then readers see the cache alone.
    pub fn written(&self, answer: &K) -> Result<Laid, WriteOverlayError> {
        let (meta, sources) = self.meta(answer)?;
        if !self.is_selected(answer, &meta.key) {
            return self.lay(|overlay, cache, now| overlay.handle_left(cache, &meta, &sources, now));
        }
        let body = self.body(answer);
        let (body, bytes) =
            body.map_err(|source| WriteOverlayError::Keep { key: meta.key.clone(), source })?;
        let object = Object::new(meta.wire_bytes(u32::try_from(bytes).unwrap_or(u32::MAX)), body);
        self.lay(|overlay, cache, now| overlay.handle_written(cache, object, &sources, now))
    }

    /// A deletion of the object of this key has returned this answer. An object that is gone is hidden. One
    /// that still waits for its finalizers or its grace period is shown as it is. If the answer names no
    /// object, it means the one that is shown.
    ///
    /// # Errors
    /// As [`Self::written`].
    pub fn deleted(&self, key: &ObjectKey, answer: &Deleted<K>) -> Result<Laid, WriteOverlayError> {
        match answer {
            Deleted::Object(object) if remains(object) => self.written(object),
            Deleted::Object(object) => self.hide(self.meta(object)?),
            Deleted::Status(status) => {
                let uid = status.details.as_ref().and_then(|details| Uid::new(&details.uid));
                let shown = self.get(key);
                let meant = shown.filter(|shown| uid.is_none() || shown.object_uid() == uid.as_ref());
                let last = meant.map(|last| last.cached_meta().clone());
                last.map_or(Ok(Laid::Outdated), |last| self.hide((last, self.sources(key)?)))
            }
        }
    }

    fn hide(&self, (last, sources): (Meta, Vec<SourceId>)) -> Result<Laid, WriteOverlayError> {
        self.lay(|overlay, cache, now| overlay.handle_deleted(cache, &last, &sources, now))
    }

    /// With the sources that may bring the object; the answer names the first.
    fn meta(&self, answer: &K) -> Result<(Meta, Vec<SourceId>), WriteOverlayError> {
        let mut meta = meta_of(answer)?;
        if let Some(cluster) = &self.0.cluster {
            meta.key = meta.key.in_cluster(cluster);
        }
        let sources = self.sources(&meta.key)?;
        meta.source = sources[0].clone();
        Ok((meta, sources))
    }

    /// With the length as JSON.
    fn body(&self, answer: &K) -> Result<(R::Body, usize), DecodeError> {
        let json = serde_json::to_string(answer)?;
        let keep = || self.0.representation.keep(&Encoded::json(&json), &self.0.prune);
        let body = catch_unwind(AssertUnwindSafe(keep)).unwrap_or_else(|panic| {
            let text = panic_text(&*panic).to_owned();
            Err(DecodeError::Transform(format!("it panicked: {text}").into()))
        })?;
        Ok((body, json.len()))
    }

    fn is_selected(&self, answer: &K, key: &ObjectKey) -> bool {
        let none = BTreeMap::new();
        let labels = answer.meta().labels.as_ref().unwrap_or(&none);
        self.0.labels.matches(labels) && !self.0.fields.exclude(key)
    }
}

impl<K, R: Representation> WriteOverlay<K, R> {
    /// The newest state of one key: what was written, or else what the cache has.
    pub fn get(&self, key: &ObjectKey) -> Option<Shown<R::Body>> {
        self.with(|overlay, cache, now| overlay.get(cache, key, now))
    }

    /// The newest snapshot with the answers laid over it. It reads like a [`Snapshot`], by index and selector
    /// too, and says what was laid over. The index functions of the informer are called here for each answer
    /// that is shown.
    pub fn snapshot(&self) -> Overlaid<R::Body> {
        let (cache, laid) = self.with(|overlay, cache, now| (cache.clone(), overlay.laid(cache, now)));
        Overlaid::new(cache, laid, &self.0.lister.indices())
    }

    /// What became of all answers so far.
    pub fn counters(&self) -> OverlayCounters {
        self.with(|overlay, cache, now| overlay.counters(cache, now))
    }

    fn lay(
        &self,
        handle: impl FnOnce(&mut Overlay<R::Body>, &Snapshot<R::Body>, Duration) -> Result<Laid, OverlayFull>,
    ) -> Result<Laid, WriteOverlayError> {
        let informer = || self.0.lister.informer_name();
        self.with(handle).map_err(|full| WriteOverlayError::Full { informer: informer(), full })
    }

    /// What the machine gives up is dropped after the lock.
    fn with<T>(&self, run: impl FnOnce(&mut Overlay<R::Body>, &Snapshot<R::Body>, Duration) -> T) -> T {
        let now = self.0.lister.now();
        let mut answers = locked(&self.0.answers);
        let cache = self.0.lister.snapshot();
        let given = run(&mut answers, &cache, now);
        let ended = answers.take_ended();
        drop(answers);
        drop((cache, ended));
        given
    }

    /// At least one.
    fn sources(&self, key: &ObjectKey) -> Result<Vec<SourceId>, WriteOverlayError> {
        let sources = self.0.lister.sources_of(key);
        if sources.is_empty() {
            let informer = self.0.lister.informer_name();
            return Err(WriteOverlayError::NotFollowed { informer, key: key.clone() });
        }
        Ok(sources)
    }
}

/// Whether the object is still there, and will be changed before it is gone.
#[doc(hidden)]
pub fn remains<K: Resource>(object: &K) -> bool {
    let meta = object.meta();
    // A namespace that ends has finalizers in its spec and no grace period.
    let waits = meta.deletion_grace_period_seconds.is_none_or(|seconds| seconds > 0);
    meta.deletion_timestamp.is_some()
        && (waits || meta.finalizers.as_ref().is_some_and(|all| !all.is_empty()))
}

informer_core::clone_of!([K, R: Representation] WriteOverlay<K, R>);

informer_core::debug_as!([K, R: Representation] WriteOverlay<K, R>, self, informer = self.0.lister.informer_name());
