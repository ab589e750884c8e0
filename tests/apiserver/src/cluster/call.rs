//! One call of the core: which object it is about, and how.
//!
//! Answers: what does a request ask of the store? Nothing is decided here.
use std::sync::Arc;

use super::kind::Kind;
use super::options::{self, Query};
use super::status::{ApiError, Cause, Named};
use crate::access::user::User;

/// The manager of the server's own writes.
pub(crate) const SERVER: &str = "kube-apiserver";
/// Which object a request is about, and how.
#[derive(Debug, Clone)]
pub(crate) struct Call<'a> {
    pub(crate) kind: &'a Arc<Kind>,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// Whether the status subresource is meant.
    pub(crate) status: bool,
    /// Run everything but the commit.
    pub(crate) dry_run: bool,
    /// How unknown fields in the result of a patch are handled.
    pub(crate) validation: Validation,
    /// Seconds since 1970.
    pub(crate) now: i64,
    /// The manager of the fields that this call sets.
    pub(crate) manager: &'a str,
    /// The endpoint below the object that is called; empty for the object itself.
    pub(crate) subresource: &'a str,
    /// The user whose rights limit what the call may grant; none if rights are not checked.
    pub(crate) user: Option<&'a User>,
}

/// The manager of writes through the server's own handle.
const LIBRARY: &str = "informer-apiserver";

impl<'a> Call<'a> {
    /// A call that concerns a whole object, and commits.
    pub(crate) fn plain(kind: &'a Arc<Kind>, namespace: &'a str, name: &'a str, now: i64) -> Self {
        let (status, dry_run, validation) = (false, false, Validation::Ignore);
        Self {
            kind,
            namespace,
            name,
            status,
            dry_run,
            validation,
            now,
            manager: LIBRARY,
            subresource: "",
            user: None,
        }
    }
}

/// Which language a patch is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
}

/// How the client wants unknown and duplicate fields to be handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Validation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl Validation {
    /// Reads the query of a write; `options` names the kind of its options, for example `CreateOptions`.
    ///
    /// # Errors
    /// 422 for a value that is none of the three.
    pub(crate) fn parse(query: &Query, options: &str) -> Result<Self, ApiError> {
        match options::value(query, "fieldValidation") {
            "" | "Warn" => Ok(Self::Warn),
            "Ignore" => Ok(Self::Ignore),
            "Strict" => Ok(Self::Strict),
            other => {
                let (value, known) = (format!("{other:?}"), ["", "Ignore", "Strict", "Warn"]);
                let cause = Cause::unsupported("fieldValidation", value, &known);
                Err(ApiError::invalid(Named { group: "meta.k8s.io", kind: options, name: "" }, &[cause]))
            }
        }
    }

    pub(super) fn judge(self, found: Vec<String>) -> Result<Vec<String>, String> {
        match self {
            Self::Ignore => Ok(Vec::new()),
            Self::Warn => Ok(found),
            Self::Strict if found.is_empty() => Ok(found),
            Self::Strict => Err(format!("strict decoding error: {}", found.join(", "))),
        }
    }
}
