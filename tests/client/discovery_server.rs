//! A server of discovery documents that a test writes, and that records what it is asked.
//!
//! Answers "which requests does discovery send, and what does it make of these answers?" Invariants:
//! 1. A path without an answer is 404.
//! 2. A document with an ETag is an aggregated one, and is answered with 304 to a request that names the ETag.
//! 3. While the gate is closed, requests are recorded and not answered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use actix_informer::client::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::raw_server::*;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What is answered to a path.
#[derive(Clone, Default)]
pub(crate) struct Document {
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) etag: Option<String>,
    /// Only a request whose Accept header has this text gets it; others get 406.
    pub(crate) accept: Option<&'static str>,
}

#[derive(Default)]
struct Script {
    documents: BTreeMap<String, Document>,
    asked: Vec<String>,
}

/// The server.
pub(crate) struct Documents {
    server: RawServer,
    script: Arc<Mutex<Script>>,
    gate: watch::Sender<bool>,
}

impl Documents {
    pub(crate) async fn start() -> Self {
        let script = Arc::new(Mutex::new(Script::default()));
        let gate = watch::Sender::new(true);
        let (shared, opened) = (Arc::clone(&script), gate.clone());
        let server =
            RawServer::start(move |connection| serve(connection, Arc::clone(&shared), opened.subscribe()))
                .await;
        Self { server, script, gate }
    }

    /// A server that knows the old form alone: pods and the group `apps`.
    pub(crate) async fn old() -> Self {
        let this = Self::start().await;
        this.set("/api", &json!({"kind": "APIVersions", "versions": ["v1"]}));
        this.set("/api/v1", &list("v1", &[("pods", "Pod")]));
        this.set("/apis", &groups(&["apps/v1"]));
        this.set("/apis/apps/v1", &list("apps/v1", &[("deployments", "Deployment")]));
        this
    }

    /// A server of aggregated discovery: pods and these resources (group, plural, kind).
    pub(crate) async fn new(resources: &[(&str, &str, &str)]) -> Self {
        let this = Self::start().await;
        this.tagged("/api", &aggregated("v2", &[("", "pods", "Pod")]), "core");
        this.serve(resources);
        this
    }

    /// Serves these resources from now on.
    pub(crate) fn serve(&self, resources: &[(&str, &str, &str)]) {
        let document = aggregated("v2", resources);
        let etag = format!("{}-{}", resources.len(), document.to_string().len());
        self.tagged("/apis", &document, &etag);
    }

    pub(crate) fn set(&self, path: &str, body: &Value) {
        self.put(path, Document { status: 200, body: body.to_string(), ..Document::default() });
    }

    pub(crate) fn tagged(&self, path: &str, body: &Value, etag: &str) {
        let etag = Some(format!("\"{etag}\""));
        self.put(path, Document { status: 200, body: body.to_string(), etag, ..Document::default() });
    }

    pub(crate) fn fail(&self, path: &str, status: u16) {
        self.put(path, Document { status, body: "no".to_owned(), ..Document::default() });
    }

    pub(crate) fn put(&self, path: &str, document: Document) {
        self.script.lock().unwrap().documents.insert(path.to_owned(), document);
    }

    /// The paths that were asked for since the last call, sorted: the two roots are asked for at once.
    pub(crate) fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut self.script.lock().unwrap().asked);
        asked.sort();
        asked
    }

    /// How many requests have come and were not taken by `asked`.
    pub(crate) fn count(&self) -> usize {
        self.script.lock().unwrap().asked.len()
    }

    pub(crate) fn close_gate(&self) {
        self.gate.send_replace(false);
    }

    pub(crate) fn open_gate(&self) {
        self.gate.send_replace(true);
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(Config::new(self.url()).unwrap()).unwrap()
    }
}

async fn serve(mut connection: Connection, script: Arc<Mutex<Script>>, mut gate: watch::Receiver<bool>) {
    while let Some(head) = connection.request().await {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (key, value) = line.split_once(": ")?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        script.lock().unwrap().asked.push(path.clone());
        gate.wait_for(|open| *open).await.unwrap();
        let found = script.lock().unwrap().documents.get(&path).cloned();
        let found = found.unwrap_or_else(|| Document { status: 404, ..Document::default() });
        let accept = header("accept").unwrap_or_default();
        let answered = match (&found.etag, found.accept) {
            (_, Some(needed)) if accept != needed => answer("406 Not Acceptable", "", ""),
            (Some(etag), _) if header("if-none-match").as_ref() == Some(etag) => {
                answer("304 Not Modified", &format!("etag: {etag}\r\n"), "")
            }
            (etag, _) => {
                let tagged = |etag: &String| format!("etag: {etag}\r\ncontent-type: {AGGREGATED}\r\n");
                let etag = etag.as_ref().map(tagged).unwrap_or_default();
                answer(&format!("{} X", found.status), &etag, &found.body)
            }
        };
        connection.write(answered).await;
    }
}

/// The aggregated form of these resources (group, plural, kind), each with its singular, in version v1.
pub(crate) fn aggregated(version: &str, resources: &[(&str, &str, &str)]) -> Value {
    let mut items: Vec<Value> = Vec::new();
    for (group, plural, kind) in resources {
        let resource = json!({
            "resource": plural, "singularResource": kind.to_lowercase(), "scope": "Namespaced",
            "responseKind": {"group": "", "version": "", "kind": kind}, "verbs": ["get", "list", "watch"],
        });
        match items.iter_mut().find(|item| item["metadata"]["name"] == **group) {
            Some(item) => item["versions"][0]["resources"].as_array_mut().unwrap().push(resource),
            None => items.push(json!({
                "metadata": {"name": group},
                "versions": [{"version": "v1", "freshness": "Current", "resources": [resource]}],
            })),
        }
    }
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {},
        "items": items,
    })
}

/// The list of these groups and versions in the old form.
pub(crate) fn groups(versions: &[&str]) -> Value {
    let group = |text: &&str| {
        let (name, version) = text.split_once('/').unwrap();
        let version = json!({"groupVersion": text, "version": version});
        json!({"name": name, "versions": [version], "preferredVersion": version})
    };
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": versions.iter().map(group).collect::<Vec<_>>()})
}

/// The list of these resources (plural, kind) of a version in the old form.
pub(crate) fn list(group_version: &str, resources: &[(&str, &str)]) -> Value {
    let resource = |(plural, kind): &(&str, &str)| {
        json!({
            "name": plural, "singularName": kind.to_lowercase(), "namespaced": true, "kind": kind,
            "verbs": ["get", "list", "watch"],
        })
    };
    let resources: Vec<_> = resources.iter().map(resource).collect();
    json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources})
}
