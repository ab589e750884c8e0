//! Turns an object's bytes into the body that a cache keeps.
//!
//! Answers "what is kept of an object, and what is requested from the server for it?" with one trait,
//! [`Representation`], and four implementations: [`Typed`], [`Dynamic`], [`MetadataOnly`], [`ControllerOnly`]. It does not know
//! connections. The informer's actors do not know representations: they are generic over the body. Invariants:
//! 1. A body is made exactly once for each observed state of an object, by [`Representation::keep`], which also runs
//!    the user's transform once.
//! 2. The fields that [`Prune`] names are never allocated: the parser skips them.
//! 3. An error of decoding quotes no value of the object and has a bounded length.
//! 4. `keep` is pure and may run on any thread; a panic in it affects only that object.
//!
//! Two more representations have their names and their places here, and do not exist yet: `Lazy` (`lazy.rs`), which keeps
//! the text that [`Encoded::pruned`] gives and decodes it on the first access, and `Packed` (`packed.rs`), the same
//! compressed. When one of these lines compiles, the test fails:
//!
//! ```compile_fail,E0432
//! use actix_informer::representation::Lazy;
//! ```
//! ```compile_fail,E0432
//! use actix_informer::representation::Packed;
//! ```
//!
//! Read next: `encoded.rs` for what a representation is given, `prune.rs` for how fields are cut.

mod controller_only;
mod dynamic;
mod encoded;
mod metadata;
mod prune;
mod typed;

use std::error::Error as StdError;

use kube_core::TypeMeta;

pub use controller_only::{Controlled, ControllerOf, ControllerOnly, ControllerRef};
pub use dynamic::Dynamic;
pub use encoded::Encoded;
pub use metadata::MetadataOnly;
pub use prune::Prune;
pub use typed::Typed;

pub use crate::wire::{JsonError, MetaScan, Owner, RequestedContent, UnnamedError, WireKind};

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
    note = "`Typed<K>`, `Dynamic`, `MetadataOnly<K>` and `ControllerOnly<K>` are; or implement `Representation` for a type of your own"
)]
pub trait Representation: Send + Sync + 'static {
    /// What the cache keeps of one object.
    type Body: Send + Sync + 'static;

    /// Makes the body of one object. Called once for each state that the cache will hold, on any thread.
    ///
    /// Most implementations decode what [`Encoded::text`] gives with [`Prune::decode`]. One that reads only a part of the
    /// bytes, or only what the scan has found, saves the check that they are UTF-8.
    ///
    /// # Errors
    /// When the bytes do not decode or a transform fails. The object counts as undecodable; other objects are not
    /// affected.
    fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<Self::Body, DecodeError>;

    /// What the server is requested to send of each object.
    fn requested_content(&self) -> RequestedContent {
        RequestedContent::Objects
    }

    /// The `apiVersion` and `kind` that every object must have, if known. Objects of other kinds count as undecodable.
    fn expected(&self) -> Option<&TypeMeta> {
        None
    }

    /// What tells two representations of this type apart: the same text for two of them says that they keep the same of
    /// every object, so that an [`InformerFactory`](crate::factory::InformerFactory) may share one informer between
    /// them. `None`, the default of a type with fields: that is not known, and a factory asks for a name. A type without
    /// fields needs none.
    fn identity(&self) -> Option<String> {
        (size_of_val(self) == 0).then(String::new)
    }
}

/// Why no body can be made of an object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The text is not JSON, or does not fit the type. The error quotes no value, because it may be a password.
    #[error("does not decode: {0}")]
    Json(#[from] JsonError),
    /// The bytes are not UTF-8.
    #[error(transparent)]
    Text(#[from] std::str::Utf8Error),
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
