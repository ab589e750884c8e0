//! Turns an object's bytes into the body that a cache keeps. The trait is [`Representation`]; [`Typed`], [`Lazy`], `Packed`,
//! [`Projection`], [`Dynamic`], [`MetadataOnly`] and [`ControllerOnly`] implement it. The guide `start` says when to take which.
//!
//! 1. [`Representation::keep`] makes a body, and runs the user's transform, exactly once for each observed state of an object. It
//!    is pure and may run on any thread; a panic in it affects only that object.
//! 2. The fields that [`Prune`] names are never decoded. A path continues in each element of a list. If no field is cut, the
//!    plain deserializer runs at no extra cost.
//! 3. An error of decoding quotes no value of the object and has a bounded length.

#[cfg(feature = "persist")]
use std::collections::BTreeMap;
use std::error::Error as StdError;
#[cfg(feature = "persist")]
use std::path::Path;
use std::str::Utf8Error;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use informer_actors::runtime::PassesOn;
use kube_core::TypeMeta;
use tokio::sync::OwnedMutexGuard;

use crate::wire::WireError;

pub use crate::wire::{JsonError, MetaScan, Owner, RequestedContent, UnnamedError, WireKind};
#[cfg(feature = "protobuf")]
pub use crate::wire::{ProtobufError, ProtobufKind};
pub use controller_only::{Controlled, ControllerOf, ControllerOnly, ControllerRef};
pub use encoded::Encoded;
#[doc(hidden)]
pub use encoded::LateFindings;
pub use lazy::{Decoded, Lazy, LazyBody};
#[cfg(feature = "packed")]
pub use packed::Packed;
#[cfg(feature = "persist")]
pub(crate) use packed::SavedTo;
#[cfg(feature = "persist")]
#[doc(hidden)]
pub use packed::{Dictionaries, SavedBody};
pub use passing::Passing;
pub use prune::Prune;
pub use reading::{OfKind, ReadFields, ReadMetadata, bodies_of};
pub use typed::{Dynamic, MetadataOnly, Projection, Typed};

#[cfg(feature = "packed")]
mod compressed;
mod controller_only;
mod encoded;
mod lazy;
#[cfg(feature = "packed")]
mod packed;
mod passing;
mod prune;
mod reading;
mod typed;

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
    note = "`Typed<K>`, `Lazy<K>`, `Packed<K>`, `Projection<K, T>`, `Dynamic`, `MetadataOnly<K>` and `ControllerOnly<K>` are; or implement `Representation` for a type of your own"
)]
pub trait Representation: Send + Sync + 'static {
    /// What the cache keeps of one object.
    type Body: Send + Sync + 'static;

    /// Makes the body of one object. Called once for each state that the cache will hold, on any thread.
    ///
    /// Most implementations call [`Encoded::decode`], which reads every wire. One that reads only a part of the
    /// bytes, or only what the scan has found, saves the check that they are UTF-8.
    ///
    /// # Errors
    /// When the bytes do not decode or a transform fails. The object counts as undecodable; other objects are
    /// not affected.
    fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<Self::Body, DecodeError>;

    /// What is requested from the server for each object.
    fn requested_content(&self) -> RequestedContent {
        RequestedContent::Objects
    }

    /// The `apiVersion` and `kind` that every object must have, if known. Objects of other kinds count as
    /// undecodable.
    fn expected(&self) -> Option<&TypeMeta> {
        None
    }

    /// Tells two representations of this type apart. Equal texts mean that both keep the same of every
    /// object, so an `InformerFactory` may share one informer between them. `None`, the default for a type
    /// with fields, means that this is not known, and a factory requires a name. A type without fields needs
    /// none.
    fn identity(&self) -> Option<String> {
        (size_of_val(self) == 0).then(String::new)
    }

    /// Whether [`Self::keep`] also takes objects in protobuf. If not, which is the default,
    /// [`ResourceSource::protobuf`](crate::ResourceSource::protobuf) changes nothing. One that calls only
    /// [`Encoded::decode`], [`Encoded::pruned`] and what reads single fields does.
    #[cfg(feature = "protobuf")]
    fn reads_protobuf(&self) -> bool {
        false
    }

    /// The bytes of a body, if they are known without a walk: for the memory report.
    #[doc(hidden)]
    fn weigh(&self, _body: &Self::Body) -> Option<usize> {
        None
    }

    /// How bodies are written to a file, if they are.
    #[cfg(feature = "persist")]
    #[doc(hidden)]
    fn saves(&self) -> Option<Arc<dyn Saves<Self::Body>>> {
        None
    }

    /// Where objects are passed on, if they are not kept.
    #[doc(hidden)]
    fn passes(&self) -> Option<Arc<dyn PassesOn<Self::Body>>> {
        None
    }

    /// What of it cannot be, to be refused before any request.
    #[doc(hidden)]
    fn refusal(&self) -> Option<&'static str> {
        None
    }

    /// Work on bodies that are kept already, for representations of this crate.
    #[doc(hidden)]
    fn upkeep(&self) -> Option<Arc<dyn Upkeep<Self::Body>>> {
        None
    }
}

/// Bodies that can be written to a file, and read from it.
#[cfg(feature = "persist")]
#[doc(hidden)]
pub trait Saves<S>: Send + Sync {
    /// The file.
    fn file(&self) -> Arc<Path>;

    /// Whether Secrets may be written to it.
    fn may_be_secrets(&self) -> bool;

    /// `None` for a body that cannot be written.
    fn saved(&self, body: &S) -> Option<SavedBody>;

    /// The number of the dictionary of new bodies, and whether some body still needs another one.
    fn newest(&self) -> (Option<u32>, bool);

    /// Takes over the dictionaries of a file; `None` if one does not fit its number.
    fn restore(&self, dictionaries: BTreeMap<u32, Vec<u8>>, newest: Option<u32>) -> Option<Dictionaries>;

    /// How many bytes its text or message has, and its fields.
    fn fields(&self, body: &S) -> (u64, Vec<(String, u64)>);

    /// `None` if its dictionary is not there.
    fn body(&self, dictionaries: &Dictionaries, bytes: Vec<u8>, late: &Arc<LateFindings>) -> Option<S>;
}

/// What a representation wants done with the objects of the cache, on the decode pool.
#[doc(hidden)]
pub trait Upkeep<S>: Send + Sync {
    /// Ready when there is something to do. Only the holder of the guard does it.
    fn due(self: Arc<Self>) -> BoxFuture<'static, OwnedMutexGuard<()>>;

    /// Comes first.
    fn prepare(&self);

    /// Then once for each published object. Returns its bytes in memory.
    fn renew(&self, body: &S) -> usize;

    /// Comes last; returns whether there are objects for which it was not done.
    fn round_ended(&self) -> bool;
}

/// Why no body can be made of an object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The text is not JSON, or does not fit the type. The error quotes no value, because it may be a
    /// password.
    #[error("does not decode: {0}")]
    Json(#[from] JsonError),
    /// The message is not readable, or does not fit the type. The error quotes no value.
    #[cfg(feature = "protobuf")]
    #[error("does not decode: {0}")]
    Protobuf(#[from] ProtobufError),
    /// The bytes are not UTF-8.
    #[error(transparent)]
    Text(#[from] Utf8Error),
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

impl From<WireError> for DecodeError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Json(error) => Self::Json(error),
            #[cfg(feature = "protobuf")]
            WireError::Protobuf(error) => Self::Protobuf(error),
        }
    }
}

#[cfg(test)]
mod tests;
