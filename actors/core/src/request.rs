//! What a reflector requests from its source: one value per request. Invariants:
//! 1. A later page carries a token and no version: the token names the version.
//! 2. A watch with initial events requests `NotOlderThan` its version (`""` the first time).

use std::fmt;
use std::time::Duration;

use crate::meta::ResourceVersion;

/// The version of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskedVersion {
    /// `""`: the newest state, read consistently.
    Latest,
    /// `"0"`: any state that the server has at hand.
    Any,
    /// A state not older than this; for a watch, everything after it.
    From(ResourceVersion),
}

impl AskedVersion {
    /// The requested version, if it is a live one.
    pub fn version(&self) -> Option<&ResourceVersion> {
        match self {
            Self::From(version) => Some(version),
            Self::Latest | Self::Any => None,
        }
    }
}

impl fmt::Display for AskedVersion {
    /// The text of the `resourceVersion` parameter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => Ok(()),
            Self::Any => f.write_str("0"),
            Self::From(version) => version.fmt(f),
        }
    }
}

/// One page of a list, or a list of a single name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRequest {
    /// The version; ignored by the source when there is a token.
    pub version: AskedVersion,
    /// At most this many objects; `None` for all of them.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub token: Option<String>,
    /// Only the object of this name, in the scope of the source: the rewind question asks for a name that
    /// does not exist and wants only the version of the answer.
    pub name: Option<String>,
}

/// One watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchRequest {
    /// Everything after this version; with `initial_events`, a state not older than it first.
    pub version: AskedVersion,
    /// Whether the stream begins with the existing objects and a bookmark that ends them.
    pub initial_events: bool,
    /// How long the server shall keep it open; the source's own deadline lies above it.
    pub timeout: Duration,
}
