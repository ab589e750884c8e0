//! What selectors, predicates and indices read of a body: metadata ([`ReadMetadata`]) and values of fields ([`ReadFields`]).

use std::any::TypeId;
use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::Resource;
use kube_core::metadata::PartialObjectMeta;
use serde::Serialize;

use super::{ControllerOf, LazyBody};
use crate::wire::{FieldPath, JsonError};

/// Bodies whose metadata can be read: all with Kubernetes metadata, and [`LazyBody`].
pub trait ReadMetadata {
    /// All of it. A lazy body decodes its metadata; if that fails it counts as undecodable, and this is empty.
    fn metadata(&self) -> Cow<'_, ObjectMeta>;

    /// The value of one label. A lazy body decodes nothing.
    fn label(&self, key: &str) -> Option<Cow<'_, str>>;

    /// The uids of its owners. A lazy body decodes nothing.
    fn owner_uids(&self) -> Vec<String>;

    /// `metadata.generation`. A lazy body decodes nothing.
    fn generation(&self) -> Option<i64>;
}

impl<R: Resource> ReadMetadata for R {
    fn metadata(&self) -> Cow<'_, ObjectMeta> {
        Cow::Borrowed(self.meta())
    }

    fn label(&self, key: &str) -> Option<Cow<'_, str>> {
        self.meta().labels.as_ref()?.get(key).map(|value| Cow::Borrowed(&**value))
    }

    fn owner_uids(&self) -> Vec<String> {
        self.meta().owner_references.iter().flatten().map(|owner| owner.uid.clone()).collect()
    }

    fn generation(&self) -> Option<i64> {
        self.meta().generation
    }
}

impl<K> ReadMetadata for LazyBody<K> {
    fn metadata(&self) -> Cow<'_, ObjectMeta> {
        Cow::Owned(self.object_meta())
    }

    fn label(&self, key: &str) -> Option<Cow<'_, str>> {
        let of =
            |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name == key).then(|| value.into_owned().into());
        self.read(|object| object.labels().find_map(of))
    }

    fn owner_uids(&self) -> Vec<String> {
        self.read(|object| object.owners().filter_map(|owner| owner.uid).map(Cow::into_owned).collect())
    }

    fn generation(&self) -> Option<i64> {
        self.read(|object| object.generation())
    }
}

/// Bodies whose kind has a Rust type: that type itself, and [`LazyBody`] of it.
pub trait OfKind {
    /// The type.
    type Kind: Resource<DynamicType = ()>;
}

impl<R: Resource<DynamicType = ()>> OfKind for R {
    type Kind = R;
}

impl<K: Resource<DynamicType = ()>> OfKind for LazyBody<K> {
    type Kind = K;
}

/// The body types in which an informer may follow a kind.
#[doc(hidden)]
pub fn bodies_of<K: 'static>() -> [TypeId; 4] {
    [
        TypeId::of::<K>(),
        TypeId::of::<PartialObjectMeta<K>>(),
        TypeId::of::<ControllerOf<K>>(),
        TypeId::of::<LazyBody<K>>(),
    ]
}

/// Bodies with fields that have a path: all that can be written as JSON, and [`LazyBody`].
pub trait ReadFields {
    /// The values at this path, in the order of the JSON. A lazy body costs a scan of its text, another body
    /// is written as JSON first.
    ///
    /// # Errors
    /// When the body's own `Serialize` fails.
    fn values_at(&self, path: &FieldPath) -> Result<Vec<String>, JsonError>;
}

impl<S: Serialize> ReadFields for S {
    fn values_at(&self, path: &FieldPath) -> Result<Vec<String>, JsonError> {
        path.values_of(self)
    }
}

impl<K> ReadFields for LazyBody<K> {
    fn values_at(&self, path: &FieldPath) -> Result<Vec<String>, JsonError> {
        Ok(self.read(|object| object.values_at(path)))
    }
}
