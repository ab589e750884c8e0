//! The bytes of one object, as representations get them: [`Encoded`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::Utf8Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use informer_core::delta::Undecodable;
use informer_core::meta::{ClusterName, ObjectKey};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{DecodeError, MetaScan, Owner, Prune, UnnamedError, WireKind};
use crate::wire::{Cut, FieldPath, LeftOut, cut_json};

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

    /// Findings of later readers go to `late`.
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

    /// Whether it has `kind` or `apiVersion`. An item of a list usually has neither.
    pub(super) fn has_types(&self) -> bool {
        let found = self.meta.kind.is_some() || self.meta.api_version.is_some();
        found || self.wire.has_types(self.bytes)
    }

    /// Checks that no other object is in these bytes, for a representation that decodes nothing.
    pub(super) fn hides_nothing(&self) -> Result<(), DecodeError> {
        Ok(self.wire.hides_nothing(self.bytes)?)
    }

    /// The default if there is no `metadata`.
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
    /// When it is not UTF-8, or not one document; of JSON also within the fields that are cut.
    pub fn pruned(&self, prune: &Prune) -> Result<String, DecodeError> {
        #[cfg(feature = "protobuf")]
        if let WireKind::Protobuf(kind) = self.wire {
            return Ok(kind.text(self.bytes, &prune.0)?);
        }
        let text = self.text()?;
        let rest = prune.rest(text, LeftOut::Gone).filter(|rest| self.wire.is_document(rest.as_bytes()));
        match rest {
            // Drops the capacity of what was cut.
            Some(rest) => Ok((*rest).to_owned()),
            None => Ok(prune.decode::<Value>(text)?.to_string()),
        }
    }

    /// The kept bytes of the object and of each field.
    pub(crate) fn weighed(&self, prune: &Prune) -> Option<(u64, Vec<(String, u64)>)> {
        let kept: Box<[u8]> = match self.wire {
            WireKind::Json => Box::<[u8]>::from(self.kept(prune, None).ok()?),
            #[cfg(feature = "protobuf")]
            WireKind::Protobuf(kind) => kind.kept(self.bytes, &prune.0).ok()?,
        };
        Some((kept.len() as u64, self.wire.field_bytes(&kept)?))
    }

    /// JSON as [`Self::pruned`], with these members in front. Only its brackets are checked: it is one object. On any doubt it is
    /// parsed.
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

// Undecodable objects that readers of lazy bodies find: the watch of the source tells the informer (`../list_watch.rs`).

/// What does not fit is told at the next read.
const MOST_WAITING: usize = 250;

/// The findings of one source.
#[derive(Debug, Default)]
pub struct LateFindings {
    cluster: Option<ClusterName>,
    waiting: Mutex<BTreeMap<ObjectKey, Undecodable>>,
    told: AtomicWaker,
}

impl LateFindings {
    pub(crate) fn new(cluster: Option<ClusterName>) -> Self {
        Self { cluster, ..Self::default() }
    }

    pub(super) fn key(&self, scan: &MetaScan<'_>) -> Result<ObjectKey, UnnamedError> {
        let key = scan.key()?;
        Ok(match &self.cluster {
            Some(cluster) => key.in_cluster(cluster),
            None => key,
        })
    }

    pub(super) fn note(&self, found: Undecodable) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MOST_WAITING || waiting.contains_key(&found.key) {
            waiting.insert(found.key.clone(), found);
        }
        drop(waiting);
        self.told.wake();
    }

    /// All that wait.
    pub(crate) fn poll_found(&self, cx: &Context<'_>) -> Poll<Vec<Undecodable>> {
        self.told.register(cx.waker());
        let found = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        if found.is_empty() { Poll::Pending } else { Poll::Ready(found.into_values().collect()) }
    }
}
