//! Keeps objects of a kind that is known only at run time, as kube-core's `DynamicObject`.
//!
//! Answers "what is kept?": the metadata as a type and the rest as a JSON tree. It takes several times the memory and
//! time of [`super::Typed`]; it is for kinds that have no Rust type. The kind is given, not discovered. Invariants:
//! 1. Every kept object has its `apiVersion` and `kind`, even if the list left them out.
//!
//! Read next: `metadata.rs`, for programs that need the metadata only.

use kube_core::discovery::ApiResource;
use kube_core::{DynamicObject, TypeMeta};

use super::{DecodeError, Encoded, Prune, Representation};

/// Keeps each object as a `DynamicObject`.
///
/// ```
/// use actix_informer::representation::{Dynamic, Encoded, Prune, Representation};
/// use kube_core::discovery::ApiResource;
/// use kube_core::gvk::GroupVersionKind;
///
/// let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
/// let widgets = Dynamic::new(&ApiResource::from_gvk_with_plural(&kind, "widgets"));
/// let sent = Encoded::json(r#"{"metadata":{"name":"a"},"spec":{"size":3}}"#);
/// let kept = widgets.keep(&sent, &Prune::default())?;
/// assert_eq!(kept.data["spec"]["size"], 3);
/// assert_eq!(kept.types.as_ref().map(|types| types.kind.as_str()), Some("Widget"));
/// # Ok::<(), actix_informer::representation::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dynamic {
    expected: TypeMeta,
}

impl Dynamic {
    /// Objects of this kind.
    #[must_use]
    pub fn new(resource: &ApiResource) -> Self {
        let expected = TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() };
        Self { expected }
    }
}

impl Representation for Dynamic {
    type Body = DynamicObject;

    fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<DynamicObject, DecodeError> {
        let mut object: DynamicObject = prune.decode(object.text()?)?;
        object.types.get_or_insert_with(|| self.expected.clone());
        Ok(object)
    }

    fn expected(&self) -> Option<&TypeMeta> {
        Some(&self.expected)
    }

    fn identity(&self) -> Option<String> {
        Some(String::new())
    }
}
