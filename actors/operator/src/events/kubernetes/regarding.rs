//! What an event may be about: objects of any type, objects of a cache, references. The parameter of
//! [`Regarding`] keeps its implementations apart.

use crate::events::machine::Reference;
use k8s_openapi::api::core::v1::ObjectReference;
use kube_core::{DynamicObject, Resource};

use informer_core::meta::Object;

/// What an event may be about. `M` is found by the compiler.
///
/// ```
/// use actix_informer::events::Regarding;
/// use k8s_openapi::api::core::v1::{Node, ObjectReference};
///
/// let mut node = Node::default();
/// node.metadata.name = Some("one".to_owned());
/// assert_eq!(node.reference().to_string(), "Node one");
/// let container = ObjectReference {
///     kind: Some("Pod".to_owned()),
///     namespace: Some("shop".to_owned()),
///     name: Some("web".to_owned()),
///     field_path: Some("spec.containers{web}".to_owned()),
///     ..ObjectReference::default()
/// };
/// assert_eq!(container.reference().to_string(), "Pod shop/web");
/// ```
pub trait Regarding<M> {
    /// The reference to it.
    fn reference(&self) -> Reference;
}

/// A type that knows its kind: of `k8s-openapi`, of `kube-derive`, or the metadata of one.
#[derive(Debug)]
pub struct Typed(());

/// An object of a kind that is known at run time. It must say its own kind, as objects of an `Api` and of a
/// cache do.
#[derive(Debug)]
pub struct Dynamic(());

/// A reference of the API.
#[derive(Debug)]
pub struct Referenced(());

/// An object of a cache, whose body is of one of these.
#[derive(Debug)]
pub struct Cached<M>(std::marker::PhantomData<M>);

impl<K: Resource<DynamicType = ()>> Regarding<Typed> for K {
    fn reference(&self) -> Reference {
        let version = self.meta().resource_version.clone().unwrap_or_default();
        Reference { resource_version: version, ..self.object_ref(&()).reference() }
    }
}

impl Regarding<Dynamic> for DynamicObject {
    fn reference(&self) -> Reference {
        let (types, metadata) = (self.types.clone().unwrap_or_default(), self.metadata.clone());
        let text = Option::unwrap_or_default;
        Reference {
            api_version: types.api_version,
            kind: types.kind,
            namespace: text(metadata.namespace),
            name: text(metadata.name),
            uid: text(metadata.uid),
            resource_version: text(metadata.resource_version),
            field_path: String::new(),
        }
    }
}

impl Regarding<Referenced> for ObjectReference {
    fn reference(&self) -> Reference {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Reference {
            api_version: text(&self.api_version),
            kind: text(&self.kind),
            namespace: text(&self.namespace),
            name: text(&self.name),
            uid: text(&self.uid),
            resource_version: text(&self.resource_version),
            field_path: text(&self.field_path),
        }
    }
}

impl<M, K: Regarding<M>> Regarding<Cached<M>> for Object<K> {
    fn reference(&self) -> Reference {
        self.body().reference()
    }
}
