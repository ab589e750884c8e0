//! Finds the resource that a name means, as kubectl finds it.
//!
//! Answers "which resource is `deploy`, `Deployment`, `deployments.apps`, `deployments.v1.apps`?" It is a function of the
//! name and of what was discovered; nothing is asked. The order of the looks is kubectl's (`ParseResourceArg`, the
//! shortcut expander, the priority mapper):
//! 1. `name.version.group`, then `name.group`, as plural, singular or short name. A group that is not found exactly may
//!    be the beginning of one: `storageclass.storage`.
//! 2. The same as a kind.
//! 3. Among several: version `v1` of the core group, then the groups in the order of the server, in each of them the
//!    preferred version first.
//!
//! It differs where kubectl drops a part of the name. A short name with a version gives that version, while kubectl gives
//! the preferred one. A kind without a group is found in any group and in any case, while kubectl finds it in the core
//! group alone unless its singular is the same word.
//!
//! Read next: `../discovery.rs`, which asks again when a name is not found.

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
    /// The resources of lower priority that have the same short name, such as `foos.example.com`.
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

/// A name and what it says of the version and the group; empty: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked<'a> {
    name: &'a str,
    version: &'a str,
    group: &'a str,
}

/// The resource of this name, if there is one.
pub(crate) fn resolve(server: &ServerResources, text: &str) -> Option<Found> {
    let (full, partial) = parts(text);
    let found = full.and_then(|asked| by_resource(server, asked)).or_else(|| by_resource(server, partial));
    found.or_else(|| {
        let kind = full.and_then(|asked| by_kind(server, asked)).or_else(|| by_kind(server, partial));
        kind.map(|resource| Found { resource, also: Vec::new() })
    })
}

/// `name.version.group` if there are two dots, and `name.group`.
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
    // The group is known: the core group's name is empty, which would mean any.
    let of_group = |resource: &DiscoveredResource, name: &str| {
        resource.api.group == long.api.group && is_named(resource, name)
    };
    first(server, asked, of_group).map(|resource| Found { resource, also })
}

/// The resource that has this short name, and those that have it too. A name that is a resource's own is not a short one.
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

/// The first in the order of priority that fits. A group that is not there may be the beginning of one.
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

/// Every resource: version `v1` of the core group, then group by group with the preferred version first.
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

/// The resources of a category, each in its preferred version. Empty if there is no such category.
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

/// The resources that a name means: those of a category, or the one of this name.
pub(crate) fn resolve_all(server: &ServerResources, text: &str) -> Option<Vec<Found>> {
    let of_category = category(server, text);
    if of_category.is_empty() {
        return resolve(server, text).map(|found| vec![found]);
    }
    Some(of_category.into_iter().map(|resource| Found { resource, also: Vec::new() }).collect())
}

/// The one resource of this name; an error if it means several.
pub(crate) fn resolve_one(server: &ServerResources, name: &str) -> Option<Result<Found, DiscoveryError>> {
    if let Some(found) = resolve(server, name) {
        return Some(Ok(found));
    }
    let resources: Vec<_> = category(server, name).iter().map(|resource| resource.name()).collect();
    (!resources.is_empty()).then(|| Err(DiscoveryError::Category { name: name.to_owned(), resources }))
}

/// The error of a name that means nothing.
pub(crate) fn unknown(
    server: &ServerResources,
    name: &str,
    asks_again_in: Option<Duration>,
) -> DiscoveryError {
    let name = shortened(name, MAX_NAME_CHARS);
    let (alike, failed) = (alike(server, &name), server.failed.clone());
    DiscoveryError::Unknown(Box::new(UnknownName { name, alike, failed, asks_again_in }))
}

/// At most this many characters of a name are kept in an error.
const MAX_NAME_CHARS: usize = 253;
/// How alike two names must be for one to be offered for the other.
const ALIKE: f64 = 0.85;
/// At most this many names are offered.
const OFFERED: usize = 3;

/// The names that were perhaps meant, the most alike first.
pub(crate) fn alike(server: &ServerResources, text: &str) -> Vec<String> {
    let name = text.split('.').next().unwrap_or_default().to_lowercase();
    let score = |resource: &Arc<DiscoveredResource>| {
        let names = [&resource.api.plural, &resource.singular].into_iter().chain(&resource.short_names);
        // Longer ones are no names of Kubernetes, and would take long.
        let names = names.filter(|known| known.len() <= MAX_NAME_CHARS);
        names.map(|known| strsim::jaro_winkler(&name, known)).fold(0.0, f64::max)
    };
    let mut scored: Vec<(f64, String)> = Vec::new();
    for resource in server.all() {
        let score = score(resource);
        if score >= ALIKE && !scored.iter().any(|(_, known)| *known == resource.name()) {
            scored.push((score, resource.name()));
        }
    }
    // Stable: of equally alike ones the one of higher priority stands first.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(OFFERED).map(|(_, name)| shortened(&name, MAX_NAME_CHARS)).collect()
}

#[cfg(test)]
mod tests;
