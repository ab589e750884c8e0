//! The text for a list, watch or get that the server refuses: the path, the resource and what to do.
//!
//! 1. It never has the query of the request, except for selectors that the server rejects.
//! 2. The server's words come first and are bounded, so that the advice is never cut off.

use std::rc::Rc;
use std::sync::Arc;

use informer_core::list_watch_error::ListWatchError;
use informer_core::words::shortened;
use kube_core::response::Status;

use crate::error::{advice, status};
use crate::scope::Scope;
use crate::wire::RequestedContent;

const MAX_SERVER_CHARS: usize = 300;

pub(super) struct Refusal {
    pub(super) status: Status,
    /// For a 401.
    pub(super) credentials: Option<Arc<str>>,
    pub(super) audit_id: Option<String>,
}

#[derive(Clone)]
pub(super) struct Requested {
    pub(super) scope: Rc<Scope>,
    pub(super) content: RequestedContent,
    pub(super) path: String,
    pub(super) initial_events: bool,
    /// A page with a token has more that can be invalid.
    pub(super) has_selectors_alone: bool,
    pub(super) audit_id: Option<String>,
}

impl Requested {
    pub(super) fn refused(&self, refusal: Refusal) -> ListWatchError {
        let Refusal { status, credentials, audit_id } = refusal;
        let this = Self { audit_id, ..self.clone() };
        this.worded(status, credentials.as_deref())
    }

    fn worded(&self, status: Status, credentials: Option<&str>) -> ListWatchError {
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
            error => self.explained(error, credentials),
        }
    }

    pub(super) fn failed(&self, error: ListWatchError) -> ListWatchError {
        self.explained(error, None)
    }

    fn explained(&self, error: ListWatchError, credentials: Option<&str>) -> ListWatchError {
        match error {
            ListWatchError::Unauthorized(message) => {
                ListWatchError::Unauthorized(self.words(&message, &advice::unauthorized(credentials)))
            }
            ListWatchError::Denied(message) => {
                let advice = self.denied(&message);
                ListWatchError::Denied(self.words(&message, &advice))
            }
            ListWatchError::NotFound(message) => {
                ListWatchError::NotFound(self.words(&message, &self.not_found()))
            }
            ListWatchError::Overloaded { message, retry_after } => {
                ListWatchError::Overloaded { message: self.words(&message, advice::OVERLOADED), retry_after }
            }
            ListWatchError::Expired(message) => ListWatchError::Expired(self.words(&message, "")),
            ListWatchError::Status { code, reason, message } => {
                let known = advice::of_words(code, &message);
                let message = self.words(&message, known.unwrap_or_else(|| self.of_code(code)));
                ListWatchError::Status { code, reason, message }
            }
            other => other,
        }
    }

    fn words(&self, server: &str, advice: &str) -> Arc<str> {
        let server = shortened(server, MAX_SERVER_CHARS);
        let joint = if advice.is_empty() { "" } else { "; " };
        let audit = self.audit_id.as_ref().map(|id| format!(" (Audit-ID {id})")).unwrap_or_default();
        format!("{server}, requested at {}{joint}{advice}{audit}", self.path).into()
    }

    /// Servers name one verb; an informer needs three.
    fn denied(&self, message: &str) -> String {
        if message.contains("system:anonymous") {
            return advice::ANONYMOUS.to_owned();
        }
        let resource = &self.scope.resource;
        let verbs = r#""get", "list", "watch""#;
        advice::rule((&resource.group, &resource.plural), self.scope.namespace.as_deref(), verbs)
    }

    fn not_found(&self) -> String {
        let resource = &self.scope.resource;
        let (name, version) = (self.scope.name(), &resource.api_version);
        let install = advice::install(&resource.group);
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
            (300..400, _) => advice::REDIRECTED,
            (405, _) => "this resource can be neither listed nor watched",
            (406, RequestedContent::Metadata) => {
                "this API cannot send the metadata of objects alone: follow the objects themselves"
            }
            (406 | 415, _) => advice::NO_JSON,
            (500.., _) => advice::SERVER_FAULT,
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests;
