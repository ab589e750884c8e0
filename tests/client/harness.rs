//! How the tests ask: a source on a `LocalSet`, and its answer as plain values.
//!
//! Answers "what did the source deliver?" in a form that can be compared. It also checks what must hold for every
//! answer: a list ends with its end, a watch begins with an empty batch, and nothing comes after an error.

use std::future::Future;
use std::time::Duration;

use actix_informer::client::{Client, Config, ResourceSource};
use actix_informer::representation::Representation;
use actix_informer::unstable::{self, KubeListWatch};
use futures_util::StreamExt;
use informer_actors::list_watch::{KnownObjects, ListWatch};
use informer_actors::runtime::DecodePool;
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::request::{AskedVersion, ListRequest, WatchRequest};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::task::LocalSet;

pub(crate) async fn local<T>(scenario: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(scenario).await
}

pub(crate) fn config_maps(url: &str) -> ResourceSource<ConfigMap> {
    Client::new(Config::new(url).unwrap()).unwrap().resource()
}

pub(crate) fn made<K, R: Representation>(source: ResourceSource<K, R>) -> KubeListWatch<R> {
    unstable::list_watches(source, DecodePool::inline()).unwrap()()
}

pub(crate) fn latest() -> ListRequest {
    ListRequest { version: AskedVersion::Latest, limit: None, token: None, name: None }
}

pub(crate) fn from(version: &str) -> WatchRequest {
    WatchRequest {
        version: AskedVersion::From(version.parse().unwrap()),
        initial_events: false,
        timeout: Duration::from_secs(300),
    }
}

/// A page as texts: `name@version`, `!name@version: error` for what is undecodable, `?error` for an item
/// without a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) items: Vec<String>,
    pub(crate) version: String,
    pub(crate) token: Option<String>,
}

/// Collects a list. Checks that what came before an error does not contain an end.
pub(crate) async fn list<S: 'static>(
    source: &impl ListWatch<S>,
    request: ListRequest,
) -> Result<Page, ListWatchError> {
    list_knowing(source, request, KnownObjects::nothing()).await
}

pub(crate) async fn list_knowing<S: 'static>(
    source: &impl ListWatch<S>,
    request: ListRequest,
    known: KnownObjects<S>,
) -> Result<Page, ListWatchError> {
    let mut parts = source.list(request, known);
    let (mut items, mut end) = (Vec::new(), None);
    while let Some(part) = parts.next().await {
        assert!(end.is_none(), "something after the end");
        match part? {
            ListPart::Objects(objects) => {
                items.extend(objects.iter().map(|object| format!("{}@{}", object.key(), object.version())));
            }
            ListPart::Undecodable(undecodable) => {
                items.push(format!("!{}@{}: {}", undecodable.key, undecodable.version, undecodable.error))
            }
            ListPart::Unreadable(why) => items.push(format!("?{why}")),
            ListPart::End { version, token } => end = Some((version.to_string(), token)),
            other => panic!("unexpected {}", std::any::type_name_of_val(&other)),
        }
    }
    let (version, token) = end.expect("a list without an end must be an error");
    Ok(Page { items, version, token })
}

pub(crate) fn text<S>(part: &WatchPart<S>) -> String {
    match part {
        WatchPart::Applied(object) => format!("+{}@{}", object.key(), object.version()),
        WatchPart::Deleted(object) => format!("-{}@{}", object.key(), object.version()),
        WatchPart::DeletedUndecodable(undecodable) => {
            format!("-!{}@{}: {}", undecodable.key, undecodable.version, undecodable.error)
        }
        WatchPart::Undecodable(undecodable) => {
            format!("!{}@{}: {}", undecodable.key, undecodable.version, undecodable.error)
        }
        WatchPart::Bookmark { version, initial_events_end: false } => format!("={version}"),
        WatchPart::Bookmark { version, initial_events_end: true } => format!("=={version}"),
        _ => "unexpected".to_owned(),
    }
}

/// Everything a watch delivers until it ends, and how it ends. Checks that its first batch is the empty one.
pub(crate) async fn watch<S: 'static>(
    source: &impl ListWatch<S>,
    request: WatchRequest,
) -> (Vec<String>, Result<(), ListWatchError>) {
    let mut batches = source.watch(request, KnownObjects::nothing());
    let mut received_so_far = Vec::new();
    let mut accepted = false;
    while let Some(batch) = batches.next().await {
        match batch {
            Ok(parts) if !accepted => {
                assert!(parts.is_empty(), "the first batch says only that the request was accepted");
                accepted = true;
            }
            Ok(parts) => received_so_far.extend(parts.iter().map(text)),
            Err(error) => {
                assert!(batches.next().await.is_none(), "nothing comes after an error");
                return (received_so_far, Err(error));
            }
        }
    }
    (received_so_far, Ok(()))
}

pub(crate) fn config_map(name: &str, version: u64) -> String {
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"a","uid":"u-{name}","resourceVersion":"{version}"}},"data":{{"k":"é\n]}}"}}}}"#
    )
}

pub(crate) fn list_of(items: &[String], version: &str) -> String {
    format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":[{}]}}"#,
        items.join(",")
    )
}

pub(crate) fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}
