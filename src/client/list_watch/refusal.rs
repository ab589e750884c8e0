//! What is said of a list, watch or get that the server refuses: the path, the resource and what to do.
//!
//! Answers "what does a stranger read who has to mend this?" The class of the error, which decides what is requested
//! next, is `../status.rs`'s. Invariants:
//! 1. Every text names the path of the request, never its query, except for the selectors that the server rejects.
//! 2. The server's words come first and are bounded, so that what to do is never cut off.
//! 3. No text holds a secret: of credentials their kind is named, and their file or program.
//!
//! Read next: `informer_core::list_watch_error`, the errors.

use std::rc::Rc;
use std::sync::Arc;

use informer_core::list_watch_error::ListWatchError;
use kube_core::response::Status;

use crate::client::scope::Scope;
use crate::client::status;
use crate::representation::RequestedContent;
use crate::text::shortened;

/// At most this many characters of the server's words are kept beside ours.
const MAX_SERVER_CHARS: usize = 300;

/// What the server refused.
pub(super) struct Refusal {
    pub(super) status: Status,
    /// The kind of the credentials, known of a 401.
    pub(super) credentials: Option<Arc<str>>,
}

/// The request that may be refused.
#[derive(Clone)]
pub(super) struct Requested {
    pub(super) scope: Rc<Scope>,
    pub(super) content: RequestedContent,
    /// The path, without the query.
    pub(super) path: String,
    /// Whether it asks for initial events, which older servers and proxies refuse as invalid.
    pub(super) initial_events: bool,
    /// Whether what the server finds invalid can only be the selectors. A page with a token has more that may be.
    pub(super) has_selectors_alone: bool,
}

impl Requested {
    /// The error for an answer that is not a success.
    pub(super) fn refused(&self, refusal: Refusal) -> ListWatchError {
        let Refusal { status, credentials } = refusal;
        // A proxy that answers 400 without a Status has not read the selectors.
        let is_status = !status.reason.is_empty();
        let is_judged = is_status && matches!(status.code, 400 | 422);
        let error = status::into_error(status, self.initial_events);
        match error {
            ListWatchError::Status { message, .. } if is_judged && self.has_selectors_alone => {
                ListWatchError::SelectorRejected {
                    selectors: self.scope.written_selectors().into(),
                    message: self.words(&message, &self.rejected_selector()),
                }
            }
            ListWatchError::Denied(message) if !is_status => {
                let advice = "the API server words it otherwise: a proxy before it may have refused";
                ListWatchError::Denied(self.words(&message, advice))
            }
            error => self.explained(error, credentials.as_deref()),
        }
    }

    /// An error that came within a stream, with the same words.
    pub(super) fn failed(&self, error: ListWatchError) -> ListWatchError {
        self.explained(error, None)
    }

    fn explained(&self, error: ListWatchError, credentials: Option<&str>) -> ListWatchError {
        match error {
            ListWatchError::Unauthorized(message) => {
                ListWatchError::Unauthorized(self.words(&message, &unauthorized(credentials)))
            }
            ListWatchError::Denied(message) => {
                let advice = self.denied(&message);
                ListWatchError::Denied(self.words(&message, &advice))
            }
            ListWatchError::NotFound(message) => {
                ListWatchError::NotFound(self.words(&message, &self.not_found()))
            }
            ListWatchError::Overloaded { message, retry_after } => {
                let advice = "if this lasts, raise the server's limits for this client (FlowSchema, \
                              PriorityLevelConfiguration)";
                ListWatchError::Overloaded { message: self.words(&message, advice), retry_after }
            }
            ListWatchError::Expired(message) => ListWatchError::Expired(self.words(&message, "")),
            ListWatchError::Status { code, reason, message } => {
                let message = self.words(&message, self.of_code(code));
                ListWatchError::Status { code, reason, message }
            }
            other => other,
        }
    }

    /// The server's words, the path, and what to do.
    fn words(&self, server: &str, advice: &str) -> Arc<str> {
        let server = shortened(server, MAX_SERVER_CHARS);
        let joint = if advice.is_empty() { "" } else { "; " };
        format!("{server}, requested at {}{joint}{advice}", self.path).into()
    }

    /// The rule that RBAC lacks, as it is written in a role. Servers name one verb; an informer needs three.
    fn denied(&self, message: &str) -> String {
        if message.contains("system:anonymous") {
            return "the server does not know who asks: configure a token, a client certificate or a credential \
                    plugin"
                .to_owned();
        }
        let (resource, role) = (&self.scope.resource, self.role());
        format!(
            "to allow it, bind {role} with the rule apiGroups: [\"{}\"], resources: [\"{}\"], verbs: [\"get\", \
             \"list\", \"watch\"]",
            resource.group, resource.plural
        )
    }

    fn role(&self) -> String {
        match &self.scope.namespace {
            Some(namespace) => format!("a Role in the namespace {namespace}"),
            None => "a ClusterRole".to_owned(),
        }
    }

    fn not_found(&self) -> String {
        let resource = &self.scope.resource;
        let (name, version) = (self.scope.name(), &resource.api_version);
        let install = match is_built_in(&resource.group) {
            true => "correct its group, version and plural, or use a server that has it",
            false => "install its CustomResourceDefinition, or correct its group, version and plural",
        };
        let namespace = match &self.scope.namespace {
            Some(_) => "; if it is cluster-scoped, leave out the namespace",
            None => "",
        };
        format!("the server does not serve {name} in {version}: {install}{namespace}")
    }

    fn rejected_selector(&self) -> String {
        let name = self.scope.name();
        match self.scope.fields {
            Some(_) => format!("select {name} by fields that the server knows for them, or by labels"),
            None => format!("correct the label selector of {name}"),
        }
    }

    fn of_code(&self, code: u16) -> &'static str {
        match (code, self.content) {
            (300..400, _) => "redirects are not followed: configure the endpoint of the API server itself",
            (405, _) => "this resource can be neither listed nor watched",
            (406, RequestedContent::Metadata) => {
                "this API cannot send the metadata of objects alone: follow the objects themselves"
            }
            (406 | 415, _) => "this API does not send JSON: nothing else is understood here",
            (500.., _) => "the fault is the server's, or that of a proxy before it: their logs say more",
            _ => "",
        }
    }
}

fn unauthorized(credentials: Option<&str>) -> String {
    let sent = credentials.map(|kind| format!("it was sent with {kind}; ")).unwrap_or_default();
    format!("{sent}use credentials that this cluster accepts and that have not expired")
}

/// Whether the group is Kubernetes' own; those that people define have a domain of their own.
fn is_built_in(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

#[cfg(test)]
mod tests;
