//! Turns an object's bytes into the body that a cache keeps.
//!
//! Answers "what is kept of an object, and what is requested from the server for it?" with one trait,
//! [`Representation`], and three implementations: [`Typed`], [`Dynamic`], [`MetadataOnly`]. It does not know
//! connections. The informer's actors do not know representations: they are generic over the body. Invariants:
//! 1. A body is made exactly once for each observed state of an object, by [`Representation::keep`], which also runs
//!    the user's transform once.
//! 2. The fields that [`Prune`] names are never allocated: the parser skips them.
//! 3. An error of decoding quotes no value of the object and has a bounded length.
//! 4. `keep` is pure and may run on any thread; a panic in it affects only that object.
//!
//! Read next: `prune.rs` for how fields are cut, `meta_scan.rs` for what is read before decoding.

mod cursor;
mod dynamic;
mod json_error;
#[cfg_attr(not(feature = "unstable"), allow(unreachable_pub))]
pub(crate) mod meta_scan;
mod metadata;
mod prune;
mod typed;

use std::error::Error as StdError;

use kube_core::TypeMeta;

pub(crate) use cursor::ends_scalar;
pub use dynamic::Dynamic;
pub use json_error::JsonError;
pub(crate) use meta_scan::{MetaScan, UnnamedError, meta_scan};
pub use metadata::MetadataOnly;
pub use prune::Prune;
pub use typed::Typed;

/// An error of the user's code.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// Turns an object's JSON into the body that a cache keeps.
///
/// ```
/// use actix_informer::representation::{DecodeError, Prune, Representation};
///
/// /// Keeps the length of the text.
/// struct Length;
///
/// impl Representation for Length {
///     type Body = usize;
///     fn keep(&self, json: &str, _prune: &Prune) -> Result<usize, DecodeError> {
///         Ok(json.len())
///     }
/// }
/// assert_eq!(Length.keep("{}", &Prune::default())?, 2);
/// # Ok::<(), DecodeError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how objects are kept",
    label = "this is not a representation",
    note = "`Typed<K>`, `Dynamic` and `MetadataOnly<K>` are; or implement `Representation` for a type of your own"
)]
pub trait Representation: Send + Sync + 'static {
    /// What the cache keeps of one object.
    type Body: Send + Sync + 'static;

    /// Makes the body of one object. Called once for each state that the cache will hold, on any thread.
    ///
    /// # Errors
    /// When the text does not decode or a transform fails. The object counts as undecodable; other objects are not
    /// affected.
    fn keep(&self, json: &str, prune: &Prune) -> Result<Self::Body, DecodeError>;

    /// As [`Self::keep`], for bytes that were not yet checked to be UTF-8. The default implementation checks all of
    /// them. Override it in a representation that reads only a part of the object, or nothing: the check costs more
    /// than finding an object in a list.
    ///
    /// # Errors
    /// As for [`Self::keep`], and when the bytes are not UTF-8.
    fn keep_bytes(&self, json: &[u8], prune: &Prune) -> Result<Self::Body, DecodeError> {
        self.keep(std::str::from_utf8(json)?, prune)
    }

    /// What the server is requested to send of each object.
    fn requested_content(&self) -> RequestedContent {
        RequestedContent::Objects
    }

    /// The `apiVersion` and `kind` that every object must have, if known. Objects of other kinds count as undecodable.
    fn expected(&self) -> Option<&TypeMeta> {
        None
    }
}

/// What is requested from the server for each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestedContent {
    /// Whole objects as JSON.
    Objects,
    /// Only their metadata, as `PartialObjectMetadata`.
    Metadata,
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
