//! What a server serves, in one form for all discovery documents. Groups and their versions are in the
//! server's order, the core group first: this is their priority.

use std::fmt;
use std::sync::Arc;

use informer_core::words::shortened;
use kube_core::discovery::{ApiCapabilities, ApiResource, Scope};

/// All that a server serves, as discovery says it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ServerResources {
    /// The groups, the core group first.
    pub groups: Vec<DiscoveredGroup>,
    /// The versions of groups whose resources could not be discovered.
    pub failed: Vec<FailedGroupVersion>,
}

/// A group of the API, such as `apps`.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DiscoveredGroup {
    /// Its name; empty for the core group.
    pub name: String,
    /// The version that the server prefers.
    pub preferred: Option<String>,
    /// Its versions with their resources.
    pub versions: Vec<DiscoveredVersion>,
}

/// A version of a group.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DiscoveredVersion {
    /// Such as `v1`.
    pub name: String,
    /// Its resources, without subresources.
    pub resources: Vec<Arc<DiscoveredResource>>,
}

/// A resource in one version, with all its names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DiscoveredResource {
    /// Group, version, kind and plural.
    pub api: ApiResource,
    /// Verbs, scope and subresources.
    pub capabilities: ApiCapabilities,
    /// The singular, such as `deployment`.
    pub singular: String,
    /// Such as `deploy`.
    pub short_names: Vec<String>,
    /// The groups of resources that it belongs to, such as `all`.
    pub categories: Vec<String>,
}

/// A version of a group whose resources could not be discovered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedGroupVersion {
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// Why.
    pub reason: String,
}

/// Discovery has found only a part: these versions of groups are missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the resources of {} could not be discovered", listed(.0))]
#[non_exhaustive]
pub struct IncompleteDiscovery(
    /// What is missing, and why.
    pub Vec<FailedGroupVersion>,
);

impl ServerResources {
    /// The group of this name; the core group has the empty one.
    pub fn group(&self, name: &str) -> Option<&DiscoveredGroup> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Every resource in every version, in the order of priority of the groups.
    pub fn all(&self) -> impl Iterator<Item = &Arc<DiscoveredResource>> {
        self.groups.iter().flat_map(|group| &group.versions).flat_map(|version| &version.resources)
    }

    /// Each resource in one version: the server's preferred one, or else the first that has it.
    pub fn preferred(&self) -> Vec<Arc<DiscoveredResource>> {
        let mut chosen: Vec<Arc<DiscoveredResource>> = Vec::new();
        for group in &self.groups {
            let begin = chosen.len();
            for version in &group.versions {
                let is_preferred = group.preferred.as_ref() == Some(&version.name);
                for resource in &version.resources {
                    let same = |known: &&mut Arc<DiscoveredResource>| known.api.plural == resource.api.plural;
                    match chosen[begin..].iter_mut().find(same) {
                        None => chosen.push(Arc::clone(resource)),
                        Some(known) if is_preferred => *known = Arc::clone(resource),
                        Some(_) => {}
                    }
                }
            }
        }
        chosen
    }

    /// Whether everything was found.
    ///
    /// # Errors
    /// [`IncompleteDiscovery`] names what was not.
    pub fn complete(&self) -> Result<(), IncompleteDiscovery> {
        if self.failed.is_empty() { Ok(()) } else { Err(IncompleteDiscovery(self.failed.clone())) }
    }
}

impl DiscoveredResource {
    /// Whether its objects are in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.capabilities.scope == Scope::Namespaced
    }

    /// The verbs, such as `list`.
    pub fn verbs(&self) -> &[String] {
        &self.capabilities.operations
    }

    /// Whether an informer can follow it: it can be listed and watched.
    pub fn can_be_watched(&self) -> bool {
        ["list", "watch"].iter().all(|verb| self.capabilities.supports_operation(verb))
    }

    /// `pods`, or `deployments.apps`.
    pub fn name(&self) -> String {
        qualified(&self.api.plural, &self.api.group)
    }

    /// `pods.v1`, or `deployments.v1.apps`.
    pub fn full_name(&self) -> String {
        qualified(&format!("{}.{}", self.api.plural, self.api.version), &self.api.group)
    }
}

pub(super) fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// `v1`, or `apps/v1`.
pub(super) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// In a text; the value has all of them.
const NAMED: usize = 8;
/// Of a name and of a reason, in a text.
const MAX_CHARS: usize = 200;

fn listed(failed: &[FailedGroupVersion]) -> String {
    let mut text: Vec<_> = failed.iter().take(NAMED).map(ToString::to_string).collect();
    let more = failed.len().saturating_sub(NAMED);
    text.extend((more > 0).then(|| format!("{more} more")));
    text.join(", ")
}

impl fmt::Display for FailedGroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = shortened(&group_version(&self.group, &self.version), MAX_CHARS);
        write!(f, "{named} ({})", shortened(&self.reason, MAX_CHARS))
    }
}
