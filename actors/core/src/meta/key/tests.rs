//! Keys: how they are read and written, how they compare, and what they cost.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use proptest::prelude::*;

use super::{ClusterName, ObjectKey, ParseKeyError};

fn key(text: &str) -> ObjectKey {
    text.parse().expect("a key")
}

fn hash(key: &ObjectKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

// IDX-08: given keys "name", "ns/name", "a/b/c", when split, then ok, ok, error.
// - a "name" and "ns/name" are split
// - b "a/b/c" is an error
#[test]
fn idx_08_keys_split_into_name_or_namespace_and_name_and_nothing_else() {
    let check = |text: &str, expected: Option<(Option<&str>, &str)>| {
        let parsed = text.parse::<ObjectKey>().ok();
        assert_eq!(parsed.as_ref().map(|key| (key.namespace(), key.name())), expected, "{text:?}");
    };
    check("name", Some((None, "name")));
    check("ns/name", Some((Some("ns"), "name")));
    check("a/b/c", None);
    check("", None);
    check("/name", None);
    check("ns/", None);
}

// IDX-29: given keys with and without a cluster, when they are written, read, compared and hashed, then
// `cluster|namespace/name` is read back as the same key, what cannot be a cluster's name is refused by type,
// keys without cluster come first and then cluster by cluster, and a key without cluster is as small as
// before.
// - a the text is read back as the same key
// - b refused by type: `idx_29_a_text_that_cannot_name_a_cluster_is_refused_by_type`
// - c the order; equality and hash agree with it:
//   `idx_29_keys_without_cluster_come_first_and_then_cluster_by_cluster`
// - d the size of two texts: `idx_29_a_key_without_cluster_takes_no_more_room_than_two_texts`
#[test]
fn idx_29_a_key_of_a_cluster_says_so_in_front_of_the_first_bar() {
    let parts = |text: &str| {
        let key = key(text);
        let cluster = key.cluster_name().map(|cluster| cluster.as_str().to_owned());
        (cluster, key.namespace().map(str::to_owned), key.name().to_owned())
    };
    let expect = |cluster: Option<&str>, namespace: Option<&str>, name: &str| {
        (cluster.map(str::to_owned), namespace.map(str::to_owned), name.to_owned())
    };
    assert_eq!(parts("eu-1|default/web"), expect(Some("eu-1"), Some("default"), "web"));
    assert_eq!(parts("eu-1|node"), expect(Some("eu-1"), None, "node"));
    assert_eq!(parts("eu-1|role|admin"), expect(Some("eu-1"), None, "role|admin"));
    assert_eq!(parts("|role|admin"), expect(None, None, "role|admin"));
    assert_eq!(ObjectKey::cluster("role|admin").to_string(), "|role|admin");
}

#[test]
fn idx_29_a_text_that_cannot_name_a_cluster_is_refused_by_type() {
    for text in ["EU|a/b", "e u|a/b", "ü|a", "a_b|c", "a:b|c"] {
        let refused = text.parse::<ObjectKey>();
        assert!(matches!(&refused, Err(ParseKeyError::Cluster { .. })), "{text:?}: {refused:?}");
        assert!(refused.is_err_and(|error| error.to_string().contains("the name of a cluster must be")));
    }
    for text in ["eu|", "eu|a/", "eu|/b", "eu|a/b/c", "|"] {
        let refused = text.parse::<ObjectKey>();
        assert_eq!(refused, Err(ParseKeyError::Format(text.to_owned())), "{text:?}");
    }
    assert!("".parse::<ClusterName>().is_err() && "a|b".parse::<ClusterName>().is_err());
    assert!("a.b-9".parse::<ClusterName>().is_ok());
}

#[test]
fn idx_29_keys_without_cluster_come_first_and_then_cluster_by_cluster() {
    let ascending =
        ["node", "web/b", "z/a", "eu|node", "eu|web/a", "eu|web/b", "eu|x/a", "us|a", "us|web/a"].map(key);
    for (at, left) in ascending.iter().enumerate() {
        for (other, right) in ascending.iter().enumerate() {
            assert_eq!(left.cmp(right), at.cmp(&other), "{left} {right}");
        }
    }
}

#[test]
fn idx_29_keys_that_share_a_scope_are_equal_to_those_that_do_not() {
    for (one, other) in [("eu|a/b", "eu|a/c"), ("eu|b", "eu|c"), ("a/b", "a/c"), ("b", "c")] {
        let (one, other) = (key(one), key(other));
        let sibling = one.sibling(other.name());
        assert_eq!(sibling, other);
        let clusters = (one.cluster_name(), sibling.cluster_name());
        assert!(clusters.0.zip(clusters.1).is_none_or(|(one, other)| std::ptr::eq(one, other)), "{other}");
        let namespaces = (one.shared_namespace(), sibling.shared_namespace());
        assert!(namespaces.0.zip(namespaces.1).is_none_or(|(one, other)| Arc::ptr_eq(one, other)), "{other}");
    }
}

#[test]
fn idx_29_a_key_without_cluster_takes_no_more_room_than_two_texts() {
    assert_eq!(size_of::<ObjectKey>(), 2 * size_of::<Arc<str>>());
    assert_eq!(size_of::<Option<ObjectKey>>(), size_of::<ObjectKey>());
    let namespace: Arc<str> = "a".into();
    let key = ObjectKey::namespaced(Arc::clone(&namespace), "b");
    assert!(key.shared_namespace().is_some_and(|text| Arc::ptr_eq(text, &namespace)), "no text of its own");
}

/// What may stand between the signs of a key.
const PART: &str = "[a-zA-Z0-9|.:äß -]{1,8}";

fn any_key() -> impl Strategy<Value = ObjectKey> {
    (prop::option::of("[a-z0-9.-]{1,6}"), prop::option::of(PART), PART).prop_map(
        |(cluster, namespace, name)| {
            let key = match namespace {
                Some(namespace) => ObjectKey::namespaced(namespace, name),
                None => ObjectKey::cluster(name),
            };
            let cluster = cluster.map(|cluster| cluster.parse::<ClusterName>().expect("allowed signs"));
            cluster.iter().fold(key, ObjectKey::in_cluster)
        },
    )
}

proptest! {
    #[test]
    fn idx_29_the_text_of_a_key_is_read_back_as_that_key(key in any_key()) {
        prop_assert_eq!(key.to_string().parse::<ObjectKey>(), Ok(key));
    }

    #[test]
    fn idx_29_order_equality_and_hash_of_keys_agree(one in any_key(), other in any_key()) {
        prop_assert_eq!(one == other, one.cmp(&other).is_eq());
        prop_assert_eq!(one == other, one.to_string() == other.to_string());
        let again = one.to_string().parse::<ObjectKey>().expect("read back");
        prop_assert_eq!(hash(&one), hash(&again));
        prop_assert_eq!(one.cmp(&other), other.cmp(&one).reverse());
    }
}
