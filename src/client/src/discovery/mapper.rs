//! Finds the resource that a name means, in kubectl's order (`ParseResourceArg`, the shortcut expander, the
//! priority mapper):
//!
//! 1. `name.version.group`, then `name.group`, as plural, singular or short name. A group may be the
//!    beginning of one: `storageclass.storage`.
//! 2. The same as a kind.
//! 3. Among several: version `v1` of the core group, then the groups in the server's order, in each the
//!    preferred version first.
//!
//! Unlike kubectl, a short name with a version means that version, not the preferred one. A kind without a
//! group is found in any group and in any case; kubectl finds it only in the core group, unless its singular
//! is the same word.

use std::sync::Arc;
use std::time::Duration;

use informer_core::words::shortened;

use super::error::{DiscoveryError, UnknownName};
use super::model::{DiscoveredGroup, DiscoveredResource, ServerResources};

/// What a name means.
#[derive(Debug, Clone)]
pub struct Found {
    /// The resource.
    pub resource: Arc<DiscoveredResource>,
    /// The resources of lower priority with the same short name, such as `foos.example.com`.
    pub also: Vec<String>,
}

impl ServerResources {
    /// The one resource of this name, among what was discovered.
    ///
    /// # Errors
    /// [`DiscoveryError::Unknown`] and [`DiscoveryError::Category`].
    #[doc(hidden)]
    pub fn find(&self, name: &str) -> Result<Found, DiscoveryError> {
        resolve_one(self, name).unwrap_or_else(|| Err(unknown(self, name, None)))
    }
}

/// An empty version or group means any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked<'a> {
    name: &'a str,
    version: &'a str,
    group: &'a str,
}

pub(crate) fn resolve(server: &ServerResources, text: &str) -> Option<Found> {
    let (full, partial) = parts(text);
    let found = full.and_then(|asked| by_resource(server, asked)).or_else(|| by_resource(server, partial));
    found.or_else(|| {
        let kind = full.and_then(|asked| by_kind(server, asked)).or_else(|| by_kind(server, partial));
        kind.map(|resource| Found { resource, also: Vec::new() })
    })
}

fn parts(text: &str) -> (Option<Asked<'_>>, Asked<'_>) {
    let (name, group) = text.split_once('.').unwrap_or((text, ""));
    let full = group.split_once('.').map(|(version, group)| Asked { name, version, group });
    (full, Asked { name, version: "", group })
}

fn by_resource(server: &ServerResources, asked: Asked<'_>) -> Option<Found> {
    if asked.name.is_empty() {
        return None;
    }
    let Some((long, also)) = expanded(server, asked) else {
        let name = asked.name.to_lowercase();
        let resource = first(server, Asked { name: &name, ..asked }, is_named)?;
        return Some(Found { resource, also: Vec::new() });
    };
    let asked = Asked { name: &long.api.plural, group: &long.api.group, version: asked.version };
    // The empty name of the core group would mean any group.
    let of_group = |resource: &DiscoveredResource, name: &str| {
        resource.api.group == long.api.group && is_named(resource, name)
    };
    first(server, asked, of_group).map(|resource| Found { resource, also })
}

/// Also returns the other resources with this short name. `None` if the name is a resource's own.
fn expanded(server: &ServerResources, asked: Asked<'_>) -> Option<(Arc<DiscoveredResource>, Vec<String>)> {
    let of_group =
        |resource: &&Arc<DiscoveredResource>| asked.group.is_empty() || asked.group == resource.api.group;
    let is_own = |resource: &Arc<DiscoveredResource>| {
        resource.api.plural == asked.name || resource.singular == asked.name
    };
    if server.all().filter(of_group).any(is_own) {
        return None;
    }
    let has_it =
        |resource: &&Arc<DiscoveredResource>| resource.short_names.iter().any(|short| short == asked.name);
    let mut having = server.all().filter(of_group).filter(has_it);
    let Some(chosen) = having.next() else {
        let begins = |resource: &&Arc<DiscoveredResource>| resource.api.group.starts_with(asked.group);
        let found = server.all().filter(has_it).find(begins).filter(|_| !asked.group.is_empty());
        return found.map(|found| (Arc::clone(found), Vec::new()));
    };
    let mut also = Vec::new();
    for other in having {
        let same = (&other.api.group, &other.api.plural) == (&chosen.api.group, &chosen.api.plural);
        if !same && !also.contains(&other.name()) {
            also.push(other.name());
        }
    }
    Some((Arc::clone(chosen), also))
}

fn by_kind(server: &ServerResources, asked: Asked<'_>) -> Option<Arc<DiscoveredResource>> {
    let is_kind = |resource: &DiscoveredResource, name: &str| resource.api.kind.eq_ignore_ascii_case(name);
    let exactly = |resource: &DiscoveredResource, name: &str| {
        (asked.group.is_empty() || asked.group == resource.api.group) && is_kind(resource, name)
    };
    if asked.name.is_empty() { None } else { first(server, asked, exactly) }
}

fn is_named(resource: &DiscoveredResource, name: &str) -> bool {
    resource.api.plural == name || resource.singular == name
}

/// The first by priority.
fn first(
    server: &ServerResources,
    asked: Asked<'_>,
    fits: impl Fn(&DiscoveredResource, &str) -> bool,
) -> Option<Arc<DiscoveredResource>> {
    let version =
        |resource: &DiscoveredResource| asked.version.is_empty() || asked.version == resource.api.version;
    let look = |of_group: &dyn Fn(&DiscoveredResource) -> bool| {
        by_priority(server)
            .find(|resource| of_group(resource) && version(resource) && fits(resource, asked.name))
            .map(Arc::clone)
    };
    match (asked.group, asked.version) {
        ("", _) => look(&|_| true),
        (group, "") => look(&|resource| resource.api.group == group)
            .or_else(|| look(&|resource| resource.api.group.starts_with(group))),
        (group, _) => look(&|resource| resource.api.group == group),
    }
}

fn by_priority(server: &ServerResources) -> impl Iterator<Item = &Arc<DiscoveredResource>> {
    let is_first = |group: &DiscoveredGroup, version: &str| group.name.is_empty() && version == "v1";
    let core = server
        .groups
        .iter()
        .flat_map(move |group| group.versions.iter().filter(move |version| is_first(group, &version.name)));
    let of_group = |group: &'_ DiscoveredGroup| group.preferred.clone();
    let rest = server.groups.iter().flat_map(move |group| {
        let preferred = of_group(group);
        let (before, after): (Vec<_>, Vec<_>) =
            group.versions.iter().partition(|version| Some(&version.name) == preferred.as_ref());
        before.into_iter().chain(after)
    });
    core.chain(rest).flat_map(|version| &version.resources)
}

/// Each in its preferred version.
pub(crate) fn category(server: &ServerResources, name: &str) -> Vec<Arc<DiscoveredResource>> {
    let mut found: Vec<Arc<DiscoveredResource>> = Vec::new();
    for resource in server.all().filter(|resource| resource.categories.iter().any(|of| of == name)) {
        let Some(resolved) = resolve(server, &resource.name()) else { continue };
        let is_same = |known: &Arc<DiscoveredResource>| known.api == resolved.resource.api;
        if !found.iter().any(is_same) {
            found.push(resolved.resource);
        }
    }
    found
}

pub(crate) fn resolve_all(server: &ServerResources, text: &str) -> Option<Vec<Found>> {
    let of_category = category(server, text);
    if of_category.is_empty() {
        return resolve(server, text).map(|found| vec![found]);
    }
    Some(of_category.into_iter().map(|resource| Found { resource, also: Vec::new() }).collect())
}

pub(crate) fn resolve_one(server: &ServerResources, name: &str) -> Option<Result<Found, DiscoveryError>> {
    if let Some(found) = resolve(server, name) {
        return Some(Ok(found));
    }
    let resources: Vec<_> = category(server, name).iter().map(|resource| resource.name()).collect();
    (!resources.is_empty()).then(|| Err(DiscoveryError::Category { name: name.to_owned(), resources }))
}

pub(crate) fn unknown(
    server: &ServerResources,
    name: &str,
    asks_again_in: Option<Duration>,
) -> DiscoveryError {
    let name = shortened(name, LONGEST_NAME);
    let (alike, failed) = (alike(server, &name), server.failed.clone());
    DiscoveryError::Unknown(Box::new(UnknownName { name, alike, failed, asks_again_in }))
}

const LONGEST_NAME: usize = 253;
const ALIKE: f64 = 0.85;
const OFFERED: usize = 3;

pub(crate) fn alike(server: &ServerResources, text: &str) -> Vec<String> {
    let name = text.split('.').next().unwrap_or_default().to_lowercase();
    let score = |resource: &Arc<DiscoveredResource>| {
        let names = [&resource.api.plural, &resource.singular].into_iter().chain(&resource.short_names);
        // Longer names are no names of Kubernetes, and take long.
        let names = names.filter(|known| known.len() <= LONGEST_NAME);
        names.map(|known| strsim::jaro_winkler(&name, known)).fold(0.0, f64::max)
    };
    let mut scored: Vec<(f64, String)> = Vec::new();
    for resource in server.all() {
        let score = score(resource);
        if score >= ALIKE && !scored.iter().any(|(_, known)| *known == resource.name()) {
            scored.push((score, resource.name()));
        }
    }
    // The sort is stable: equal scores stay in the order of priority.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(OFFERED).map(|(_, name)| shortened(&name, LONGEST_NAME)).collect()
}

#[cfg(test)]
mod tests;
