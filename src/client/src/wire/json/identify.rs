//! Reads the metadata of an object's JSON by its keys and brackets. Nothing after the metadata is read or checked: usually a few
//! hundred bytes are enough.
//!
//! 1. Fields may come in any order: in Go's struct order, or sorted as in custom resources.
//! 2. Labels and owners that are incomplete or of an unexpected type are left out.

use std::borrow::Cow;
use std::iter::from_fn;

use serde::de::DeserializeOwned;

use super::{Cursor, JsonError};
use crate::wire::frame::{MetaScan, Owner};

/// Allocates only for strings with escapes.
pub(crate) fn identify(json: &[u8]) -> MetaScan<'_> {
    let mut found = MetaScan::default();
    // An incomplete document is `None` here; what came before the cut is in `found`.
    let _ = Cursor::new(json).members(|key, cursor| match key {
        b"kind" => read(&mut found.kind, cursor),
        b"apiVersion" => read(&mut found.api_version, cursor),
        b"metadata" if cursor.peek()? == b'{' => {
            let _ = cursor.members(|key, cursor| read_metadata(&mut found, key, cursor));
            // Else the metadata was read to its end, or is cut off or invalid.
            found.rest = found.is_complete().then(|| cursor.rest());
            Some(false)
        }
        _ => cursor.value().map(|_| true),
    });
    found
}

/// `false` if no other member is needed.
fn read_metadata<'a>(found: &mut MetaScan<'a>, key: &[u8], cursor: &mut Cursor<'a>) -> Option<bool> {
    match key {
        b"name" => read(&mut found.name, cursor)?,
        b"namespace" => {
            read(&mut found.namespace, cursor)?;
            found.namespace = found.namespace.take().filter(|text| !text.is_empty());
            true
        }
        b"uid" => read(&mut found.uid, cursor)?,
        b"resourceVersion" => read(&mut found.version, cursor)?,
        _ => {
            let value = cursor.value()?;
            match key {
                b"labels" => found.labels = Some(value),
                b"ownerReferences" => found.owners = Some(value),
                _ => {}
            }
            return Some(true);
        }
    };
    Some(!found.is_complete())
}

pub(crate) fn labels<'a>(
    found: &MetaScan<'a>,
) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
    texts(found.labels.or_else(|| find(found.rest?, b"labels")))
}

pub(crate) fn annotations(object: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    texts(member(object, &["metadata"]).and_then(|metadata| member(metadata, &["annotations"])))
}

pub(crate) fn generation(object: &[u8]) -> Option<i64> {
    std::str::from_utf8(member(member(object, &["metadata"])?, &["generation"])?).ok()?.parse().ok()
}

pub(crate) fn member<'a>(object: &'a [u8], wanted: &[&str]) -> Option<&'a [u8]> {
    let (mut cursor, mut found) = (Cursor::new(object), None);
    let _ = cursor.members(|key, cursor| {
        let value = cursor.value()?;
        found = wanted.iter().any(|name| key == name.as_bytes()).then_some(value);
        Some(found.is_none())
    });
    found
}

/// The default if there is none.
pub(crate) fn metadata<T: DeserializeOwned + Default>(object: &[u8]) -> Result<T, JsonError> {
    let Some(metadata) = member(object, &["metadata"]) else { return Ok(T::default()) };
    serde_json::from_slice(metadata).map_err(|error| JsonError::from(&error))
}

fn texts<'a>(json: Option<&'a [u8]>) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
    let mut cursor = Cursor::new(json.unwrap_or_default());
    let mut key = cursor.first_key();
    let pairs = from_fn(move || {
        let name = key?;
        let value = cursor.value()?;
        key = cursor.next_key();
        Some((Cursor::unescape(name), Cursor::new(value).text()))
    });
    pairs.filter_map(|(name, value)| Some((name?, value?)))
}

pub(crate) fn owners<'a>(found: &MetaScan<'a>) -> impl Iterator<Item = Owner<'a>> + use<'a> {
    let json = found.owners.or_else(|| find(found.rest?, b"ownerReferences"));
    let mut cursor = Cursor::new(json.unwrap_or_default());
    let mut next = cursor.eat(b'[');
    from_fn(move || {
        next?;
        let mut owner = Owner::default();
        cursor.members(|key, cursor| match key {
            b"apiVersion" => read(&mut owner.api_version, cursor),
            b"kind" => read(&mut owner.kind, cursor),
            b"name" => read(&mut owner.name, cursor),
            b"uid" => read(&mut owner.uid, cursor),
            b"controller" => {
                owner.is_controller = cursor.value()? == b"true";
                Some(true)
            }
            _ => cursor.value().map(|_| true),
        })?;
        next = cursor.eat(b',');
        Some(owner)
    })
}

fn find<'a>(rest: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let mut cursor = Cursor::new(rest);
    while let Some(key) = cursor.next_key() {
        let value = cursor.value()?;
        if key == wanted {
            return Some(value);
        }
    }
    None
}

fn read<'a>(field: &mut Option<Cow<'a, str>>, cursor: &mut Cursor<'a>) -> Option<bool> {
    if cursor.peek()? == b'"' {
        *field = cursor.text();
    } else {
        cursor.value()?;
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use informer_core::meta::{ObjectKey, Uid};
    use proptest::prelude::*;

    use super::{identify, labels, owners};

    const POD: &str = concat!(
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"a","uid":"u","#,
        r#""resourceVersion":"7","labels":{"name":"no"}},"spec":{"metadata":{"name":"no"}}}"#
    );

    #[test]
    fn any_field_order_is_read() {
        let sorted = r#"{"apiVersion":"v1","data":{"metadata":1},"kind":"Pod","metadata":{"annotations":{"name":"no"},
            "managedFields":[{"name":"no"}],"name":"web-0","namespace":"a","resourceVersion":"7","uid":"u"}}"#;
        for json in [POD, sorted] {
            let found = identify(json.as_bytes());
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
            assert_eq!(identify(json.as_bytes()).key().unwrap(), ObjectKey::cluster("n"));
        }
    }

    #[test]
    fn every_prefix_gives_the_fields_before_the_cut() {
        let needed = POD.find(r#""7""#).unwrap() + 3;
        for end in 0..POD.len() {
            let found = identify(&POD.as_bytes()[..end]);
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
            let found = identify(&json);
            prop_assert_eq!(found.name.as_deref(), parsed["metadata"]["name"].as_str());
            prop_assert_eq!(found.namespace.as_deref(), Some("n"));
            prop_assert_eq!((found.uid.as_deref(), found.version.as_deref()), (Some("u"), Some("7")));
            let at = broken.index(json.len());
            json[at] = byte;
            identify(&json);
            identify(&json[at..]);
        }
    }

    #[test]
    fn the_error_for_an_object_without_a_name_or_version_says_which_is_missing() {
        let why = |json: &str| {
            let found = identify(json.as_bytes());
            found.key().and_then(|_| found.version()).unwrap_err().to_string()
        };
        assert_eq!(why("garbage"), "no metadata.name");
        assert_eq!(why(r#"{"metadata":null}"#), "no metadata.name");
        assert_eq!(why(r#"{"metadata":{"name":7,"resourceVersion":"7"}}"#), "no metadata.name");
        assert_eq!(why(r#"{"metadata":{"name":"a"}}"#), "no metadata.resourceVersion");
        assert!(why(r#"{"metadata":{"name":"a","resourceVersion":"x"}}"#).contains("decimal"));
    }

    #[test]
    fn labels_and_owners_are_read_before_and_behind_the_version_and_escapes_are_resolved() {
        let names = r#""name":"a","namespace":"n","uid":"u","resourceVersion":"7""#;
        let more = r#""labels":{"a":"1","b\u0062":"\"","c":7,"d":"" },"ownerReferences":[{"kind":"ReplicaSet","name":"r",
            "uid":"u-1","apiVersion":"apps/v1","controller":true,"blockOwnerDeletion":true}, {"uid":7,"controller":null}]"#;
        let none = r#""labels":null,"ownerReferences":{}"#;
        for members in [[names, more], [more, names], [r#""generation":1,"annotations":{"labels":{}}"#, more]]
        {
            let json = format!(r#"{{"metadata":{{{}}},"spec":1}}"#, members.join(","));
            let found = identify(json.as_bytes());
            let pairs: Vec<_> = labels(&found).map(|(key, value)| format!("{key}={value}")).collect();
            assert_eq!(pairs, ["a=1", "bb=\"", "d="], "{json}");
            let owned: Vec<_> = owners(&found).collect();
            assert_eq!(owned.len(), 2, "{json}");
            assert_eq!((owned[0].uid.as_deref(), owned[0].name.as_deref()), (Some("u-1"), Some("r")));
            assert_eq!((owned[0].kind.as_deref(), owned[0].is_controller), (Some("ReplicaSet"), true));
            assert_eq!((&owned[1].uid, owned[1].is_controller), (&None, false));
            for end in 0..json.len() {
                let cut = identify(&json.as_bytes()[..end]);
                assert!(labels(&cut).count() <= 3 && owners(&cut).count() <= 2, "{end}");
            }
        }
        for members in [[names, none], [none, names]] {
            let json = format!(r#"{{"metadata":{{{}}}}}"#, members.join(","));
            let found = identify(json.as_bytes());
            assert_eq!((labels(&found).count(), owners(&found).count()), (0, 0), "{json}");
        }
    }
}
