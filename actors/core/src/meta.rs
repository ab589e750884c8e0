//! What identifies a cached object: key, uid, version and source. Versions compare numerically (apimachinery's
//! `CompareResourceVersion`).

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

pub use key::{ClusterName, KeyText, ObjectKey, ParseClusterError, ParseKeyError};
pub use uid::Uid;

mod key;
mod uid;

/// A live resource version: a decimal number of at most 64 digits, compared numerically.
///
/// `""` and `"0"` are requests ("latest", "any") and never the version of an object or list. They are
/// refused, as are leading zeros and every text that is not a number.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::object::ResourceVersion;
/// let nine: ResourceVersion = "9".parse()?;
/// let huge: ResourceVersion = "340282366920938463463374607431768211456".parse()?;
/// assert!(nine < "10".parse()? && nine < huge);
/// assert!("007".parse::<ResourceVersion>().is_err());
/// # Ok::<(), actix_informer::object::ParseVersionError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Digits);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Digits {
    Short(u64),
    Long(Arc<str>),
}

/// Servers count in 64 bits, which are 20 digits: a longer text is no version.
const MOST_DIGITS: usize = 64;

impl ResourceVersion {
    /// The version with this number, or `None` for zero, which is not a version.
    pub fn from_number(number: u64) -> Option<Self> {
        (number > 0).then_some(Self(Digits::Short(number)))
    }

    /// Its lowest bits, for a sample of versions.
    pub fn low_bits(&self) -> u64 {
        match &self.0 {
            Digits::Short(number) => *number,
            Digits::Long(_) => self.as_metric(),
        }
    }

    /// Its last 15 digits, as a number for metrics; a float holds it exactly. It is for graphs and
    /// dashboards: of two longer versions the newer one may have the smaller figure.
    ///
    /// ```
    /// # use informer_core::face as actix_informer;
    /// use actix_informer::object::ResourceVersion;
    /// assert_eq!("1065".parse::<ResourceVersion>()?.as_metric(), 1065);
    /// assert_eq!("9000000000000001065".parse::<ResourceVersion>()?.as_metric(), 1065);
    /// # Ok::<(), actix_informer::object::ParseVersionError>(())
    /// ```
    pub fn as_metric(&self) -> u64 {
        const BOUND: u64 = 1_000_000_000_000_000;
        match &self.0 {
            Digits::Short(number) => number % BOUND,
            Digits::Long(text) => {
                let last = text.bytes().skip(text.len().saturating_sub(15));
                last.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
            }
        }
    }
}

/// A text that is not a live resource version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("resource version {0:?} is not a decimal number of at most 64 digits without leading zero")]
pub struct ParseVersionError(String);

impl FromStr for ResourceVersion {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, ParseVersionError> {
        let bytes = text.as_bytes();
        let decimal = bytes.len() <= MOST_DIGITS
            && bytes.first().is_some_and(|first| *first != b'0')
            && bytes.iter().all(u8::is_ascii_digit);
        if !decimal {
            return Err(ParseVersionError(text.chars().take(MOST_DIGITS + 1).collect()));
        }
        Ok(Self(text.parse::<u64>().map_or_else(|_| Digits::Long(text.into()), Digits::Short)))
    }
}

impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Digits::Short(a), Digits::Short(b)) => a.cmp(b),
            (Digits::Short(_), Digits::Long(_)) => Ordering::Less,
            (Digits::Long(_), Digits::Short(_)) => Ordering::Greater,
            (Digits::Long(a), Digits::Long(b)) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        }
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Digits::Short(number) => write!(f, "{number}"),
            Digits::Long(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceVersion({self})")
    }
}

/// The name of one source of an informer (a namespace, a shard, a cluster). Cloning copies a pointer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(Arc<str>);

impl SourceId {
    /// Names a source; the name appears in states, errors and logs.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn shared(&self) -> &Arc<str> {
        &self.0
    }
}

impl Default for SourceId {
    /// The only source of an informer that has one: `default`.
    fn default() -> Self {
        Self::new("default")
    }
}

impl Borrow<str> for SourceId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceId({self})")
    }
}

/// All that the informer itself reads of an object: it never looks into the body.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::object::{Meta, ObjectKey, ResourceVersion, SourceId, Uid};
/// let version = ResourceVersion::from_number(7).expect("not zero");
/// let meta = Meta::new(ObjectKey::namespaced("web", "a"), version, SourceId::default())
///     .uid(Uid::new("u-1"))
///     .wire_bytes(120);
/// assert_eq!((meta.key.name(), meta.wire_bytes), ("a", 120));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meta {
    /// Where the object is found.
    pub key: ObjectKey,
    /// Which life of that key it is; `None` for sources without uids, where the key is the identity.
    pub uid: Option<Uid>,
    /// The version of the last write that this state shows.
    pub version: ResourceVersion,
    /// The source that brought it.
    pub source: SourceId,
    /// How many bytes it took on the wire; counts against the queue's byte bound.
    pub wire_bytes: u32,
    /// In which form the source reads bodies. One version in two forms is two states: a kind that is served
    /// in another version keeps the versions of its objects.
    pub form: u32,
}

impl Meta {
    /// The object of this key in this version, brought by this source. Unless set, it has no uid, no bytes
    /// and the form 0.
    pub fn new(key: ObjectKey, version: ResourceVersion, source: SourceId) -> Self {
        Self { key, uid: None, version, source, wire_bytes: 0, form: 0 }
    }

    /// Says which life of its key it is.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<Option<Uid>>) -> Self {
        self.uid = uid.into();
        self
    }

    /// Says how many bytes it took on the wire.
    #[must_use]
    pub fn wire_bytes(mut self, bytes: u32) -> Self {
        self.wire_bytes = bytes;
        self
    }

    /// Says in which form its body was read.
    #[must_use]
    pub fn form(mut self, form: u32) -> Self {
        self.form = form;
        self
    }
}

/// One observed state of one object: an `Arc` of its [`Meta`] and its body, immutable and cheap to clone.
///
/// Derefs to the body, so an `Object<Pod>` reads like a `Pod`. Its own methods ([`Self::key`],
/// [`Self::version`], [`Self::object_uid`] and so on) hide none of kube's: `object.uid()` and `object.meta()`
/// are those of `ResourceExt` and `Resource`.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::object::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
/// let version = ResourceVersion::from_number(1).expect("not zero");
/// let meta = Meta::new(ObjectKey::cluster("greeting"), version, SourceId::default()).wire_bytes(5);
/// let object = Object::new(meta, String::from("hello"));
/// assert_eq!(object.len(), 5);               // String::len, through deref
/// assert_eq!(object.key().name(), "greeting");
/// ```
pub struct Object<S>(Arc<Entry<S>>);

struct Entry<S> {
    meta: Meta,
    body: S,
}

impl<S> Object<S> {
    /// Joins the metadata that the informer needs with the body that the user reads.
    pub fn new(meta: Meta, body: S) -> Self {
        Self(Arc::new(Entry { meta, body }))
    }

    /// Where the object is found.
    pub fn key(&self) -> &ObjectKey {
        &self.0.meta.key
    }

    /// Which life of the key it is. Not called `uid`, which is a method of kube's `ResourceExt`.
    pub fn object_uid(&self) -> Option<&Uid> {
        self.0.meta.uid.as_ref()
    }

    /// The version of this state.
    pub fn version(&self) -> &ResourceVersion {
        &self.0.meta.version
    }

    /// The source that brought it.
    pub fn source(&self) -> &SourceId {
        &self.0.meta.source
    }

    /// Its size on the wire, in bytes.
    pub fn wire_bytes(&self) -> u32 {
        self.0.meta.wire_bytes
    }

    /// Everything the informer knows of it. Not called `meta`, which is a method of kube's `Resource`.
    pub fn cached_meta(&self) -> &Meta {
        &self.0.meta
    }

    /// The body; the same as dereferencing.
    pub fn body(&self) -> &S {
        &self.0.body
    }

    /// Whether both are the very same allocation.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The address of the allocation: equal for clones of one object, and different for all other objects
    /// alive.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>() as usize
    }

    /// Whether both are one life of one key (equal key and uid).
    pub fn is_same_life_as(&self, other: &Self) -> bool {
        self.key() == other.key() && self.object_uid() == other.object_uid()
    }

    /// Whether both show the same state: one life, one version, one form. Such a pair is not an event.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let is_of_form = self.0.meta.form == other.0.meta.form;
        self.version() == other.version() && is_of_form && self.is_same_life_as(other)
    }
}

crate::clone_of!([S] Object<S>);

impl<S> Deref for Object<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0.body
    }
}

impl<S> fmt::Debug for Object<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} @ {})", self.key(), self.version())
    }
}

// Not in `delta.rs`: snapshots hold undecodable objects and do not depend on deltas.

/// The bytes counted for a part without an object, besides the texts that it holds.
pub const UNDECODABLE_BYTES: usize = 64;

/// An object whose metadata was read and whose body could not be decoded or transformed. It is counted and
/// visible in the state; the last version that decoded stays in the store. One that was found by a reader of a lazy
/// cache stays in the store as its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecodable {
    /// Which object.
    pub key: ObjectKey,
    /// The version that could not be decoded or transformed.
    pub version: ResourceVersion,
    /// Why.
    pub error: Arc<str>,
}

impl Undecodable {
    /// The bytes counted for it in a queue: [`UNDECODABLE_BYTES`] and the texts that it holds.
    pub fn bytes(&self) -> usize {
        let key = self.key.namespace().map_or(0, str::len) + self.key.name().len();
        UNDECODABLE_BYTES + key + self.error.len()
    }
}

#[cfg(test)]
mod tests;
