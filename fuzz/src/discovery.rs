//! Discovery documents of any bytes.
//!
//! Answers "what must hold for what a server says about its resources?"

use std::collections::BTreeSet;

use actix_informer::client::discovery::{DiscoveredResource, ServerResources};
use actix_informer::unstable::discovery::{discovered, listed, resolved, written_and_read};

/// Any bytes give resources or an error of bounded length. Each resource has its full name, and all of them are the same
/// after they were on disk, unless their names are not those of Kubernetes.
pub fn discovery_document(data: &[u8]) {
    if let Err(error) = listed(data) {
        assert!(error.chars().count() < 400, "{error}");
    }
    let served = match discovered(data) {
        Ok(served) => served,
        Err(error) => return assert!(error.chars().count() < 400, "{error}"),
    };
    if let Err(incomplete) = served.complete() {
        assert!(incomplete.to_string().chars().count() < 4_000, "{incomplete}");
    }
    for name in ["pods", "deploy", "all", ".", "a.b.c", ""] {
        let found = resolved(&served, name);
        assert!(found.is_ok() || found.is_err_and(|error| error.chars().count() < 12_000));
    }
    if !is_plain(&served) {
        return;
    }
    for resource in served.all() {
        let name = resource.full_name();
        // The core group has no name: without it another group's resource may be meant.
        if !resource.api.group.is_empty() {
            assert_eq!(resolved(&served, &name), Ok(name.clone()));
        }
    }
    let again = written_and_read(&served).expect("what was written can be read");
    assert_eq!(format!("{again:?}"), format!("{served:?}"));
}

/// Whether each group, each version of it and each resource in that stands there once, with a name that Kubernetes allows.
fn is_plain(served: &ServerResources) -> bool {
    let is_name = |name: &str| {
        let is_of_names = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !name.is_empty() && name.bytes().all(is_of_names)
    };
    let is_group = |name: &str| name.is_empty() || name.split('.').all(is_name);
    let mut seen = BTreeSet::new();
    let mut is_once = |resource: &DiscoveredResource| {
        is_name(&resource.api.plural) && is_name(&resource.singular) && seen.insert(resource.full_name())
    };
    let mut groups = BTreeSet::new();
    served.groups.iter().all(|group| {
        is_group(&group.name)
            && groups.insert(&group.name)
            && group.versions.iter().all(|version| {
                is_name(&version.name) && version.resources.iter().all(|resource| is_once(resource))
            })
    }) && has_no_other_names(served)
}

/// Whether no singular or short name of a resource is the plural of another: a name means one of them then.
fn has_no_other_names(served: &ServerResources) -> bool {
    let plurals: BTreeSet<&str> = served.all().map(|resource| resource.api.plural.as_str()).collect();
    served
        .all()
        .all(|resource| resource.singular == resource.api.plural || !plurals.contains(&*resource.singular))
}
