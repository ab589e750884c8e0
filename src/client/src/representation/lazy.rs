//! Keeps the text of each object ([`Lazy`]), and decodes it for its readers ([`LazyBody::decoded`]).
//!
//! 1. Only the brackets of a text are checked. One that does not decode for a reader is undecodable in the informer's status, and
//!    stays in the cache.
//! 2. Readers at the same time share what was decoded. It is freed with the last of them.
//! 3. Each kept text has its `apiVersion` and `kind`, also where a list leaves both out.
//! 4. Protobuf is kept in its envelope. So the first byte of what is kept tells the encoding.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use informer_core::delta::Undecodable;
use informer_core::words::shortened;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::discovery::ApiResource;
use kube_core::{DynamicObject, Resource, TypeMeta};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{DecodeError, Encoded, LateFindings, Prune, Representation, WireKind};
use crate::wire::JsonError;

const MAX_ERROR_CHARS: usize = 256;

/// Keeps the text of each object, without the fields that [`Prune`] cuts; `K` is what it is decoded as when
/// it is read.
///
/// Of pods, a cache of texts takes a fifth of the memory of a typed one, and following changes a fifth of the
/// time (`informer-compare`): an object that nobody reads is not decoded. It is for controllers, which read an
/// object when its key is due, for gateways, and for large caches of which little is read. Where most objects
/// are read again and again, [`Typed`](super::Typed) is better, since each reading decodes.
///
/// ```
/// use actix_informer::prelude::*;
/// use k8s_openapi::api::core::v1::Pod;
///
/// # async fn demo(client: Client, runtime: Runtime) -> Result<(), Box<dyn std::error::Error>> {
/// let pods = client.resource::<Pod>().lazy().informer(&runtime)?.start()?;
/// pods.synced().await?;
/// for pod in pods.snapshot().labelled(&"app=shop".parse()?) { // decodes nothing
///     let pod = pod.decoded()?; // decodes this one
///     println!("{:?}", pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()));
/// }
/// # Ok(()) }
/// ```
pub struct Lazy<K> {
    expected: TypeMeta,
    types: Arc<str>,
    body: PhantomData<fn() -> K>,
}

impl<K> Lazy<K> {
    fn of_kind(expected: TypeMeta) -> Self {
        let of = |text: &str| serde_json::Value::from(text);
        let types = format!("\"apiVersion\":{},\"kind\":{},", of(&expected.api_version), of(&expected.kind));
        Self { expected, types: types.into(), body: PhantomData }
    }
}

impl<K: Resource<DynamicType = ()>> Lazy<K> {
    /// Keeps texts of this kind. [`ResourceSource::lazy`](crate::ResourceSource::lazy) is shorter.
    #[must_use]
    pub fn new() -> Self {
        Self::of_kind(TypeMeta::resource::<K>())
    }
}

impl<K: Resource<DynamicType = ()>> Default for Lazy<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl Lazy<DynamicObject> {
    /// Keeps texts of a kind that is known at run time.
    #[must_use]
    pub fn of(resource: &ApiResource) -> Self {
        let (api_version, kind) = (resource.api_version.clone(), resource.kind.clone());
        Self::of_kind(TypeMeta { api_version, kind })
    }
}

impl<K: Send + Sync + 'static> Representation for Lazy<K> {
    type Body = LazyBody<K>;

    fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<LazyBody<K>, DecodeError> {
        let kept = match object.wire() {
            WireKind::Json => {
                let types = (!object.has_types()).then_some(&*self.types);
                Kept::Text(object.kept(prune, types)?)
            }
            #[cfg(feature = "protobuf")]
            WireKind::Protobuf(kind) => Kept::Message(kind.kept(object.bytes(), &prune.0)?),
        };
        Ok(LazyBody::with(kept, object.late().cloned()))
    }

    fn expected(&self) -> Option<&TypeMeta> {
        Some(&self.expected)
    }

    fn identity(&self) -> Option<String> {
        Some(String::new())
    }

    #[cfg(feature = "protobuf")]
    fn reads_protobuf(&self) -> bool {
        true
    }

    fn weigh(&self, body: &LazyBody<K>) -> Option<usize> {
        Some(body.kept_bytes())
    }
}

informer_core::clone_of!([K] Lazy<K> { expected, types, body });

informer_core::debug_as!([K] Lazy<K>, self, kind = self.expected.kind);

#[derive(Clone)]
pub(super) enum Kept {
    Text(Box<str>),
    /// A message in its envelope.
    #[cfg(feature = "protobuf")]
    Message(Box<[u8]>),
    /// One of the two, compressed.
    #[cfg(feature = "packed")]
    Packed(super::compressed::PackedBytes),
}

impl Kept {
    pub(super) fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Text(text) => Cow::Borrowed(text.as_bytes()),
            #[cfg(feature = "protobuf")]
            Self::Message(bytes) => Cow::Borrowed(bytes),
            #[cfg(feature = "packed")]
            Self::Packed(packed) => Cow::Owned(packed.bytes()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            #[cfg(feature = "protobuf")]
            Self::Message(bytes) => bytes.len(),
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.len(),
        }
    }
}

#[cfg(feature = "protobuf")]
fn wire_of(kept: &[u8]) -> WireKind {
    WireKind::of_kept(kept)
}

#[cfg(not(feature = "protobuf"))]
fn wire_of(_kept: &[u8]) -> WireKind {
    WireKind::Json
}

/// An object as its text, decoded as a `K` for its readers.
///
/// Names, labels, owners and single fields are read from the text, without decoding: [`Self::read`], the
/// traits [`ReadMetadata`](super::ReadMetadata) and [`ReadFields`](super::ReadFields). Selectors, indices by
/// label, owner and path, and the predicate of the generation do so; those of labels, annotations and finalizers
/// decode the metadata. `name`, `namespace` and `resourceVersion` must not be cut.
pub struct LazyBody<K> {
    pub(super) kept: Kept,
    late: Option<Arc<LateFindings>>,
    decoded: Mutex<Weak<Box<K>>>,
    /// Failed decodes.
    refusals: AtomicU32,
}

impl<K> LazyBody<K> {
    /// Its JSON: one object, with `apiVersion` and `kind`, as the server wrote it, without the fields that are
    /// cut. What is in the brackets of its fields is checked only when it is decoded.
    ///
    /// Of an object that came in protobuf it has the value of what Go writes, and is made for each call. If it cannot be
    /// made, it has only the kind, and the object is set aside as one that does not decode.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.kept {
            Kept::Text(text) => Cow::Borrowed(text),
            #[cfg(any(feature = "packed", feature = "protobuf"))]
            other => Cow::Owned(self.text_of(&other.bytes())),
        }
    }

    #[cfg(feature = "protobuf")]
    fn text_of(&self, bytes: &[u8]) -> String {
        let WireKind::Protobuf(kind) = wire_of(bytes) else {
            return String::from_utf8_lossy(bytes).into_owned();
        };
        kind.text(bytes, &Prune::nothing().0).unwrap_or_else(|error| {
            self.refuse(&DecodeError::from(error));
            let (kind, api_version) = (kind.kind(), kind.api_version());
            format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\"}}")
        })
    }

    #[cfg(all(feature = "packed", not(feature = "protobuf")))]
    fn text_of(&self, bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// What can be read of it without decoding. Costs a scan up to its name and version.
    ///
    /// ```
    /// use actix_informer::representation::LazyBody;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// fn runs_alone(pod: &LazyBody<Pod>) -> bool {
    ///     pod.read(|pod| pod.owners().next().is_none())
    /// }
    /// assert!(runs_alone(&LazyBody::of(&Pod::default())?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read<T>(&self, read: impl FnOnce(&Encoded<'_>) -> T) -> T {
        let bytes = self.kept.bytes();
        read(&Encoded::new(wire_of(&bytes), &bytes))
    }

    /// The bytes that it keeps in memory: those of its text or of its message, or of a [`Packed`](super::Packed) one
    /// those that are left.
    pub fn kept_bytes(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn with(kept: Kept, late: Option<Arc<LateFindings>>) -> Self {
        Self { kept, late, decoded: Mutex::default(), refusals: AtomicU32::new(0) }
    }

    /// Told at the 2nd, 4th, 8th failure too: an actor may have lost the first.
    fn refuse(&self, error: &DecodeError) {
        let times = self.refusals.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let Some(late) = self.late.as_ref().filter(|_| times.is_power_of_two()) else { return };
        if let (Ok(key), Ok(version)) = self.read(|object| (late.key(object.meta()), object.meta().version()))
        {
            late.note(Undecodable {
                key,
                version,
                error: shortened(&error.to_string(), MAX_ERROR_CHARS).into(),
            });
        }
    }

    pub(super) fn object_meta(&self) -> ObjectMeta {
        self.read(|object| object.metadata()).unwrap_or_else(|error| {
            self.refuse(&error);
            ObjectMeta::default()
        })
    }
}

impl<K: DeserializeOwned> LazyBody<K> {
    /// The whole object. Decodes the text, unless another reader has it decoded at this moment.
    ///
    /// # Errors
    /// When the text does not decode. The informer counts the object as undecodable from then on, until
    /// another version of it comes.
    pub fn decoded(&self) -> Result<Decoded<K>, DecodeError> {
        if let Some(shared) = self.shared() {
            return Ok(shared);
        }
        // No foreign code runs under the lock; another reader may have decoded it meanwhile.
        let decoded = Decoded(Arc::new(Box::new(self.decode()?)));
        let mut known = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = known.upgrade() {
            return Ok(Decoded(other));
        }
        *known = Arc::downgrade(&decoded.0);
        Ok(decoded)
    }

    /// As [`Self::decoded`], as a value of its own, which may be changed.
    ///
    /// # Errors
    /// As there.
    pub fn decode(&self) -> Result<K, DecodeError> {
        let decoded = self.read(|object| object.decode(&Prune::nothing()));
        decoded.inspect_err(|error| self.refuse(error))
    }

    /// What can be told of an object that does not decode: its metadata, as a `K` without the rest, if such a
    /// one decodes.
    #[doc(hidden)]
    pub fn outline(&self) -> Option<K> {
        let metadata = Prune::only([]).ok()?;
        self.read(|object| object.decode(&metadata)).ok()
    }

    fn shared(&self) -> Option<Decoded<K>> {
        self.decoded.lock().unwrap_or_else(PoisonError::into_inner).upgrade().map(Decoded)
    }
}

impl<K: Serialize> LazyBody<K> {
    /// The lazy body of an object that was not received: for tests, and for
    /// [`FakeInformer`](informer_actors::informer::FakeInformer).
    ///
    /// # Errors
    /// When its `Serialize` fails.
    pub fn of(object: &K) -> Result<Self, JsonError> {
        let text = serde_json::to_string(object).map_err(|error| JsonError::from(&error))?;
        Ok(Self::with(Kept::Text(text.into()), None))
    }
}

impl<K> Clone for LazyBody<K> {
    fn clone(&self) -> Self {
        Self::with(self.kept.clone(), self.late.clone())
    }
}

impl<K> PartialEq for LazyBody<K> {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (self.kept.bytes(), other.kept.bytes());
        one == two || (wire_of(&one) != wire_of(&two) && self.text() == other.text())
    }
}

impl<K> Eq for LazyBody<K> {}

/// May be a Secret: no value is shown.
impl<K> fmt::Debug for LazyBody<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyBody({} bytes)", self.kept.len())
    }
}

/// What was decoded of a [`LazyBody`]; it reads like a `K`. All who read the object at the same time share
/// it, and it is freed with the last clone.
#[expect(
    clippy::redundant_allocation,
    reason = "the `Weak` of a body then keeps the room of a pointer, not of a `K`"
)]
pub struct Decoded<K>(Arc<Box<K>>);

impl<K> Deref for Decoded<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.0
    }
}

informer_core::clone_of!([K] Decoded<K>);

impl<K: fmt::Debug> fmt::Debug for Decoded<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests;
