//! The pure parts of discovery, for the fuzz target.
//!
//! Answers "what is made of these bytes?" without a server. Nothing here is promised.

use super::documents::{self, Root, legacy};
use super::model::ServerResources;

/// What a server serves whose root was answered with these bytes, in either form.
///
/// # Errors
/// Why they are no discovery document.
pub fn discovered(body: &[u8]) -> Result<ServerResources, String> {
    match documents::root(body).map_err(|error| error.to_string())? {
        Root::Aggregated(groups, failed) => Ok(ServerResources { groups, failed }),
        Root::Legacy(groups) => Ok(ServerResources { groups, failed: Vec::new() }),
    }
}

/// How many resources the list of one version has.
///
/// # Errors
/// Why they are no such list.
pub fn listed(body: &[u8]) -> Result<usize, String> {
    legacy::resources(body, ("apps", "v1")).map(|found| found.len()).map_err(|error| error.to_string())
}

/// The same after it was written to a cache on disk and read again.
pub fn written_and_read(served: &ServerResources) -> Option<ServerResources> {
    let mut groups = legacy::groups(&legacy::written_groups(&served.groups)).ok()?;
    for (group, written) in groups.iter_mut().zip(&served.groups) {
        for (version, written) in group.versions.iter_mut().zip(&written.versions) {
            let list = legacy::written_resources(&group.name, written);
            version.resources = legacy::resources(&list, (&group.name, &version.name)).ok()?;
        }
    }
    Some(ServerResources { groups, failed: served.failed.clone() })
}

/// The full name of the resource that a name means, or the error.
///
/// # Errors
/// The text that a caller of discovery gets.
pub fn resolved(served: &ServerResources, name: &str) -> Result<String, String> {
    served.find(name).map(|found| found.resource.full_name()).map_err(|error| error.to_string())
}
