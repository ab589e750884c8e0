//! Objects that are passed on to one receiver and not kept: [`Passing`].

use std::sync::Arc;

use informer_actors::runtime::{PassTo, Passed, PassesOn};
use kube_core::TypeMeta;

use super::{DecodeError, Encoded, Prune, Representation, RequestedContent};

/// Keeps of each object only its key, uid and version, and passes the object on to one receiver, in the form of `R`: for
/// programs that store objects elsewhere. Made by [`ResourceSource::pass_to`](crate::ResourceSource::pass_to).
pub struct Passing<R: Representation> {
    of: Arc<R>,
    to: PassTo<R::Body>,
}

impl<R: Representation> Passing<R> {
    pub(crate) fn new(of: Arc<R>, to: PassTo<R::Body>) -> Self {
        Self { of, to }
    }
}

impl<R: Representation> Representation for Passing<R> {
    type Body = Passed<R::Body>;

    fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<Self::Body, DecodeError> {
        self.of.keep(object, prune).map(Passed::new)
    }

    fn requested_content(&self) -> RequestedContent {
        self.of.requested_content()
    }

    fn expected(&self) -> Option<&TypeMeta> {
        self.of.expected()
    }

    #[cfg(feature = "protobuf")]
    fn reads_protobuf(&self) -> bool {
        self.of.reads_protobuf()
    }

    fn weigh(&self, _body: &Self::Body) -> Option<usize> {
        Some(0)
    }

    #[cfg(feature = "persist")]
    fn refusal(&self) -> Option<&'static str> {
        self.of.saves().map(|_| "`persist` of objects that are passed on")
    }

    fn passes(&self) -> Option<Arc<dyn PassesOn<Self::Body>>> {
        Some(Arc::new(self.to.clone()))
    }
}

informer_core::debug_as!([R: Representation] Passing<R>, self, to = self.to);
