//! Decodes the bytes of one list item or one watch event.
//!
//! Answers "which object is this, and what is its body?", one frame at a time, on any thread. It does not know streams.
//! Keys of objects that are not known yet come from [`Scopes`], which all decode threads ask: half of what a key costs is
//! its namespace, and a list has many objects of each.
//!
//! An object that is already known with the same uid, version, source and form is returned as it is, without decoding
//! (`Decoding::meta`). Its bytes must still be one document, because they may also hold a second object: an item
//! or a line that has lost its separator, or members behind the object of an event that was split by position. The
//! check is skipped if the frame has the same length as the known object had. Objects of the same uid and version have
//! the same text, so a frame of that length holds this text and nothing more; a frame with a second object is longer.
//!
//! Invariants:
//! 1. Name, uid and version come from a scan of the metadata, before the body is decoded and even if it cannot be.
//! 2. An object that is known in this version is returned and not decoded; at most its syntax is checked.
//! 3. A frame that cannot be used affects no other frame: it counts as undecodable if it has a name, and as unreadable
//!    if not. A panic in a representation makes only its frame unusable.
//! 4. Bytes that are not one JSON document are not an object, even if a name is found in them: they may hold two.
//! 5. The error of such a frame quotes no value of it and is at most about 256 characters long.
//! 6. `Representation::keep` is called at most once for a frame that it accepts.
//! 7. An object of a namespace that is not kept is dropped before its body is decoded, if its bytes are one document. Its
//!    version is given, so that a later watch goes on from there.
//! 8. Keys of one namespace share its text, and the block that holds it beside the cluster. At most [`MAX_SCOPES`] scopes
//!    are kept; beyond that all are forgotten, and held again as they come.
//!
//! Read next: `event.rs` for watch frames.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use informer_actors::list_watch::KnownObjects;
use informer_core::delta::Undecodable;
use informer_core::meta::{ClusterName, Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::words::{panic_text, shortened};

use crate::representation::{DecodeError, Encoded, Prune, Representation};
use crate::wire::{Frame, MetaScan, UnnamedError, WireKind};

/// At most this many characters of the error of a frame are kept.
const MAX_ERROR_CHARS: usize = 256;

/// Makes objects of frames; shared by all requests of a source.
#[derive(Debug)]
pub(crate) struct Decoder<R> {
    pub(crate) representation: Arc<R>,
    pub(crate) prune: Prune,
    pub(crate) source: SourceId,
    /// In which form bodies are read: another one for each resource that a name means.
    pub(crate) form: u32,
    /// The cluster in the keys, if the informer has several clusters.
    pub(crate) cluster: Option<ClusterName>,
    pub(crate) scopes: Scopes,
}

/// The result of decoding one object's bytes.
#[derive(Debug)]
pub(crate) enum Observed<S> {
    Object(Object<S>),
    Undecodable(Undecodable),
    /// It is in a namespace that is not kept, and has this version.
    Passed(ResourceVersion),
    /// It is JSON, but has no name or version.
    Unreadable(Arc<str>),
    /// It is not one JSON document: where the object ends, and what else the bytes hold, is unknown.
    NotJson(Arc<str>),
}

impl<R: Representation> Decoder<R> {
    /// Decodes what is written in this way; what is in `known` is not decoded again.
    pub(crate) fn decoding<'a>(
        &'a self,
        wire: WireKind,
        known: &'a KnownObjects<R::Body>,
    ) -> Decoding<'a, R> {
        Decoding { decoder: self, wire, known }
    }
}

/// Decodes the frames of one chunk.
pub(crate) struct Decoding<'a, R: Representation> {
    pub(super) decoder: &'a Decoder<R>,
    pub(super) wire: WireKind,
    pub(super) known: &'a KnownObjects<R::Body>,
}

impl<R: Representation> Decoding<'_, R> {
    /// The version of an object that is dropped; `None` if it is kept.
    pub(super) fn passed(&self, object: &Encoded<'_>) -> Option<ResourceVersion> {
        let scan = object.meta();
        if self.known.follows(scan.namespace.as_deref()) {
            return None;
        }
        let (_, version) = (scan.name().ok()?, scan.version().ok()?);
        self.wire.is_document(object.bytes()).then_some(version)
    }

    /// Reads one item of a list. Also returns whether the item named its kind.
    pub(crate) fn item(&self, frame: &Frame) -> (Observed<R::Body>, bool) {
        match frame {
            Frame::Whole(bytes) => {
                let object = Encoded::new(self.wire, bytes);
                (self.observe(&object), object.meta().kind.is_some())
            }
            Frame::Oversize { head, size } => (self.oversize(head, *size), true),
        }
    }

    /// Reads one object.
    pub(crate) fn observe(&self, object: &Encoded<'_>) -> Observed<R::Body> {
        if let Some(version) = self.passed(object) {
            return Observed::Passed(version);
        }
        let bytes = object.bytes();
        let meta = match self.meta(object) {
            Ok(Named::New(meta)) => meta,
            Ok(Named::Known(object)) => return Observed::Object(object),
            Err(error) if self.wire.is_document(bytes) => {
                return Observed::Unreadable(unreadable(&error, bytes));
            }
            Err(error) => return Observed::NotJson(unreadable(&error, bytes)),
        };
        match self.check_kind(object.meta()).and_then(|()| self.body(object)) {
            Ok(body) => Observed::Object(Object::new(meta, body)),
            Err(error) if !self.wire.is_document(bytes) => Observed::NotJson(unreadable(&error, bytes)),
            Err(error) => {
                let error = shortened(&error, MAX_ERROR_CHARS).into();
                Observed::Undecodable(Undecodable { key: meta.key, version: meta.version, error })
            }
        }
    }

    /// What is known about an object before its body is read. The published object is found by the texts of the scan.
    /// The new object takes its key and uid from the published one: each text is held once, however many states of the
    /// object exist, and comparing two keys usually compares two pointers.
    fn meta(&self, object: &Encoded<'_>) -> Result<Named<R::Body>, NoObject> {
        let (scan, bytes) = (object.meta(), object.bytes());
        let (name, version) = (scan.name()?, scan.version()?);
        let (cluster, source, form) =
            (self.decoder.cluster.as_ref(), &self.decoder.source, self.decoder.form);
        let wire_bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let Some(published) = self.known.named(cluster, scan.namespace.as_deref(), name) else {
            let meta = Meta::new(self.key(scan)?, version, source.clone()).uid(scan.uid());
            return Ok(Named::New(meta.wire_bytes(wire_bytes).form(form)));
        };
        let has_same_uid = match (published.object_uid(), scan.uid_text()) {
            (Some(uid), Some(text)) => *uid == text,
            (uid, text) => uid.is_none() && text.is_none(),
        };
        let is_of_form = published.source() == source && published.cached_meta().form == form;
        if has_same_uid && *published.version() == version && is_of_form {
            // The same length means the same text: see the header.
            let is_one_document = published.wire_bytes() == wire_bytes || self.wire.is_document(bytes);
            return if is_one_document { Ok(Named::Known(published)) } else { Err(NoObject::NotJson) };
        }
        let uid = if has_same_uid { published.object_uid().cloned() } else { scan.uid() };
        let meta = Meta::new(published.key().clone(), version, source.clone()).uid(uid);
        Ok(Named::New(meta.wire_bytes(wire_bytes).form(form)))
    }

    /// Names an object that is longer than the limit, by its first bytes.
    pub(crate) fn oversize(&self, head: &[u8], size: usize) -> Observed<R::Body> {
        match self.named(&self.wire.identify(head)) {
            Ok((key, version)) => {
                let error = format!("the object has {size} bytes, more than the limit").into();
                Observed::Undecodable(Undecodable { key, version, error })
            }
            Err(error) => {
                let error = shortened(&error.to_string(), MAX_ERROR_CHARS);
                Observed::Unreadable(
                    format!("an object has {size} bytes, more than the limit, and {error}").into(),
                )
            }
        }
    }

    /// The key, with the source's cluster in it, and the version.
    pub(crate) fn named(&self, scan: &MetaScan<'_>) -> Result<(ObjectKey, ResourceVersion), UnnamedError> {
        Ok((self.key(scan)?, scan.version()?))
    }

    fn key(&self, scan: &MetaScan<'_>) -> Result<ObjectKey, UnnamedError> {
        let (scopes, cluster) = (&self.decoder.scopes, self.decoder.cluster.as_ref());
        Ok(scopes.key(cluster, scan.namespace.as_deref(), scan.name()?))
    }

    fn check_kind(&self, scan: &MetaScan<'_>) -> Result<(), Arc<str>> {
        let (Some(expected), Some(kind)) = (self.decoder.representation.expected(), scan.kind.as_deref())
        else {
            return Ok(());
        };
        let version = scan.api_version.as_deref().unwrap_or(&expected.api_version);
        if kind == expected.kind && version == expected.api_version {
            return Ok(());
        }
        let error = DecodeError::WrongKind {
            expected: format!("{} {}", expected.api_version, expected.kind),
            found: format!("{version} {kind}"),
        };
        Err(error.to_string().into())
    }

    fn body(&self, object: &Encoded<'_>) -> Result<R::Body, Arc<str>> {
        let Decoder { representation, prune, .. } = self.decoder;
        match catch_unwind(AssertUnwindSafe(|| representation.keep(object, prune))) {
            Ok(body) => Ok(body.map_err(|error| error.to_string())?),
            Err(panic) => Err(format!("decoding panicked: {}", panic_text(&*panic)).into()),
        }
    }
}

/// An object whose metadata has been read.
enum Named<S> {
    /// It is published in this very state.
    Known(Object<S>),
    New(Meta),
}

/// Why these bytes are not an object, whatever their body.
#[derive(Debug, thiserror::Error)]
enum NoObject {
    #[error(transparent)]
    Scan(#[from] UnnamedError),
    #[error("not JSON")]
    NotJson,
}

/// The error of bytes that cannot be used, and how many bytes they are. None of them is quoted: they hold values.
pub(crate) fn unreadable(error: &dyn std::fmt::Display, bytes: &[u8]) -> Arc<str> {
    format!("{} in {} bytes", shortened(&error.to_string(), MAX_ERROR_CHARS), bytes.len()).into()
}

/// More namespaces than a cluster has that one source follows, as a rule.
const MAX_SCOPES: usize = 10_000;

/// A key of each scope, by its namespace; the empty text stands for none.
#[derive(Debug, Default)]
pub(crate) struct Scopes(Mutex<BTreeMap<Arc<str>, ObjectKey>>);

impl Scopes {
    /// The key of this name. All keys that are asked for name one cluster, or none does.
    pub(crate) fn key(
        &self,
        cluster: Option<&ClusterName>,
        namespace: Option<&str>,
        name: &str,
    ) -> ObjectKey {
        if cluster.is_none() && namespace.is_none() {
            return ObjectKey::cluster(name);
        }
        let mut scopes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = scopes.get(namespace.unwrap_or_default()) {
            return known.sibling(name);
        }
        let text: Arc<str> = namespace.unwrap_or_default().into();
        let key = match namespace {
            Some(_) => ObjectKey::namespaced(Arc::clone(&text), name),
            None => ObjectKey::cluster(name),
        };
        let key = cluster.into_iter().fold(key, ObjectKey::in_cluster);
        if scopes.len() == MAX_SCOPES {
            scopes.clear();
        }
        scopes.insert(text, key.clone());
        key
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_SCOPES, Scopes};

    #[test]
    fn inf_82_keys_of_a_namespace_and_cluster_share_one_allocation_besides_their_names() {
        let (scopes, cluster) = (Scopes::default(), "eu".parse().unwrap());
        for namespace in [Some("web"), None] {
            let key = |name| scopes.key(Some(&cluster), namespace, name);
            let (one, other) = (key("a"), key("b"));
            assert_eq!((one.name(), other.name(), other.namespace()), ("a", "b", namespace));
            assert!(std::ptr::eq(one.cluster_name().unwrap(), other.cluster_name().unwrap()), "{other}");
        }
        let plain = Scopes::default();
        let texts = ["a", "b"].map(|name| plain.key(None, Some("web"), name));
        let [one, other] = texts.each_ref().map(|key| key.namespace().unwrap().as_ptr());
        assert_eq!(one, other, "the text of the namespace is held once");
        assert_eq!(plain.key(None, None, "node").to_string(), "node");
    }

    #[test]
    fn the_number_of_scopes_is_bounded() {
        let scopes = Scopes::default();
        for n in 0..=MAX_SCOPES {
            let namespace = format!("n-{n}");
            assert_eq!(scopes.key(None, Some(&namespace), "a").to_string(), format!("{namespace}/a"));
        }
        assert!(scopes.0.lock().unwrap().len() <= MAX_SCOPES);
    }
}
