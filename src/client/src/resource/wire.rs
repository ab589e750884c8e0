//! On which wire objects are asked for. The Content-Type of each answer decides how it is read.

use kube_core::discovery::ApiResource;

use super::ResourceSource;
use crate::representation::{Representation, WireKind};

impl<K, R: Representation> ResourceSource<K, R> {
    /// Asks for protobuf where it can be read: of built-in kinds, and of the metadata of every kind. It is smaller than
    /// JSON, and needs less time on both sides.
    ///
    /// Everything else stays as it is. The server decides for each answer: one that has no protobuf of a kind, such as
    /// that of a custom kind, answers JSON. A lazy or packed cache keeps what came, and `text` gives JSON. It is for lazy
    /// and packed caches, for metadata, and for representations that say so
    /// ([`Representation::reads_protobuf`]), which are all of this crate; for any other it changes nothing.
    ///
    /// ```no_run
    /// # fn demo(client: actix_informer::client::Client) {
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = client.resource::<Pod>().lazy().protobuf();
    /// let names = client.metadata::<Pod>().protobuf();
    /// # let _ = (pods, names);
    /// # }
    /// ```
    #[cfg(feature = "protobuf")]
    pub fn protobuf(mut self) -> Self {
        self.protobuf = true;
        self
    }

    pub(super) fn wire(&self) -> WireKind {
        wire_of(self.protobuf, &*self.representation, &self.scope.resource)
    }
}

/// How the objects of this resource are asked for.
#[cfg(feature = "protobuf")]
pub(super) fn wire_of<R: Representation>(
    protobuf: bool,
    representation: &R,
    resource: &ApiResource,
) -> WireKind {
    if !protobuf || !representation.reads_protobuf() {
        return WireKind::Json;
    }
    let kind = (&*resource.api_version, &*resource.kind);
    WireKind::preferring_protobuf(kind, representation.requested_content())
}

#[cfg(not(feature = "protobuf"))]
pub(super) fn wire_of<R: Representation>(_: bool, _: &R, _: &ApiResource) -> WireKind {
    WireKind::Json
}
