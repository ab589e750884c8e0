//! The kinds that this server serves now: the built-in table plus what CRDs have added.
//!
//! Answers: which kind is meant by this path, this apiVersion and kind, this resource? It holds no objects.
//! 1. (group, version, plural) names at most one kind.
//! 2. Groups are listed in the order in which they were added, versions by priority: stable before beta before alpha.
//!
//! Next: `discovery.rs` shows them to clients.
use std::cmp::Reverse;
use std::sync::Arc;

use super::kind::Kind;
use super::{ResourceId, builtin};

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

    /// The resource that kubectl would understand under this name: a plural, a singular, a short name or a
    /// kind, alone or with its group behind a dot (`deployments`, `deploy`, `Deployment.apps`). Without a
    /// group the first one listed is used.
    pub(crate) fn named(&self, name: &str) -> Option<&ResourceId> {
        let wanted = ResourceId::parse(&name.to_ascii_lowercase());
        let of_group = |kind: &&Arc<Kind>| wanted.group.is_empty() || kind.resource.group == wanted.group;
        let forms: [fn(&Kind, &str) -> bool; 3] = [
            |kind, name| *kind.resource.plural == *name,
            |kind, name| kind.singular == name || kind.kind.eq_ignore_ascii_case(name),
            |kind, name| kind.short_names.iter().any(|short| short == name),
        ];
        let found = forms.into_iter().find_map(|is_form| {
            self.kinds.iter().filter(of_group).find(|kind| is_form(kind, &wanted.plural))
        });
        found.map(|kind| &kind.resource)
    }

    /// The resource with the most similar name, if one is similar.
    pub(crate) fn nearest(&self, name: &str) -> Option<&ResourceId> {
        let name = name.to_ascii_lowercase();
        let alone = name.split('.').next().unwrap_or_default();
        let likeness = |kind: &Kind| {
            let plural = &*kind.resource.plural;
            let names = [(plural, alone), (&*kind.singular, alone), (&*kind.resource.to_string(), &*name)]
                .map(|(known, given)| strsim::jaro_winkler(known, given));
            names.into_iter().fold(0.0, f64::max)
        };
        let near = self.kinds.iter().map(|kind| (likeness(kind), &kind.resource));
        let near = near.filter(|(likeness, _)| *likeness > 0.85);
        near.reduce(|best, other| if other.0 > best.0 { other } else { best }).map(|(_, resource)| resource)
    }

    /// All versions of the objects in this storage.
    pub(crate) fn stored_in(&self, storage: &ResourceId) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.iter().filter(move |kind| kind.storage == *storage)
    }

    /// Where the objects of a resource are stored.
    pub(crate) fn storage_of(&self, resource: &ResourceId) -> ResourceId {
        self.preferred(resource).map_or_else(|| resource.clone(), |kind| kind.storage.clone())
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
    use super::{Registry, priority};

    #[test]
    fn api_35_stable_comes_before_beta_before_alpha() {
        let mut versions = ["foo", "v1alpha1", "v1", "v2beta1", "v10", "v1beta2", "v1beta1", "v2"];
        versions.sort_by_key(|version| priority(version));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }

    #[test]
    fn a_resource_is_named_as_for_kubectl() {
        let registry = Registry::builtin();
        let named = |name: &str| registry.named(name).map(ToString::to_string).unwrap_or_default();
        let all = ["deployments", "deployment", "deploy", "Deployment", "deployments.apps", "deploy.apps"];
        assert_eq!(all.map(named), ["deployments.apps"; 6]);
        assert_eq!(["po", "pods", "cm", "events"].map(named), ["pods", "pods", "configmaps", "events"]);
        assert_eq!(named("events.events.k8s.io"), "events.events.k8s.io");
        assert_eq!(["", "nonsense", "pods.apps", "deployments.extensions"].map(named), [""; 4]);
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_nearest_resource() {
        let registry = Registry::builtin();
        let nearest = |name: &str| registry.nearest(name).map(ToString::to_string).unwrap_or_default();
        assert_eq!(["deploymnets", "deployments.extensions"].map(nearest), ["deployments.apps"; 2]);
        assert_eq!(["pod.core", "config-maps", "nonsense"].map(nearest), ["pods", "configmaps", ""]);
    }
}
