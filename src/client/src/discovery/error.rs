//! Why a name could not be resolved, or resources could not be discovered. All callers that waited for one
//! answer get the same error.

use std::sync::Arc;
use std::time::Duration;

use informer_core::words::{quoted, shortened};

use super::model::{FailedGroupVersion, IncompleteDiscovery};
use crate::error::Error;

/// A failure of discovery.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The server did not answer the request for its groups.
    #[error("the server's resources cannot be discovered: {0}")]
    Request(#[source] Arc<Error>),
    /// The server answered with something other than a discovery document.
    #[error("the answer to GET {path} is no discovery document: {reason}")]
    Document {
        /// The path of the request.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A panic during discovery: a bug of this crate. It is logged, and the next caller asks the server
    /// again.
    #[error("the discovery of the server's resources panicked: {0}")]
    Panicked(String),
    /// The server has no resource of this name.
    #[error("the server has no resource named {}{}{}", quoted(&.0.name), hint(.0), missing(.0))]
    Unknown(Box<UnknownName>),
    /// The name is a category: [`resources_named`](super::super::Client::resources_named) returns its
    /// resources.
    #[error("{} is a category of several resources: {}", quoted(.name), listed(.resources))]
    Category {
        /// The name.
        name: String,
        /// The resources of the category.
        resources: Vec<String>,
    },
    /// The resource cannot be listed and watched, so no informer can follow it.
    #[error("{resource} cannot be followed: its verbs are {}", .verbs.join(", "))]
    NotWatchable {
        /// The resource.
        resource: String,
        /// What can be done with it.
        verbs: Vec<String>,
    },
}

/// What is known about a name that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownName {
    /// The name.
    pub name: String,
    /// The names that were perhaps meant, the most alike first; at most three.
    pub alike: Vec<String>,
    /// The versions of groups that could not be discovered: one of them may have the name.
    pub failed: Vec<FailedGroupVersion>,
    /// Set if the server was not asked again, because too many names were not found shortly before: the time
    /// until it is asked again.
    pub asks_again_in: Option<Duration>,
}

impl DiscoveryError {
    /// Whether the server has no resource of this name.
    pub fn is_unknown_name(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

/// In a text; the value has all of them.
const NAMED: usize = 20;

fn listed(resources: &[String]) -> String {
    let mut names: Vec<_> = resources.iter().take(NAMED).map(|name| shortened(name, 253)).collect();
    let more = resources.len().saturating_sub(NAMED);
    names.extend((more > 0).then(|| format!("{more} more")));
    names.join(", ")
}

fn hint(unknown: &UnknownName) -> String {
    if unknown.alike.is_empty() {
        return String::new();
    }
    format!(" (did you mean {}?)", unknown.alike.join(" or "))
}

fn missing(unknown: &UnknownName) -> String {
    let mut text = String::new();
    if let Err(incomplete) = failed(&unknown.failed) {
        text = format!("; {incomplete}");
    }
    if let Some(wait) = unknown.asks_again_in {
        text += &format!(
            "; the server was not asked again, since too many names were not found: it is asked again in {wait:?}"
        );
    }
    text
}

fn failed(failed: &[FailedGroupVersion]) -> Result<(), IncompleteDiscovery> {
    if failed.is_empty() { Ok(()) } else { Err(IncompleteDiscovery(failed.to_vec())) }
}
