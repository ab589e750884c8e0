//! Lines for scripts: each is one JSON document. Its members are promised in the README: added, never renamed. Control characters
//! have JSON escapes.

use serde::Serialize;

use super::{KindStatus, changes, hints, policy_name, queue_order_name, state_name, worst_source};
use crate::describe::{Describe, Values};
use crate::lines::time;
use crate::run::Report;
use actix_informer::object::{Object, Uid};
use actix_informer::printable::printable_json;
use actix_informer::subscription::Notify;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    event: &'static str,
    cause: &'static str,
    #[serde(flatten)]
    subject: Subject<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<bool>,
    /// Of a deleted object: as it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    outline: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<String>>,
    time: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Named<'a> {
    Status(Status<'a>),
    Object(Cached<'a>),
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
struct Cached<'a> {
    #[serde(flatten)]
    subject: Subject<'a>,
    outline: String,
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
    /// The worst of several.
    source: Option<&'a str>,
    attempts: u32,
    next_try_seconds: Option<f64>,
    /// Of the most silent source.
    age_seconds: Option<f64>,
    /// How long it is out of date.
    stale_seconds: Option<f64>,
    hints: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes_per_second: Option<f64>,
    time: String,
}

pub(super) fn event<S: Describe>(kind: (&str, Values), notify: &Notify<S>) -> String {
    event_at(time(), kind, notify)
}

fn event_at<S: Describe>(time: String, (kind, values): (&str, Values), notify: &Notify<S>) -> String {
    let (event, exact, outline, changes) = match notify {
        Notify::Added { object, .. } => ("Added", None, Some(object.outline()), None),
        Notify::Updated { old, object, .. } => ("Updated", None, None, Some(changes(old, object, values))),
        Notify::Deleted { last, exact, .. } => ("Deleted", Some(*exact), Some(last.outline()), None),
    };
    let cause = notify.cause().as_str();
    text(&Event { event, cause, subject: subject(kind, notify.subject()), exact, outline, changes, time })
}

pub(super) fn object<S: Describe>(kind: &str, object: &Object<S>) -> String {
    text(&Named::Object(Cached { subject: subject(kind, object), outline: object.outline() }))
}

pub(super) fn status(kind: &str, current: &KindStatus, rate: Option<f64>) -> String {
    let status = &current.informer;
    let (state, now) = (status.state(), current.now);
    let error = status.failed.as_deref().map(str::to_owned);
    let document = Status {
        kind,
        state: state_name(&state),
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
        source: worst_source(status),
        attempts: state.attempts(),
        next_try_seconds: state.next_try().map(|until| until.saturating_sub(now).as_secs_f64()),
        age_seconds: status.age(now).map(|age| age.as_secs_f64()),
        stale_seconds: status.stale(now).map(|stale| stale.lasts.as_secs_f64()),
        hints: hints(status),
        changes_per_second: rate,
        time: time(),
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
    use actix_informer::object::{Meta, ObjectKey, ResourceVersion, SourceId};
    use actix_informer::subscription::Cause;

    /// An object that is this word.
    struct Word(&'static str);

    impl Describe for Word {
        fn outline(&self) -> String {
            self.0.to_owned()
        }

        fn changes(&self, old: &Self, values: Values) -> Vec<String> {
            match values {
                Values::Shown => vec![format!("{} is {}", old.0, self.0)],
                Values::Hidden => vec!["another word".to_owned()],
            }
        }
    }

    fn object_of(key: ObjectKey, word: &'static str) -> Object<Word> {
        let version = ResourceVersion::from_number(7).unwrap();
        Object::new(Meta::new(key, version, SourceId::default()).uid(Uid::new("u-1")), Word(word))
    }

    fn line(kind: &str, values: Values, notify: &Notify<Word>) -> String {
        event_at("12:00".to_owned(), (kind, values), notify)
    }

    #[test]
    fn a_deletion_has_the_documented_members_in_the_documented_order() {
        let last = object_of(ObjectKey::namespaced("web", "a"), "old");
        let line = line("Pod", Values::Shown, &Notify::Deleted { last, exact: false, cause: Cause::Relist });
        assert_eq!(
            line,
            r#"{"event":"Deleted","cause":"Relist","kind":"Pod","namespace":"web","name":"a","uid":"u-1","resourceVersion":"7","exact":false,"outline":"old","time":"12:00"}"#
        );
    }

    #[test]
    fn an_addition_has_no_member_exact_and_a_cluster_scoped_object_has_no_namespace() {
        let object = object_of(ObjectKey::cluster("node-1"), "new");
        let line = line("Node", Values::Shown, &Notify::Added { object, cause: Cause::InitialList });
        assert_eq!(
            line,
            r#"{"event":"Added","cause":"InitialList","kind":"Node","namespace":null,"name":"node-1","uid":"u-1","resourceVersion":"7","outline":"new","time":"12:00"}"#
        );
    }

    #[test]
    fn client_informerd_an_update_says_what_has_changed_as_text_does_and_hides_what_is_secret() {
        let of = |word| object_of(ObjectKey::cluster("a"), word);
        let changed = Notify::Updated { old: of("x"), object: of("y"), cause: Cause::Watch };
        let members = |values| {
            let document: serde_json::Value = serde_json::from_str(&line("Word", values, &changed)).unwrap();
            (document["changes"].clone(), document.get("outline").cloned())
        };
        assert_eq!(members(Values::Shown), (serde_json::json!(["x is y"]), None));
        assert_eq!(members(Values::Hidden), (serde_json::json!(["another word"]), None));
        let same = of("x");
        let resync = Notify::Updated { old: same.clone(), object: same, cause: Cause::Resync };
        assert!(line("Word", Values::Shown, &resync).contains(r#""changes":[]"#));
    }
}
