//! Formats lines for scripts: each line is one JSON document.
//!
//! Answers "which members does a document have?"; the README promises them. Invariants:
//! 1. A line has exactly one of: `event`, `status`, `object`, `summary`.
//! 2. Members are added, never renamed.
//! 3. All control characters have JSON escapes: a terminal shows the escapes, and a JSON parser gets the original text.

use serde::Serialize;

use super::{KindStatus, policy_name, queue_order_name, state_name};
use crate::printable::printable_json;
use crate::service::run::Report;
use informer_actors::subscription::Notify;
use informer_core::meta::{Object, Uid};

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

/// Every other document: one member, named for its content.
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
    uid: Option<String>,
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
    undecodable: usize,
    queue_order: &'static str,
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

pub(super) fn status(kind: &str, current: &KindStatus) -> String {
    let status = &current.informer;
    let error = status.failed.as_deref().map(str::to_owned);
    let document = Status {
        kind,
        state: state_name(&status.state()),
        objects: status.objects,
        resource_version: current.version.as_deref(),
        restarts: status.restarts,
        relists: status.relists(),
        last_error: error.or_else(|| status.last_error().map(ToString::to_string)),
        undecodable: status.undecodable,
        queue_order: queue_order_name(status.queue_order),
        policy: policy_name(current.subscription.policy),
        waiting: current.subscription.depth,
        coalesced: current.subscription.coalesced,
        dropped: current.subscription.dropped,
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
        uid: object.object_uid().map(Uid::to_string),
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
    use informer_core::delta::Cause;
    use informer_core::meta::{Meta, ObjectKey, ResourceVersion, SourceId};

    fn object_of(key: ObjectKey) -> Object<()> {
        let version = ResourceVersion::from_number(7).unwrap();
        Object::new(Meta::new(key, version, SourceId::default()).uid(Uid::new("u-1")), ())
    }

    #[test]
    fn a_deletion_has_the_documented_members_in_the_documented_order() {
        let last = object_of(ObjectKey::namespaced("web", "a"));
        let line = event("Pod", &Notify::Deleted { last, exact: false, cause: Cause::Relist });
        assert_eq!(
            line,
            r#"{"event":"Deleted","cause":"Relist","kind":"Pod","namespace":"web","name":"a","uid":"u-1","resourceVersion":"7","exact":false}"#
        );
    }

    #[test]
    fn an_addition_has_no_member_exact_and_a_cluster_scoped_object_has_no_namespace() {
        let object = object_of(ObjectKey::cluster("node-1"));
        let line = event("Node", &Notify::Added { object, cause: Cause::InitialList });
        assert_eq!(
            line,
            r#"{"event":"Added","cause":"InitialList","kind":"Node","namespace":null,"name":"node-1","uid":"u-1","resourceVersion":"7"}"#
        );
    }
}
