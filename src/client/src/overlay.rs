//! The answers to writes of a program, laid over the cache of an informer until the watch has them.
//!
//! Answers "how does what `Api` returned become visible in my cache at once?" for informers of resources. Invariants:
//! 1. An answer becomes what the informer would keep of it: it goes through the same prune, transform and representation
//!    as an event of the watch.
//! 2. An answer that the informer does not select, by its labels or its name, hides the object.
//! 3. A panic of a transform is an error of that answer.
//!
//! Read next: `informer_actors::informer::Overlay`, which holds them; `informer_core::overlay`, which decides.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer_actors::informer::{Informer, Overlay, OverlayError};
use informer_core::meta::{ClusterName, Meta, Object, ObjectKey, Uid};
use informer_core::overlay::{Laid, Overlaid, OverlayCounters, OverlayLimits, Shown};
use informer_core::words::panic_text;
use kube_core::Resource;
use serde::Serialize;

use crate::ResourceSource;
use crate::api::Deleted;
use crate::object::{BodyError, meta_of};
use crate::representation::{DecodeError, Encoded, Prune, Representation};
use crate::selector::{FieldTerms, LabelSelector};

/// What a program's writes to one kind have returned, over the cache of an informer of that kind.
///
/// Made by [`ResourceSource::overlay`]; cheap to clone, and clones share it. Nobody but its readers sees what it shows:
/// subscribers are told what the watch brings. Each answer ends when the watch has it or something newer, at the latest
/// after the time of its [`OverlayLimits`].
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
pub struct WriteOverlay<K, R: Representation> {
    overlay: Overlay<R::Body>,
    kept: Arc<Kept<R>>,
    kind: PhantomData<fn(K)>,
}

/// How the informer keeps objects, and which.
struct Kept<R> {
    representation: Arc<R>,
    prune: Prune,
    labels: LabelSelector,
    fields: FieldTerms,
    cluster: Option<ClusterName>,
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
    /// As many answers are shown as are allowed, or the informer does not follow the key.
    #[error(transparent)]
    Overlay(#[from] OverlayError),
}

impl<K, R: Representation> ResourceSource<K, R> {
    /// An overlay for what is written to this kind, over the cache of an informer that was made of this description.
    ///
    /// # Errors
    /// [`Error::Selector`](crate::Error::Selector) when a selector cannot be parsed, as by [`Self::informer`].
    pub fn overlay(&self, informer: &Informer<R::Body>) -> Result<WriteOverlay<K, R>, crate::Error> {
        self.overlay_with(informer, OverlayLimits::default())
    }

    /// As [`Self::overlay`], with other limits than the default ones.
    ///
    /// # Errors
    /// As there.
    pub fn overlay_with(
        &self,
        informer: &Informer<R::Body>,
        limits: OverlayLimits,
    ) -> Result<WriteOverlay<K, R>, crate::Error> {
        let (representation, prune, scope, cluster) = self.kept();
        scope.check()?;
        let labels = scope.labels.as_deref().unwrap_or_default().parse();
        let labels = labels.expect("the label selector was just checked");
        let fields = FieldTerms::parse(scope.fields.as_deref().unwrap_or_default());
        let fields = fields.expect("the field selector was just checked");
        let kept = Kept { representation, prune, labels, fields, cluster: cluster.cloned() };
        let overlay = informer.lister().overlay_with(limits);
        Ok(WriteOverlay { overlay, kept: Arc::new(kept), kind: PhantomData })
    }
}

impl<K: Resource + Serialize, R: Representation> WriteOverlay<K, R> {
    /// A create, a replace, a patch or an apply has returned this object. Costs about as much as decoding it.
    ///
    /// Of the informer's field selector only `metadata.name` and `metadata.namespace` are known here: an object that other
    /// fields exclude is shown until the watch has passed its version. Of a typed answer, fields that the type does not
    /// know are lost: write by a dynamic `Api` where the informer is dynamic.
    ///
    /// # Errors
    /// [`WriteOverlayError`]; then readers see the cache alone.
    pub fn written(&self, answer: &K) -> Result<Laid, WriteOverlayError> {
        let meta = self.meta(answer)?;
        if !self.is_selected(answer, &meta.key) {
            return Ok(self.overlay.left(&meta)?);
        }
        let body = self.kept.body(answer);
        let (body, bytes) =
            body.map_err(|source| WriteOverlayError::Keep { key: meta.key.clone(), source })?;
        let meta = meta.wire_bytes(u32::try_from(bytes).unwrap_or(u32::MAX));
        Ok(self.overlay.written(Object::new(meta, body))?)
    }

    /// A deletion of the object of this key has returned this answer. An object that is gone is hidden; one that has only
    /// begun to end, because of its finalizers or its grace period, is shown as it is. Where the answer names no object,
    /// the one that is shown is meant.
    ///
    /// # Errors
    /// As [`Self::written`].
    pub fn deleted(&self, key: &ObjectKey, answer: &Deleted<K>) -> Result<Laid, WriteOverlayError> {
        match answer {
            Deleted::Object(object) if remains(object) => self.written(object),
            Deleted::Object(object) => Ok(self.overlay.deleted(&self.meta(object)?)?),
            Deleted::Status(status) => {
                let uid = status.details.as_ref().and_then(|details| Uid::new(&details.uid));
                let shown = self.overlay.get(key);
                let meant = shown.filter(|shown| uid.is_none() || shown.object_uid() == uid.as_ref());
                meant.map_or(Ok(Laid::Outdated), |last| Ok(self.overlay.deleted(last.cached_meta())?))
            }
        }
    }

    fn meta(&self, answer: &K) -> Result<Meta, BodyError> {
        let mut meta = meta_of(answer)?;
        if let Some(cluster) = &self.kept.cluster {
            meta.key = meta.key.in_cluster(cluster);
        }
        if let Some(source) = self.overlay.source_of(&meta.key) {
            meta.source = source;
        }
        Ok(meta)
    }

    fn is_selected(&self, answer: &K, key: &ObjectKey) -> bool {
        let none = BTreeMap::new();
        let labels = answer.meta().labels.as_ref().unwrap_or(&none);
        self.kept.labels.matches(labels) && !self.kept.fields.exclude(key)
    }
}

impl<K, R: Representation> WriteOverlay<K, R> {
    /// The newest state of one key: what was written, or else what the cache has.
    pub fn get(&self, key: &ObjectKey) -> Option<Shown<R::Body>> {
        self.overlay.get(key)
    }

    /// The newest snapshot with the answers laid over it; reads like a `Snapshot`, and says what was laid over.
    pub fn snapshot(&self) -> Overlaid<R::Body> {
        self.overlay.snapshot()
    }

    /// What became of all answers so far.
    pub fn counters(&self) -> OverlayCounters {
        self.overlay.counters()
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

impl<R: Representation> Kept<R> {
    /// What the informer would keep of an answer, and its length as JSON.
    fn body<K: Serialize>(&self, answer: &K) -> Result<(R::Body, usize), DecodeError> {
        let json = serde_json::to_string(answer)?;
        let keep = || self.representation.keep(&Encoded::json(&json), &self.prune);
        let body = catch_unwind(AssertUnwindSafe(keep)).unwrap_or_else(|panic| {
            let text = panic_text(&*panic).to_owned();
            Err(DecodeError::Transform(format!("it panicked: {text}").into()))
        })?;
        Ok((body, json.len()))
    }
}

informer_core::clone_of!([K, R: Representation] WriteOverlay<K, R> { overlay, kept, kind });

informer_core::debug_as!([K, R: Representation] WriteOverlay<K, R>, self, overlay = self.overlay);
