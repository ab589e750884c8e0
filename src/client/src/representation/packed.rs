//! Keeps the text of each object compressed ([`Packed`]), with a dictionary that is trained on the objects.
//!
//! 1. The first objects are compressed without a dictionary. [`machine`] decides when one is trained.
//! 2. Older texts are then compressed again, some at a time, on the decode pool (`../list_watch/upkeep.rs`).
//! 3. Texts are compressed outside the locks; a body's own lock is held while it is read (`compressed.rs`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kube_core::discovery::ApiResource;
use kube_core::{DynamicObject, Resource, TypeMeta};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::compressed::{DICTIONARY_BYTES, Dictionary, Frame, PackedBytes};
use super::lazy::{Kept, Lazy, LazyBody};
use super::{DecodeError, Encoded, Prune, Representation, Upkeep};
use machine::Drift;
#[cfg(feature = "persist")]
pub(crate) use saving::SavedTo;
#[cfg(feature = "persist")]
#[doc(hidden)]
pub use saving::{Dictionaries, SavedBody};

mod machine;
#[cfg(feature = "persist")]
mod saving;

/// The wait for bodies that are not published yet, or only in a snapshot that somebody holds.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// As [`Lazy`], and keeps each text compressed with zstd, by a dictionary that is trained on the objects.
///
/// Of pods, a program takes a quarter of the memory of one with a cache of texts, and half as much time again for an
/// event (`informer-compare`). Each reading that is not shared decompresses the whole text, also that of a selector or
/// an index. It is for caches of tens of thousands of objects of which few are read at a time. A small cache does not
/// pay for the dictionary, which is trained after 1,000 texts and takes, with its samples, less than a megabyte for
/// pods.
///
/// ```
/// use actix_informer::prelude::*;
/// use k8s_openapi::api::core::v1::Pod;
///
/// # async fn demo(client: Client, runtime: Runtime) -> Result<(), Box<dyn std::error::Error>> {
/// let pods = client.resource::<Pod>().packed().informer(&runtime)?.start()?;
/// pods.synced().await?;
/// if let Some(pod) = pods.snapshot().get(&ObjectKey::namespaced("shop", "web-0")) {
///     println!("{:?}", pod.decoded()?.status);
/// }
/// # Ok(()) }
/// ```
pub struct Packed<K> {
    lazy: Lazy<K>,
    packer: Arc<Packer>,
    #[cfg(feature = "persist")]
    file: Option<SavedTo>,
}

impl<K> Packed<K> {
    fn of_texts(lazy: Lazy<K>) -> Self {
        Self {
            lazy,
            packer: Arc::default(),
            #[cfg(feature = "persist")]
            file: None,
        }
    }
}

impl<K: Resource<DynamicType = ()>> Packed<K> {
    /// Keeps compressed texts of this kind. [`ResourceSource::packed`](crate::ResourceSource::packed) is shorter.
    #[must_use]
    pub fn new() -> Self {
        Self::of_texts(Lazy::new())
    }
}

impl<K: Resource<DynamicType = ()>> Default for Packed<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl Packed<DynamicObject> {
    /// Keeps compressed texts of a kind that is known at run time.
    #[must_use]
    pub fn of(resource: &ApiResource) -> Self {
        Self::of_texts(Lazy::of(resource))
    }
}

impl<K: Send + Sync + 'static> Representation for Packed<K> {
    type Body = LazyBody<K>;

    fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<LazyBody<K>, DecodeError> {
        let mut body = self.lazy.keep(object, prune)?;
        body.kept = self.packer.pack(body.kept);
        Ok(body)
    }

    fn expected(&self) -> Option<&TypeMeta> {
        self.lazy.expected()
    }

    #[cfg(not(feature = "persist"))]
    fn identity(&self) -> Option<String> {
        Some(String::new())
    }

    #[cfg(feature = "persist")]
    fn identity(&self) -> Option<String> {
        Some(self.file.as_ref().map(|file| file.path.display().to_string()).unwrap_or_default())
    }

    #[cfg(feature = "persist")]
    fn saves(&self) -> Option<Arc<dyn super::Saves<LazyBody<K>>>> {
        let file = self.file.clone()?;
        Some(Arc::new(saving::Saving { packer: Arc::clone(&self.packer), file }))
    }

    #[cfg(feature = "protobuf")]
    fn reads_protobuf(&self) -> bool {
        true
    }

    fn weigh(&self, body: &LazyBody<K>) -> Option<usize> {
        Some(body.kept_bytes())
    }

    fn upkeep(&self) -> Option<Arc<dyn Upkeep<LazyBody<K>>>> {
        Some(Arc::clone(&self.packer) as _)
    }
}

#[cfg(not(feature = "persist"))]
informer_core::clone_of!([K] Packed<K> { lazy, packer });
#[cfg(feature = "persist")]
informer_core::clone_of!([K] Packed<K> { lazy, packer, file });

informer_core::debug_as!([K] Packed<K>, self, texts = self.lazy);

#[derive(Default)]
struct Packer {
    state: Mutex<State>,
    due: Notify,
    /// Held for one round by the source that runs it.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The start of the next round, and the wait before it.
    rest: Mutex<Option<(Instant, Duration)>>,
}

struct State {
    newest: Arc<Dictionary>,
    /// Some body may still need them.
    former: Vec<Arc<Dictionary>>,
    drift: Drift,
    samples: Vec<Frame>,
}

impl Default for State {
    fn default() -> Self {
        let newest = Arc::new(Dictionary::none());
        Self { newest, former: Vec::new(), drift: Drift::default(), samples: Vec::new() }
    }
}

impl Packer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rest(&self) -> MutexGuard<'_, Option<(Instant, Duration)>> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pack(&self, kept: Kept) -> Kept {
        let newest = Arc::clone(&self.state().newest);
        let text = kept.bytes();
        let Some(frame) = Frame::of(&text, newest) else {
            drop(text);
            return kept;
        };
        let (place, is_due) = {
            let drift = &mut self.state().drift;
            (drift.note(text.len(), frame.bytes.len()), drift.is_due())
        };
        if let Some(place) = place
            && let Some(sample) = frame.sample(&text)
        {
            self.state().keep_sample(place, sample);
        }
        if is_due {
            self.due.notify_one();
        }
        Kept::Packed(PackedBytes::new(frame))
    }

    fn train(&self) {
        let samples = self.state().samples.clone();
        let texts: Vec<Vec<u8>> = samples.iter().filter_map(Frame::content).collect();
        let sizes: Vec<usize> = texts.iter().map(Vec::len).collect();
        let mut content = Vec::with_capacity(DICTIONARY_BYTES);
        let trained = zstd_safe::train_from_buffer(&mut content, &texts.concat(), &sizes);
        let trained = trained.ok().and_then(|_| Dictionary::of(&content)).map(Arc::new);
        let again = trained
            .as_ref()
            .map(|newest| texts.iter().filter_map(|text| Frame::of(text, Arc::clone(newest))).collect());
        let mut state = self.state();
        // Training fails if the texts are too short.
        state.drift.trained(trained.is_some());
        if let Some((newest, samples)) = trained.zip(again) {
            state.samples = samples;
            let former = std::mem::replace(&mut state.newest, newest);
            state.former.push(former);
        }
    }
}

impl<K: Send + Sync + 'static> Upkeep<LazyBody<K>> for Packer {
    fn due(self: Arc<Self>) -> BoxFuture<'static, tokio::sync::OwnedMutexGuard<()>> {
        async move {
            let turn = Arc::clone(&self.turn).lock_owned().await;
            let rest = self.rest().map(|(until, _)| until);
            if let Some(until) = rest {
                tokio::time::sleep_until(until).await;
            }
            while !self.state().drift.is_due() && !self.state().has_former() {
                self.due.notified().await;
            }
            turn
        }
        .boxed()
    }

    fn prepare(&self) {
        if self.state().drift.is_due() {
            self.train();
            *self.rest() = None;
        }
    }

    fn renew(&self, body: &LazyBody<K>) -> usize {
        if let Kept::Packed(text) = &body.kept {
            let (former, newest) = (text.frame().clone(), Arc::clone(&self.state().newest));
            if !Arc::ptr_eq(&former.dictionary, &newest)
                && let Some(again) = former.content().and_then(|text| Frame::of(&text, newest))
            {
                *text.frame() = again;
            }
        }
        body.kept_bytes()
    }

    fn round_ended(&self) -> bool {
        let is_left = self.state().has_former();
        let mut rest = self.rest();
        let wait = rest.map_or(FIRST_REST, |(_, wait)| LONGEST_REST.min(wait * 2));
        *rest = is_left.then(|| (Instant::now() + wait, wait));
        is_left
    }
}

impl State {
    /// A sample of a former dictionary would keep that for ever.
    fn keep_sample(&mut self, place: usize, sample: Frame) {
        if !Arc::ptr_eq(&sample.dictionary, &self.newest) {
            return;
        }
        match self.samples.get_mut(place) {
            Some(former) => *former = sample,
            None => self.samples.push(sample),
        }
    }

    fn has_former(&mut self) -> bool {
        self.former.retain(|former| Arc::strong_count(former) > 1);
        !self.former.is_empty()
    }
}

#[cfg(test)]
mod tests;
