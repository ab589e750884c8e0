//! Turns an object's bytes into the body that a cache keeps. The trait is [`Representation`]; [`Typed`],
//! [`Lazy`], `Packed`, [`Projection`], [`Dynamic`], [`MetadataOnly`] and [`ControllerOnly`] implement it.
//!
//! The guide `start` has a table of when to take which.
//!
//! 1. [`Representation::keep`] makes a body, and runs the user's transform, exactly once for each observed
//!    state of an object. It is pure and may run on any thread; a panic in it affects only that object.
//! 2. The fields that [`Prune`] names are never decoded. A path continues in each element of a list. If no
//!    field is cut, the plain deserializer runs at no extra cost.
//! 3. An error of decoding quotes no value of the object and has a bounded length.

use std::borrow::Cow;
#[cfg(feature = "persist")]
use std::collections::BTreeMap;
use std::error::Error as StdError;
#[cfg(feature = "persist")]
use std::path::Path;
use std::str::Utf8Error;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use kube_core::TypeMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use crate::wire::{Cut, FieldPath, LeftOut, WireError, cut_json};

pub use crate::wire::{JsonError, MetaScan, Owner, RequestedContent, UnnamedError, WireKind};
#[cfg(feature = "protobuf")]
pub use crate::wire::{ProtobufError, ProtobufKind};
pub use controller_only::{Controlled, ControllerOf, ControllerOnly, ControllerRef};
#[doc(hidden)]
pub use lazy::LateFindings;
pub use lazy::{Decoded, Lazy, LazyBody};
#[cfg(feature = "packed")]
pub use packed::Packed;
#[cfg(feature = "persist")]
pub(crate) use packed::SavedTo;
#[cfg(feature = "persist")]
#[doc(hidden)]
pub use packed::{Dictionaries, SavedBody};
pub use prune::Prune;
pub use reading::{OfKind, ReadFields, ReadMetadata, bodies_of};
pub use typed::{Dynamic, MetadataOnly, Projection, Typed};

#[cfg(feature = "packed")]
mod compressed;
mod controller_only;
mod lazy;
#[cfg(feature = "packed")]
mod packed;
mod prune;
mod reading;
mod typed;

/// An error of the user's code.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// Turns an object's bytes into the body that a cache keeps.
///
/// ```
/// use actix_informer::representation::{DecodeError, Encoded, Prune, Representation};
///
/// /// Keeps how many bytes an object has.
/// struct Length;
///
/// impl Representation for Length {
///     type Body = usize;
///     fn keep(&self, object: &Encoded<'_>, _prune: &Prune) -> Result<usize, DecodeError> {
///         Ok(object.bytes().len())
///     }
/// }
/// assert_eq!(Length.keep(&Encoded::json("{}"), &Prune::default())?, 2);
/// # Ok::<(), DecodeError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how objects are kept",
    label = "this is not a representation",
    note = "`Typed<K>`, `Lazy<K>`, `Packed<K>`, `Projection<K, T>`, `Dynamic`, `MetadataOnly<K>` and `ControllerOnly<K>` are; or implement `Representation` for a type of your own"
)]
pub trait Representation: Send + Sync + 'static {
    /// What the cache keeps of one object.
    type Body: Send + Sync + 'static;

    /// Makes the body of one object. Called once for each state that the cache will hold, on any thread.
    ///
    /// Most implementations call [`Encoded::decode`], which reads every wire. One that reads only a part of the
    /// bytes, or only what the scan has found, saves the check that they are UTF-8.
    ///
    /// # Errors
    /// When the bytes do not decode or a transform fails. The object counts as undecodable; other objects are
    /// not affected.
    fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<Self::Body, DecodeError>;

    /// What is requested from the server for each object.
    fn requested_content(&self) -> RequestedContent {
        RequestedContent::Objects
    }

    /// The `apiVersion` and `kind` that every object must have, if known. Objects of other kinds count as
    /// undecodable.
    fn expected(&self) -> Option<&TypeMeta> {
        None
    }

    /// Tells two representations of this type apart. Equal texts mean that both keep the same of every
    /// object, so an `InformerFactory` may share one informer between them. `None`, the default for a type
    /// with fields, means that this is not known, and a factory requires a name. A type without fields needs
    /// none.
    fn identity(&self) -> Option<String> {
        (size_of_val(self) == 0).then(String::new)
    }

    /// Whether [`Self::keep`] also takes objects in protobuf. If not, which is the default,
    /// [`ResourceSource::protobuf`](crate::ResourceSource::protobuf) changes nothing. One that calls only
    /// [`Encoded::decode`], [`Encoded::pruned`] and what reads single fields does.
    #[cfg(feature = "protobuf")]
    fn reads_protobuf(&self) -> bool {
        false
    }

    /// The bytes of a body, if they are known without a walk: for the memory report.
    #[doc(hidden)]
    fn weigh(&self, _body: &Self::Body) -> Option<usize> {
        None
    }

    /// How bodies are written to a file, if they are.
    #[cfg(feature = "persist")]
    #[doc(hidden)]
    fn saves(&self) -> Option<Arc<dyn Saves<Self::Body>>> {
        None
    }

    /// Work on bodies that are kept already, for representations of this crate.
    #[doc(hidden)]
    fn upkeep(&self) -> Option<Arc<dyn Upkeep<Self::Body>>> {
        None
    }
}

/// Bodies that can be written to a file, and read from it.
#[cfg(feature = "persist")]
#[doc(hidden)]
pub trait Saves<S>: Send + Sync {
    /// The file.
    fn file(&self) -> Arc<Path>;

    /// Whether Secrets may be written to it.
    fn may_be_secrets(&self) -> bool;

    /// `None` for a body that cannot be written.
    fn saved(&self, body: &S) -> Option<SavedBody>;

    /// The number of the dictionary of new bodies, and whether some body still needs another one.
    fn newest(&self) -> (Option<u32>, bool);

    /// Takes over the dictionaries of a file; `None` if one does not fit its number.
    fn restore(&self, dictionaries: BTreeMap<u32, Vec<u8>>, newest: Option<u32>) -> Option<Dictionaries>;

    /// How many bytes its text or message has, and its fields.
    fn fields(&self, body: &S) -> (u64, Vec<(String, u64)>);

    /// `None` if its dictionary is not there.
    fn body(&self, dictionaries: &Dictionaries, bytes: Vec<u8>, late: &Arc<LateFindings>) -> Option<S>;
}

/// What a representation wants done with the objects of the cache, on the decode pool.
#[doc(hidden)]
pub trait Upkeep<S>: Send + Sync {
    /// Ready when there is something to do. Only the holder of the guard does it.
    fn due(self: Arc<Self>) -> BoxFuture<'static, OwnedMutexGuard<()>>;

    /// Comes first.
    fn prepare(&self);

    /// Then once for each published object. Returns its bytes in memory.
    fn renew(&self, body: &S) -> usize;

    /// Comes last; returns whether there are objects for which it was not done.
    fn round_ended(&self) -> bool;
}

/// Why no body can be made of an object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The text is not JSON, or does not fit the type. The error quotes no value, because it may be a
    /// password.
    #[error("does not decode: {0}")]
    Json(#[from] JsonError),
    /// The message is not readable, or does not fit the type. The error quotes no value.
    #[cfg(feature = "protobuf")]
    #[error("does not decode: {0}")]
    Protobuf(#[from] ProtobufError),
    /// The bytes are not UTF-8.
    #[error(transparent)]
    Text(#[from] Utf8Error),
    /// The user's transform returned this error; its text may quote values.
    #[error("transform failed: {0}")]
    Transform(#[source] BoxError),
    /// It is an object of another kind.
    #[error("wrong kind: {found}, not {expected}")]
    WrongKind {
        /// The kind that was requested.
        expected: String,
        /// The kind of the object.
        found: String,
    },
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(JsonError::from(&error))
    }
}

impl From<WireError> for DecodeError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Json(error) => Self::Json(error),
            #[cfg(feature = "protobuf")]
            WireError::Protobuf(error) => Self::Protobuf(error),
        }
    }
}

/// The bytes of one object, and what a scan of its metadata has found.
///
/// The bytes are not checked to be one document: a representation that keeps them, or reads only a part of
/// them, gets whatever the server sent. [`Encoded::pruned`] and [`Prune::decode`] check all of them.
///
///
/// ```
/// use actix_informer::representation::Encoded;
///
/// let pod = Encoded::json(br#"{"metadata":{"name":"web-0","resourceVersion":"7","labels":{"app":"web"}},"spec":{}}"#);
/// assert_eq!(pod.meta().name.as_deref(), Some("web-0"));
/// assert!(pod.labels().any(|(label, value)| label == "app" && value == "web"));
/// ```
#[derive(Debug, Clone)]
pub struct Encoded<'a> {
    wire: WireKind,
    bytes: &'a [u8],
    meta: MetaScan<'a>,
    late: Option<&'a Arc<LateFindings>>,
}

impl<'a> Encoded<'a> {
    /// An object written as JSON: for tests of representations. The client makes the others.
    pub fn json(bytes: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self::new(WireKind::Json, bytes.as_ref())
    }

    pub(crate) fn new(wire: WireKind, bytes: &'a [u8]) -> Self {
        Self { wire, bytes, meta: wire.identify(bytes), late: None }
    }

    /// What is found later is told there.
    pub(crate) fn telling(self, late: &'a Arc<LateFindings>) -> Self {
        Self { late: Some(late), ..self }
    }

    pub(super) fn late(&self) -> Option<&'a Arc<LateFindings>> {
        self.late
    }

    /// How it is written. Only a representation that says so gets anything but JSON.
    pub fn wire(&self) -> WireKind {
        self.wire
    }

    /// Its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its bytes as a text, if it is written as JSON. Reads all of them.
    ///
    /// # Errors
    /// When they are not UTF-8.
    pub fn text(&self) -> Result<&'a str, Utf8Error> {
        std::str::from_utf8(self.bytes)
    }

    /// Name, namespace, uid, version and kind, as far as they were found.
    pub fn meta(&self) -> &MetaScan<'a> {
        &self.meta
    }

    /// `metadata.labels` in the order of the bytes; values that are not texts are left out. Costs a scan of
    /// the metadata behind the version.
    pub fn labels(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        self.wire.labels(&self.meta)
    }

    /// `metadata.annotations` in the order of the bytes, as [`Self::labels`]. Costs a scan of the metadata.
    pub fn annotations(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        self.wire.annotations(self.bytes)
    }

    /// `metadata.generation`. Costs a scan of the metadata.
    pub fn generation(&self) -> Option<i64> {
        self.wire.generation(self.bytes)
    }

    /// Whether it says of which kind it is. An item of a list usually does not.
    pub(super) fn has_types(&self) -> bool {
        let found = self.meta.kind.is_some() || self.meta.api_version.is_some();
        found || self.wire.has_types(self.bytes)
    }

    /// The whole `metadata`, decoded; the default if there is none.
    pub(super) fn metadata<T: DeserializeOwned + Default>(&self) -> Result<T, DecodeError> {
        Ok(self.wire.metadata(self.bytes)?)
    }

    /// Decodes it without the fields of `prune`, from any wire: JSON by [`Prune::decode`], protobuf straight from its
    /// bytes, as what its JSON would be.
    ///
    /// ```
    /// use actix_informer::representation::{Encoded, Prune};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// let sent = Encoded::json(r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#);
    /// let map: ConfigMap = sent.decode(&Prune::default())?;
    /// assert_eq!(map.metadata.name.as_deref(), Some("a"));
    /// # Ok::<(), actix_informer::representation::DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// When it does not decode.
    pub fn decode<T: DeserializeOwned>(&self, prune: &Prune) -> Result<T, DecodeError> {
        match self.wire {
            WireKind::Json => prune.decode(self.text()?),
            #[cfg(feature = "protobuf")]
            WireKind::Protobuf(kind) => Ok(kind.decode(self.bytes, &prune.0)?),
        }
    }

    /// `metadata.ownerReferences` in the order of the bytes. Costs a scan of the metadata behind the version.
    pub fn owners(&self) -> impl Iterator<Item = Owner<'a>> + use<'a> {
        self.wire.owners(&self.meta)
    }

    /// The values at a path, without decoding the object: for a representation that keeps little else. Costs
    /// a scan of all bytes, mostly 64 at once.
    ///
    /// ```
    /// use actix_informer::object::FieldPath;
    /// use actix_informer::representation::{DecodeError, Encoded, Prune, Representation};
    ///
    /// /// Keeps the node of each pod, and nothing else.
    /// struct Node(FieldPath);
    ///
    /// impl Representation for Node {
    ///     type Body = Option<String>;
    ///     fn keep(&self, object: &Encoded<'_>, _prune: &Prune) -> Result<Option<String>, DecodeError> {
    ///         Ok(object.values_at(&self.0).pop())
    ///     }
    /// }
    /// let node = Node("spec.nodeName".parse()?);
    /// let kept = node.keep(&Encoded::json(r#"{"metadata":{},"spec":{"nodeName":"node-a"}}"#), &Prune::default())?;
    /// assert_eq!(kept.as_deref(), Some("node-a"));
    /// // An index of such bodies: Index::new("node", |node: &Object<Option<String>>| node.body().clone())
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn values_at(&self, path: &FieldPath) -> Vec<String> {
        self.wire.scan(self.bytes, path)
    }

    /// Its JSON without the fields of `prune`, for a representation that keeps texts.
    ///
    /// Of JSON the rest is as the server wrote it. It is read once more, to make sure that it is one document. Of
    /// protobuf it is what Go writes.
    ///
    /// ```
    /// use actix_informer::representation::{DecodeError, Encoded, Prune, Representation};
    ///
    /// /// Keeps the text of each object, without `metadata.managedFields`.
    /// struct Text;
    ///
    /// impl Representation for Text {
    ///     type Body = String;
    ///     fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<String, DecodeError> {
    ///         object.pruned(prune)
    ///     }
    /// }
    /// let sent = Encoded::json(r#"{"metadata":{"name":"a","managedFields":[{"manager":"m"}]},"spec":{}}"#);
    /// assert_eq!(Text.keep(&sent, &Prune::default())?, r#"{"metadata":{"name":"a"},"spec":{}}"#);
    /// # Ok::<(), DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// When it is not UTF-8, or not one document, also within the fields that are cut.
    pub fn pruned(&self, prune: &Prune) -> Result<String, DecodeError> {
        #[cfg(feature = "protobuf")]
        if let WireKind::Protobuf(kind) = self.wire {
            return Ok(kind.text(self.bytes, &prune.0)?);
        }
        let text = self.text()?;
        let rest = prune.rest(text, LeftOut::Gone).filter(|rest| self.wire.is_document(rest.as_bytes()));
        match rest {
            // Without the capacity of what was cut.
            Some(rest) => Ok((*rest).to_owned()),
            None => Ok(prune.decode::<Value>(text)?.to_string()),
        }
    }

    /// How many bytes are kept of it, and of its fields.
    pub(crate) fn weighed(&self, prune: &Prune) -> Option<(u64, Vec<(String, u64)>)> {
        let kept: Box<[u8]> = match self.wire {
            WireKind::Json => Box::<[u8]>::from(self.kept(prune, None).ok()?),
            #[cfg(feature = "protobuf")]
            WireKind::Protobuf(kind) => kind.kept(self.bytes, &prune.0).ok()?,
        };
        Some((kept.len() as u64, self.wire.field_bytes(&kept)?))
    }

    /// Of JSON: as [`Self::pruned`], with these members in front, and checked only as far as its brackets show: it is
    /// one object. On any doubt it is parsed.
    pub(crate) fn kept(&self, prune: &Prune, types: Option<&str>) -> Result<Box<str>, DecodeError> {
        let mut rest = Vec::with_capacity(self.bytes.len());
        if cut_json(self.bytes, &prune.0, LeftOut::Passed, &mut rest) == Cut::Unsure {
            rest = prune.decode::<Value>(self.text()?)?.to_string().into_bytes();
        }
        let rest = std::str::from_utf8(&rest)?;
        Ok(match types.zip(rest.strip_prefix('{')) {
            Some((types, members)) if members.starts_with('}') => {
                ["{", types.trim_end_matches(','), members].concat().into()
            }
            Some((types, members)) => ["{", types, members].concat().into(),
            None => rest.into(),
        })
    }
}

#[cfg(test)]
mod tests;
