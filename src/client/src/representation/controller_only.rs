//! Keeps of each object only its owner reference with `controller: true`. Only metadata is requested, and it is not decoded: the
//! scan that finds the name also finds the owner.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use informer_core::meta::Uid;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::{Resource, TypeMeta};

use super::{DecodeError, Encoded, LazyBody, MetadataOnly, Prune, Representation, RequestedContent};
use crate::wire::Owner;

/// No owner reference that a server accepts contains it.
const BETWEEN: char = '\0';

/// Keeps which object controls each object, and nothing else of it; `K` is only the kind of the objects.
///
/// ```
/// use actix_informer::object::Uid;
/// use actix_informer::representation::{Controlled, ControllerOnly, Encoded, Prune, Representation};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let sent = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","ownerReferences":
///     [{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"4c2f","controller":true}]}}"#;
/// let kept = ControllerOnly::<Pod>::new().keep(&Encoded::json(sent), &Prune::default())?;
/// let controller = kept.controller().expect("it has one");
/// assert_eq!((&*controller.kind, &*controller.name), ("ReplicaSet", "web"));
/// assert_eq!(controller.uid, Uid::new("4c2f"));
/// # Ok::<(), actix_informer::representation::DecodeError>(())
/// ```
pub struct ControllerOnly<K>(MetadataOnly<K>);

/// What [`ControllerOnly`] keeps of an object of the kind `K`.
pub struct ControllerOf<K> {
    /// Version, kind and name; empty without a controller.
    text: Box<str>,
    uid: Option<Uid>,
    kind: PhantomData<fn() -> K>,
}

/// The object that controls another one, as its owner reference names it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControllerRef<'a> {
    /// Group and version, or the version alone.
    pub api_version: Cow<'a, str>,
    /// Its kind.
    pub kind: Cow<'a, str>,
    /// Its name; it is in the namespace of the object, or in none.
    pub name: Cow<'a, str>,
    /// Its uid; a reference that a server has accepted has one.
    pub uid: Option<Uid>,
}

/// Bodies that know which object controls theirs: all with Kubernetes metadata, [`LazyBody`] and [`ControllerOf`].
pub trait Controlled {
    /// The owner reference with `controller: true`, if there is one.
    fn controller(&self) -> Option<ControllerRef<'_>>;
}

impl<R: Resource> Controlled for R {
    fn controller(&self) -> Option<ControllerRef<'_>> {
        let references = self.meta().owner_references.iter().flatten();
        references.map(ControllerRef::controlling).find_map(|found| found)
    }
}

impl<K> Controlled for LazyBody<K> {
    fn controller(&self) -> Option<ControllerRef<'_>> {
        self.read(|object| {
            let owner = object.owners().find(|owner| owner.is_controller)?;
            Some(ControllerRef::of(owner).into_owned())
        })
    }
}

impl<K> Controlled for ControllerOf<K> {
    fn controller(&self) -> Option<ControllerRef<'_>> {
        let mut parts = self.text.split(BETWEEN);
        let mut part = || parts.next().map(Cow::Borrowed);
        Some(ControllerRef { api_version: part()?, kind: part()?, name: part()?, uid: self.uid.clone() })
    }
}

impl<'a> ControllerRef<'a> {
    /// The reference, if it is that of a controller.
    #[doc(hidden)]
    pub fn controlling(reference: &'a OwnerReference) -> Option<Self> {
        let OwnerReference { api_version, kind, name, uid, controller, .. } = reference;
        let text = |text: &'a String| Cow::Borrowed(&**text);
        let uid = || Uid::new(uid);
        (*controller == Some(true)).then(|| Self {
            api_version: text(api_version),
            kind: text(kind),
            name: text(name),
            uid: uid(),
        })
    }

    fn into_owned(self) -> ControllerRef<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let Self { api_version, kind, name, uid } = self;
        ControllerRef { api_version: own(api_version), kind: own(kind), name: own(name), uid }
    }

    pub(super) fn of(owner: Owner<'a>) -> Self {
        let Owner { api_version, kind, name, uid, .. } = owner;
        let (api_version, kind) = (api_version.unwrap_or_default(), kind.unwrap_or_default());
        let uid = Uid::new(uid.as_deref().unwrap_or_default());
        Self { api_version, kind, name: name.unwrap_or_default(), uid }
    }
}

impl<K> ControllerOnly<K> {
    /// Keeps the controller of each object.
    #[must_use]
    pub fn new() -> Self {
        Self(MetadataOnly::new())
    }
}

impl<K> Default for ControllerOnly<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Send + Sync + 'static> Representation for ControllerOnly<K> {
    type Body = ControllerOf<K>;

    fn keep(&self, object: &Encoded<'_>, _prune: &Prune) -> Result<Self::Body, DecodeError> {
        object.hides_nothing()?;
        let controller = object.owners().find(|owner| owner.is_controller);
        let text = controller.as_ref().map(text_of).unwrap_or_default();
        let uid = controller.and_then(|owner| owner.uid.as_deref().and_then(Uid::new));
        Ok(ControllerOf { text: text.into(), uid, kind: PhantomData })
    }

    fn weigh(&self, body: &Self::Body) -> Option<usize> {
        Some(body.text.len())
    }

    fn requested_content(&self) -> RequestedContent {
        self.0.requested_content()
    }

    fn expected(&self) -> Option<&TypeMeta> {
        self.0.expected()
    }

    fn identity(&self) -> Option<String> {
        Some(String::new())
    }

    #[cfg(feature = "protobuf")]
    fn reads_protobuf(&self) -> bool {
        true
    }
}

fn text_of(owner: &Owner<'_>) -> String {
    let parts = [&owner.api_version, &owner.kind, &owner.name];
    parts.map(|part| part.as_deref().unwrap_or_default()).join(BETWEEN.encode_utf8(&mut [0; 1]))
}

informer_core::clone_of!([K] ControllerOnly<K>);

impl<K> fmt::Debug for ControllerOnly<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControllerOnly")
    }
}

informer_core::clone_of!([K] ControllerOf<K> { text, uid, kind });

impl<K> PartialEq for ControllerOf<K> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.uid == other.uid
    }
}

impl<K> Eq for ControllerOf<K> {}

informer_core::debug_as!([K] ControllerOf<K>, self, of = self.controller());

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    #[test]
    fn ctl_25_what_is_kept_names_the_same_controller_as_the_whole_metadata() {
        let controller = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": true});
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a\"b", "uid": "2"});
        let escaped =
            json!({"apiVersion": "v1", "kind": "K", "name": "\u{e9}\"", "uid": "3", "controller": true});
        for owners in
            [json!([]), json!([other]), json!([controller]), json!([other, controller]), json!([escaped])]
        {
            let sent = json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": {"name": "a", "resourceVersion": "1", "ownerReferences": owners},
            })
            .to_string();
            let (encoded, prune) = (Encoded::json(&sent), Prune::default());
            let whole = MetadataOnly::<Pod>::new().keep(&encoded, &prune).unwrap();
            let kept = ControllerOnly::<Pod>::new().keep(&encoded, &prune).unwrap();
            assert_eq!(kept.controller(), whole.controller(), "{sent}");
        }
    }
}
