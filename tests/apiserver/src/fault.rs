//! A fault as a value: the admin port takes it as JSON, the command line as arguments, and chaos draws it from a seed.
//!
//! Answers: how is a fault named and described outside of Rust code? Acting on it is `Faults::apply` in `faults/apply.rs`.
//! 1. Every method of `Faults` that sets a switch has one variant here, and every variant has a method.
//! 2. The texts below are the help of the command, so they describe what happens, not how.
use serde::{Deserialize, Serialize};

/// One setting of a fault switch, as data.
///
/// As JSON it is an object whose member `fault` names it: `{"fault": "freeze-watches", "resource": "pods"}`.
/// A resource is named as for kubectl (`pods`, `deployments.apps`, `deploy`); without one the fault holds for
/// all. A name that is not a resource of the server is refused; `ExpectResource` announces one that a
/// definition adds later.
///
/// ```
/// use informer_apiserver::Fault;
/// # let server = informer_apiserver::ApiServer::builder().start_blocking()?;
/// let fault: Fault = serde_json::from_str(r#"{"fault": "freeze-watches", "resource": "pods"}"#)?;
/// server.faults().apply(&fault)?;
/// assert_eq!(server.faults().active(), [fault]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "cli", derive(clap::Subcommand))]
#[non_exhaustive]
pub enum Fault {
    /// Put all switches back
    Clear {},
    /// Accept faults of a resource that a definition will add later
    ExpectResource {
        /// Its plural and group (`widgets.example.com`)
        resource: String,
    },
    /// Drop all past events: watches and exact lists from before get 410
    Compact {
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// Drop all past events but those of the last versions
    KeepRevisions {
        /// How many versions are kept
        revisions: u64,
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// Make every continue token issued so far expire
    ExpireContinueTokens {},
    /// Answer the next lists and watches with HTTP 410
    GoneNext {
        /// How many requests
        requests: u32,
        /// Only for this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// Answer the next requests with a code, for example 500, 503 or 504
    FailNext {
        /// How many requests
        requests: u32,
        /// The code
        code: u16,
        /// Only for this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// Answer the next requests with 429 and Retry-After
    TooManyRequestsNext {
        /// How many requests
        requests: u32,
        /// Seconds in Retry-After
        #[serde(default = "one")]
        #[cfg_attr(feature = "cli", arg(long, default_value_t = 1))]
        retry_after: u32,
        /// Send a line of text in place of a Status
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        text: bool,
        /// Only for this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// End the open watches cleanly, as at their deadline
    EndWatches {
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// Break the open watches off in the middle of a line, with a connection reset
    ResetWatches {
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// Send nothing into watches; their connections stay open
    FreezeWatches {
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
        /// Switch it off
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// Answer nothing any more; connections are still accepted
    FreezeServer {
        /// Switch it off
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// End every watch at once and without an event
    ShortWatches {
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
        /// Switch it off
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// Send no bookmarks
    DropBookmarks {
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
        /// Switch it off
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// Refuse sendInitialEvents with 422, as a server without watch-list
    RefuseWatchList {
        /// Only for this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
        /// Switch it off
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// Accept watch-list but never say where its first part ends
    WithholdEndBookmark {
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
        /// Switch it off
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// Send every event twice (a correct server never does)
    DuplicateEvents {
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
        /// Switch it off
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// Send events in pairs, the later one first (a correct server never does)
    ReorderEvents {
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
        /// Switch it off
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// Keep the last byte of every list back until it is switched off
    HoldListTails {
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
        /// Switch it off
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// Send every refusal as a line of text in place of a Status
    PlainTextErrors {
        /// Switch it off
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// Reset all connections and refuse new ones
    RefuseConnections {
        /// Switch it off
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// Refuse a verb on a resource with 403
    Deny {
        /// list, watch, get, create, update, patch, delete or deletecollection
        verb: String,
        /// The resource
        resource: String,
        /// Allow it again
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
    /// Send lists slowly
    SlowLists {
        /// Bytes per second; 0 is full speed
        bytes_per_second: u64,
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// Refuse lists that are too big with 500
    LimitLists {
        /// The largest list in bytes; 0 is any size
        bytes: u64,
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// Make lists longer by blanks
    PadLists {
        /// How many blanks; 0 is none
        bytes: u64,
        /// Only of this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// Let each request wait before it is handled
    DelayRequests {
        /// Milliseconds; 0 is none
        milliseconds: u64,
        /// Only for this resource
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
    },
    /// Send bytes as they are into all open watches of a resource
    SendRaw {
        /// The resource
        resource: String,
        /// The bytes, as text
        text: String,
    },
    /// Skip resource versions
    JumpRevision {
        /// How many
        by: u64,
    },
    /// Keep the whole store as it is now
    KeepBackup {},
    /// Restore the kept store, with its versions
    RestoreBackup {},
    /// Replace an object by another one of the same name: another uid, no status
    Recreate {
        /// Its resource
        resource: String,
        /// Its name
        name: String,
        /// Its namespace; nothing means `default`
        #[serde(default)]
        #[cfg_attr(feature = "cli", arg(long, short, default_value = ""))]
        namespace: String,
        /// Hide the deletion from watches: end them first and drop the event
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        unseen: bool,
    },
    /// Delete a custom resource definition with its objects, to be put back later
    WithdrawDefinition {
        /// Its name (`widgets.example.com`)
        name: String,
        /// Put it back
        #[serde(default, skip_serializing_if = "is_false")]
        #[cfg_attr(feature = "cli", arg(long))]
        off: bool,
    },
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}
