//! The refusals of the server: one value that becomes a `Status` object of the Kubernetes API.
//!
//! Answers: which code, reason, message and details belong to a refusal? It does not decide when to refuse.
//! 1. `code` and `reason` are set together by one constructor, so they always match.
//! 2. `details.kind` is the plural resource, except in 422, where it is the Kind.
//! 3. An unknown path is the one refusal that is plain text (`is_plain`).
//!
//! Next: `http/respond.rs` puts it on the wire.
use std::fmt::Display;

use serde_json::{Map, Value, json};

use super::ResourceId;

/// A refusal of the API server, with the content of a `Status` object.
///
/// Cheap to move (one pointer); cloning copies the text.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}: {}", .0.reason, .0.message)]
pub struct ApiError(Box<Refusal>);

#[derive(Debug, Clone)]
struct Refusal {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Map<String, Value>>,
    continue_token: Option<String>,
    retry_after: Option<u32>,
    plain: bool,
    warnings: Vec<String>,
}

impl ApiError {
    /// The HTTP status code, for example 409.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// The machine-readable reason, for example `Conflict`; empty if a real server gives none.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.0.reason
    }

    /// The sentence for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The whole `Status` object, as JSON.
    #[must_use]
    pub fn to_status(&self) -> Value {
        let refusal = &self.0;
        let mut metadata = Map::new();
        if let Some(token) = &refusal.continue_token {
            metadata.insert("continue".into(), json!(token));
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": refusal.message, "code": refusal.code,
        });
        if !refusal.reason.is_empty() {
            status["reason"] = json!(refusal.reason);
        }
        if let Some(details) = &refusal.details {
            status["details"] = Value::Object(details.clone());
        }
        status
    }

    pub(crate) fn retry_after(&self) -> Option<u32> {
        self.0.retry_after
    }

    /// The warnings beside the refusal.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    pub(crate) fn with_warnings(mut self, warnings: &[String]) -> Self {
        self.0.warnings.extend_from_slice(warnings);
        self
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.0.plain
    }

    pub(crate) fn with_continue(mut self, token: String) -> Self {
        self.0.continue_token = Some(token);
        self
    }

    pub(crate) fn with_retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after = Some(seconds);
        let details = self.0.details.get_or_insert_with(Map::new);
        details.insert("retryAfterSeconds".into(), json!(seconds));
        self
    }

    pub(crate) fn into_plain(mut self) -> Self {
        self.0.plain = true;
        self
    }

    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        let (details, continue_token, retry_after, warnings) = (None, None, None, Vec::new());
        let message = message.into();
        Self(Box::new(Refusal {
            code,
            reason,
            message,
            details,
            continue_token,
            retry_after,
            plain: false,
            warnings,
        }))
    }

    fn details(mut self, details: Value) -> Self {
        if let Value::Object(map) = details {
            self.0.details = Some(map);
        }
        self
    }
}

fn about(resource: &Named<'_>) -> Value {
    let mut details = Map::new();
    if !resource.name.is_empty() {
        details.insert("name".into(), json!(resource.name));
    }
    if !resource.group.is_empty() {
        details.insert("group".into(), json!(resource.group));
    }
    if !resource.kind.is_empty() {
        details.insert("kind".into(), json!(resource.kind));
    }
    Value::Object(details)
}

/// The object of a refusal: the group, the plural resource (or the Kind, in 422) and the name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

impl Named<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }
}

/// One field that is wrong, as an entry of `details.causes`.
#[derive(Debug, Clone)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) field: String,
}

impl Cause {
    pub(crate) fn invalid(field: &str, value: &str, why: &str) -> Self {
        let message = format!("Invalid value: {value:?}: {why}");
        Self { reason: "FieldValueInvalid", message, field: field.into() }
    }

    pub(crate) fn required(field: &str, why: &str) -> Self {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    pub(crate) fn forbidden(field: &str, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.into() }
    }

    /// `value` is shown as it is written.
    pub(crate) fn unsupported(field: &str, value: impl Display, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|known| format!("{known:?}")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", known.join(", "));
        Self { reason: "FieldValueNotSupported", message, field: field.into() }
    }

    fn to_value(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

impl ApiError {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(about_what: Named<'_>, why: &str) -> Self {
        let name = about_what.name;
        let subject = about_what.qualified();
        let message = if name.is_empty() {
            format!("{subject} is forbidden: {why}")
        } else {
            format!("{subject} {name:?} is forbidden: {why}")
        };
        Self::new(403, "Forbidden", message).details(about(&about_what))
    }

    /// A path that is not a resource.
    pub(crate) fn forbidden_path(why: &str) -> Self {
        Self::new(403, "Forbidden", format!("forbidden: {why}")).details(json!({}))
    }

    pub(crate) fn namespace_terminating(about_what: Named<'_>, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut refusal = Self::forbidden(about_what, &why);
        let cause = json!([{"reason": "NamespaceTerminating", "field": "metadata.namespace",
            "message": format!("namespace {namespace} is being terminated")}]);
        refusal.0.details.get_or_insert_with(Map::new).insert("causes".into(), cause);
        refusal
    }

    pub(crate) fn not_found(what: Named<'_>) -> Self {
        let message = format!("{} {:?} not found", what.qualified(), what.name);
        Self::new(404, "NotFound", message).details(about(&what))
    }

    /// An unknown version, resource or subresource of a built-in group.
    pub(crate) fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").details(json!({}))
    }

    /// A name that is no resource, given to the handle; with the most similar name.
    pub(crate) fn no_resource(name: &str, nearest: Option<&ResourceId>) -> Self {
        let hint = nearest.map(|nearest| format!(" (did you mean {nearest}?)")).unwrap_or_default();
        let text = format!("the server could not find the requested resource: it has no {name:?}{hint}");
        Self::new(404, "NotFound", text).details(json!({}))
    }

    /// A path that nothing serves: the text a Go server gives, not a `Status`.
    pub(crate) fn no_such_path() -> Self {
        Self::new(404, "NotFound", "404 page not found").into_plain()
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).details(json!({}))
    }

    /// No range of the Accept header can be served.
    pub(crate) fn not_acceptable(offered: &str) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {offered}");
        Self::new(406, "NotAcceptable", message).details(json!({}))
    }

    /// As `not_acceptable`, with the text of endpoints without the strict check.
    pub(crate) fn only_accepted(offered: &str) -> Self {
        Self::new(406, "NotAcceptable", format!("only the following media types are accepted: {offered}"))
    }

    /// A list was asked for in a form for one object.
    pub(crate) fn not_for_a_list(go_type: &str) -> Self {
        let message =
            format!("you requested PartialObjectMetadata, but the requested object is a list (*{go_type})");
        Self::new(406, "NotAcceptable", message)
    }

    /// One object was asked for in a form for a list.
    pub(crate) fn not_a_list(go_type: &str) -> Self {
        let message = format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list (*{go_type})"
        );
        Self::new(406, "NotAcceptable", message)
    }

    /// A PATCH in no language a real server knows.
    pub(crate) fn unknown_patch() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").details(json!({}))
    }

    pub(crate) fn already_exists(what: Named<'_>) -> Self {
        let message = format!("{} {:?} already exists", what.qualified(), what.name);
        Self::new(409, "AlreadyExists", message).details(about(&what))
    }

    pub(crate) fn conflict(what: Named<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {:?}: {why}", what.qualified(), what.name);
        Self::new(409, "Conflict", message).details(about(&what))
    }

    /// An apply that would change fields of other owners.
    pub(crate) fn apply_conflict(message: String, causes: Vec<Value>) -> Self {
        Self::new(409, "Conflict", message).details(json!({ "causes": causes }))
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn too_large() -> Self {
        Self::new(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
    }

    /// A part of a request that is too large, though the body as a whole is not.
    pub(crate) fn entity_too_large(why: &str) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
    }

    pub(crate) fn unsupported_media(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn invalid(what: Named<'_>, causes: &[Cause]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for text in causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let text = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
        let message = format!("{} {:?} is invalid: {text}", what.qualified(), what.name);
        let mut details = about(&what);
        details["causes"] = causes.iter().map(Cause::to_value).collect();
        Self::new(422, "Invalid", message).details(details)
    }

    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message).details(json!({}))
    }

    /// An eviction that no budget allows.
    pub(crate) fn over_budget(why: &str) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let causes = json!([{"reason": "DisruptionBudget", "message": why}]);
        Self::new(429, "TooManyRequests", message).details(json!({ "causes": causes }))
    }

    /// A failure of the server itself, as shown to the client.
    pub(crate) fn internal(why: impl Into<String>) -> Self {
        let why = why.into();
        let causes = json!([{ "message": why }]);
        let message = format!("Internal error occurred: {why}");
        Self::new(500, "InternalError", message).details(json!({ "causes": causes }))
    }

    /// The answer of a real server if its own code failed without a typed error: 500 and no reason.
    pub(crate) fn untyped(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// A version that does not exist yet. A client may retry if a cache answers, because it may catch up.
    pub(crate) fn too_large_version(asked: u64, current: u64, cached: bool) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]);
        let refusal = Self::new(504, "Timeout", message).details(json!({ "causes": cause }));
        if cached { refusal.with_retry_after(1) } else { refusal }
    }

    /// The refusals of a fault switch, by code.
    pub(crate) fn by_code(code: u16) -> Self {
        let (reason, message) = match code {
            401 => ("Unauthorized", "Unauthorized"),
            410 => ("Expired", "The resourceVersion for the provided list is too old."),
            429 => ("TooManyRequests", "Too many requests, please try again later."),
            500 => ("InternalError", "Internal error occurred: the fault switch said so"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "Timeout: request did not complete within the allotted timeout"),
            _ => ("", "the server was told to refuse this request"),
        };
        Self::new(code, reason, message)
    }
}
