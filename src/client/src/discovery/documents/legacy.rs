//! The old form of discovery: a list of groups, and one list of resources for each version of a group.
//! kubectl's cache on disk has this form.

use std::sync::Arc;

use kube_core::discovery::{ApiCapabilities, Scope};
use serde::{Deserialize, Serialize};

use super::{DocumentError, api_resource, or_default, parsed, singular, subresource};
use crate::discovery::model::{DiscoveredGroup, DiscoveredResource, DiscoveredVersion};

#[cfg(feature = "disk-cache")]
pub(crate) use written::{written_groups, written_resources};

#[cfg(feature = "disk-cache")]
mod written;

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

pub(super) fn core(body: &[u8]) -> Result<Vec<DiscoveredGroup>, DocumentError> {
    let versions = parsed::<CoreVersions>(body)?.versions;
    Ok(vec![group(String::new(), versions.first().cloned(), versions)])
}

/// Of `/apis`, or of a cache on disk, which includes the core group.
pub(crate) fn groups(body: &[u8]) -> Result<Vec<DiscoveredGroup>, DocumentError> {
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

pub(crate) fn resources(
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
}
