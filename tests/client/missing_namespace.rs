//! A namespace that is followed and does not exist (REF-64), on simulated time.
//!
//! Answers "is a mistyped namespace said, and does it disturb anything?".

use std::sync::Arc;
use std::time::Duration;

use actix_informer::prelude::*;
use actix_informer::testing::Server;
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);

/// How often namespaces were asked for.
fn asked(server: &ApiServer) -> usize {
    server.requests().iter().filter(|request| request.resource == "namespaces").count()
}

async fn synced(client: &Client, runtime: &Runtime, namespace: &str) -> Informer<ConfigMap> {
    let maps =
        client.resource::<ConfigMap>().namespace(namespace).informer(runtime).unwrap().start().unwrap();
    maps.synced_within(MINUTE).await.unwrap();
    tokio::time::sleep(MINUTE).await;
    maps
}

// REF-64: given a namespace that does not exist, when its first list is empty, then it is asked for once, and
// the status and the log say so until something comes; it is no error, also if the question is forbidden.
#[test]
fn ref_64_a_namespace_that_does_not_exist_stands_in_the_status_until_something_comes_of_it() {
    Runtime::simulated(7).run(|runtime| async move {
        let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await.unwrap();
        let client = Client::in_process(&runtime, server.service());
        let empty = synced(&client, &runtime, "default").await;
        assert_eq!((empty.status().sources[0].hint.clone(), asked(&server)), (None, 1), "it exists");

        let mistyped = synced(&client, &runtime, "shpo").await;
        let text = mistyped.status().to_string();
        assert!(text.ends_with("streaming; 0 objects; namespace \"shpo\" does not exist"), "{text}");
        assert!(mistyped.last_error().is_none() && asked(&server) == 2, "it is no error, and asked for once");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shpo"}});
        server.create(namespace).unwrap();
        let metadata = json!({"name": "one", "namespace": "shpo"});
        server.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap();
        mistyped.wait_until(|status| status.objects == 1).await.unwrap();
        tokio::time::sleep(MINUTE).await;
        assert_eq!(mistyped.status().sources[0].hint, None);

        server.faults().deny("get", "namespaces");
        let unknown = synced(&client, &runtime, "hsop").await;
        assert!(unknown.status().sources[0].hint.is_none() && unknown.last_error().is_none());
        let all = client.resource::<ConfigMap>().informer(&runtime).unwrap().start().unwrap();
        all.synced_within(MINUTE).await.unwrap();
        assert_eq!(asked(&server), 3, "all namespaces together are not asked for");
    });
}

#[test]
fn newcomer_12_a_wait_for_the_first_lists_returns_which_namespaces_do_not_exist() {
    Runtime::simulated(7).run(|runtime| async move {
        let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await.unwrap();
        let client = Client::in_process(&runtime, server.service());
        // Whether a namespace exists is answered later than the list is empty.
        server.faults().delay_requests(Some(Duration::from_millis(200)));
        let start = |namespaces: &[&str]| {
            let maps = client.resource::<ConfigMap>().namespaces(namespaces.iter().copied());
            maps.informer(&runtime).unwrap().start().unwrap()
        };
        let fine = start(&["default"]);
        assert!(fine.synced().await.unwrap().hints.is_empty());
        let mistyped = start(&["default", "shpo"]);
        let hints = ["namespace \"shpo\" does not exist".into()];
        assert_eq!(mistyped.synced().await.unwrap().hints, hints);
        assert_eq!(mistyped.synced_within(MINUTE).await.unwrap().hints, hints, "also later");
        let name = mistyped.name();
        let all = runtime.synced_within(MINUTE).await.unwrap().hints;
        assert_eq!(all, [format!("informer {name}: namespace \"shpo\" does not exist").into()]);

        server.faults().deny("get", "namespaces");
        assert!(start(&["hsop"]).synced().await.unwrap().hints.is_empty(), "nobody may ask");
    });
}

#[test]
fn newcomer_12_a_wait_for_the_first_lists_goes_on_when_nobody_answers_why_one_is_empty() {
    let server = Server::<String>::new();
    Runtime::simulated(7).run(|runtime| async move {
        let silent = Informer::builder(&runtime, "texts").source(move || Silent(server.clone()));
        let silent = silent.start().unwrap();
        let before = runtime.now();
        assert!(silent.synced_within(MINUTE).await.unwrap().hints.is_empty());
        let waited = runtime.now() - before;
        assert!(waited < 4 * MINUTE / 60, "two seconds, and the start: {waited:?}");
        assert!(silent.synced_within(Duration::ZERO).await.is_ok(), "it is synced");
    });
}

/// A source that does not answer why there is nothing.
struct Silent(Server<String>);

impl ListWatch<String> for Silent {
    fn list(&self, request: ListRequest, known: KnownObjects<String>) -> ListStream<String> {
        self.0.list(request, known)
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<String>) -> WatchStream<String> {
        self.0.watch(request, known)
    }

    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        self.0.get(key)
    }

    fn explain_nothing(&self) -> LocalBoxFuture<'static, Option<Arc<str>>> {
        std::future::pending().boxed_local()
    }
}
