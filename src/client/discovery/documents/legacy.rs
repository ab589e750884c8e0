//! The old form of discovery: a list of groups, and one list of resources for each version of a group.
//!
//! Answers "what does this document say, and how is a model written in this form?" kubectl's cache on disk is in this
//! form, whichever form the server sent.
//!
//! Read next: `../disk.rs`.

use std::sync::Arc;

use kube_core::discovery::{ApiCapabilities, ApiResource, Scope};
use serde::{Deserialize, Serialize};

use super::{DocumentError, api_resource, group_version, or_default, parsed, singular, subresource};
use crate::client::discovery::model::{DiscoveredGroup, DiscoveredResource, DiscoveredVersion};

#[derive(Deserialize)]
struct CoreVersions {
    #[serde(default, deserialize_with = "or_default")]
    versions: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupList {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    #[serde(default, deserialize_with = "or_default")]
    groups: Vec<Group>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    versions: Vec<GroupVersion>,
    #[serde(default, deserialize_with = "or_default")]
    preferred_version: GroupVersion,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    #[serde(default, deserialize_with = "or_default")]
    group_version: String,
    #[serde(default, deserialize_with = "or_default")]
    version: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    #[serde(default, deserialize_with = "or_default")]
    group_version: String,
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<Resource>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    singular_name: String,
    #[serde(default, deserialize_with = "or_default")]
    namespaced: bool,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    version: String,
    #[serde(default, deserialize_with = "or_default")]
    kind: String,
    #[serde(default, deserialize_with = "or_default")]
    verbs: Vec<String>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<String>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
}

/// The core group of `/api`.
pub(super) fn core(body: &[u8]) -> Result<Vec<DiscoveredGroup>, DocumentError> {
    let versions = parsed::<CoreVersions>(body)?.versions;
    Ok(vec![group(String::new(), versions.first().cloned(), versions)])
}

/// The groups of `/apis`, or of a cache on disk, which has the core group among them.
pub(in super::super) fn groups(body: &[u8]) -> Result<Vec<DiscoveredGroup>, DocumentError> {
    let groups = parsed::<GroupList>(body)?.groups;
    let read = groups.into_iter().map(|found| {
        let versions = found.versions.into_iter().map(|version| version.version).collect();
        let preferred = Some(found.preferred_version.version).filter(|version| !version.is_empty());
        group(found.name, preferred, versions)
    });
    Ok(read.collect())
}

fn group(name: String, preferred: Option<String>, versions: Vec<String>) -> DiscoveredGroup {
    let versions = versions.into_iter().filter(|version| !version.is_empty());
    let versions = versions.map(|name| DiscoveredVersion { name, resources: Vec::new() });
    DiscoveredGroup { name, preferred, versions: versions.collect() }
}

/// The resources of one version of a group.
pub(in super::super) fn resources(
    body: &[u8],
    own: (&str, &str),
) -> Result<Vec<Arc<DiscoveredResource>>, DocumentError> {
    let list: ResourceList = parsed(body)?;
    if !list.kind.is_empty() && list.kind != "APIResourceList" {
        return Err(DocumentError::Kind);
    }
    let (below, found): (Vec<_>, Vec<_>) = list
        .resources
        .into_iter()
        .filter(|resource| !resource.kind.is_empty())
        .partition(|resource| resource.name.contains('/'));
    let mut found: Vec<_> = found
        .into_iter()
        .filter(|resource| !resource.name.is_empty())
        .map(|resource| resource.read(own))
        .collect();
    for sub in below {
        let Some((parent, name)) = sub.name.split_once('/') else { continue };
        let Some(parent) = found.iter_mut().find(|resource| resource.api.plural == parent) else { continue };
        let scope = parent.capabilities.scope.clone();
        let kind = (sub.group.as_str(), sub.version.as_str(), sub.kind.as_str());
        let sub = subresource(own, kind, name, (scope, sub.verbs));
        if !name.is_empty() {
            parent.capabilities.subresources.push(sub);
        }
    }
    Ok(found.into_iter().map(Arc::new).collect())
}

impl Resource {
    fn read(self, own: (&str, &str)) -> DiscoveredResource {
        let scope = if self.namespaced { Scope::Namespaced } else { Scope::Cluster };
        DiscoveredResource {
            api: api_resource(own, &self.kind, &self.name),
            capabilities: ApiCapabilities { scope, subresources: Vec::new(), operations: self.verbs },
            singular: singular(self.singular_name, &self.kind),
            short_names: self.short_names,
            categories: self.categories,
        }
    }

    fn of(resource: &DiscoveredResource) -> Self {
        Self {
            name: resource.api.plural.clone(),
            singular_name: resource.singular.clone(),
            namespaced: resource.is_namespaced(),
            group: String::new(),
            version: String::new(),
            kind: resource.api.kind.clone(),
            verbs: resource.capabilities.operations.clone(),
            short_names: resource.short_names.clone(),
            categories: resource.categories.clone(),
        }
    }

    fn below(resource: &DiscoveredResource, sub: &(ApiResource, ApiCapabilities)) -> Self {
        let (api, capabilities) = sub;
        let is_own = (&api.group, &api.version) == (&resource.api.group, &resource.api.version);
        let other = |text: &String| if is_own { String::new() } else { text.clone() };
        Self {
            name: format!("{}/{}", resource.api.plural, api.plural),
            singular_name: resource.singular.clone(),
            namespaced: resource.is_namespaced(),
            group: other(&api.group),
            version: other(&api.version),
            kind: api.kind.clone(),
            verbs: capabilities.operations.clone(),
            short_names: Vec::new(),
            categories: Vec::new(),
        }
    }
}

/// The list of the groups, as kubectl keeps it on disk: with the core group.
pub(in super::super) fn written_groups(groups: &[DiscoveredGroup]) -> Vec<u8> {
    let entry = |group: &str, version: &str| GroupVersion {
        group_version: group_version(group, version),
        version: version.to_owned(),
    };
    let groups = groups.iter().map(|group| Group {
        name: group.name.clone(),
        versions: group.versions.iter().map(|version| entry(&group.name, &version.name)).collect(),
        preferred_version: group
            .preferred
            .as_deref()
            .map(|name| entry(&group.name, name))
            .unwrap_or_default(),
    });
    json(&GroupList {
        kind: "APIGroupList".to_owned(),
        api_version: "v1".to_owned(),
        groups: groups.collect(),
    })
}

/// The list of the resources of one version.
pub(in super::super) fn written_resources(group: &str, version: &DiscoveredVersion) -> Vec<u8> {
    let with_subresources = |resource: &Arc<DiscoveredResource>| {
        let below: Vec<_> =
            resource.capabilities.subresources.iter().map(|sub| Resource::below(resource, sub)).collect();
        std::iter::once(Resource::of(resource)).chain(below)
    };
    json(&ResourceList {
        kind: "APIResourceList".to_owned(),
        api_version: "v1".to_owned(),
        group_version: group_version(group, &version.name),
        resources: version.resources.iter().flat_map(with_subresources).collect(),
    })
}

fn json(document: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(document).expect("texts, booleans and lists of them can be written");
    text.push(b'\n');
    text
}
