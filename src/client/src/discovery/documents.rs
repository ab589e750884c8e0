//! Reads the discovery documents of API servers: aggregated (`APIGroupDiscoveryList`, v2 and v2beta1) and old
//! (`APIVersions`, `APIGroupList`, `APIResourceList`).
//!
//! 1. As for client-go, a missing or null field is an empty one (servers in Go send null for an empty list),
//!    and what has no name or no kind is left out.
//! 2. A `Stale` version counts as failed: its server did not answer.

use std::sync::Arc;

use kube_core::discovery::{ApiCapabilities, ApiResource, Scope};
use kube_core::gvk::GroupVersionKind;
use serde::{Deserialize, Deserializer};

use super::model::{DiscoveredGroup, DiscoveredResource, DiscoveredVersion, FailedGroupVersion};
use crate::wire::JsonError;

pub(crate) mod legacy;

/// In bytes: clusters with thousands of definitions have some megabytes.
pub(super) const DOCUMENT_LIMIT: usize = 32 << 20;

/// The answer to `/api` or `/apis`.
#[derive(Debug)]
pub(crate) enum Root {
    Aggregated(Vec<DiscoveredGroup>, Vec<FailedGroupVersion>),
    Legacy(Vec<DiscoveredGroup>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DocumentError {
    #[error("it is larger than {DOCUMENT_LIMIT} bytes")]
    TooLarge,
    #[error("it is of another kind than a discovery document")]
    Kind,
    #[error("{0}")]
    Json(JsonError),
}

pub(crate) fn root(body: &[u8]) -> Result<Root, DocumentError> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(default)]
        kind: String,
    }
    match parsed::<Kind>(body)?.kind.as_str() {
        "APIGroupDiscoveryList" => {
            let list: AggregatedList = parsed(body)?;
            let mut failed = Vec::new();
            let groups = list.items.into_iter().map(|group| group.read(&mut failed)).collect();
            Ok(Root::Aggregated(groups, failed))
        }
        "APIVersions" => legacy::core(body).map(Root::Legacy),
        "APIGroupList" => legacy::groups(body).map(Root::Legacy),
        _ => Err(DocumentError::Kind),
    }
}

pub(super) fn parsed<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, DocumentError> {
    if body.len() > DOCUMENT_LIMIT {
        return Err(DocumentError::TooLarge);
    }
    serde_json::from_slice(body).map_err(|error| DocumentError::Json(JsonError::from(&error)))
}

pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

#[derive(Deserialize)]
struct AggregatedList {
    #[serde(default, deserialize_with = "or_default")]
    items: Vec<AggregatedGroup>,
}

#[derive(Deserialize)]
struct AggregatedGroup {
    #[serde(default, deserialize_with = "or_default")]
    metadata: AggregatedMetadata,
    #[serde(default, deserialize_with = "or_default")]
    versions: Vec<AggregatedVersion>,
}

#[derive(Default, Deserialize)]
struct AggregatedMetadata {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
}

#[derive(Deserialize)]
struct AggregatedVersion {
    #[serde(default, deserialize_with = "or_default")]
    version: String,
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<AggregatedResource>,
    #[serde(default, deserialize_with = "or_default")]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedResource {
    #[serde(default, deserialize_with = "or_default")]
    resource: String,
    #[serde(default, deserialize_with = "or_default")]
    response_kind: ResponseKind,
    #[serde(default, deserialize_with = "or_default")]
    scope: String,
    #[serde(default, deserialize_with = "or_default")]
    singular_resource: String,
    #[serde(default, deserialize_with = "or_default")]
    verbs: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    short_names: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    categories: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    subresources: Vec<AggregatedSubresource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedSubresource {
    #[serde(default, deserialize_with = "or_default")]
    subresource: String,
    #[serde(default, deserialize_with = "or_default")]
    response_kind: ResponseKind,
    #[serde(default, deserialize_with = "or_default")]
    verbs: Vec<String>,
}

/// Built-in kinds leave out their own group and version.
#[derive(Default, Deserialize)]
struct ResponseKind {
    #[serde(default, deserialize_with = "or_default")]
    group: String,
    #[serde(default, deserialize_with = "or_default")]
    version: String,
    #[serde(default, deserialize_with = "or_default")]
    kind: String,
}

impl AggregatedGroup {
    fn read(self, failed: &mut Vec<FailedGroupVersion>) -> DiscoveredGroup {
        let group = self.metadata.name;
        let (stale, fresh): (Vec<_>, Vec<_>) =
            self.versions.into_iter().partition(|version| version.freshness == "Stale");
        failed.extend(stale.into_iter().map(|version| FailedGroupVersion {
            group: group.clone(),
            version: version.version,
            reason: "stale: its server does not answer".to_owned(),
        }));
        let versions: Vec<_> = fresh.into_iter().map(|version| version.read(&group)).collect();
        // The first version that is not stale, as for client-go.
        let preferred = versions.first().map(|version| version.name.clone());
        DiscoveredGroup { name: group, preferred, versions }
    }
}

impl AggregatedVersion {
    fn read(self, group: &str) -> DiscoveredVersion {
        let resources = self.resources.into_iter().filter_map(|resource| resource.read(group, &self.version));
        DiscoveredVersion { resources: resources.map(Arc::new).collect(), name: self.version }
    }
}

impl AggregatedResource {
    fn read(self, group: &str, version: &str) -> Option<DiscoveredResource> {
        let kind = self.response_kind.kind;
        // A resource without a kind is there only for its subresources. A name with a slash would be a subresource.
        if self.resource.is_empty() || self.resource.contains('/') || kind.is_empty() {
            return None;
        }
        let scope = if self.scope == "Namespaced" { Scope::Namespaced } else { Scope::Cluster };
        let subresources = self.subresources.into_iter().filter_map(|sub| sub.read((group, version), &scope));
        Some(DiscoveredResource {
            capabilities: ApiCapabilities {
                subresources: subresources.collect(),
                scope,
                operations: self.verbs,
            },
            singular: singular(self.singular_resource, &kind),
            api: api_resource((group, version), &kind, &self.resource),
            short_names: self.short_names,
            categories: self.categories,
        })
    }
}

impl AggregatedSubresource {
    fn read(self, own: (&str, &str), scope: &Scope) -> Option<(ApiResource, ApiCapabilities)> {
        let ResponseKind { group, version, kind } = self.response_kind;
        if self.subresource.is_empty() || kind.is_empty() {
            return None;
        }
        Some(subresource(own, (&group, &version, &kind), &self.subresource, (scope.clone(), self.verbs)))
    }
}

fn api_resource((group, version): (&str, &str), kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// Without a version, it has those of its resource.
fn subresource(
    own: (&str, &str),
    (group, version, kind): (&str, &str, &str),
    name: &str,
    (scope, operations): (Scope, Vec<String>),
) -> (ApiResource, ApiCapabilities) {
    let of = if version.is_empty() { own } else { (group, version) };
    (api_resource(of, kind, name), ApiCapabilities { scope, subresources: Vec::new(), operations })
}

/// Old servers do not name it: then it is guessed, as by kubectl.
fn singular(named: String, kind: &str) -> String {
    if named.is_empty() { kind.to_lowercase() } else { named }
}

#[cfg(test)]
mod tests;
