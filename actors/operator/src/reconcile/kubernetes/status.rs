//! Writes the status of an object if it differs from the cached one.
//!
//! 1. The write carries the version that was read: a change by somebody else is a conflict.
//! 2. Only the difference is sent, so object fields that the type does not know stay. A list is sent whole,
//!    without such fields.

use std::fmt;

use informer_core::meta::Object;
use kube_core::Resource;
use kube_core::object::HasStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::subject::{Subject, manager_of, record_written};
use informer_client::api::{Patch, PatchParams};
use informer_client::{Client, Error};

/// What became of a status.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "it is written or it is not: who matches both has matched all")]
pub enum Written<K> {
    /// The status was already the same: nothing was sent.
    Unchanged,
    /// The status was written; this is the object that the server returned.
    Changed(Box<K>),
    /// The object is gone, and its status with it.
    Gone,
}

impl<K> Written<K> {
    /// Whether a request has changed the object.
    pub fn is_changed(&self) -> bool {
        matches!(self, Self::Changed(_))
    }
}

/// Why a status was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatusError {
    /// The write failed. With [`Error::is_conflict`] the object has changed since it was read: its event is
    /// on the way, and the next reconcile sees the change.
    #[error("the status of {object} was not written: {source}")]
    Write {
        /// Kind and key of the object.
        object: String,
        /// Why.
        source: Box<Error>,
    },
    /// The status could not be encoded as JSON.
    #[error("the status of {object} is no JSON: {source}")]
    Encode {
        /// Kind and key of the object.
        object: String,
        /// Why.
        source: serde_json::Error,
    },
}

impl StatusError {
    /// Whether the object has changed since it was read.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.is_conflict())
    }
}

/// Changes the status of an object, and writes it if it differs from before: by one merge patch of the
/// subresource `status`.
///
/// `change` gets the cached status, or the default one, and is called once. `object` is the state that was
/// reconciled: that of the subject, or the newer one of [`Finalize::Apply`](super::Finalize::Apply). If the
/// object is gone, the result is [`Written::Gone`]. The field manager is the name of the controller; without
/// a controller, it is the user agent's default.
///
/// ```
/// use actix_informer::object::from_body;
/// use actix_informer::prelude::*;
/// use actix_informer::reconcile::update_status;
/// # use kube_derive::CustomResource;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
/// # #[kube(group = "example.org", version = "v1", kind = "Website", namespaced, schema = "disabled")]
/// # #[kube(status = "WebsiteStatus", crates(kube_core = "::kube_core"))]
/// # struct WebsiteSpec { host: String }
/// # #[derive(Clone, Debug, Default, Serialize, Deserialize)]
/// # struct WebsiteStatus { ready: bool }
///
/// // Website is a kind of `kube-derive`, with the status `WebsiteStatus { ready: bool }`.
/// async fn report(client: &Client, site: &Object<Website>) -> Result<bool, Box<dyn std::error::Error>> {
///     let written = update_status(client, site, site, |status: &mut WebsiteStatus| status.ready = true).await?;
///     Ok(written.is_changed())
/// }
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = actix_informer::testing::ApiServer::builder().start().await?;
/// # server.create(serde_json::json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
/// #     "metadata": {"name": "websites.example.org"}, "spec": {"group": "example.org", "scope": "Namespaced",
/// #     "names": {"kind": "Website", "plural": "websites"}, "versions": [{"name": "v1", "served": true,
/// #     "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object",
/// #     "x-kubernetes-preserve-unknown-fields": true}}}]}}))?;
/// # let client = Client::new(Config::new(server.url())?)?;
/// let sites = client.api::<Website>().namespaced("default");
/// let shop = Website::new("shop", WebsiteSpec { host: "shop.example.org".to_owned() });
/// let shop = from_body(sites.create(&PostParams::default(), &shop).await?)?;
/// assert!(report(&client, &shop).await?);
/// assert!(!report(&client, &from_body(sites.get("shop").await?)?).await?, "it is ready already");
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`StatusError`]; [`StatusError::is_conflict`] when the object has changed since it was read.
pub async fn update_status<K, S>(
    client: &Client,
    subject: &S,
    object: &Object<K>,
    change: impl FnOnce(&mut K::Status),
) -> Result<Written<K>, StatusError>
where
    K: Resource<DynamicType = (), Scope: 'static> + HasStatus + DeserializeOwned + fmt::Debug + 'static,
    K::Status: Serialize + Clone + Default,
    S: Subject<K>,
{
    let called = || format!("{} {}", K::kind(&()), object.key());
    let encode = |status: &K::Status| {
        serde_json::to_value(status).map_err(|source| StatusError::Encode { object: called(), source })
    };
    let before = object.status();
    let mut status = before.cloned().unwrap_or_default();
    change(&mut status);
    let after = encode(&status)?;
    // A missing status equals an empty one.
    let before = before.map_or_else(|| Ok(json!({})), encode)?;
    let Some(difference) = difference(&before, &after) else { return Ok(Written::Unchanged) };
    let version = object.version().to_string();
    let patch =
        json!({"metadata": {"resourceVersion": version, "uid": object.meta().uid}, "status": difference});
    let api = client.api::<K>().in_namespace(object.key().namespace());
    let params = PatchParams { field_manager: manager_of(subject), ..PatchParams::default() };
    match api.patch_status(object.key().name(), &params, &Patch::Merge(patch)).await {
        Ok(written) => {
            record_written(subject, &written);
            Ok(Written::Changed(Box::new(written)))
        }
        Err(Error::Refused(refused)) if refused.is_object_not_found() => Ok(Written::Gone),
        Err(error) => Err(StatusError::Write { object: called(), source: Box::new(error) }),
    }
}

fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let mut patch: Map<String, Value> = Map::new();
    for (name, value) in new {
        let known = old.get(name).unwrap_or(&Value::Null);
        patch.extend(difference(known, value).map(|value| (name.clone(), value)));
    }
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    patch.extend(gone.map(|name| (name.clone(), Value::Null)));
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![(0..3).prop_map(|n| json!(n)), Just(json!([1, 2])), Just(json!("a"))];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|map| json!(map))
        })
    }

    /// RFC 7396, as it is written there.
    fn merged(target: Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else { return patch.clone() };
        let mut target = if let Value::Object(target) = target { target } else { Map::new() };
        for (name, value) in patch {
            if value.is_null() {
                target.remove(name);
            } else {
                let known = target.remove(name).unwrap_or(Value::Null);
                target.insert(name.clone(), merged(known, value));
            }
        }
        Value::Object(target)
    }

    proptest! {
        #[test]
        fn opr_17_the_patch_of_a_status_makes_the_one_of_the_other_and_is_nothing_where_they_are_equal(
            before in value(), after in value()
        ) {
            match difference(&before, &after) {
                None => prop_assert_eq!(before, after),
                Some(patch) => {
                    prop_assert_ne!(&before, &after);
                    prop_assert_eq!(merged(before, &patch), after);
                }
            }
        }
    }
}
