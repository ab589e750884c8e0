//! Reads name, namespace, uid, version and kind of an object without decoding it.
//!
//! Answers "which object is this, in which version, of which kind?" from its JSON, and stops as soon as that is known.
//! It does not check the rest of the object. Invariants:
//! 1. It also works on a document that is cut off and returns what came before the cut. So an object that is too large
//!    to be read still gets its name.
//! 2. It reads nothing behind the metadata: usually a few hundred bytes of an object.
//! 3. Fields may come in any order: in Go's struct order, or sorted as in custom resources.
//!
//! Read next: `mod.rs`, which turns the object's text into a body; `cursor.rs`, which reads the JSON.

use std::borrow::Cow;

use informer_core::meta::{ObjectKey, ParseVersionError, ResourceVersion, Uid};

use super::cursor::Cursor;

/// The result of a scan. A field that is missing or not a string is `None`.
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

/// Reads the metadata of one object's JSON. Reads the bytes up to the end of the metadata, and allocates only for
/// strings with escapes.
///
/// ```
/// # #[cfg(feature = "unstable")] {
/// use actix_informer::unstable::meta_scan;
/// let found = meta_scan(br#"{"kind":"Pod","metadata":{"name":"web-0","namespace":"a","resourceVersion":"7"},"spec"#);
/// assert_eq!(found.key()?.to_string(), "a/web-0");
/// assert_eq!(found.version()?.to_string(), "7");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn meta_scan(json: &[u8]) -> MetaScan<'_> {
    let mut found = MetaScan::default();
    // A document that is cut off gives `None` here; what came before the cut is in `found`.
    let _ = Cursor::new(json).members(|key, cursor| match key {
        b"kind" => read(&mut found.kind, cursor),
        b"apiVersion" => read(&mut found.api_version, cursor),
        b"metadata" => {
            if cursor.peek()? != b'{' {
                return cursor.skip().map(|()| true);
            }
            cursor.members(|key, cursor| found.read_member(key, cursor))?;
            Some(false)
        }
        _ => cursor.skip().map(|()| true),
    });
    found
}

fn read<'a>(field: &mut Option<Cow<'a, str>>, cursor: &mut Cursor<'a>) -> Option<bool> {
    if cursor.peek()? == b'"' {
        *field = cursor.text();
    } else {
        cursor.skip()?;
    }
    Some(true)
}

impl<'a> MetaScan<'a> {
    fn read_member(&mut self, key: &[u8], cursor: &mut Cursor<'a>) -> Option<bool> {
        match key {
            b"name" => read(&mut self.name, cursor)?,
            b"namespace" => {
                read(&mut self.namespace, cursor)?;
                self.namespace = self.namespace.take().filter(|text| !text.is_empty());
                true
            }
            b"uid" => read(&mut self.uid, cursor)?,
            b"resourceVersion" => read(&mut self.version, cursor)?,
            _ => return cursor.skip().map(|()| true),
        };
        Some(!self.is_complete())
    }

    fn is_complete(&self) -> bool {
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
    #[cfg_attr(
        not(feature = "unstable"),
        allow(dead_code, reason = "sources share scopes between their keys")
    )]
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POD: &str = concat!(
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"a","uid":"u","#,
        r#""resourceVersion":"7","labels":{"name":"no"}},"spec":{"metadata":{"name":"no"}}}"#
    );

    #[test]
    fn any_field_order_is_read() {
        let sorted = r#"{"apiVersion":"v1","data":{"metadata":1},"kind":"Pod","metadata":{"annotations":{"name":"no"},
            "managedFields":[{"name":"no"}],"name":"web-0","namespace":"a","resourceVersion":"7","uid":"u"}}"#;
        for json in [POD, sorted] {
            let found = meta_scan(json.as_bytes());
            assert_eq!(found.key().unwrap().to_string(), "a/web-0");
            assert_eq!(found.uid(), Uid::new("u"));
            assert_eq!(found.version().unwrap().to_string(), "7");
            assert_eq!((found.kind.as_deref(), found.api_version.as_deref()), (Some("Pod"), Some("v1")));
        }
    }

    #[test]
    fn a_cluster_scoped_object_has_no_namespace() {
        for namespace in ["", r#""namespace":"","#, r#""namespace":null,"#] {
            let json = format!(r#"{{"metadata":{{{namespace}"name":"n","resourceVersion":"1"}}}}"#);
            assert_eq!(meta_scan(json.as_bytes()).key().unwrap(), ObjectKey::cluster("n"));
        }
    }

    #[test]
    fn every_prefix_gives_the_fields_before_the_cut() {
        let needed = POD.find(r#""7""#).unwrap() + 3;
        for end in 0..POD.len() {
            let found = meta_scan(&POD.as_bytes()[..end]);
            assert_eq!(found.version().is_ok(), end >= needed, "{}", &POD[..end]);
            assert!(found.name.is_none() || found.name.as_deref() == Some("web-0"));
        }
    }

    proptest! {
        #[test]
        fn any_order_of_members_gives_what_serde_json_gives_and_no_input_panics(
            members in Just(vec![
                r#""name":"a\u0062\"""#, r#""namespace":"n""#, r#""uid":"u""#, r#""resourceVersion":"7""#,
                r#""labels":{"name":"no","x":[{"uid":"no"}]}"#, r#""generation":1"#,
            ]).prop_shuffle(),
            broken in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut json = format!(r#"{{"spec":{{}},"metadata":{{{}}},"status":1}}"#, members.join(",")).into_bytes();
            let parsed: serde_json::Value = serde_json::from_slice(&json).unwrap();
            let found = meta_scan(&json);
            prop_assert_eq!(found.name.as_deref(), parsed["metadata"]["name"].as_str());
            prop_assert_eq!(found.namespace.as_deref(), Some("n"));
            prop_assert_eq!((found.uid.as_deref(), found.version.as_deref()), (Some("u"), Some("7")));
            let at = broken.index(json.len());
            json[at] = byte;
            meta_scan(&json);
            meta_scan(&json[at..]);
        }
    }

    #[test]
    fn the_error_for_an_object_without_a_name_or_version_says_which_is_missing() {
        let why = |json: &str| {
            let found = meta_scan(json.as_bytes());
            found.key().and_then(|_| found.version()).unwrap_err().to_string()
        };
        assert_eq!(why("garbage"), "no metadata.name");
        assert_eq!(why(r#"{"metadata":null}"#), "no metadata.name");
        assert_eq!(why(r#"{"metadata":{"name":7,"resourceVersion":"7"}}"#), "no metadata.name");
        assert_eq!(why(r#"{"metadata":{"name":"a"}}"#), "no metadata.resourceVersion");
        assert!(why(r#"{"metadata":{"name":"a","resourceVersion":"x"}}"#).contains("decimal"));
    }
}
