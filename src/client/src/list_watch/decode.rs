//! Decodes the bytes of one list item or one watch event, on any thread.
//!
//! 1. An object that is known with the same uid, version, source and form is returned without decoding. Its
//!    bytes must still be one document: they may hold a second object after a lost separator, or members
//!    after an object that was split by position. The same length proves that, because objects of the same
//!    uid and version have the same text.
//! 2. A frame that cannot be used affects no other: it is undecodable if it has a name, otherwise unreadable.
//!    This also holds after a panic in a representation. Errors quote no value.
//! 3. Bytes that are not one document are not an object, even if they contain a name: they may hold two.
//! 4. An object of a namespace that is not kept is dropped before its body is decoded. A later watch
//!    continues from its version.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use informer_actors::list_watch::{KnownObjects, ObjectSample};
use informer_core::delta::Undecodable;
use informer_core::meta::{ClusterName, Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::path::PastBody;
use informer_core::words::{panic_text, shortened};

use crate::representation::{DecodeError, Encoded, LateFindings, Prune, Representation};
use crate::wire::{Frame, MetaScan, UnnamedError, WireKind};

const MAX_ERROR_CHARS: usize = 256;

#[derive(Debug)]
pub(crate) struct Decoder<R> {
    pub(crate) representation: Arc<R>,
    pub(crate) prune: Prune,
    pub(crate) source: SourceId,
    /// Of the body: another one for each resource that a name means.
    pub(crate) form: u32,
    /// With several clusters.
    pub(crate) cluster: Option<ClusterName>,
    pub(crate) scopes: Scopes,
    pub(crate) late: Arc<LateFindings>,
}

#[derive(Debug)]
pub(crate) enum Observed<S> {
    Object(Object<S>),
    Undecodable(Undecodable),
    /// In a namespace that is not kept.
    Passed(ResourceVersion),
    Unreadable(Arc<str>),
    NotADocument(Arc<str>),
}

impl<R: Representation> Decoder<R> {
    pub(crate) fn decoding<'a>(
        &'a self,
        wire: WireKind,
        known: &'a KnownObjects<R::Body>,
    ) -> Decoding<'a, R> {
        Decoding { decoder: self, wire, known }
    }
}

pub(crate) struct Decoding<'a, R: Representation> {
    pub(super) decoder: &'a Decoder<R>,
    pub(super) wire: WireKind,
    pub(super) known: &'a KnownObjects<R::Body>,
}

impl<R: Representation> Decoding<'_, R> {
    pub(super) fn encoded<'b>(&'b self, bytes: &'b [u8]) -> Encoded<'b> {
        Encoded::new(self.wire, bytes).telling(&self.decoder.late)
    }

    /// `None` if the object is kept.
    pub(super) fn passed(&self, object: &Encoded<'_>) -> Option<ResourceVersion> {
        let scan = object.meta();
        if self.known.follows(scan.namespace.as_deref()) {
            return None;
        }
        let (_, version) = (scan.name().ok()?, scan.version().ok()?);
        self.wire.is_document(object.bytes()).then_some(version)
    }

    /// Also returns whether the item named its kind.
    pub(crate) fn item(&self, frame: &Frame) -> (Observed<R::Body>, bool) {
        match frame {
            Frame::Whole(bytes) => {
                let object = self.encoded(bytes);
                let observed = self.observe(&object);
                if let Observed::Object(listed) = &observed {
                    self.note_state(listed, bytes, false);
                }
                (observed, object.meta().kind.is_some())
            }
            Frame::Oversize { head, size } => (self.oversize(head, *size), true),
        }
    }

    pub(super) fn note_state(&self, object: &Object<R::Body>, bytes: &[u8], is_deleted: bool) {
        let is_known =
            || self.known.get(object.key()).is_some_and(|known| known.version() == object.version());
        if !self.known.keeps_states_of(object.key()) || (!is_deleted && is_known()) {
            return;
        }
        let kind = self.decoder.representation.expected().map(|expected| &*expected.kind);
        let body = if is_deleted {
            Some(PastBody::Deleted)
        } else {
            self.wire.shown(bytes, kind).map(PastBody::Object)
        };
        if let Some(body) = body {
            self.known.note_state(object.key(), object.version(), body);
        }
    }

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
            Err(error) => return Observed::NotADocument(unreadable(&error, bytes)),
        };
        match self.check_kind(object.meta()).and_then(|()| self.body(object)) {
            Ok(body) => {
                if self.known.is_sampled()
                    && let Some(sample) = self.sample(object, &body)
                {
                    self.known.note_sample(sample);
                }
                Observed::Object(Object::new(meta, body))
            }
            Err(error) if self.wire.hides_nothing(bytes).is_err() => {
                Observed::NotADocument(unreadable(&error, bytes))
            }
            Err(error) => {
                let error = shortened(&error, MAX_ERROR_CHARS).into();
                Observed::Undecodable(Undecodable { key: meta.key, version: meta.version, error })
            }
        }
    }

    /// No value of the object.
    fn sample(&self, object: &Encoded<'_>, body: &R::Body) -> Option<ObjectSample> {
        let Decoder { representation, prune, .. } = self.decoder;
        let (text, fields) = object.weighed(prune)?;
        let kept = representation.weigh(body).map(|bytes| bytes as u64);
        Some(ObjectSample { sent: object.bytes().len() as u64, text, kept, fields })
    }

    /// A new object takes key and uid of the published one: each text is held once, and comparing two keys
    /// usually compares two pointers.
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
            return if is_one_document {
                Ok(Named::Known(published))
            } else {
                Err(NoObject::NotADocument(self.wire.name()))
            };
        }
        let uid = if has_same_uid { published.object_uid().cloned() } else { scan.uid() };
        let meta = Meta::new(published.key().clone(), version, source.clone()).uid(uid);
        Ok(Named::New(meta.wire_bytes(wire_bytes).form(form)))
    }

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

enum Named<S> {
    Known(Object<S>),
    New(Meta),
}

#[derive(Debug, thiserror::Error)]
enum NoObject {
    #[error(transparent)]
    Scan(#[from] UnnamedError),
    #[error("not {0}")]
    NotADocument(&'static str),
}

pub(crate) fn unreadable(error: &dyn std::fmt::Display, bytes: &[u8]) -> Arc<str> {
    format!("{} in {} bytes", shortened(&error.to_string(), MAX_ERROR_CHARS), bytes.len()).into()
}

/// One source usually follows fewer namespaces.
const MAX_SCOPES: usize = 10_000;

/// A key of each namespace; the empty text stands for none. Keys of one namespace share its text, which is
/// half of their cost. At [`MAX_SCOPES`] all are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Scopes(Mutex<BTreeMap<Arc<str>, ObjectKey>>);

impl Scopes {
    /// All keys must be of one cluster, or of none.
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
    use super::*;
    use crate::representation::{ControllerOnly, Lazy, MetadataOnly, Typed};
    use k8s_openapi::api::core::v1::Pod;

    fn observed<R: Representation>(representation: R, wire: WireKind, bytes: &[u8]) -> Observed<()> {
        let decoder = Decoder {
            representation: Arc::new(representation),
            prune: Prune::default(),
            source: SourceId::default(),
            form: 0,
            cluster: None,
            scopes: Scopes::default(),
            late: Arc::new(LateFindings::new(None)),
        };
        let known = KnownObjects::nothing();
        let decoding = decoder.decoding(wire, &known);
        match decoding.observe(&decoding.encoded(bytes)) {
            Observed::Object(object) => Observed::Object(Object::new(object.cached_meta().clone(), ())),
            Observed::Undecodable(undecodable) => Observed::Undecodable(undecodable),
            Observed::Passed(version) => Observed::Passed(version),
            Observed::Unreadable(why) => Observed::Unreadable(why),
            Observed::NotADocument(why) => Observed::NotADocument(why),
        }
    }

    #[test]
    fn two_objects_in_one_frame_are_no_object_however_objects_are_kept() {
        let kind = r#""apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata""#;
        let types = [r#""apiVersion":"v1","kind":"Pod""#, kind];
        let object = |types: &str, name: &str| {
            format!(
                r#"{{{types},"metadata":{{"name":"{name}","resourceVersion":"1","ownerReferences":[]}}}}"#
            )
        };
        let [whole, metadata] =
            types.map(|types| [object(types, "a"), object(types, "a") + &object(types, "b")]);
        let seen = |at: usize| {
            [
                observed(Typed::<Pod>::new(), WireKind::Json, whole[at].as_bytes()),
                observed(Lazy::<Pod>::new(), WireKind::Json, whole[at].as_bytes()),
                observed(MetadataOnly::<Pod>::new(), WireKind::Json, metadata[at].as_bytes()),
                observed(ControllerOnly::<Pod>::new(), WireKind::Json, metadata[at].as_bytes()),
            ]
        };
        for one in seen(0) {
            assert!(matches!(one, Observed::Object(_)), "{one:?}");
        }
        for two in seen(1) {
            assert!(matches!(two, Observed::NotADocument(_)), "{two:?}");
        }
    }

    #[cfg(feature = "protobuf")]
    #[test]
    fn what_is_broken_in_a_protobuf_object_makes_it_alone_undecodable() {
        let wire = WireKind::Protobuf(crate::wire::ProtobufKind::of("v1", "Pod").expect("built in"));
        let metadata = b"\x0a\x06\x0a\x01a\x32\x011";
        let whole = observed(Typed::<Pod>::new(), wire, metadata);
        assert!(matches!(whole, Observed::Object(_)), "{whole:?}");
        // A spec of five bytes, of which two are there.
        let broken = observed(Typed::<Pod>::new(), wire, &[&metadata[..], b"\x12\x05\x12\x05"].concat());
        assert!(matches!(&broken, Observed::Undecodable(one) if one.key.name() == "a"), "{broken:?}");
    }

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
