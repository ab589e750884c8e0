//! The server of the comparison of many informers: the in-memory API server in a process of its own.
//!
//! Answers "what do the many informers follow?": custom kinds with small objects in two namespaces. Invariants:
//! 1. Every second object has the label `half=yes`, and every second one, another half, is in namespace `a`.
//! 2. The process ends with the pipe that its parent holds.
//!
//! Read next: `../many.rs`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, anyhow, ensure};
use informer_apiserver::ApiServer;
use serde_json::json;

use super::Plan;

/// Serves so many kinds with so many objects each, prints where, and ends when standard input does.
pub(crate) fn serve(kinds: usize, objects: usize, tls: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let builder = ApiServer::builder();
    let server = runtime.block_on(if tls { builder.tls() } else { builder }.start())?;
    let create = |object| server.create(object).map(drop).map_err(|error| anyhow!("{error}"));
    for namespace in ["a", "b"] {
        create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))?;
    }
    for kind in 0..kinds {
        create(definition(kind))?;
        for number in 0..objects {
            create(json!({
                "apiVersion": "example.org/v1", "kind": format!("Kind{kind}"),
                "metadata": {
                    "name": format!("object-{number}"),
                    "namespace": if number % 4 < 2 { "a" } else { "b" },
                    "labels": {"half": if number % 2 == 0 { "yes" } else { "no" }},
                },
                "spec": {"host": format!("host-{number}.example.org"), "replicas": number, "tls": true},
            }))?;
        }
    }
    let place = if tls { server.kubeconfig() } else { server.url() };
    println!("{}", serde_json::to_string(&place)?);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn definition(kind: usize) -> serde_json::Value {
    let plural = format!("kind{kind}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.org")},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": plural, "singular": format!("kind{kind}"), "kind": format!("Kind{kind}")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }},
            }],
        },
    })
}

/// A server that ends when this is dropped.
pub(crate) struct Serving {
    child: Child,
    place: String,
}

impl Serving {
    pub(crate) fn start(plan: &Plan) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["many-serve", "--kinds", &plan.kinds.to_string(), "--objects", &plan.objects.to_string()])
            .args(plan.tls.then_some("--tls"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("the server's output is piped")?;
        let mut serving = Self { child, place: String::new() };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        ensure!(!line.is_empty(), "the server did not start");
        serving.place = serde_json::from_str(&line)?;
        Ok(serving)
    }

    /// Its URL, or a kubeconfig if it speaks HTTPS.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends by itself now; if it is gone already, there is nothing to wait for.
        let _gone = self.child.wait();
    }
}
