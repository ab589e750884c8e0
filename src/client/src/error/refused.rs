//! The refusal of a request by a server, with method and path; never with the request's query, body or
//! headers.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kube_core::response::{Status, reason};

use super::{advice, status};

/// An answer of the server that is not a success, with its request. Reads like its [`Status`].
///
/// The message is the server's, cut at 512 characters. If a write was refused, the message may quote a value
/// of the written object: do not log the message of a 422 to a write of a Secret.
///
/// ```
/// use actix_informer::client::{Client, Error};
/// use actix_informer::http::Method;
///
/// async fn is_absent(client: &Client, path: &str) -> Result<bool, Error> {
///     match client.request(Method::GET, path, None).await {
///         Err(Error::Refused(refused)) if refused.is_not_found() => {
///             assert_eq!((refused.method(), refused.path()), (&Method::GET, path));
///             Ok(true)
///         }
///         answer => answer.map(|_| false),
///     }
/// }
/// ```
#[derive(Clone, PartialEq)]
pub struct Refused {
    method: Method,
    path: String,
    status: Status,
    audit_id: Option<String>,
    /// Known for a 401.
    credentials: Option<Arc<str>>,
}

impl Refused {
    /// An answer without a reason, such as a proxy's, gets the reason of its code, as in client-go.
    #[doc(hidden)]
    pub fn new(method: Method, path: &str, mut status: Status) -> Self {
        if status.reason.is_empty() {
            reason_of(status.code).clone_into(&mut status.reason);
        }
        Self { method, path: path.to_owned(), status, audit_id: None, credentials: None }
    }

    pub(crate) fn audited(self, audit_id: Option<String>) -> Self {
        Self { audit_id, ..self }
    }

    pub(crate) fn sent_with(self, credentials: Option<Arc<str>>) -> Self {
        Self { credentials, ..self }
    }

    /// With it, an expired list can go on at a newer version.
    pub(crate) fn continue_token(&self) -> Option<&str> {
        self.status.metadata.as_ref()?.continue_.as_deref()
    }

    /// The method of the request.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The path of the request, without its query.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The server's code, reason and message; the details contain the wrong fields.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// How long the server wants the client to wait, from a header (seconds or a date) or else from the body;
    /// at most five minutes.
    pub fn retry_after(&self) -> Option<Duration> {
        status::wait_of(&self.status)
    }

    /// The name of the request in the server's audit log, from the `Audit-ID` header of the answer.
    pub fn audit_id(&self) -> Option<&str> {
        self.audit_id.as_deref()
    }

    /// What a person can do about it, in one sentence, if the answer says enough for that: which rule RBAC
    /// lacks, which credentials were refused, which kind is not served. It is also the end of this error's
    /// text.
    ///
    /// ```
    /// # use actix_informer::client::Error;
    /// fn report(error: &Error) -> String {
    ///     let advice = error.refused().and_then(|refused| refused.advice());
    ///     advice.unwrap_or_else(|| "see the server's words".to_owned())
    /// }
    /// # assert_eq!(report(&Error::Stopped), "see the server's words");
    /// ```
    pub fn advice(&self) -> Option<String> {
        advice::of_request((&self.method, &self.path), &self.status, self.credentials.as_deref())
    }

    /// Whether the object itself was not found: the answer then names it. Any other 404 means that the server
    /// does not know the path: it does not serve this kind (yet), or the path lacks a namespace or has one
    /// too many.
    pub fn is_object_not_found(&self) -> bool {
        let names_object =
            |status: &Status| status.details.as_ref().is_some_and(|known| !known.name.is_empty());
        self.status.is_not_found() && names_object(&self.status)
    }
}

fn reason_of(code: u16) -> &'static str {
    match code {
        400 => reason::BAD_REQUEST,
        401 => reason::UNAUTHORIZED,
        403 => reason::FORBIDDEN,
        404 => reason::NOT_FOUND,
        405 => reason::METHOD_NOT_ALLOWED,
        406 => reason::NOT_ACCEPTABLE,
        409 => reason::CONFLICT,
        410 => reason::GONE,
        413 => reason::REQUEST_ENTITY_TOO_LARGE,
        415 => reason::UNSUPPORTED_MEDIA_TYPE,
        422 => reason::INVALID,
        429 => reason::TOO_MANY_REQUESTS,
        500 => reason::INTERNAL_ERROR,
        503 => reason::SERVICE_UNAVAILABLE,
        504 => reason::TIMEOUT,
        _ => reason::UNKNOWN,
    }
}

impl Deref for Refused {
    type Target = Status;

    fn deref(&self) -> &Status {
        &self.status
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { code, message, reason, .. } = &self.status;
        write!(f, "the server answered {code} to {} {}: ", self.method, self.path)?;
        match (message.as_str(), reason.as_str()) {
            ("", "") => f.write_str("no reason is given"),
            ("", reason) => f.write_str(reason),
            (message, _) => f.write_str(message),
        }?;
        self.advice().iter().try_for_each(|advice| write!(f, "; {advice}"))?;
        self.audit_id.iter().try_for_each(|id| write!(f, " (Audit-ID {id})"))
    }
}

informer_core::debug_as!(
    Refused,
    self,
    method = self.method,
    path = self.path,
    status = self.status,
    audit_id = self.audit_id
);
