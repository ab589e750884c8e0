//! Writes a model in the old form, for a cache on disk. Reading it returns the same model.

use std::sync::Arc;

use kube_core::discovery::{ApiCapabilities, ApiResource};
use serde::Serialize;

use super::{Group, GroupList, GroupVersion, Resource, ResourceList};
use crate::discovery::model::{DiscoveredGroup, DiscoveredResource, DiscoveredVersion, group_version};

impl Resource {
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

/// With the core group, as kubectl keeps it.
pub(crate) fn written_groups(groups: &[DiscoveredGroup]) -> Vec<u8> {
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

pub(crate) fn written_resources(group: &str, version: &DiscoveredVersion) -> Vec<u8> {
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
