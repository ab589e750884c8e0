//! Every error text that a handle gives, as people read it.

use std::sync::Arc;
use std::time::Duration;

use informer_core::index::UnknownIndex;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ResourceVersion, SourceId};
use informer_core::reflector::SourceState;

use super::{NotSynced, WaitError};
use crate::informer::{AddIndexError, StartError};
use crate::lister::{NotReached, WaitForError};
use crate::pipeline::subscription_state::EndReason;
use crate::runtime::{StillRunning, Stuck, StuckKind};
use crate::subscription::SubscribeError;

fn pods() -> Arc<str> {
    "pods".into()
}

fn stuck(kind: StuckKind) -> Stuck {
    let (arbiter, actor) = ("informer-calls".into(), Some("pods/audit".into()));
    Stuck { kind, arbiter, actor, since: Duration::ZERO }
}

fn not_synced(state: SourceState) -> NotSynced {
    NotSynced {
        informer: pods(),
        subscription: None,
        waited: Duration::from_secs(3),
        informer_synced: false,
        source: SourceId::new("shop"),
        next_try_in: state.next_try(),
        state,
        last_error: None,
        catching_up: None,
        stuck: None,
    }
}

fn deadlines() -> Vec<(NotSynced, &'static str)> {
    let denied = |seconds| SourceState::Denied {
        attempts: 1,
        error: ListWatchError::Denied("no rule".into()),
        until: Duration::from_secs(seconds),
    };
    let last_error = Some(ListWatchError::Timeout("pods: no answer came within 30s".into()));
    vec![
        (
            NotSynced {
                last_error: Some(ListWatchError::Denied("no rule".into())),
                ..not_synced(denied(42))
            },
            r#"informer "pods" is not synced after 3s: source "shop": denied: no rule; it is asked again in 42s"#,
        ),
        (
            not_synced(denied(0)),
            r#"informer "pods" is not synced after 3s: source "shop": denied: no rule; it is being asked again"#,
        ),
        (
            NotSynced { last_error, ..not_synced(SourceState::Listing { received: 250 }) },
            "informer \"pods\" is not synced after 3s: source \"shop\": listing, 250 objects received; its last error: \
             timed out: pods: no answer came within 30s",
        ),
        (
            NotSynced { subscription: Some("audit".into()), ..not_synced(SourceState::Starting) },
            "subscription \"audit\" of informer \"pods\" is not synced after 3s: source \"shop\": no request was sent yet",
        ),
        (
            NotSynced {
                subscription: Some("audit".into()),
                informer_synced: true,
                stuck: Some(stuck(StuckKind::Blocked)),
                ..not_synced(SourceState::Streaming)
            },
            "subscription \"audit\" of informer \"pods\" is not synced after 3s: the informer is synced, its subscriber \
             has not handled all initial events; pods/audit blocks the thread informer-calls",
        ),
        (
            NotSynced { catching_up: Some("it catches up".to_owned()), ..not_synced(SourceState::Streaming) },
            "informer \"pods\" is not synced after 3s: source \"shop\": streaming; it catches up",
        ),
        (
            NotSynced { stuck: Some(stuck(StuckKind::NoProgress)), ..not_synced(SourceState::Streaming) },
            "informer \"pods\" is not synced after 3s: source \"shop\": streaming; pods/audit makes no progress on the \
             thread informer-calls",
        ),
    ]
}

fn waits() -> Vec<(WaitError, &'static str)> {
    let stopped =
        |reason: Option<&str>| WaitError::Stopped { informer: pods(), reason: reason.map(Into::into) };
    vec![
        (stopped(None), r#"informer "pods" has stopped"#),
        (
            stopped(Some("its runtime was shut down")),
            r#"informer "pods" has stopped: its runtime was shut down"#,
        ),
        (
            WaitError::Ended {
                informer: pods(),
                subscription: "audit".into(),
                reason: EndReason::SubscriberGone,
            },
            r#"subscription "audit" of informer "pods" has ended: the subscribed actor is gone"#,
        ),
        (
            WaitError::SourceGivenUp {
                informer: pods(),
                lost: "shop".into(),
                reason: "panicked: x (after 5 restarts within 600s)".into(),
            },
            "informer \"pods\" cannot sync: its source \"shop\" is given up: panicked: x (after 5 restarts within 600s)",
        ),
    ]
}

fn versions() -> Vec<(WaitForError, &'static str)> {
    let version = |number| ResourceVersion::from_number(number).expect("not zero");
    let sources: Arc<[SourceId]> = ["default", "shop"].map(SourceId::new).into();
    let not_reached = |reached, stuck| {
        WaitForError::Deadline(Box::new(NotReached {
            informer: pods(),
            source: SourceId::new("shop"),
            waited: Duration::from_secs(5),
            wanted: version(17),
            reached,
            stuck,
        }))
    };
    vec![
        (
            not_reached(Some(version(15)), None),
            "source \"shop\" of informer \"pods\" has not reached version 17 after 5s: it has reached 15",
        ),
        (
            not_reached(None, Some(stuck(StuckKind::Blocked))),
            "source \"shop\" of informer \"pods\" has not reached version 17 after 5s: it has not listed yet; \
             pods/audit blocks the thread informer-calls",
        ),
        (
            WaitForError::Stopped { informer: pods(), wanted: version(17) },
            r#"informer "pods" stopped before it reached version 17"#,
        ),
        (
            WaitForError::UnknownSource { informer: pods(), name: "shpo".into() },
            r#"informer "pods" has no source named "shpo""#,
        ),
        (
            WaitForError::SeveralSources { informer: pods(), sources },
            r#"informer "pods" has several sources (default, shop): use wait_for_write or wait_for_source"#,
        ),
    ]
}

fn starts() -> Vec<(StartError, &'static str)> {
    vec![
        (StartError::NoName, "an informer's name must not be empty"),
        (StartError::NoSource { informer: pods() }, r#"informer "pods" has no source"#),
        (
            StartError::SourceTwice { informer: pods(), name: "shop".into() },
            r#"two sources of informer "pods" are named "shop""#,
        ),
        (
            StartError::IndexTwice { informer: pods(), name: "node".into() },
            r#"two indices of informer "pods" are named "node""#,
        ),
        (
            StartError::ZeroBound { informer: pods(), bound: "parts" },
            r#"the queue bound "parts" of informer "pods" must be at least 1"#,
        ),
        (
            StartError::RuntimeStopped { informer: pods() },
            r#"the runtime was shut down: informer "pods" cannot start on it"#,
        ),
    ]
}

fn others() -> Vec<(String, &'static str)> {
    let blocked = StillRunning { stuck: vec![stuck(StuckKind::Blocked)], decoding: false, freeing: false };
    vec![
        (AddIndexError::Exists("node".to_owned()).to_string(), r#"an index named "node" exists"#),
        (AddIndexError::Stopped { informer: pods() }.to_string(), r#"informer "pods" has stopped"#),
        (SubscribeError::Stopped { informer: pods() }.to_string(), r#"informer "pods" has stopped"#),
        (UnknownIndex("node".to_owned()).to_string(), r#"no index is named "node""#),
        (
            blocked.to_string(),
            "the runtime has not ended at the limit: pods/audit blocks the thread informer-calls",
        ),
        (
            StillRunning { stuck: Vec::new(), decoding: true, freeing: false }.to_string(),
            "the runtime has not ended at the limit: an object is still being decoded",
        ),
        (
            StillRunning { stuck: Vec::new(), decoding: false, freeing: true }.to_string(),
            "the runtime has not ended at the limit: an object is still being dropped",
        ),
    ]
}

#[test]
fn inf_57_every_error_of_a_handle_names_who_and_why_in_plain_words() {
    let boxed = |(why, text)| (WaitError::Deadline(Box::new(why)).to_string(), text);
    let texts = deadlines().into_iter().map(boxed);
    let texts = texts.chain(waits().into_iter().map(|(error, text)| (error.to_string(), text)));
    let texts = texts.chain(versions().into_iter().map(|(error, text)| (error.to_string(), text)));
    let texts = texts.chain(starts().into_iter().map(|(error, text)| (error.to_string(), text)));
    for (error, text) in texts.chain(others()) {
        assert_eq!(error, text);
    }
}
