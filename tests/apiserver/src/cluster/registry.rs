//! The kinds this server serves right now: the built-in table plus what CRDs have added.
//!
//! Answers: which kind is meant by this path, this apiVersion and kind, this resource? It holds no objects.
//! 1. (group, version, plural) names at most one kind.
//! 2. Groups are told in the order they were added, versions by priority: stable before beta before alpha.
//!
//! Next: `discovery.rs` tells clients what is in here.
use std::cmp::Reverse;
use std::sync::Arc;

use super::builtin;
use super::kind::{Kind, ResourceId};

/// All served kinds.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    kinds: Vec<Arc<Kind>>,
}

impl Registry {
    pub(crate) fn builtin() -> Self {
        Self { kinds: builtin::kinds().collect() }
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        let named = |kind: &&Arc<Kind>| {
            *kind.resource.plural == *plural && kind.version == version && *kind.resource.group == *group
        };
        self.kinds.iter().find(named)
    }

    /// The kind that an object's `apiVersion` and `kind` name.
    pub(crate) fn by_type(&self, api_version: &str, name: &str) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|kind| kind.kind == name && kind.api_version() == api_version)
    }

    /// The preferred version of a resource.
    pub(crate) fn preferred(&self, resource: &ResourceId) -> Option<&Arc<Kind>> {
        let versions = self.kinds.iter().filter(|kind| kind.resource == *resource);
        versions.min_by_key(|kind| priority(&kind.version))
    }

    /// All versions of what lies in this storage.
    pub(crate) fn stored_in(&self, storage: &ResourceId) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.iter().filter(move |kind| kind.storage == *storage)
    }

    /// The version a resource is stored in: the first one registered.
    pub(crate) fn stored(&self, storage: &ResourceId) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|kind| kind.storage == *storage)
    }

    /// The groups other than the core one, in their order.
    pub(crate) fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for kind in &self.kinds {
            let group: &str = &kind.resource.group;
            if !group.is_empty() && !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }

    /// The versions of a group, best first.
    pub(crate) fn versions(&self, group: &str) -> Vec<&str> {
        let mut versions: Vec<&str> = Vec::new();
        for kind in self.kinds.iter().filter(|kind| *kind.resource.group == *group) {
            if !versions.contains(&kind.version.as_str()) {
                versions.push(&kind.version);
            }
        }
        versions.sort_by_key(|version| priority(version));
        versions
    }

    /// The kinds of one group and version.
    pub(crate) fn in_version(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.iter().filter(move |kind| *kind.resource.group == *group && kind.version == version)
    }

    /// Whether this group has kinds that are not custom.
    pub(crate) fn is_builtin_group(&self, group: &str) -> bool {
        self.kinds.iter().any(|kind| *kind.resource.group == *group && !kind.custom)
    }

    /// Every namespaced resource, once.
    pub(crate) fn namespaced(&self) -> Vec<ResourceId> {
        let mut resources: Vec<ResourceId> =
            self.kinds.iter().filter(|kind| kind.namespaced).map(|kind| kind.storage.clone()).collect();
        resources.dedup();
        resources
    }

    /// Serves these kinds in place of whatever the resource had before.
    pub(crate) fn replace(&mut self, resource: &ResourceId, kinds: Vec<Kind>) {
        self.kinds.retain(|kind| kind.resource != *resource);
        self.kinds.extend(kinds.into_iter().map(Arc::new));
    }
}

/// Sorts `v2 < v1 < v1beta2 < v1beta1 < v1alpha1 < anything else`.
pub(crate) fn priority(version: &str) -> (u8, Reverse<u32>, Reverse<u32>, String) {
    let unusual = (3, Reverse(0), Reverse(0), version.to_owned());
    let Some(rest) = version.strip_prefix('v') else { return unusual };
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let Ok(major) = rest[..digits].parse::<u32>() else { return unusual };
    let tail = &rest[digits..];
    let (stage, minor) = match (tail.strip_prefix("beta"), tail.strip_prefix("alpha")) {
        _ if tail.is_empty() => (0, Ok(0)),
        (Some(minor), _) => (1, minor.parse()),
        (None, Some(minor)) => (2, minor.parse()),
        (None, None) => return unusual,
    };
    minor.map_or(unusual, |minor: u32| (stage, Reverse(major), Reverse(minor), String::new()))
}

#[cfg(test)]
mod tests {
    use super::priority;

    #[test]
    fn api_35_stable_comes_before_beta_before_alpha() {
        let mut versions = ["foo", "v1alpha1", "v1", "v2beta1", "v10", "v1beta2", "v1beta1", "v2"];
        versions.sort_by_key(|version| priority(version));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
