//! How an object's bytes become the body that a cache keeps.
//!
//! Answers "what is kept of an object, and what is asked of the server for it?" with one trait,
//! [`Representation`], and three answers: [`Typed`], [`Dynamic`], [`MetadataOnly`]. It knows nothing of connections,
//! and the machinery behind it knows nothing of representations: it is generic over the body. Invariants:
//! 1. A body is made exactly once per observed state of an object, by [`Representation::keep`]; a transform of the
//!    user's runs inside it, once.
//! 2. What [`Prune`] names is never allocated: it is skipped inside the parser.
//! 3. No error of decoding quotes a value of the object, nor grows with it.
//! 4. `keep` is pure and may run on any thread; a panic in it costs that object alone.
//!
//! Read next: `prune.rs` for how fields are cut, `meta_scan.rs` for what is known without decoding.

mod cursor;
mod dynamic;
mod meta_scan;
mod metadata;
mod misfit;
mod prune;
mod typed;

use std::error::Error as StdError;

use kube_core::TypeMeta;

pub(crate) use cursor::ends_scalar;
pub use dynamic::Dynamic;
pub use meta_scan::{MetaScan, UnnamedError, meta_scan};
pub use metadata::MetadataOnly;
pub use misfit::JsonError;
pub use prune::Prune;
pub use typed::Typed;

/// An error of code that is not ours.
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
pub trait Representation: Send + Sync + 'static {
    /// What the cache keeps of one object.
    type Body: Send + Sync + 'static;

    /// Makes the body of one object. Called once for each state that the cache is to hold, on any thread.
    ///
    /// # Errors
    /// When the text does not decode or a transform fails: the object is set aside, nothing else suffers.
    fn keep(&self, json: &str, prune: &Prune) -> Result<Self::Body, DecodeError>;

    /// The same, of bytes of which nobody has checked that they are text. To be written by a representation that reads
    /// only a part of the object, or nothing: the check costs more than it takes to find an object in a list.
    ///
    /// # Errors
    /// As for [`Self::keep`], and when the bytes are no text.
    fn keep_bytes(&self, json: &[u8], prune: &Prune) -> Result<Self::Body, DecodeError> {
        self.keep(std::str::from_utf8(json)?, prune)
    }

    /// What the server is asked to send of each object.
    fn asks_for(&self) -> Asked {
        Asked::Objects
    }

    /// The `apiVersion` and `kind` that every object must have, if that is known; others are set aside.
    fn expected(&self) -> Option<&TypeMeta> {
        None
    }
}

/// What is asked of the server for each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asked {
    /// Whole objects as JSON.
    Objects,
    /// Only their metadata, as `PartialObjectMetadata`.
    Metadata,
}

/// Why an object has no body.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The text is not JSON, or not JSON of this kind. Quotes no value: it may be a password.
    #[error("does not decode: {0}")]
    Json(#[from] JsonError),
    /// The bytes are no text.
    #[error(transparent)]
    Text(#[from] std::str::Utf8Error),
    /// The user's transform refused it, in the transform's own words: it decides whether they quote a value.
    #[error("transform failed: {0}")]
    Transform(#[source] BoxError),
    /// It is an object of another kind.
    #[error("wrong kind: {found}, not {expected}")]
    WrongKind {
        /// What was asked for.
        expected: String,
        /// What came.
        found: String,
    },
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(JsonError::from(&error))
    }
}
