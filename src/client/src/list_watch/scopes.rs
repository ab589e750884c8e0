//! The scopes of a source's keys: each cluster and namespace is held once.
//!
//! Answers "which key has this name?" for objects that are not known yet; known ones keep the key that they have. Half of
//! what a key costs is its namespace, and a list has many objects of each. It is asked by all decode threads. Invariants:
//! 1. Keys of one namespace share its text, and the block that holds it beside the cluster.
//! 2. At most [`MAX_SCOPES`] are kept; beyond that all are forgotten, and held again as they come.
//!
//! Read next: `decode.rs`, which asks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use informer_core::meta::{ClusterName, ObjectKey};

/// More namespaces than a cluster has that one source follows, as a rule.
const MAX_SCOPES: usize = 10_000;

/// A key of each scope, by its namespace; the empty text stands for none.
#[derive(Debug, Default)]
pub(crate) struct Scopes(Mutex<BTreeMap<Arc<str>, ObjectKey>>);

impl Scopes {
    /// The key of this name. All keys that are asked for name one cluster, or none does.
    pub(crate) fn key(
        &self,
        cluster: Option<&ClusterName>,
        namespace: Option<&str>,
        name: &str,
    ) -> ObjectKey {
        if cluster.is_none() && namespace.is_none() {
            return ObjectKey::cluster(name);
        }
        let mut scopes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = scopes.get(namespace.unwrap_or_default()) {
            return known.sibling(name);
        }
        let text: Arc<str> = namespace.unwrap_or_default().into();
        let key = match namespace {
            Some(_) => ObjectKey::namespaced(Arc::clone(&text), name),
            None => ObjectKey::cluster(name),
        };
        let key = cluster.into_iter().fold(key, ObjectKey::in_cluster);
        if scopes.len() == MAX_SCOPES {
            scopes.clear();
        }
        scopes.insert(text, key.clone());
        key
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_SCOPES, Scopes};

    #[test]
    fn inf_82_keys_of_a_namespace_and_cluster_share_one_allocation_besides_their_names() {
        let (scopes, cluster) = (Scopes::default(), "eu".parse().unwrap());
        for namespace in [Some("web"), None] {
            let key = |name| scopes.key(Some(&cluster), namespace, name);
            let (one, other) = (key("a"), key("b"));
            assert_eq!((one.name(), other.name(), other.namespace()), ("a", "b", namespace));
            assert!(std::ptr::eq(one.cluster_name().unwrap(), other.cluster_name().unwrap()), "{other}");
        }
        let plain = Scopes::default();
        let texts = ["a", "b"].map(|name| plain.key(None, Some("web"), name));
        let [one, other] = texts.each_ref().map(|key| key.namespace().unwrap().as_ptr());
        assert_eq!(one, other, "the text of the namespace is held once");
        assert_eq!(plain.key(None, None, "node").to_string(), "node");
    }

    #[test]
    fn the_number_of_scopes_is_bounded() {
        let scopes = Scopes::default();
        for n in 0..=MAX_SCOPES {
            let namespace = format!("n-{n}");
            assert_eq!(scopes.key(None, Some(&namespace), "a").to_string(), format!("{namespace}/a"));
        }
        assert!(scopes.0.lock().unwrap().len() <= MAX_SCOPES);
    }
}
