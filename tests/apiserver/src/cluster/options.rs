//! The query of a list or a watch, read and checked once.
//!
//! Answers: what does this client ask for, and is the combination allowed? It does not read any state.
//! 1. A combination that the API forbids is refused here, so later code gets only allowed ones.
//! 2. `""` and `"0"` are not versions: they become `Version::Unset` and `Version::Any`.
//!
//! Next: `list.rs` and `watch.rs` act on the result.
use super::kind::Kind;
use super::selector::{Selector, SelectorText};
use super::status::{ApiError, Cause, Named};

/// The decoded pairs of a query string, in their order.
pub(crate) type Query = [(String, String)];

/// The first value of a query member; empty if it is missing.
pub(crate) fn value<'a>(query: &'a Query, name: &str) -> &'a str {
    query.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
}

/// Any value but `false` and `0` is true, as in the API's own conversion.
pub(crate) fn flag(query: &Query, name: &str) -> bool {
    let found = query.iter().find(|(key, _)| key == name);
    found.is_some_and(|(_, value)| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
}

/// Checks the dry run parameter of a write; `options` is the kind of its options.
///
/// # Errors
/// 422 for anything but `All`.
pub(crate) fn check_dry_run(query: &Query, options: &'static str) -> Result<(), ApiError> {
    let asked: Vec<&str> =
        query.iter().filter(|(key, _)| key == "dryRun").map(|(_, value)| value.as_str()).collect();
    if asked.iter().all(|value| *value == "All") {
        return Ok(());
    }
    let cause = Cause::unsupported("dryRun", format!("{asked:?}"), &["All"]);
    Err(ApiError::invalid(Named { group: "meta.k8s.io", kind: options, name: "" }, &[cause]))
}

/// The resourceVersion a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Unset,
    Any,
    At(u64),
}

impl Version {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self::Unset),
            _ => match text.parse::<u64>() {
                Ok(0) => Ok(Self::Any),
                Ok(version) => Ok(Self::At(version)),
                Err(_) => Err(format!(
                    "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
                )),
            },
        }
    }
}

/// What a list asks for.
#[derive(Debug, Clone)]
pub(crate) struct ListOptions {
    pub(crate) version: Version,
    pub(crate) exact: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) continue_token: String,
    pub(crate) selector: Selector,
}

/// What a watch asks for.
#[derive(Debug, Clone)]
pub(crate) struct WatchOptions {
    pub(crate) version: Version,
    pub(crate) selector: Selector,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<u64>,
}

/// What a GET of one object asks for: the version it must be at least as new as.
pub(crate) fn get_version(query: &Query) -> Result<Version, ApiError> {
    Version::parse(value(query, "resourceVersion")).map_err(ApiError::untyped)
}

fn invalid(causes: &[Cause]) -> ApiError {
    ApiError::invalid(Named { group: "meta.k8s.io", kind: "ListOptions", name: "" }, causes)
}

fn initial_events(query: &Query) -> Option<bool> {
    let named = query.iter().any(|(key, value)| key == "sendInitialEvents" && !value.is_empty());
    named.then(|| flag(query, "sendInitialEvents"))
}

impl ListOptions {
    /// # Errors
    /// 400 for unreadable values, 422 for combinations that are forbidden.
    pub(crate) fn parse(query: &Query, kind: &Kind) -> Result<Self, ApiError> {
        let limit = usize::try_from(number(query, "limit")?).ok().filter(|limit| *limit > 0);
        let text = SelectorText::parse(value(query, "labelSelector"), value(query, "fieldSelector"))?;
        let matching = value(query, "resourceVersionMatch");
        let continue_token = value(query, "continue").to_owned();
        let causes = list_causes(query, matching, !continue_token.is_empty());
        if !causes.is_empty() {
            return Err(invalid(&causes));
        }
        let selector = text.of_kind(kind)?;
        let version = Version::parse(value(query, "resourceVersion"))
            .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
        let legacy = matching.is_empty() && limit.is_some() && matches!(version, Version::At(_));
        Ok(Self { version, exact: matching == "Exact" || legacy, limit, continue_token, selector })
    }
}

/// A whole number of the query; 0 if it is missing.
fn number(query: &Query, name: &str) -> Result<i64, ApiError> {
    match value(query, name) {
        "" => Ok(0),
        text => text.parse().map_err(|_| {
            ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
        }),
    }
}

fn list_causes(query: &Query, matching: &str, continued: bool) -> Vec<Cause> {
    let (field, version) = ("resourceVersionMatch", value(query, "resourceVersion"));
    let mut causes = Vec::new();
    if !matching.is_empty() && version.is_empty() {
        let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        causes.push(Cause::forbidden(field, why));
    }
    if !matching.is_empty() && continued {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        causes.push(Cause::forbidden(field, why));
    }
    if !matches!(matching, "" | "Exact" | "NotOlderThan") {
        let known = ["Exact", "NotOlderThan", ""];
        causes.push(Cause::unsupported(field, format!("{matching:?}"), &known));
    }
    if matching == "Exact" && version == "0" {
        let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        causes.push(Cause::forbidden(field, why));
    }
    if initial_events(query).is_some() {
        causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    causes
}

impl WatchOptions {
    /// `watch_list` is false if the server behaves as one without that feature.
    ///
    /// # Errors
    /// 400 and 422 as for lists; 500 without a reason for an unreadable version, as a real server does.
    pub(crate) fn parse(query: &Query, kind: &Kind, watch_list: bool) -> Result<Self, ApiError> {
        let timeout = number(query, "timeoutSeconds")?;
        let text = SelectorText::parse(value(query, "labelSelector"), value(query, "fieldSelector"))?;
        let initial_events = initial_events(query);
        let causes = watch_causes(query, initial_events.is_some(), watch_list);
        if !causes.is_empty() {
            return Err(invalid(&causes));
        }
        let selector = text.of_kind(kind)?;
        let version = Version::parse(value(query, "resourceVersion")).map_err(ApiError::untyped)?;
        let timeout_seconds = u64::try_from(timeout).ok().filter(|timeout| *timeout > 0);
        let bookmarks = flag(query, "allowWatchBookmarks");
        Ok(Self { version, selector, bookmarks, initial_events, timeout_seconds })
    }
}

fn watch_causes(query: &Query, initial_events: bool, watch_list: bool) -> Vec<Cause> {
    let (field, matching) = ("resourceVersionMatch", value(query, "resourceVersionMatch"));
    let mut causes = Vec::new();
    if initial_events && matching != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        causes.push(Cause::forbidden(field, why));
    }
    if initial_events && !watch_list {
        let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        causes.push(Cause::forbidden("sendInitialEvents", why));
    }
    if matching.is_empty() {
        return causes;
    }
    if !initial_events {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        causes.push(Cause::forbidden(field, why));
    }
    if matching != "NotOlderThan" {
        causes.push(Cause::unsupported(field, format!("{matching:?}"), &["NotOlderThan"]));
    }
    if !value(query, "continue").is_empty() {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        causes.push(Cause::forbidden(field, why));
    }
    causes
}
