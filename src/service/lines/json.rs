//! Lines for scripts: one JSON document each.
//!
//! Answers "which members does a document have?"; the README promises them. Invariants:
//! 1. A line has exactly one of: `event`, `status`, `object`, `summary`.
//! 2. Members are added, never renamed.
//! 3. Control characters of every kind are escaped as JSON does it: a terminal shows them, a reader gets the very text.

use serde::Serialize;

use super::{Doing, discipline_name, policy_name, state_name};
use crate::core::meta::Object;
use crate::messages::Notify;
use crate::service::printable::printable_json;
use crate::service::run::Report;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    event: &'static str,
    cause: &'static str,
    #[serde(flatten)]
    subject: Subject<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<bool>,
}

/// Everything else, under the name of what it is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Named<'a> {
    Status(Status<'a>),
    Object(Subject<'a>),
    Summary(&'a Report),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Subject<'a> {
    kind: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
    uid: Option<&'a str>,
    resource_version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    kind: &'a str,
    state: &'static str,
    objects: usize,
    resource_version: Option<&'a str>,
    restarts: u64,
    relists: u64,
    last_error: Option<String>,
    set_aside: usize,
    discipline: &'static str,
    policy: &'static str,
    waiting: usize,
    coalesced: u64,
    dropped: u64,
}

pub(super) fn event<S>(kind: &str, notify: &Notify<S>) -> String {
    let (event, exact) = match notify {
        Notify::Added { .. } => ("Added", None),
        Notify::Updated { .. } => ("Updated", None),
        Notify::Deleted { exact, .. } => ("Deleted", Some(*exact)),
    };
    let cause = notify.cause().as_str();
    text(&Event { event, cause, subject: subject(kind, notify.subject()), exact })
}

pub(super) fn object<S>(kind: &str, object: &Object<S>) -> String {
    text(&Named::Object(subject(kind, object)))
}

pub(super) fn status(kind: &str, doing: &Doing) -> String {
    let status = &doing.status;
    let error = status.failed.as_deref().map(str::to_owned);
    let document = Status {
        kind,
        state: state_name(&status.state()),
        objects: status.objects,
        resource_version: doing.version.as_deref(),
        restarts: status.restarts,
        relists: status.relists(),
        last_error: error.or_else(|| status.last_error().map(ToString::to_string)),
        set_aside: status.set_aside,
        discipline: discipline_name(status.discipline),
        policy: policy_name(doing.subscription.policy),
        waiting: doing.subscription.depth,
        coalesced: doing.subscription.coalesced,
        dropped: doing.subscription.dropped,
    };
    text(&Named::Status(document))
}

pub(super) fn summary(report: &Report) -> String {
    text(&Named::Summary(report))
}

fn subject<'a, S>(kind: &'a str, object: &'a Object<S>) -> Subject<'a> {
    let key = object.key();
    Subject {
        kind,
        namespace: key.namespace(),
        name: key.name(),
        uid: object.uid().map(crate::core::meta::Uid::as_str),
        resource_version: object.version().to_string(),
    }
}

fn text(document: &impl Serialize) -> String {
    printable_json(
        serde_json::to_string(document).expect("texts, numbers and booleans under fixed names are JSON"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::delta::Cause;
    use crate::core::meta::{Meta, ObjectKey, ResourceVersion, SourceId, Uid};

    fn object_of(key: ObjectKey) -> Object<()> {
        let version = ResourceVersion::from_number(7).unwrap();
        Object::new(
            Meta { key, uid: Uid::new("u-1"), version, source: SourceId::default(), wire_bytes: 0 },
            (),
        )
    }

    #[test]
    fn a_deletion_has_the_promised_members_in_the_promised_order() {
        let last = object_of(ObjectKey::namespaced("web", "a"));
        let line = event("Pod", &Notify::Deleted { last, exact: false, cause: Cause::Relist });
        assert_eq!(
            line,
            r#"{"event":"Deleted","cause":"Relist","kind":"Pod","namespace":"web","name":"a","uid":"u-1","resourceVersion":"7","exact":false}"#
        );
    }

    #[test]
    fn an_addition_has_no_exact_and_a_cluster_scoped_object_no_namespace() {
        let object = object_of(ObjectKey::cluster("node-1"));
        let line = event("Node", &Notify::Added { object, cause: Cause::InitialList });
        assert_eq!(
            line,
            r#"{"event":"Added","cause":"InitialList","kind":"Node","namespace":null,"name":"node-1","uid":"u-1","resourceVersion":"7"}"#
        );
    }
}
