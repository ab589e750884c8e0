//! What a scan of an object's metadata has found, without decoding the object.
//!
//! Answers "which object is this, in which version, of which kind, with which labels, and who owns it?" Texts are slices
//! of the frame; only one with escapes is copied. Invariants:
//! 1. The scan stops as soon as name, namespace, uid and version are known: usually after a few hundred bytes. Labels and
//!    owners are read from there on, when they are asked for.
//! 2. Of a frame that is cut off it has what came before the cut. So an object that is too large to be read still gets
//!    its name.
//! 3. A field that is there twice has its last value, or the first one of a scan that had found everything.
//!
//! Read next: `json/identify.rs`, which scans; `representation/mod.rs`, which shows it to representations.

use std::borrow::Cow;

use informer_core::meta::{ObjectKey, ParseVersionError, ResourceVersion, Uid};

/// The metadata of one object, as far as it was read. A field that is missing or not a string is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetaScan<'a> {
    /// `apiVersion`, if it comes before the end of the metadata.
    pub api_version: Option<Cow<'a, str>>,
    /// `kind`, if it comes before the end of the metadata.
    pub kind: Option<Cow<'a, str>>,
    /// `metadata.name`.
    pub name: Option<Cow<'a, str>>,
    /// `metadata.namespace`; an empty one counts as missing.
    pub namespace: Option<Cow<'a, str>>,
    /// `metadata.uid`.
    pub uid: Option<Cow<'a, str>>,
    /// `metadata.resourceVersion`.
    pub version: Option<Cow<'a, str>>,
    /// The encoded labels, if the scan passed them.
    pub(super) labels: Option<&'a [u8]>,
    /// The encoded owners, if the scan passed them.
    pub(super) owners: Option<&'a [u8]>,
    /// What follows in the metadata, if the scan stopped there.
    pub(super) rest: Option<&'a [u8]>,
}

/// One of `metadata.ownerReferences`. A field that is missing or not a string is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner<'a> {
    /// Its `apiVersion`.
    pub api_version: Option<Cow<'a, str>>,
    /// Its `kind`.
    pub kind: Option<Cow<'a, str>>,
    /// Its `name`.
    pub name: Option<Cow<'a, str>>,
    /// Its `uid`.
    pub uid: Option<Cow<'a, str>>,
    /// Whether it is the controller of the object.
    pub is_controller: bool,
}

/// Why the scanned metadata names no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnnamedError {
    /// No readable `metadata.name`.
    #[error("no metadata.name")]
    Name,
    /// No readable `metadata.resourceVersion`.
    #[error("no metadata.resourceVersion")]
    NoVersion,
    /// A resource version that is not a number.
    #[error(transparent)]
    Version(#[from] ParseVersionError),
}

impl<'a> MetaScan<'a> {
    /// Whether everything is known for which a scan looks.
    pub(super) fn is_complete(&self) -> bool {
        self.name.is_some() && self.namespace.is_some() && self.uid.is_some() && self.version.is_some()
    }

    /// The object's name.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn name(&self) -> Result<&str, UnnamedError> {
        self.name.as_deref().filter(|name| !name.is_empty()).ok_or(UnnamedError::Name)
    }

    /// The object's key.
    ///
    /// # Errors
    /// When there is no name.
    pub fn key(&self) -> Result<ObjectKey, UnnamedError> {
        let name = self.name()?;
        Ok(match self.namespace.as_deref() {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster(name),
        })
    }

    /// The object's version.
    ///
    /// # Errors
    /// When there is none, or one that is not a number.
    pub fn version(&self) -> Result<ResourceVersion, UnnamedError> {
        Ok(self.version.as_deref().filter(|text| !text.is_empty()).ok_or(UnnamedError::NoVersion)?.parse()?)
    }

    /// The object's uid, if it has one.
    pub fn uid(&self) -> Option<Uid> {
        Uid::new(self.uid_text().unwrap_or_default())
    }

    /// The text of the object's uid, if it has one.
    pub(crate) fn uid_text(&self) -> Option<&str> {
        self.uid.as_deref().filter(|uid| !uid.is_empty())
    }
}
