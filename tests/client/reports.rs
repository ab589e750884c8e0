//! Public bug reports about other clients, asked of this one: odd servers that work.
//!
//! Answers "does that bite us, too?" Rows of the same list that are about informers are in `bad_watches.rs`, about stale
//! discovery in `discovery.rs`, about elections and finalizers in the contract tests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_informer::client::api::{Api, AttachParams, ListParams, LogParams, WatchEvent, WatchParams};
use actix_informer::client::{Client, Config};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_core::DynamicObject;
use kube_core::discovery::ApiResource;
use kube_core::gvk::GroupVersionKind;

use crate::harness::*;
use crate::raw_server::*;

fn client(url: String) -> Client {
    Client::new(Config::new(url).unwrap()).unwrap()
}

#[tokio::test]
async fn bugs_client_commands_ports_and_logs_are_asked_for_below_the_path_of_the_server() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heads);
    let server = RawServer::start(move |mut connection: Connection| {
        let kept = Arc::clone(&kept);
        async move {
            let head = connection.request().await.unwrap();
            kept.lock().unwrap().push(head.lines().next().unwrap().to_owned());
            let refused =
                r#"{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}"#;
            connection.write(answer("403 Forbidden", "content-type: application/json\r\n", refused)).await;
        }
    })
    .await;
    for base in ["/k8s/clusters/c-1", "/k8s/clusters/c-1/"] {
        heads.lock().unwrap().clear();
        let pods: Api<Pod> = client(server.url() + base).api::<Pod>().namespaced("a");
        let quiet = AttachParams::default();
        assert!(pods.exec("b", ["ls"], &quiet).await.unwrap_err().is_forbidden());
        assert!(pods.attach("b", &quiet).await.unwrap_err().is_forbidden());
        assert!(pods.port_forward("b", &[80]).await.unwrap_err().is_forbidden());
        assert!(pods.log_stream("b", &LogParams::default()).await.is_err_and(|error| error.is_forbidden()));
        let asked = heads.lock().unwrap().clone();
        assert_eq!(asked.len(), 4);
        for (line, name) in asked.iter().zip(["exec", "attach", "portforward", "log"]) {
            let path = format!("GET /k8s/clusters/c-1/api/v1/namespaces/a/pods/b/{name}");
            assert!(line.starts_with(&path), "{line}");
        }
    }
}

#[tokio::test]
async fn bugs_client_a_list_of_metrics_without_a_version_is_read_and_cannot_be_followed() {
    let item = r#"{"metadata":{"name":"p","namespace":"a","creationTimestamp":null},"timestamp":"2026-01-02T03:04:05Z","containers":[]}"#;
    let text = format!(
        r#"{{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{{}},"items":[{item}]}}"#
    );
    let server = RawServer::start(move |mut connection: Connection| {
        let text = text.clone();
        async move {
            while connection.request().await.is_some() {
                connection.write(answer("200 OK", "content-type: application/json\r\n", &text)).await;
            }
        }
    })
    .await;
    let kind = GroupVersionKind::gvk("metrics.k8s.io", "v1beta1", "PodMetrics");
    let kind = ApiResource::from_gvk_with_plural(&kind, "pods");
    let client = client(server.url());
    let metrics: Api<DynamicObject> = client.dynamic_api(&kind).namespaced("a");
    let found = metrics.list(&ListParams::default()).await.unwrap();
    assert_eq!(found.items[0].metadata.name.as_deref(), Some("p"));
    assert_eq!(metrics.list_all(&ListParams::default()).await.unwrap().items.len(), 1);
    let source = client.dynamic(&kind);
    let error = local(async { list(&made(source), latest()).await.map(|_| ()) }).await.unwrap_err();
    assert!(error.to_string().contains("the PodMetricsList has no resource version"), "{error}");
    assert!(error.to_string().contains("cannot be watched"), "{error}");
}

#[tokio::test]
async fn bugs_client_a_watch_shows_an_odd_line_and_goes_on_behind_the_last_one_with_a_version() {
    let good = event("ADDED", &config_map("good", 2));
    let mut bytes = event("ADDED", &config_map("bytes", 3)).into_bytes();
    let at = bytes.windows(5).position(|five| five == b"bytes").unwrap();
    bytes[at] = 0xff;
    let no_version = event("ADDED", &config_map("none", 3).replace(r#","resourceVersion":"3""#, ""));
    let status = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":500,\"message\":\"odd\"}\n";
    for (what, line, shown) in [
        ("no version", no_version.into_bytes(), "none"),
        ("no text", bytes, "!"),
        ("a bare Status", status.as_bytes().to_vec(), "!"),
    ] {
        let (first, after) = (good.clone(), event("ADDED", &config_map("after", 4)));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        let server = RawServer::start(move |mut connection: Connection| {
            let (line, first, after, kept) = (line.clone(), first.clone(), after.clone(), Arc::clone(&kept));
            async move {
                let head = connection.request().await.unwrap();
                kept.lock().unwrap().push(head.lines().next().unwrap().to_owned());
                let body = match connection.number {
                    0 => [first.as_bytes(), &line].concat(),
                    _ => after.into_bytes(),
                };
                let size = format!("{:x}\r\n", body.len());
                connection.write([CHUNKED.as_bytes(), size.as_bytes(), &body, b"\r\n"].concat()).await;
                if connection.number > 0 {
                    connection.gone().await;
                } else {
                    connection.write(LAST_CHUNK).await;
                    connection.close().await;
                }
            }
        })
        .await;
        let maps = client(server.url()).api::<ConfigMap>().namespaced("default");
        let mut watch = maps.watch(&WatchParams::default(), "1").unwrap();
        let mut seen = Vec::new();
        while seen.last().is_none_or(|last| last != "after") {
            let item = tokio::time::timeout(Duration::from_secs(30), watch.next()).await.expect("in time");
            seen.push(match item.expect("it goes on") {
                Ok(WatchEvent::Added(map)) => map.metadata.name.unwrap(),
                Ok(_) => "other".to_owned(),
                Err(error) => format!("!{error}"),
            });
        }
        assert_eq!(seen.first().map(String::as_str), Some("good"), "{what}: {seen:?}");
        // An object without a version is one all the same; what cannot be read is an error.
        assert!(seen.len() >= 3 && seen[1].starts_with(shown), "{what}: {seen:?}");
        assert!(
            asked.lock().unwrap()[1].contains("resourceVersion=2"),
            "{what}: {:?}",
            asked.lock().unwrap()
        );
    }
}
